#include <array>
#include <charconv>
#include <concepts>
#include <map>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "scenarios/language/config_error.h"
#include "scenarios/record/exports.h"
#include "scenarios/record/record_lines.h"
#include "scenarios/record/run_reader.h"
#include "scenarios/record/whole_file.h"

namespace headway::scenarios {

namespace fs = std::filesystem;

namespace {

/// One row of CSV (RFC 4180, lines end with a newline alone).
class CsvRow {
  public:
    CsvRow& add(std::string_view text) {
        separate();
        if (text.find_first_of(",\"\n\r") == std::string_view::npos) {
            text_ += text;
            return *this;
        }
        text_ += '"';
        for (const char c : text) {
            if (c == '"') text_ += '"';
            text_ += c;
        }
        text_ += '"';
        return *this;
    }
    CsvRow& add(const char* text) { return add(std::string_view(text)); }
    CsvRow& add(bool flag) { return add(std::string_view(flag ? "true" : "false")); }
    CsvRow& add(double number) { return add_number(number); }
    CsvRow& add(std::integral auto number) { return add_number(number); }
    std::string line() const { return text_ + "\n"; }

  private:
    CsvRow& add_number(auto number) {
        separate();
        std::array<char, 32> digits{};
        text_.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
        return *this;
    }
    void separate() {
        if (!first_) text_ += ',';
        first_ = false;
    }
    std::string text_;
    bool first_ = true;
};

/// Writes a file a kind of record, opened when the first row comes.
class CsvSink final : public RunSink {
  public:
    CsvSink(fs::path directory, std::string stem) : directory_(std::move(directory)), stem_(std::move(stem)) {}

    bool begun = false;

    void begin(const RunHeader& header) override {
        begun = true;
        header_ = header;
        std::error_code error;
        fs::create_directories(directory_, error);
        if (error) throw std::runtime_error("cannot write " + directory_.string() + ": " + error.message());
    }
    void iteration(const IterationEvent& event) override {
        const TimeShares& shares = event.shares;
        file("iterations",
             "index,start_ns,duration_ns,repeats,compute_ns,bubble_ns,tensor_ns,pipeline_ns,data_ns,"
             "straggling_ns,recovery_ns")
            .write(CsvRow()
                       .add(event.index)
                       .add(event.start_ns)
                       .add(event.duration_ns)
                       .add(event.repeats)
                       .add(shares.compute_ns)
                       .add(shares.bubble_ns)
                       .add(shares.tensor_ns)
                       .add(shares.pipeline_ns)
                       .add(shares.data_ns)
                       .add(shares.straggling_ns)
                       .add(shares.recovery_ns)
                       .line());
        if (event.loss)
            file("loss", "index,start_ns,loss")
                .write(CsvRow().add(event.index).add(event.start_ns).add(*event.loss).line());
        for (std::size_t i = 0; i < event.disturbance_cost_ns.size(); ++i) {
            if (event.disturbance_cost_ns[i] == 0) continue;
            file("disturbance_costs", "iteration,start_ns,disturbance,cost_ns")
                .write(CsvRow().add(event.index).add(event.start_ns).add(i).add(event.disturbance_cost_ns[i]).line());
        }
    }
    void telemetry(const TelemetryEvent& event) override {
        file("telemetry", "time_ns,gpu,temperature_c,sm_clock_mhz,power_w,speed,throttle_reasons")
            .write(CsvRow()
                       .add(event.time_ns)
                       .add(event.gpu)
                       .add(event.temperature_c)
                       .add(event.sm_clock_mhz)
                       .add(event.power_w)
                       .add(event.speed)
                       .add(event.throttle_reasons)
                       .line());
    }
    void link_load(const LinkLoadEvent& event) override {
        file("link_load", "time_ns,link,utilisation")
            .write(CsvRow().add(event.time_ns).add(event.link).add(event.utilisation).line());
    }
    void disturbance(const DisturbanceEvent& event) override {
        const DisturbanceFacts& facts = header_.disturbances.at(static_cast<std::size_t>(event.index));
        file("disturbances", "time_ns,disturbance,begins,name,kind")
            .write(
                CsvRow().add(event.time_ns).add(event.index).add(event.begins).add(facts.name).add(facts.kind).line());
    }
    void pause(const PauseEvent& event) override {
        file("pauses", "reason,start_ns,duration_ns,iterations_lost,disturbance,what")
            .write(CsvRow()
                       .add(record_name(event.reason))
                       .add(event.start_ns)
                       .add(event.duration_ns)
                       .add(event.iterations_lost)
                       .add(event.disturbance)
                       .add(event.what)
                       .line());
    }
    void decision(const DecisionEvent& event) override {
        std::string lost;
        for (const int gpu : event.lost_gpus) lost += (lost.empty() ? "" : " ") + std::to_string(gpu);
        const DecisionCandidate& chosen = event.candidates.at(static_cast<std::size_t>(event.chosen));
        file("decisions",
             "time_ns,iteration,iteration_ns,lost_gpus,candidates,chosen,kind,why,predicted_iteration_ns,"
             "predicted_pause_ns,moved_bytes,by,shadow_chosen,shadow_regret_ns")
            .write(CsvRow()
                       .add(event.time_ns)
                       .add(event.iteration)
                       .add(event.iteration_ns)
                       .add(lost)
                       .add(event.candidates.size())
                       .add(event.chosen)
                       .add(chosen.kind)
                       .add(chosen.why)
                       .add(chosen.iteration_ns)
                       .add(chosen.pause_ns)
                       .add(chosen.moved_bytes)
                       .add(record_name(event.by))
                       .add(event.shadow ? std::to_string(event.shadow->chosen) : "")
                       .add(event.shadow ? std::to_string(event.shadow->regret_ns) : "")
                       .line());
    }
    void log(const LogEvent& event) override {
        file("log", "time_ns,severity,text")
            .write(CsvRow().add(event.time_ns).add(record_name(event.severity)).add(event.text).line());
    }
    void operations(std::int64_t iteration, std::int64_t start_ns, const std::vector<TimelineEntry>& entries) override {
        for (const TimelineEntry& entry : entries) {
            file("operations", "iteration,start_ns,worker,op,chunk,micro_batch,begin_ns,end_ns")
                .write(CsvRow()
                           .add(iteration)
                           .add(start_ns)
                           .add(entry.worker)
                           .add(op_name(entry.op))
                           .add(entry.chunk)
                           .add(entry.micro_batch)
                           .add(entry.start_ns)
                           .add(entry.end_ns)
                           .line());
        }
    }
    void end(const RunFooter& footer) override {
        for (const GpuSummary& gpu : footer.gpus) {
            file("gpus", "gpu,mean_speed,min_speed,max_temperature_c")
                .write(CsvRow().add(gpu.gpu).add(gpu.mean_speed).add(gpu.min_speed).add(gpu.max_temperature_c).line());
        }
    }

    std::vector<fs::path> commit() {
        std::vector<fs::path> paths;
        for (auto& [kind, open] : files_) {
            open.commit();
            paths.push_back(open.path());
        }
        return paths;
    }

  private:
    WholeFile& file(const std::string& kind, std::string_view columns) {
        const auto found = files_.find(kind);
        if (found != files_.end()) return found->second;
        WholeFile& opened = files_.try_emplace(kind, directory_ / (stem_ + "." + kind + ".csv")).first->second;
        opened.write(std::string(columns) + "\n");
        return opened;
    }

    fs::path directory_;
    std::string stem_;
    RunHeader header_;
    std::map<std::string, WholeFile> files_;
};

/// "runs/a.run.jsonl" -> "a"
std::string record_stem(const fs::path& record) {
    std::string name = record.filename().string();
    for (const std::string_view ending : {".jsonl", ".run"}) {
        if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
    }
    return name;
}

}  // namespace

CsvExport export_csv(const fs::path& record, const fs::path& directory) {
    RecordReader reader(record);
    CsvSink sink(directory, record_stem(record));
    const RecordStatus status = reader.poll(sink);
    if (!sink.begun) throw ConfigError(why_no_run(record, status));
    return {sink.commit(), status.problem};
}

}  // namespace headway::scenarios
