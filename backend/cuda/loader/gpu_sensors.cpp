#include "backend/telemetry/gpu_sensors.h"

#include <dlfcn.h>

#include <array>
#include <string>

namespace headway::backend {

namespace {

// The part of NVML that is used, as its documentation states it (NVML API reference, NVIDIA): names found at run time,
// since neither header nor library need be there when this is built.
using NvmlDevice = struct NvmlDeviceHandle*;
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlTemperatureGpu = 0;
constexpr int kNvmlClockSm = 1;
struct NvmlMemory {
    unsigned long long total, free, used;
};

using Initialise = int (*)();
using Count = int (*)(unsigned*);
using ByIndex = int (*)(unsigned, NvmlDevice*);
using ByBus = int (*)(const char*, NvmlDevice*);
using Index = int (*)(NvmlDevice, unsigned*);
using Name = int (*)(NvmlDevice, char*, unsigned);
using Selected = int (*)(NvmlDevice, int, unsigned*);  // temperature of a sensor, clock of a domain
using Plain = int (*)(NvmlDevice, unsigned*);
using Wide = int (*)(NvmlDevice, unsigned long long*);
using Memory = int (*)(NvmlDevice, NvmlMemory*);

class NvmlLibrary {
  public:
    explicit NvmlLibrary(const std::string& name) : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
    ~NvmlLibrary() {
        if (handle_ != nullptr) dlclose(handle_);
    }
    NvmlLibrary(const NvmlLibrary&) = delete;
    NvmlLibrary& operator=(const NvmlLibrary&) = delete;

    template <typename Function>
    void find(Function& function, const char* name) const {
        if (handle_ != nullptr) function = reinterpret_cast<Function>(dlsym(handle_, name));
    }

  private:
    void* handle_;
};

class NvmlSensors final : public GpuSensors {
  public:
    explicit NvmlSensors(const std::string& library) : library_(library) {
        library_.find(initialise_, "nvmlInit_v2");
        library_.find(shut_down_, "nvmlShutdown");
        library_.find(count_of_, "nvmlDeviceGetCount_v2");
        library_.find(by_index_, "nvmlDeviceGetHandleByIndex_v2");
        library_.find(by_bus_, "nvmlDeviceGetHandleByPciBusId_v2");
        library_.find(index_of_, "nvmlDeviceGetIndex");
        library_.find(name_of_, "nvmlDeviceGetName");
        library_.find(temperature_, "nvmlDeviceGetTemperature");
        library_.find(clock_, "nvmlDeviceGetClockInfo");
        library_.find(power_, "nvmlDeviceGetPowerUsage");
        library_.find(throttle_, "nvmlDeviceGetCurrentClocksEventReasons");
        if (throttle_ == nullptr) library_.find(throttle_, "nvmlDeviceGetCurrentClocksThrottleReasons");  // older
        library_.find(memory_, "nvmlDeviceGetMemoryInfo");
        if (initialise_ == nullptr || count_of_ == nullptr || by_index_ == nullptr) return;
        started_ = initialise_() == kNvmlSuccess;
        unsigned count = 0;
        if (started_ && count_of_(&count) == kNvmlSuccess) count_ = static_cast<int>(count);
    }
    ~NvmlSensors() override {
        if (started_ && shut_down_ != nullptr) shut_down_();
    }

    bool usable() const { return count_ > 0; }
    int count() const override { return count_; }

    int find(const std::string& pci_bus_id) const override {
        NvmlDevice device = nullptr;
        unsigned index = 0;
        if (by_bus_ == nullptr || index_of_ == nullptr) return -1;
        if (by_bus_(pci_bus_id.c_str(), &device) != kNvmlSuccess) return -1;
        return index_of_(device, &index) == kNvmlSuccess ? static_cast<int>(index) : -1;
    }

    std::string name(int gpu) const override {
        std::array<char, 96> text{};
        const NvmlDevice device = device_at(gpu);
        if (device == nullptr || name_of_ == nullptr) return "";
        const bool known = name_of_(device, text.data(), text.size() - 1) == kNvmlSuccess;
        return known ? text.data() : "";
    }

    GpuReading read(int gpu) const override {
        GpuReading reading;
        const NvmlDevice device = device_at(gpu);
        if (device == nullptr) return reading;
        unsigned value = 0;
        unsigned long long bits = 0;
        NvmlMemory memory{};
        if (temperature_ != nullptr && temperature_(device, kNvmlTemperatureGpu, &value) == kNvmlSuccess)
            reading.temperature_c = value;
        if (clock_ != nullptr && clock_(device, kNvmlClockSm, &value) == kNvmlSuccess) reading.sm_clock_mhz = value;
        if (power_ != nullptr && power_(device, &value) == kNvmlSuccess) reading.power_w = value * 1e-3;
        if (throttle_ != nullptr && throttle_(device, &bits) == kNvmlSuccess)
            reading.throttle_reasons = static_cast<std::uint32_t>(bits);
        if (memory_ != nullptr && memory_(device, &memory) == kNvmlSuccess) {
            reading.memory_used_bytes = static_cast<std::int64_t>(memory.used);
            reading.memory_total_bytes = static_cast<std::int64_t>(memory.total);
        }
        return reading;
    }

  private:
    NvmlDevice device_at(int gpu) const {
        NvmlDevice device = nullptr;
        if (gpu < 0 || gpu >= count_) return nullptr;
        return by_index_(static_cast<unsigned>(gpu), &device) == kNvmlSuccess ? device : nullptr;
    }

    NvmlLibrary library_;  // outlives the functions found in it
    Initialise initialise_ = nullptr, shut_down_ = nullptr;
    Count count_of_ = nullptr;
    ByIndex by_index_ = nullptr;
    ByBus by_bus_ = nullptr;
    Index index_of_ = nullptr;
    Name name_of_ = nullptr;
    Selected temperature_ = nullptr, clock_ = nullptr;
    Plain power_ = nullptr;
    Wide throttle_ = nullptr;
    Memory memory_ = nullptr;
    bool started_ = false;
    int count_ = 0;
};

}  // namespace

std::unique_ptr<GpuSensors> open_gpu_sensors(const std::string& library) {
    auto sensors = std::make_unique<NvmlSensors>(library);
    if (!sensors->usable()) return nullptr;
    return sensors;
}

}  // namespace headway::backend
