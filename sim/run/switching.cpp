// What a trajectory does when it moves to another plan.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "scenarios/transfer/switch_costs.h"
#include "sim/run/trajectory.h"

namespace headway::sim {
namespace {

std::string short_number(double value) {
    const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    const double unit = std::pow(10.0, digits);
    const auto whole = static_cast<long long>(std::llround(value * unit));
    const auto scale = static_cast<long long>(unit);
    std::string text = std::to_string(whole / scale);
    if (digits == 0) return text;
    std::string part = std::to_string(whole % scale);
    part.insert(0, static_cast<std::size_t>(digits) - part.size(), '0');
    return text + "." + part;
}

/// GPUs of either plan that another rank's state lies on afterwards, or none or only then.
std::vector<bool> whose_state_changes(const scenarios::Plan& from, const scenarios::Plan& to, int gpus) {
    std::vector<bool> changes(static_cast<std::size_t>(gpus), false);
    const scenarios::Layout& a = from.layout;
    const scenarios::Layout& b = to.layout;
    const bool same_degrees = a.tensor == b.tensor && a.pipeline == b.pipeline && a.data == b.data &&
                              a.context == b.context && a.virtual_pipeline == b.virtual_pipeline;
    for (const scenarios::Plan* plan : {&from, &to}) {
        for (std::size_t rank = 0; rank < plan->gpu_of_rank.size(); ++rank) {
            bool stays = same_degrees && from.gpu_of_rank[rank] == to.gpu_of_rank[rank];
            if (stays) {
                const int worker = static_cast<int>(rank) / a.ranks_per_worker();
                const int replica = worker % a.data;
                const int stage = worker / a.data;
                for (int chunk = 0; chunk < a.virtual_pipeline; ++chunk) {
                    const int k = chunk * a.pipeline + stage;
                    stays = stays && from.layers(replica, k) == to.layers(replica, k);
                }
            }
            if (!stays) changes[static_cast<std::size_t>(plan->gpu_of_rank[rank])] = true;
        }
    }
    return changes;
}

}  // namespace

void Trajectory::expect_nothing_lost() const {
    if (!outages_.empty()) throw std::invalid_argument("the job has lost GPUs: recover first");
}

std::shared_ptr<PreparedPlan> Trajectory::usable(const scenarios::Plan& plan) {
    std::shared_ptr<PreparedPlan> prepared = site_->prepared(plan);
    for (const int gpu : plan.gpu_of_rank)
        if (facility_.is_out(gpu, now_))
            throw std::invalid_argument("the plan uses GPU " + std::to_string(gpu) + ", which is lost");
    return prepared;
}

void Trajectory::take_up(std::shared_ptr<PreparedPlan> prepared) {
    current_ = std::move(prepared);
    fleet_.take_up(environment_.surroundings, current_->busy);
    busy_ = current_->busy;
    last_duration_ = current_->healthy.duration;
    quiet_.is = false;
    telemetry_.plan_changed();
}

/// What is left of the slowest NIC or uplink of those that state goes over.
double Trajectory::slowest_link(const scenarios::Plan& from, const scenarios::Plan& to) const {
    const std::vector<bool> changes = whose_state_changes(from, to, scenario_.cluster.gpus());
    double slowest = 1.0;
    for (int gpu = 0; gpu < scenario_.cluster.gpus(); ++gpu) {
        if (!changes[static_cast<std::size_t>(gpu)]) continue;
        slowest = std::min({slowest, environment_.port_share(gpu, topology_.node_of_gpu(gpu)),
                            environment_.uplink_factor[static_cast<std::size_t>(topology_.rack_of_gpu(gpu))]});
    }
    return slowest;
}

Duration Trajectory::move_to(const scenarios::Plan& plan) {
    expect_nothing_lost();
    if (plan == current_->plan) return Duration();
    const std::shared_ptr<PreparedPlan> next = usable(plan);
    refresh_environment();
    const scenarios::SwitchCosts costs =
        scenarios::switch_costs(scenario_.job, scenario_.cluster, current_->plan, plan);
    const bool live = scenario_.strategy.adapt.live && costs.fits_live;
    const double link = costs.moved > scenarios::Bytes() || !live ? slowest_link(current_->plan, plan) : 1.0;
    const Duration relaunch = scenario_.job.checkpoint.restart;
    const Duration predicted = live ? costs.live_pause_behind(last_duration_) : costs.restart_pause;
    Duration pause = live ? costs.live_pause_behind(last_duration_, link)
                          : relaunch + (costs.restart_pause - relaunch).scaled(1.0 / link);
    pause = pause.scaled(scenario_.switching.time_factor);
    const Duration end = until_the_end(now_ + pause);
    pause = end - now_;
    cool(pause);
    if (reporter_.sink() != nullptr) {
        scenarios::PauseEvent event;
        event.reason = scenarios::PauseEvent::Reason::kSwitch;
        event.start_ns = now_.ns();
        event.duration_ns = pause.ns();
        event.what = "switch to " + scenarios::describe(plan.layout) + " on " +
                     std::to_string(plan.gpu_of_rank.size()) + " GPUs" + (live ? "" : " by save and restart") + ": " +
                     short_number(costs.moved.in_gib()) + " GiB moved, " + short_number(pause.s()) +
                     " s pause (predicted " + short_number(predicted.s()) + " s)";
        event.plan = plan;
        reporter_.sink()->pause(event);
    }
    if (!live) {
        checkpoints_ = {{completed_, now_ + current_->checkpoint.save}};
        last_save_ = end;
    }
    now_ = end;
    reporter_.disturbances(now_);
    take_up(next);
    return pause;
}

}  // namespace headway::sim
