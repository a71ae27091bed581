#include "scenarios/record/run_reader.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <map>
#include <system_error>
#include <utility>

#include "scenarios/language/config_error.h"
#include "scenarios/record/record_lines.h"
#include "scenarios/record/record_parse.h"

namespace headway::scenarios {

namespace fs = std::filesystem;

class RecordReader::Impl {
  public:
    explicit Impl(fs::path path) : path_(std::move(path)) {
        std::error_code ignored;
        if (fs::is_directory(path_, ignored)) throw ConfigError(path_.string() + ": is a folder, not a run record");
        file_.reset(std::fopen(path_.c_str(), "rbe"));
        if (!file_) throw ConfigError(path_.string() + ": cannot be read: " + std::generic_category().message(errno));
    }

    RecordStatus poll(RunSink& sink) {
        std::array<char, 1 << 16> chunk;
        std::clearerr(file_.get());
        while (state_ != RecordStatus::State::kDamaged) {
            const std::size_t count = std::fread(chunk.data(), 1, chunk.size(), file_.get());
            if (count == 0) break;
            pending_.append(chunk.data(), count);
            std::size_t start = 0;
            for (std::size_t end;
                 state_ != RecordStatus::State::kDamaged && (end = pending_.find('\n', start)) != std::string::npos;
                 start = end + 1) {
                line(std::string_view(pending_).substr(start, end + 1 - start), sink);
            }
            pending_.erase(0, start);
            if (pending_.size() > kLongestLine) damaged(lines_ + 1, "longer than any line of a run record");
        }
        if (std::ferror(file_.get())) {
            damaged(lines_ + 1, "cannot be read: " + std::generic_category().message(errno));
        } else if (state_ == RecordStatus::State::kComplete && !pending_.empty()) {
            damaged(lines_ + 1, "text after the footer");
        }
        RecordStatus status{state_, lines_, problem_};
        if (state_ == RecordStatus::State::kUnfinished) {
            status.problem = path_.string() + ": unfinished: no footer after line " + std::to_string(lines_);
            if (!pending_.empty()) status.problem += ", and line " + std::to_string(lines_ + 1) + " is cut off";
        }
        return status;
    }

    const RecordParser& parser() const { return parser_; }
    bool header_seen() const { return header_seen_; }
    bool provenance_seen() const { return provenance_seen_; }

  private:
    static constexpr std::size_t kLongestLine = std::size_t{1} << 28;

    struct CloseFile {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };

    void damaged(std::int64_t line, const std::string& what) {
        state_ = RecordStatus::State::kDamaged;
        problem_ = path_.string() + ":" + std::to_string(line) + ": " + what;
        pending_.clear();
    }

    /// `text` includes the newline.
    void line(std::string_view text, RunSink& sink) {
        if (state_ == RecordStatus::State::kComplete) return damaged(lines_ + 1, "text after the footer");
        ParsedLine parsed;
        std::string kind;
        try {
            parsed = parser_.parse(text.substr(0, text.size() - 1), kind);
        } catch (const RecordLineError& error) {
            return damaged(lines_ + 1, error.what());
        }
        if (!std::holds_alternative<ParsedOps>(parsed)) flush_ops(sink);
        if (kind == "footer") digest_.add(text.substr(0, text.rfind(kDigestKey)));
        std::visit([&](auto& what) { deliver(what, sink); }, parsed);
        if (state_ == RecordStatus::State::kDamaged) return;
        if (kind != "provenance" && kind != "footer") {
            digest_.add(text);
            ++counts_[kind];
        }
        ++lines_;
    }

    void flush_ops(RunSink& sink) {
        if (ops_.entries.empty()) return;
        sink.operations(ops_.iteration, ops_.start_ns, ops_.entries);
        ops_.entries.clear();
    }

    void deliver(const ParsedHeader&, RunSink&) { header_seen_ = true; }
    void deliver(const ParsedProvenance&, RunSink&) { provenance_seen_ = true; }
    void deliver(const ParsedTopology&, RunSink& sink) { sink.begin(parser_.header()); }
    void deliver(const IterationEvent& event, RunSink& sink) { sink.iteration(event); }
    void deliver(const DisturbanceEvent& event, RunSink& sink) { sink.disturbance(event); }
    void deliver(const PauseEvent& event, RunSink& sink) { sink.pause(event); }
    void deliver(const DecisionEvent& event, RunSink& sink) { sink.decision(event); }
    void deliver(const LogEvent& event, RunSink& sink) { sink.log(event); }
    void deliver(const LearningHeader& header, RunSink& sink) { sink.begin_learning(header); }
    void deliver(const TrainingUpdateEvent& event, RunSink& sink) { sink.training_update(event); }
    void deliver(const EvaluationEvent& event, RunSink& sink) { sink.evaluation(event); }
    void deliver(const std::vector<TelemetryEvent>& events, RunSink& sink) {
        for (const TelemetryEvent& event : events) sink.telemetry(event);
    }
    void deliver(const std::vector<LinkLoadEvent>& events, RunSink& sink) {
        for (const LinkLoadEvent& event : events) sink.link_load(event);
    }
    /// The lines of all workers of an iteration are one event.
    void deliver(ParsedOps& ops, RunSink& sink) {
        if (ops.iteration != ops_.iteration || ops.start_ns != ops_.start_ns) flush_ops(sink);
        ops_.iteration = ops.iteration;
        ops_.start_ns = ops.start_ns;
        ops_.entries.insert(ops_.entries.end(), ops.entries.begin(), ops.entries.end());
    }
    void deliver(const ParsedFooter& parsed, RunSink& sink) {
        std::map<std::string, std::int64_t> counts(parsed.counts.begin(), parsed.counts.end());
        if (counts != counts_)
            return damaged(lines_ + 1, "the footer counts other lines than there are: some are missing");
        if (parsed.digest != digest_.text()) {
            return damaged(lines_ + 1, "the footer's digest does not match: a line was changed after it was written");
        }
        state_ = RecordStatus::State::kComplete;
        sink.end(parsed.footer);
    }

    fs::path path_;
    std::unique_ptr<std::FILE, CloseFile> file_;
    std::string pending_;  ///< begins at a line
    RecordParser parser_;
    RecordDigest digest_;
    std::map<std::string, std::int64_t> counts_;
    ParsedOps ops_;
    std::int64_t lines_ = 0;
    RecordStatus::State state_ = RecordStatus::State::kUnfinished;
    std::string problem_;
    bool header_seen_ = false;
    bool provenance_seen_ = false;
};

RecordReader::RecordReader(fs::path file) : impl_(std::make_unique<Impl>(std::move(file))) {}
RecordReader::~RecordReader() = default;

RecordStatus RecordReader::poll(RunSink& sink) {
    return impl_->poll(sink);
}

std::optional<RecordLevel> RecordReader::level() const {
    if (!impl_->header_seen()) return std::nullopt;
    return impl_->parser().level();
}

std::optional<Provenance> RecordReader::provenance() const {
    if (!impl_->provenance_seen()) return std::nullopt;
    return impl_->parser().provenance();
}

std::string why_no_run(const fs::path& file, const RecordStatus& status) {
    return status.problem.empty() ? file.string() + ": holds the curves of a training or an evaluation, not a run"
                                  : status.problem;
}

RecordStatus read_record(const fs::path& file, RunSink& sink) {
    return RecordReader(file).poll(sink);
}

}  // namespace headway::scenarios
