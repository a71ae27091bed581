#include "scenarios/record/learning_record.h"

#include <map>
#include <stdexcept>

#include "scenarios/record/json_text.h"
#include "scenarios/record/record_file.h"
#include "scenarios/record/record_lines.h"

namespace headway::scenarios {

namespace {

std::string learning_header_line(const LearningHeader& header) {
    const bool training = header.kind == LearningHeader::Kind::kTraining;
    return JsonText()
        .begin_object()
        .field("record", "header")
        .field("format", kRecordFormat)
        .field("version", kRecordVersion)
        .field("level", training ? "training" : "evaluation")
        .field("name", header.name)
        .field("seed", header.seed)
        .field("planned", header.planned)
        .end_object()
        .take();
}

/// "training_update" of {"record":"training_update",...}.
std::string kind_of_line(const std::string& line) {
    constexpr std::string_view kStart = R"({"record":")";
    const std::size_t end = line.find('"', kStart.size());
    if (line.compare(0, kStart.size(), kStart) != 0 || end == std::string::npos)
        throw std::invalid_argument("not a line of a record: " + line.substr(0, 40));
    return line.substr(kStart.size(), end - kStart.size());
}

}  // namespace

std::string training_update_line(const TrainingUpdateEvent& event) {
    return JsonText()
        .begin_object()
        .field("record", "training_update")
        .field("update", event.update)
        .field("method", event.method)
        .field("stage", event.stage)
        .field("episodes", event.episodes)
        .field("decisions", event.decisions)
        .field("goodput", event.goodput)
        .field("reference_goodput", event.reference_goodput)
        .field("switches", event.switches)
        .field("policy_loss", event.policy_loss)
        .field("value_loss", event.value_loss)
        .field("entropy", event.entropy)
        .field("kl", event.kl)
        .field("clip_fraction", event.clip_fraction)
        .field("explained_variance", event.explained_variance)
        .field("learning_rate", event.learning_rate)
        .field("gradient_norm", event.gradient_norm)
        .end_object()
        .take();
}

std::string evaluation_line(const EvaluationEvent& event) {
    return JsonText()
        .begin_object()
        .field("record", "evaluation")
        .field("update", event.update)
        .field("policy", event.policy)
        .field("scenario", event.scenario)
        .field("family", event.family)
        .field("scenarios", event.scenarios)
        .field("goodput", event.goodput)
        .field("recovered_share", event.recovered_share)
        .field("lost_fraction", event.lost_fraction)
        .field("switches", event.switches)
        .end_object()
        .take();
}

class LearningRecordWriter::Impl {
  public:
    explicit Impl(const std::filesystem::path& path) : file_(path) {}

    void add(const std::string& line) {
        const std::string kind = kind_of_line(line);
        const std::string whole = line + "\n";
        if (kind != "provenance") {
            digest_.add(whole);
            ++counts_[kind];
        }
        file_.write(whole);
    }

    void end(bool complete) {
        std::vector<RecordCount> counts;
        for (const auto& [kind, lines] : counts_) counts.push_back({kind.c_str(), lines});
        RunFooter footer;
        footer.complete = complete;
        file_.write(footer_line(footer, counts, digest_) + "\n");
    }

  private:
    RecordFile file_;
    RecordDigest digest_;
    std::map<std::string, std::int64_t> counts_;
};

LearningRecordWriter::LearningRecordWriter(const std::filesystem::path& file, const LearningHeader& header,
                                           const Provenance& provenance, const std::vector<std::string>& earlier)
    : impl_(std::make_unique<Impl>(file)) {
    impl_->add(learning_header_line(header));
    impl_->add(provenance_line(provenance));
    for (const std::string& line : earlier) impl_->add(line);
}

LearningRecordWriter::~LearningRecordWriter() = default;

void LearningRecordWriter::add(const std::string& line) {
    impl_->add(line);
}

void LearningRecordWriter::end(bool complete) {
    impl_->end(complete);
}

}  // namespace headway::scenarios
