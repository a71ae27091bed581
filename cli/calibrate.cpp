#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "backend/calibration/catalogue_entries.h"
#include "backend/calibration/fit.h"
#include "backend/calibration/timings.h"
#include "backend/communicator/host_control.h"
#include "backend/launch/process_rank.h"
#include "backend/processors.h"
#include "cli/catalogue_choice.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output_file.h"
#include "cli/own_ranks.h"
#include "cli/standard_output.h"
#include "scenarios/language/config_error.h"
#include "scenarios/language/read.h"
#include "scenarios/record/calibration_report.h"
#include "scenarios/record/run_writer.h"
#include "scenarios/record/whole_file.h"

namespace headway::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kPatience{600'000};

/// The entries that a calibration writes: GPU, stack and fabric of one name, each in its folder of a catalogue.
struct EntryFiles {
    fs::path gpu;
    fs::path stack;
    fs::path fabric;
};

EntryFiles entry_files(const fs::path& out) {
    const fs::path whole = fs::absolute(out).lexically_normal();
    const fs::path catalogue = whole.parent_path().parent_path();
    if (whole.parent_path().filename() != "gpus" || whole.extension() != ".yaml")
        throw scenarios::ConfigError("--out " + out.string() +
                                     ": is no entry of a catalogue (CATALOGUE/gpus/NAME.yaml, as in " +
                                     "scenarios/gpus/this-machine.yaml; stack and fabric are written beside it)");
    return {whole, catalogue / "stacks" / whole.filename(), catalogue / "fabrics" / whole.filename()};
}

/// What is fitted starts from here, and what is not measured stays as it is here.
struct Bases {
    scenarios::GpuType gpu;
    scenarios::SoftwareStack stack;
    scenarios::Fabric fabric;
    bool peak_known = false;
    scenarios::Precision precision = scenarios::Precision::kFp32;
};

Bases bases_of(const CalibrateArguments& arguments) {
    const scenarios::Catalogue catalogue = chosen_catalogue(arguments);
    const bool host = arguments.processors == "host";
    if (!host && !arguments.base)
        throw scenarios::ConfigError(
            "--base GPU: the type that this device is, whose peaks its data sheet states "
            "(headway list gpus)");
    Bases bases;
    bases.gpu = scenarios::read_gpu(catalogue, arguments.base.value_or("host-core"));
    bases.stack = scenarios::read_stack(catalogue, host ? "headway-host" : "headway-cuda");
    bases.fabric = scenarios::read_fabric(catalogue, arguments.fabric.value_or(host ? "host-loopback" : "nvlink4"));
    bases.peak_known = !host;
    bases.precision = host ? scenarios::Precision::kFp32 : scenarios::Precision::kBf16;
    return bases;
}

void write_entry(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    scenarios::WholeFile whole(file);
    whole.write(text);
    whole.commit();
}

scenarios::CalibrationFigure figure(const char* what, const backend::FitError& error) {
    return {what, error.count, error.mean, error.worst};
}

/// What process 0 does once everything is measured: fit, write, report.
void fit_and_write(const CalibrateArguments& arguments, const Bases& bases, const std::string& device,
                   const backend::KernelTimings& kernels, const std::vector<backend::StepTiming>& steps,
                   const std::vector<backend::CollectiveTiming>& collectives) {
    const EntryFiles files = entry_files(arguments.out);
    // The gap of a kernel belongs to the stack, which is fitted second: once round and again with what came out.
    scenarios::SoftwareStack stack = bases.stack;
    scenarios::GpuType gpu = bases.gpu;
    for (int round = 0; round < 2; ++round) {
        gpu = backend::fit_gpu(bases.gpu, bases.peak_known, bases.precision, kernels, stack.kernel_gap);
        stack = backend::fit_stack(bases.stack, gpu, steps);
    }
    const scenarios::Provenance now = scenarios::current_provenance("headway");
    const std::string source = "headway calibrate, " + now.started.substr(0, 10) + ", " + device + ", " + now.machine;
    const auto origin = [&](const std::string& base) { return backend::EntryOrigin{base, source}; };

    scenarios::CalibrationReport report;
    report.device = device;
    report.figures = {figure("matrix products", backend::gemm_error(gpu, bases.precision, kernels, stack.kernel_gap)),
                      figure("training steps", backend::step_error(stack, gpu, steps))};
    if (!collectives.empty()) {
        const scenarios::Fabric fabric = backend::fit_fabric(bases.fabric, collectives);
        stack.host_message = backend::fit_host_message(fabric, collectives);
        report.figures.push_back(figure("collectives", backend::fabric_error(fabric, collectives)));
        report.bus_bytes_per_second = fabric.bandwidth.value;
        write_entry(files.fabric, backend::fabric_entry(fabric, origin(bases.fabric.name)));
    }
    write_entry(files.gpu, backend::gpu_entry(gpu, bases.peak_known, bases.precision, origin(bases.gpu.name)));
    write_entry(files.stack, backend::stack_entry(stack, !collectives.empty(), origin(bases.stack.name)));
    report.files = {files.gpu.string(), files.stack.string()};
    if (!collectives.empty()) report.files.push_back(files.fabric.string());
    report.peak_flops_per_second = scenarios::working_peak(gpu, bases.precision).value;
    report.gemm_efficiency = gpu.gemm_efficiency;
    report.memory_bytes_per_second = gpu.memory_bandwidth.value * gpu.memory_efficiency;
    print(arguments.json ? scenarios::calibration_json(report) : scenarios::calibration_text(report));
}

int take_part(const CalibrateArguments& arguments, const backend::ProcessRank& process) {
    const Bases bases = bases_of(arguments);
    const backend::MeetingPoint meeting = backend::meeting_point(process, std::nullopt, kPatience);
    backend::HostControl control(meeting.point, process.rank, process.size, kPatience);
    backend::Processors processors =
        backend::make_processors(arguments.processors, control, process.local_rank, kPatience);
    const bool large = arguments.processors != "host";
    backend::KernelTimings kernels;
    std::vector<backend::StepTiming> steps;
    if (process.rank == 0) {
        // The others wait meanwhile, so that nothing shares the processors with what is measured.
        complain("measuring kernels ...");
        kernels = backend::time_kernels(*processors.device, large);
        complain("measuring training steps ...");
    }
    for (const scenarios::Job& job : backend::calibration_jobs(large, bases.precision)) {
        // Groups are made by all, steps by process 0 alone.
        const auto timing = backend::time_step(*processors.device, *processors.communicators, job, process.rank);
        if (timing) steps.push_back(*timing);
    }
    std::vector<backend::CollectiveTiming> collectives;
    if (process.size > 1) {
        if (process.rank == 0) complain("measuring collectives ...");
        collectives = backend::time_collectives(*processors.device, *processors.communicators, control);
    }
    if (process.rank == 0) fit_and_write(arguments, bases, processors.device->name(), kernels, steps, collectives);
    return kSucceeded;
}

}  // namespace

int calibrate(const CalibrateArguments& arguments) {
    const backend::ProcessRank process = backend::process_rank();
    if (!process.told_by.empty()) return take_part(arguments, process);
    const EntryFiles files = entry_files(arguments.out);
    bases_of(arguments);
    expect_writable("--out", files.gpu, arguments.force);
    expect_writable("--out (its stack)", files.stack, arguments.force);
    if (arguments.ranks > 1) expect_writable("--out (its fabric)", files.fabric, arguments.force);
    if (arguments.ranks == 1) return take_part(arguments, process);
    return run_as_ranks(arguments.command_line, arguments.ranks, false);
}

}  // namespace headway::cli
