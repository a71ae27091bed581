#include "cli/deploy_progress.h"

#include <string>

#include "scenarios/record/figures.h"

namespace headway::cli {

void DeployProgress::begin(const scenarios::RunHeader& header) {
    header_ = header;
    std::fprintf(stream_, "%s: %zu processes, policy %s, healthy iteration %s\n", header.scenario.c_str(),
                 header.plan.gpu_of_rank.size(), header.policy.c_str(),
                 scenarios::duration_text(header.healthy_iteration_ns).c_str());
}

void DeployProgress::iteration(const scenarios::IterationEvent& event) {
    if (iterations_++ == 0) since_ns_ = event.start_ns;
    if (iterations_ < interval_ && event.index + 1 != header_.planned_iterations) return;
    const double seconds = static_cast<double>(event.start_ns + event.duration_ns - since_ns_) * 1e-9;
    const double rate = static_cast<double>(iterations_ * header_.tokens_per_iteration) / seconds;
    const std::string of = header_.planned_iterations > 0 ? "/" + std::to_string(header_.planned_iterations) : "";
    std::fprintf(stream_, "iteration %lld%s   loss %.4f   %s tokens/s   %s\n", static_cast<long long>(event.index + 1),
                 of.c_str(), event.loss.value_or(0.0), scenarios::count_text(rate).c_str(),
                 scenarios::duration_text(event.start_ns + event.duration_ns).c_str());
    std::fflush(stream_);
    iterations_ = 0;
}

void DeployProgress::disturbance(const scenarios::DisturbanceEvent& event) {
    const auto index = static_cast<std::size_t>(event.index);
    if (index >= header_.disturbances.size()) return;
    std::fprintf(stream_, "%s: %s\n", event.begins ? "begins" : "ends", header_.disturbances[index].name.c_str());
}

void DeployProgress::pause(const scenarios::PauseEvent& event) {
    std::fprintf(stream_, "%s\n", event.what.c_str());
}

void DeployProgress::log(const scenarios::LogEvent& event) {
    if (event.severity == scenarios::LogEvent::Severity::kWarning) std::fprintf(stream_, "%s\n", event.text.c_str());
}

}  // namespace headway::cli
