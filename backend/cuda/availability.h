#pragma once

#include <string>

namespace headway::backend {

/// Codes of cudaError_t that say that there is no usable GPU.
inline constexpr int kCudaInsufficientDriver = 35;
inline constexpr int kCudaNoDevice = 100;

/// Why there is no usable GPU, from what cudaGetDeviceCount returned, the text of that code, the driver's version
/// (cudaDriverGetVersion: 0 without one; 13000 is 13.0) and the number of devices. Empty when there is one.
/// Without any driver CUDA reports one that is too old, and only the version tells the two apart.
inline std::string cuda_absence(int code, const std::string& text, int driver_version, int devices) {
    const auto version = [](int number) {
        return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
    };
    if (code == kCudaInsufficientDriver) {
        return driver_version == 0 ? "no driver"
                                   : "driver too old: it is made for CUDA " + version(driver_version) +
                                         ", this program needs a newer one";
    }
    if (code == kCudaNoDevice || (code == 0 && devices == 0)) return "no GPU found";
    if (code != 0) return "cudaGetDeviceCount: error " + std::to_string(code) + ", " + text;
    return "";
}

}  // namespace headway::backend
