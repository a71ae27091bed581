#include "tests/contract/scripted_cluster.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "scenarios/language/plan_check.h"
#include "scenarios/language/strategy.h"

namespace headway::tests {

using policies::Duration;

ScriptedCluster::ScriptedCluster(const scenarios::Scenario& scenario) : scenario_(scenario) {
    facts_ = {scenario.job, scenario.cluster,
              scenarios::initial_plan(scenario.strategy, scenario.job, scenario.cluster), scenario.strategy.adapt,
              Duration::milliseconds(105)};
    for (const scenarios::Disturbance& disturbance : scenario.disturbances) {
        const auto* loss = std::get_if<scenarios::NodeLoss>(&disturbance.cause);
        if (loss == nullptr) continue;
        Loss& scripted = losses_.emplace_back();
        scripted.at = disturbance.start;
        scripted.gpus.resize(static_cast<std::size_t>(scenario.cluster.node(loss->node).gpus));
        std::iota(scripted.gpus.begin(), scripted.gpus.end(), scenario.cluster.first_gpu(loss->node));
    }
    std::sort(losses_.begin(), losses_.end(), [](const Loss& a, const Loss& b) { return a.at < b.at; });
    start_episode(scenario.seed);
}

void ScriptedCluster::start_episode(std::uint64_t seed) {
    random_.seed(seed);
    now_ = Duration();
    next_loss_ = 0;
    lost_ = false;
    trained_ = 0;
    current_ = facts_.initial_plan;
}

bool ScriptedCluster::ended() const {
    return scenario_.run.time ? now_ >= *scenario_.run.time : trained_ >= scenario_.run.iterations;
}

void ScriptedCluster::check(const scenarios::Plan& plan) const {
    if (lost_) throw std::invalid_argument("recover first");
    scenarios::check_plan(facts_.job, facts_.cluster, plan);
}

policies::Measurements ScriptedCluster::run(const scenarios::Plan& plan, int iterations) {
    check(plan);
    if (iterations < 0) throw std::invalid_argument("fewer than no iterations");
    policies::Measurements measured;
    for (int i = 0; i < iterations && !ended(); ++i) {
        const Duration duration =
            Duration::nanoseconds(100'000'000 + static_cast<std::int64_t>(random_() % 10'000'000));
        if (next_loss_ < losses_.size() && losses_[next_loss_].at < now_ + duration) {
            now_ = std::max(now_, losses_[next_loss_].at) + facts_.job.checkpoint.detection;
            measured.loss = policies::Loss{losses_[next_loss_].gpus, now_};
            lost_ = true;
            ++next_loss_;
            break;
        }
        now_ += duration;
        ++trained_;
        measured.iterations.push_back(duration);
    }
    measured.ended = !measured.loss && ended();
    for (const int gpu : plan.gpu_of_rank) {
        policies::RankMeasurement rank;
        rank.gpu = gpu;
        rank.compute = measured.iterations.empty() ? Duration() : Duration::milliseconds(80);
        rank.temperature_c = 60.0;
        rank.sm_clock_mhz = 1410.0;
        rank.power_w = 300.0;
        measured.ranks.push_back(rank);
    }
    return measured;
}

Duration ScriptedCluster::move_to(const scenarios::Plan& plan) {
    check(plan);
    if (plan == current_) return Duration();
    current_ = plan;
    now_ += Duration::milliseconds(500);
    return Duration::milliseconds(500);
}

policies::RecoveryOutcome ScriptedCluster::recover(const policies::Recovery& choice) {
    if (!lost_) throw std::invalid_argument("nothing is lost");
    if (choice.kind != policies::Recovery::Kind::kWaitForReplacement) throw std::invalid_argument("unknown recovery");
    lost_ = false;
    policies::RecoveryOutcome outcome;
    outcome.pause = facts_.cluster.facility.node_repair + facts_.job.checkpoint.restart;
    outcome.iterations_lost = trained_ % kCheckpointInterval;
    outcome.plan = current_;
    trained_ -= outcome.iterations_lost;
    now_ += outcome.pause;
    return outcome;
}

}  // namespace headway::tests
