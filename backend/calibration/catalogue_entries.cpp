#include "backend/calibration/catalogue_entries.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "scenarios/language/read.h"
#include "scenarios/language/value_text.h"

namespace headway::backend {

namespace {

/// Four digits are more than a measurement holds.
double rounded(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return std::strtod(text, nullptr);
}

class EntryText {
  public:
    EntryText(const std::string& description, const EntryOrigin& origin) {
        text_ = "description: " + description + "\nbase: " + origin.base + "\nsources:\n  measured: \"";
        for (const char c : origin.source) {
            if (c == '"' || c == '\\') text_ += '\\';
            text_ += c;
        }
        text_ += "\"\n";
    }
    void value(const char* key, const std::string& value) {
        text_ += std::string(key) + ": [" + value + ", measured]\n";
    }
    void value(const char* key, double number) { value(key, scenarios::format_value(rounded(number))); }
    template <class Rate>
    void rate(const char* key, Rate quantity) {
        quantity.value = std::round(rounded(quantity.value));
        value(key, scenarios::format_value(quantity));
    }
    void line(const std::string& text) { text_ += text + "\n"; }
    std::string take() { return std::move(text_); }

  private:
    std::string text_;
};

std::string time_text(scenarios::Duration time) {
    return scenarios::format_value(
        scenarios::Duration::nanoseconds(std::llround(rounded(static_cast<double>(time.ns())))));
}

}  // namespace

std::string gpu_entry(const scenarios::GpuType& gpu, bool peak_known, scenarios::Precision precision,
                      const EntryOrigin& origin) {
    EntryText entry("This machine as `headway calibrate` measured it", origin);
    if (!peak_known) {
        if (precision == scenarios::Precision::kFp32)
            entry.rate("peak_single", *gpu.peak_single);
        else
            entry.rate("peak_half", gpu.peak_half);
        entry.rate("memory_bandwidth", gpu.memory_bandwidth);
    }
    entry.value("memory_efficiency", gpu.memory_efficiency);
    entry.value("gemm_efficiency", gpu.gemm_efficiency);
    entry.value("gemm_depth_lost", gpu.gemm_depth_lost);
    entry.value("attention_forward_efficiency", gpu.attention_forward_efficiency);
    entry.value("attention_backward_efficiency", gpu.attention_backward_efficiency);
    return entry.take();
}

std::string stack_entry(const scenarios::SoftwareStack& stack, bool messages, const EntryOrigin& origin) {
    EntryText entry("Headway's own backend on this machine as `headway calibrate` measured it", origin);
    entry.value("kernel_gap", time_text(stack.kernel_gap));
    entry.value("memory_traffic", stack.memory_traffic);
    entry.value("loss_traffic", stack.loss_traffic);
    entry.value("optimizer_traffic", stack.optimizer_traffic);
    entry.value("host_step", time_text(stack.host_step));
    if (messages) entry.value("host_message", time_text(stack.host_message));
    return entry.take();
}

std::string fabric_entry(const scenarios::Fabric& fabric, const EntryOrigin& origin) {
    EntryText entry("Between the ranks of this machine as `headway calibrate` measured it", origin);
    entry.rate("bandwidth", fabric.bandwidth);
    entry.value("efficiency", fabric.efficiency);
    const std::string protocol = "{start: [" + time_text(fabric.simple.start) + ", measured], hop: [" +
                                 time_text(fabric.simple.hop) + ", measured]}";
    for (const char* key : {"low_latency", "low_latency_128", "simple"}) entry.line(std::string(key) + ": " + protocol);
    return entry.take();
}

}  // namespace headway::backend
