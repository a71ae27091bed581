#include "tests/contract/scripted_cluster.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

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
    telemetry_.start(seed);
    now_ = Duration();
    next_loss_ = 0;
    out_until_.assign(static_cast<std::size_t>(facts_.cluster.gpus()), Duration());
    lost_ = false;
    trained_ = 0;
    current_ = facts_.initial_plan;
}

bool ScriptedCluster::ended() const {
    return scenario_.run.time ? now_ >= *scenario_.run.time : trained_ >= scenario_.run.iterations;
}

void ScriptedCluster::check(const scenarios::Plan& plan) const {
    scenarios::check_plan(facts_.job, facts_.cluster, plan);
    for (const int gpu : plan.gpu_of_rank)
        if (is_out(gpu)) throw std::invalid_argument("GPU " + std::to_string(gpu) + " is lost");
}

std::vector<int> ScriptedCluster::lose(Duration until) {
    std::vector<int> hit;
    for (; next_loss_ < losses_.size() && losses_[next_loss_].at < until; ++next_loss_) {
        for (const int gpu : losses_[next_loss_].gpus) {
            out_until_[static_cast<std::size_t>(gpu)] = std::max(now_, losses_[next_loss_].at) +
                                                        facts_.job.checkpoint.detection +
                                                        facts_.cluster.facility.node_repair;
            const auto& used = current_.gpu_of_rank;
            if (std::find(used.begin(), used.end(), gpu) != used.end()) hit.push_back(gpu);
        }
    }
    return hit;
}

Duration ScriptedCluster::plan_complete() const {
    Duration complete = now_;
    for (const int gpu : current_.gpu_of_rank) complete = std::max(complete, out_until_[static_cast<std::size_t>(gpu)]);
    return complete;
}

policies::Measurements ScriptedCluster::run(const scenarios::Plan& plan, int iterations) {
    if (lost_) throw std::invalid_argument("recover first");
    if (iterations < 0) throw std::invalid_argument("fewer than no iterations");
    move_to(plan);
    policies::Measurements measured;
    for (int i = 0; i < iterations && !ended(); ++i) {
        const Duration duration =
            Duration::nanoseconds(100'000'000 + static_cast<std::int64_t>(random_() % 10'000'000));
        const Duration first = next_loss_ < losses_.size() ? std::max(now_, losses_[next_loss_].at) : Duration();
        if (std::vector<int> hit = lose(now_ + duration); !hit.empty()) {
            now_ = first + facts_.job.checkpoint.detection;
            measured.loss = policies::Loss{std::move(hit), now_};
            lost_ = true;
            break;
        }
        now_ += duration;
        ++trained_;
        measured.iterations.push_back(duration);
    }
    measured.ended = !measured.loss && ended();
    for (int gpu = 0; gpu < facts_.cluster.gpus(); ++gpu)
        if (is_out(gpu)) measured.unavailable_gpus.push_back(gpu);
    if (iterations == 0) return measured;
    for (const int gpu : plan.gpu_of_rank) {
        policies::RankMeasurement rank;
        rank.gpu = gpu;
        rank.compute = measured.iterations.empty() ? Duration() : Duration::milliseconds(80);
        rank.temperature_c = 60.0;
        rank.sm_clock_mhz = 1410.0;
        rank.power_w = 300.0;
        measured.ranks.push_back(rank);
    }
    telemetry_.pass(measured);
    return measured;
}

Duration ScriptedCluster::move_to(const scenarios::Plan& plan) {
    if (lost_) throw std::invalid_argument("recover first");
    if (plan == current_) return Duration();
    check(plan);
    current_ = plan;
    telemetry_.plan_changed();
    now_ += kSwitch;
    return kSwitch;
}

policies::RecoveryOutcome ScriptedCluster::recover(const policies::Recovery& choice) {
    if (!lost_) throw std::invalid_argument("nothing is lost");
    const Duration restart = facts_.job.checkpoint.restart;
    const Duration begin = now_;
    if (choice.kind == policies::Recovery::Kind::kRestart) {
        check(choice.plan);
        current_ = choice.plan;
        telemetry_.plan_changed();
        now_ += restart;
    } else {
        Duration end = plan_complete() + restart;
        while (!lose(end).empty()) end = plan_complete() + restart;
        now_ = end;
    }
    lost_ = false;
    policies::RecoveryOutcome outcome;
    outcome.pause = now_ - begin;
    outcome.iterations_lost = trained_ % kCheckpointInterval;
    outcome.plan = current_;
    trained_ -= outcome.iterations_lost;
    return outcome;
}

}  // namespace headway::tests
