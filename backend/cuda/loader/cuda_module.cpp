#include "backend/cuda/cuda_module.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "backend/backend_error.h"

namespace headway::backend {

namespace {

namespace fs = std::filesystem;

constexpr const char* kModuleName = "libheadway_cuda.so";

/// Beside the program, where the build leaves it relative to programs and tests, and where it is installed.
std::vector<fs::path> places_of_the_module() {
    std::error_code none;
    const fs::path program = fs::read_symlink("/proc/self/exe", none);
    const fs::path folder = program.parent_path();
    return {folder / kModuleName, folder.parent_path() / kModuleName, folder.parent_path().parent_path() / kModuleName,
            folder.parent_path() / "lib" / "headway" / kModuleName};
}

[[noreturn]] void no_device(const std::string& why) {
    throw BackendError("no CUDA device", why);
}

CudaModule& open_module() {
    for (const fs::path& place : places_of_the_module()) {
        std::error_code none;
        if (!fs::exists(place, none)) continue;
        // Own symbols first: what the program happens to export is not the module's.
        void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            const char* why = dlerror();
            no_device(std::string("its libraries cannot be loaded: ") + (why != nullptr ? why : place.c_str()));
        }
        using Version = int (*)();
        using Open = CudaModule* (*)();
        const auto version = reinterpret_cast<Version>(dlsym(library, "headway_cuda_module_version"));
        const auto open = reinterpret_cast<Open>(dlsym(library, "headway_cuda_module"));
        if (version == nullptr || open == nullptr || version() != kCudaModuleVersion) {
            no_device(place.string() + " is of another build than this program");
        }
        return *open();
    }
    no_device("this build was made without CUDA");
}

}  // namespace

CudaModule& cuda_module() {
    static CudaModule& module = open_module();  // tried again after an exception
    const std::string absence = module.absence();
    if (!absence.empty()) no_device(absence);
    return module;
}

}  // namespace headway::backend
