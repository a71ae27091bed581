#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "scenarios/language/program.h"
#include "scenarios/record/exports.h"
#include "scenarios/record/json_text.h"
#include "scenarios/record/record_lines.h"
#include "scenarios/record/whole_file.h"

namespace headway::scenarios {

namespace {

// Processes and tracks of the trace (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
constexpr int kRunProcess = 1;
constexpr int kIterationTrack = 1;
constexpr int kPauseTrack = 2;
constexpr int kDecisionTrack = 3;
constexpr int kFirstDisturbanceTrack = 10;
constexpr int kFirstWorkerProcess = 100;

/// Operations of one kind never overlap on one rank, those of different kinds may: a track a kind.
struct OpTrack {
    int track;
    const char* name;
};

OpTrack track_of(Op op) {
    switch (op) {
        case Op::kSendActivation:
            return {2, "send activations"};
        case Op::kSendGradient:
            return {3, "send gradients"};
        case Op::kReceiveActivation:
            return {4, "receive activations"};
        case Op::kReceiveGradient:
            return {5, "receive gradients"};
        case Op::kReduceGradients:
        case Op::kReduceTiedEmbedding:
        case Op::kGatherParameters:
            return {6, "collectives"};
        default:
            return {1, "compute"};
    }
}

double trace_microseconds(std::int64_t ns) {
    return static_cast<double>(ns) / 1e3;
}

}  // namespace

class TraceWriter::Impl {
  public:
    Impl(std::filesystem::path path, TraceOptions options) : path_(std::move(path)), options_(options) {}

    void begin(const RunHeader& header) {
        if (file_) throw std::logic_error("a trace begins once");
        file_.emplace(path_);
        header_ = header;
        file_->write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
        name_process(kRunProcess, "run: " + header.scenario + ", policy " + header.policy, 0);
        name_track(kRunProcess, kIterationTrack, "iterations");
        name_track(kRunProcess, kPauseTrack, "pauses");
        name_track(kRunProcess, kDecisionTrack, "decisions");
        for (std::size_t i = 0; i < header.disturbances.size(); ++i) {
            const DisturbanceFacts& facts = header.disturbances[i];
            name_track(kRunProcess, kFirstDisturbanceTrack + static_cast<int>(i),
                       facts.name.empty() ? facts.kind : facts.name);
        }
        opened_at_.assign(header.disturbances.size(), -1);
        operations_wanted_ = 2;
    }

    void iteration(const IterationEvent& event) {
        JsonText& json = slice((event.repeats ? "repeat " : "iteration ") + std::to_string(event.index), kRunProcess,
                               kIterationTrack, event.start_ns, event.duration_ns);
        const TimeShares& shares = event.shares;
        json.key("args")
            .begin_object()
            .field("compute_ns", shares.compute_ns)
            .field("bubble_ns", shares.bubble_ns)
            .field("tensor_ns", shares.tensor_ns)
            .field("pipeline_ns", shares.pipeline_ns)
            .field("data_ns", shares.data_ns)
            .field("straggling_ns", shares.straggling_ns)
            .end_object();
        finish();
    }

    void pause(const PauseEvent& event) {
        JsonText& json = slice(record_name(event.reason), kRunProcess, kPauseTrack, event.start_ns, event.duration_ns);
        json.key("args")
            .begin_object()
            .field("what", event.what)
            .field("iterations_lost", event.iterations_lost)
            .end_object();
        finish();
    }

    void decision(const DecisionEvent& event) {
        const bool known = event.chosen >= 0 && static_cast<std::size_t>(event.chosen) < event.candidates.size();
        const std::string kind = known ? event.candidates[static_cast<std::size_t>(event.chosen)].kind : "?";
        event_start(kind, "i", kRunProcess, kDecisionTrack, event.time_ns).field("s", "t");
        finish();
    }

    void disturbance(const DisturbanceEvent& event) {
        const auto index = static_cast<std::size_t>(event.index);
        if (event.index < 0 || index >= opened_at_.size()) return;
        operations_wanted_ = std::max(operations_wanted_, 1);
        if (event.begins) {
            opened_at_[index] = event.time_ns;
        } else {
            close_disturbance(index, event.time_ns);
        }
    }

    void telemetry(const TelemetryEvent& event) {
        if (event.gpu < 0) return;
        const bool slow = event.speed < 0.9995;
        const auto last = last_.find(event.gpu);
        if (slow && !shown_.contains(event.gpu)) {
            shown_.insert(event.gpu);
            if (last != last_.end()) counters(last->second);  // where it came from
        }
        if (shown_.contains(event.gpu)) counters(event);
        last_[event.gpu] = event;
    }

    /// The first iteration always; further ones as long as as many operations as the last had still fit.
    bool wants_operations() const {
        if (operations_wanted_ == 0) return false;
        return operations_written_ == 0 || operations_written_ + operations_of_one_ <= options_.max_operations;
    }

    void operations(std::int64_t iteration, std::int64_t start_ns, const std::vector<TimelineEntry>& entries) {
        const auto count = static_cast<std::int64_t>(entries.size());
        operations_of_one_ = count;
        if (!wants_operations()) return;
        --operations_wanted_;
        operations_written_ += count;
        for (const TimelineEntry& entry : entries) {
            const OpTrack track = track_of(static_cast<Op>(entry.op));
            const int process = worker_process(entry.worker);
            if (tracks_.insert({process, track.track}).second) name_track(process, track.track, track.name);
            JsonText& json = slice(op_name(entry.op), process, track.track, start_ns + entry.start_ns,
                                   entry.end_ns - entry.start_ns);
            json.key("args")
                .begin_object()
                .field("micro_batch", entry.micro_batch)
                .field("chunk", entry.chunk)
                .field("iteration", iteration)
                .end_object();
            finish();
        }
    }

    void end(const RunFooter& footer) {
        if (!file_) throw std::logic_error("a trace has to begin first");
        for (std::size_t i = 0; i < opened_at_.size(); ++i) close_disturbance(i, footer.wall_ns);
        file_->write("\n]}\n");
        file_->commit();
        file_.reset();
    }

  private:
    JsonText& event_start(std::string_view name, const char* phase, int process, int track, std::int64_t time_ns) {
        if (!file_) throw std::logic_error("a trace has to begin first");
        return json_.begin_object()
            .field("name", name)
            .field("ph", phase)
            .field("pid", process)
            .field("tid", track)
            .field("ts", trace_microseconds(time_ns));
    }
    JsonText& slice(std::string_view name, int process, int track, std::int64_t start_ns, std::int64_t duration_ns) {
        return event_start(name, "X", process, track, start_ns).field("dur", trace_microseconds(duration_ns));
    }
    void finish() {
        if (!first_) file_->write(",\n");
        first_ = false;
        file_->write(json_.end_object().take());
    }
    void metadata(const char* what, int process, int track, const char* key, std::string_view text) {
        event_start(what, "M", process, track, 0).key("args").begin_object().field(key, text).end_object();
        finish();
    }
    void name_track(int process, int track, std::string_view name) {
        metadata("thread_name", process, track, "name", name);
    }
    void name_process(int process, std::string_view name, int order) {
        metadata("process_name", process, 0, "name", name);
        event_start("process_sort_index", "M", process, 0, 0)
            .key("args")
            .begin_object()
            .field("sort_index", order)
            .end_object();
        finish();
    }
    int worker_process(int worker) {
        const int process = kFirstWorkerProcess + worker;
        if (workers_.insert(worker).second) {
            const int stages = std::max(header_.plan.layout.pipeline, 1);
            name_process(process,
                         "replica " + std::to_string(worker / stages) + " stage " + std::to_string(worker % stages),
                         process);
        }
        return process;
    }
    void close_disturbance(std::size_t index, std::int64_t time_ns) {
        if (opened_at_[index] < 0) return;
        const DisturbanceFacts& facts = header_.disturbances[index];
        slice(facts.name.empty() ? facts.kind : facts.name, kRunProcess,
              kFirstDisturbanceTrack + static_cast<int>(index), opened_at_[index],
              std::max<std::int64_t>(time_ns - opened_at_[index], 0))
            .key("args")
            .begin_object()
            .field("kind", facts.kind)
            .end_object();
        finish();
        opened_at_[index] = -1;
    }
    void counter(const std::string& name, std::int64_t time_ns, const char* unit, double value) {
        event_start(name, "C", kRunProcess, 0, time_ns).key("args").begin_object().field(unit, value).end_object();
        finish();
    }
    void counters(const TelemetryEvent& event) {
        const std::string gpu = "GPU " + std::to_string(event.gpu);
        counter(gpu + " temperature", event.time_ns, "C", event.temperature_c);
        counter(gpu + " SM clock", event.time_ns, "MHz", event.sm_clock_mhz);
    }

    std::filesystem::path path_;
    TraceOptions options_;
    std::optional<WholeFile> file_;
    RunHeader header_;
    JsonText json_;
    bool first_ = true;
    std::vector<std::int64_t> opened_at_;   ///< [disturbances] -1: not acting
    std::map<int, TelemetryEvent> last_;    ///< by GPU
    std::set<int> shown_;                   ///< GPUs with counters
    std::set<int> workers_;                 ///< with a process
    std::set<std::pair<int, int>> tracks_;  ///< (process, track) with a name
    int operations_wanted_ = 0;             ///< iterations whose operations are still to be written
    std::int64_t operations_written_ = 0;
    std::int64_t operations_of_one_ = 0;  ///< how many the last iteration had
};

TraceWriter::TraceWriter(std::filesystem::path file, TraceOptions options)
    : impl_(std::make_unique<Impl>(std::move(file), options)) {}
TraceWriter::~TraceWriter() = default;

void TraceWriter::begin(const RunHeader& header) {
    impl_->begin(header);
}
void TraceWriter::iteration(const IterationEvent& event) {
    impl_->iteration(event);
}
void TraceWriter::telemetry(const TelemetryEvent& event) {
    impl_->telemetry(event);
}
void TraceWriter::disturbance(const DisturbanceEvent& event) {
    impl_->disturbance(event);
}
void TraceWriter::pause(const PauseEvent& event) {
    impl_->pause(event);
}
void TraceWriter::decision(const DecisionEvent& event) {
    impl_->decision(event);
}
void TraceWriter::operations(std::int64_t iteration, std::int64_t start_ns, const std::vector<TimelineEntry>& entries) {
    impl_->operations(iteration, start_ns, entries);
}
bool TraceWriter::wants_operations() const {
    return impl_->wants_operations();
}

void TraceWriter::end(const RunFooter& footer) {
    impl_->end(footer);
}

}  // namespace headway::scenarios
