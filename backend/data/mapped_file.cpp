#include "backend/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "scenarios/language/config_error.h"

namespace headway::backend {

MappedFile::MappedFile(const std::filesystem::path& file) {
    const auto fail = [&](int descriptor, const std::string& why) {
        if (descriptor >= 0) ::close(descriptor);
        throw scenarios::ConfigError(file.string() + ": " + why);
    };
    // A pipe must not be waited for, only refused.
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        fail(descriptor,
             errno == ENOENT ? "no such file" : "cannot be opened: " + std::generic_category().message(errno));
    struct stat status {};
    if (::fstat(descriptor, &status) != 0)
        fail(descriptor, "cannot be read: " + std::generic_category().message(errno));
    if (!S_ISREG(status.st_mode))
        fail(descriptor, S_ISDIR(status.st_mode) ? "is a folder, not a file" : "is not a plain file");
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size > 0) {  // nothing cannot be mapped
        void* const data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
        if (data == MAP_FAILED) fail(descriptor, "cannot be mapped: " + std::generic_category().message(errno));
        bytes_ = {static_cast<const std::byte*>(data), size};
    }
    ::close(descriptor);
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace headway::backend
