// A library with the functions of NVML that are used, for a machine with two GPUs of which one has no power sensor.
// namespace headway::tests has no part in it: these are C names.
#include <cstring>

namespace {

struct Memory {
    unsigned long long total, free, used;
};
int gpu_of(void* device) {
    return *static_cast<int*>(device);
}
int numbers[2] = {0, 1};
constexpr int kNotSupported = 3;

}  // namespace

extern "C" {

int nvmlInit_v2() {
    return 0;
}
int nvmlShutdown() {
    return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
    *count = 2;
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
    *device = &numbers[index];
    return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
    if (std::strcmp(id, "00000000:3B:00.0") != 0) return 2;
    *device = &numbers[1];
    return 0;
}
int nvmlDeviceGetIndex(void* device, unsigned* index) {
    *index = static_cast<unsigned>(gpu_of(device));
    return 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
    std::strncpy(name, "Fake GPU", length);
    return 0;
}
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* degrees) {
    *degrees = static_cast<unsigned>(60 + 10 * gpu_of(device));
    return sensor == 0 ? 0 : 2;
}
int nvmlDeviceGetClockInfo(void*, int domain, unsigned* mhz) {
    *mhz = domain == 1 ? 1980 : 3201;
    return 0;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
    if (gpu_of(device) == 1) return kNotSupported;
    *milliwatts = 412'500;
    return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
    *reasons = 0x20;
    return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
    *memory = {141'000'000'000ull, 100'000'000'000ull, 41'000'000'000ull};
    return 0;
}
}
