#include "scenarios/record/run_writer.h"

#include <sys/utsname.h>

#include <array>
#include <chrono>
#include <ctime>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "scenarios/record/decision_lines.h"
#include "scenarios/record/record_file.h"
#include "scenarios/record/record_lines.h"
#include "scenarios/record/sample_lines.h"

namespace headway::scenarios {

namespace fs = std::filesystem;

namespace {

constexpr std::array<const char*, 3> kLevelNames = {"decisions", "iterations", "operations"};

}  // namespace

const char* name_of(RecordLevel level) {
    return kLevelNames[static_cast<std::size_t>(level)];
}

RecordLevel record_level(const std::string& name) {
    for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
        if (name == kLevelNames[i]) return static_cast<RecordLevel>(i);
    }
    throw std::invalid_argument("record level '" + name + "' is not one of decisions, iterations, operations");
}

Provenance current_provenance(const std::string& program) {
    Provenance provenance;
    provenance.program = program;
    utsname system{};
    if (::uname(&system) == 0) {
        provenance.machine = std::string(system.nodename) + ", " + system.sysname + " " + system.release + " " +
                             system.machine + ", " + std::to_string(std::thread::hardware_concurrency()) +
                             " processors";
    }
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    std::array<char, 32> text{};
    provenance.started.assign(text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc));
    return provenance;
}

class RecordWriter::Impl {
  public:
    Impl(fs::path file, RecordOptions options) : path_(std::move(file)), options_(std::move(options)) {}

    bool records(RecordLevel level) const { return options_.level >= level; }

    void begin(const RunHeader& header) {
        if (file_) throw std::logic_error("a run record begins once");
        // Lines first: a header that cannot be written leaves no file.
        const std::array<std::string, 4> lines = {header_line(header, options_.level),
                                                  provenance_line(options_.provenance), scenario_line(header),
                                                  topology_line(header)};
        file_.emplace(path_);
        decision_state_.plan = header.plan;
        clock_.emplace(header.telemetry_period_ns, options_.sample_budget_bytes);
        add("header", lines[0]);
        add("provenance", lines[1]);
        add("scenario", lines[2]);
        add("topology", lines[3]);
        flush();
    }

    /// `kind` is a string literal.
    void add(const char* kind, const std::string& line) {
        if (!file_) throw std::logic_error("a run record has to begin first");
        if (ended_) throw std::logic_error("a run record has ended");
        const std::size_t start = buffer_.size();
        buffer_ += line;
        buffer_ += '\n';
        bytes_ += static_cast<std::int64_t>(buffer_.size() - start);
        const std::string_view view(kind);
        if (view != "provenance" && view != "footer") digest_.add(std::string_view(buffer_).substr(start));
        ++counts_[kind];
        if (buffer_.size() >= kFlushBytes) flush();
    }

    void telemetry(const TelemetryEvent& event) {
        if (telemetry_.pending() && event.time_ns != telemetry_.time_ns()) write_telemetry();
        telemetry_.add(event);
    }

    void link_load(const LinkLoadEvent& event) {
        if (link_load_.pending() && event.time_ns != link_load_.time_ns()) write_link_load();
        link_load_.add(event);
    }

    void decision(const DecisionEvent& event) { add("decision", decision_line(event, decision_state_)); }

    /// Samples belong before whatever happens next.
    void write_samples() {
        if (!clock_) throw std::logic_error("a run record has to begin first");
        write_telemetry();
        write_link_load();
    }

    void end(const RunFooter& footer) {
        write_samples();
        std::vector<RecordCount> counts;
        for (const auto& [kind, lines] : counts_) {
            if (kind != "provenance") counts.push_back({kind.c_str(), lines});
        }
        add("footer", footer_line(footer, counts, digest_));
        flush();
        ended_ = true;
        file_.reset();
    }

    void flush() {
        file_->write(buffer_);
        buffer_.clear();
    }

    /// What was not flushed yet still belongs to the record of a run that broke off.
    void abandon() noexcept {
        if (!file_ || buffer_.empty()) return;
        try {
            flush();
        } catch (const std::exception&) {  // a destructor has nobody to tell; the missing footer does
        }
    }

    std::int64_t bytes() const { return bytes_; }

  private:
    static constexpr std::size_t kFlushBytes = 1 << 16;

    void write_telemetry() { write_sample("telemetry", telemetry_.line(*clock_)); }
    void write_link_load() { write_sample("link_load", link_load_.line(*clock_)); }
    void write_sample(const char* kind, const std::string& line) {
        if (line.empty()) return;
        add(kind, line);
        clock_->used(static_cast<std::int64_t>(line.size()) + 1);
    }

    fs::path path_;
    RecordOptions options_;
    std::optional<RecordFile> file_;
    std::string buffer_;
    std::int64_t bytes_ = 0;
    std::map<std::string, std::int64_t, std::less<>> counts_;
    RecordDigest digest_;
    std::optional<SampleClock> clock_;
    DecisionState decision_state_;
    TelemetrySampler telemetry_;
    LinkLoadSampler link_load_;
    bool ended_ = false;
};

RecordWriter::RecordWriter(fs::path file, RecordOptions options)
    : impl_(std::make_unique<Impl>(std::move(file), std::move(options))) {}

RecordWriter::~RecordWriter() {
    impl_->abandon();
}

void RecordWriter::begin(const RunHeader& header) {
    impl_->begin(header);
}

void RecordWriter::iteration(const IterationEvent& event) {
    if (!impl_->records(RecordLevel::kIterations)) return;
    impl_->write_samples();
    impl_->add("iteration", iteration_line(event));
}

void RecordWriter::telemetry(const TelemetryEvent& event) {
    if (impl_->records(RecordLevel::kIterations)) impl_->telemetry(event);
}

void RecordWriter::link_load(const LinkLoadEvent& event) {
    if (impl_->records(RecordLevel::kIterations)) impl_->link_load(event);
}

void RecordWriter::disturbance(const DisturbanceEvent& event) {
    impl_->write_samples();
    impl_->add("disturbance", disturbance_line(event));
}

void RecordWriter::pause(const PauseEvent& event) {
    impl_->write_samples();
    impl_->add(event.reason == PauseEvent::Reason::kSwitch ? "switch" : "pause", pause_line(event));
    impl_->flush();
}

void RecordWriter::decision(const DecisionEvent& event) {
    impl_->write_samples();
    impl_->decision(event);
    impl_->flush();
}

void RecordWriter::log(const LogEvent& event) {
    impl_->write_samples();
    impl_->add("log", log_line(event));
}

void RecordWriter::operations(std::int64_t iteration, std::int64_t start_ns,
                              const std::vector<TimelineEntry>& entries) {
    if (!impl_->records(RecordLevel::kOperations)) return;
    impl_->write_samples();
    std::map<int, std::vector<TimelineEntry>> by_worker;
    for (const TimelineEntry& entry : entries) by_worker[entry.worker].push_back(entry);
    for (const auto& [worker, own] : by_worker) impl_->add("op", op_line(iteration, start_ns, own));
}

bool RecordWriter::wants_operations() const {
    return impl_->records(RecordLevel::kOperations);
}

void RecordWriter::end(const RunFooter& footer) {
    impl_->end(footer);
}

std::int64_t RecordWriter::bytes() const {
    return impl_->bytes();
}

}  // namespace headway::scenarios
