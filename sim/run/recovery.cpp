// What a trajectory does when a part of its machines is lost.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "sim/run/trajectory.h"

namespace headway::sim {
namespace {

constexpr std::size_t kOutagesTold = 3;

/// As reports write it: "1 h 30 min", "3 min 49 s", "90 s", "5.2 s".
std::string pause_text(Duration d) {
    const double value = d.s();
    const auto whole = static_cast<long long>(std::llround(value));
    const auto pair = [](long long large, const char* unit, long long small, const char* small_unit) {
        return std::to_string(large) + unit +
               (small > 0 ? (small < 10 ? " 0" : " ") + std::to_string(small) + small_unit : "");
    };
    if (whole >= 3600) return pair(whole / 3600, " h", whole % 3600 / 60, " min");
    if (whole >= 100) return pair(whole / 60, " min", whole % 60, " s");
    if (value >= 10.0 || value == std::floor(value)) return std::to_string(whole) + " s";
    const std::string text = std::to_string(value);
    return text.substr(0, text.find('.') + 2) + " s";
}

std::string iterations_text(std::int64_t n) {
    return std::to_string(n) + (n == 1 ? " iteration" : " iterations");
}

}  // namespace

std::vector<int> Trajectory::gpus_of(const LossEvent& loss) const {
    if (loss.gpu >= 0) return {loss.gpu};
    std::vector<int> gpus(static_cast<std::size_t>(scenario_.cluster.node(loss.node).gpus));
    std::iota(gpus.begin(), gpus.end(), scenario_.cluster.first_gpu(loss.node));
    return gpus;
}

std::optional<Duration> Trajectory::next_loss(const scenarios::Plan& plan, Duration before) {
    // Losses of machines the job does not use pass by; they only cannot be used until they are repaired.
    const auto& losses = timeline_.losses();
    for (; next_loss_ < losses.size() && losses[next_loss_].at < before; ++next_loss_) {
        const LossEvent& loss = losses[next_loss_];
        const auto hits = [&](int gpu) {
            return loss.gpu >= 0 ? gpu == loss.gpu : topology_.node_of_gpu(gpu) == loss.node;
        };
        if (std::any_of(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), hits)) return loss.at;
        facility_.take_out(gpus_of(loss), loss.at + loss.repair);
        reporter_.loss_ends(loss.disturbance, loss.at + loss.repair);
    }
    return std::nullopt;
}

void Trajectory::take_losses(const scenarios::Plan& plan, Duration until, Duration noticed) {
    while (next_loss(plan, until + Duration::nanoseconds(1))) {
        const LossEvent& loss = timeline_.losses()[next_loss_++];
        Outage outage;
        outage.disturbance = loss.disturbance;
        outage.noticed = std::max(noticed, loss.at);
        outage.repaired = outage.noticed + loss.repair;
        outage.node = loss.gpu >= 0 ? topology_.node_of_gpu(loss.gpu) : loss.node;
        outage.gpus = gpus_of(loss);
        if (loss.gpu >= 0) {
            outage.what = "GPU " + std::to_string(loss.gpu) + " (node " + std::to_string(outage.node) + ")";
        } else {
            outage.what = "node " + std::to_string(loss.node);
        }
        absorb(std::move(outage));
    }
}

/// The cause that began last of those that heat a GPU; -1 where none does.
int Trajectory::heats(int gpu, Duration at) const {
    int latest = -1;
    for (std::size_t i = 0; i < scenario_.disturbances.size(); ++i) {
        const scenarios::Disturbance& d = scenario_.disturbances[i];
        const int index = static_cast<int>(i);
        if (!Timeline::thermal(d.cause) || d.start > at) continue;
        if (const auto end = timeline_.end_of(index); end && *end <= at && lingering_.count(index) == 0) continue;
        const std::vector<int> gpus = timeline_.gpus_of(index);
        if (std::find(gpus.begin(), gpus.end(), gpu) == gpus.end()) continue;
        if (latest < 0 || d.start >= scenario_.disturbances[static_cast<std::size_t>(latest)].start) latest = index;
    }
    return latest;
}

/// A run with an end stands still no longer than that.
Duration Trajectory::until_the_end(Duration time) const {
    return scenario_.run.time ? std::min(time, std::max(now_, *scenario_.run.time)) : time;
}

void Trajectory::absorb(Outage outage) {
    const Facility::Replacement replacement = facility_.replace(outage, outage.noticed);
    outage.back = replacement.at;
    outage.by_spare = replacement.spare;
    facility_.take_out(outage.gpus, outage.back);
    if (!outage.by_heat) reporter_.loss_ends(outage.disturbance, outage.back);
    outages_.push_back(std::move(outage));
}

void Trajectory::lose(const scenarios::Plan& plan, Duration at, const std::vector<int>& shut_down) {
    broken_off_ = now_;
    lost_at_ = at;
    const Duration noticed = until_the_end(at + scenario_.job.checkpoint.detection);
    // What shuts down in one node is one outage: a spare node takes the place of all of it.
    for (std::size_t i = 0; i < shut_down.size();) {
        Outage outage;
        outage.node = topology_.node_of_gpu(shut_down[i]);
        outage.disturbance = heats(shut_down[i], at);
        outage.by_heat = true;
        for (; i < shut_down.size() && topology_.node_of_gpu(shut_down[i]) == outage.node; ++i) {
            outage.what += (outage.what.empty() ? "" : ", ") + std::to_string(shut_down[i]);
            outage.gpus.push_back(shut_down[i]);
        }
        outage.noticed = noticed;
        outage.repaired = noticed + scenario_.cluster.facility.gpu_repair;
        outage.what = (outage.gpus.size() > 1 ? "GPUs " : "GPU ") + outage.what + " (node " +
                      std::to_string(outage.node) + ", shut down by heat)";
        absorb(std::move(outage));
    }
    take_losses(plan, noticed, noticed);
    cool(noticed - at);
    now_ = noticed;
    reporter_.disturbances(now_);
}

policies::RecoveryOutcome Trajectory::recover(const policies::Recovery& choice) {
    if (outages_.empty()) throw std::invalid_argument("nothing is lost: there is nothing to recover from");
    // The state that goes on is that of the last checkpoint that was safe when the first part was lost.
    const auto roll_back = [&] {
        while (checkpoints_.size() > 1 && checkpoints_.back().durable > lost_at_) checkpoints_.pop_back();
    };
    if (choice.kind == policies::Recovery::Kind::kWaitForReplacement) {
        roll_back();
        return wait_for_replacement();
    }
    if (choice.kind != policies::Recovery::Kind::kRestart) throw std::invalid_argument("unknown recovery");
    const std::shared_ptr<PreparedPlan> next = usable(choice.plan);
    roll_back();
    return restart_under(next);
}

policies::RecoveryOutcome Trajectory::wait_for_replacement() {
    const scenarios::Plan& plan = current_->plan;
    const Duration restart = current_->checkpoint.restart;
    const Duration noticed = now_;

    // Every lost part is replaced by what is there first: a spare, a node that arrives, or its own repair. What is lost
    // meanwhile makes the job wait longer, and restart once more if it had begun to.
    std::string what;
    Duration ready = noticed;
    std::size_t replaced = 0;
    const scenarios::Checkpointing& checkpointing = scenario_.job.checkpoint;
    for (;;) {
        for (; replaced < outages_.size(); ++replaced) {
            const Outage& outage = outages_[replaced];
            const std::string waited = pause_text(outage.back - noticed);
            const bool comes = until_the_end(outage.back) == outage.back;
            ready = std::max(ready, outage.back);
            if (replaced >= kOutagesTold) continue;
            what += (what.empty() ? "" : "; ") + outage.what + " lost in iteration " + std::to_string(completed_) +
                    ": " +
                    (comes ? outage.by_spare
                                 ? "waited " + waited + " for a spare node to join"
                                 : "no spare node, so the job stood still for " + waited + " until it was repaired"
                           : std::string(outage.by_spare ? "a spare node would have joined"
                                                         : "no spare node, and it would have been repaired") +
                                 " after " + waited + ", but the run ended first");
        }
        const std::optional<Duration> next = next_loss(plan, ready + restart);
        if (!next) break;
        ready = std::max(ready, *next + checkpointing.detection);
        take_losses(plan, *next, *next + checkpointing.detection);
    }
    const Duration end = until_the_end(ready + restart);
    if (outages_.size() > kOutagesTold) what += "; and " + std::to_string(outages_.size() - kOutagesTold) + " more";
    if (until_the_end(ready) == ready)
        what += "; restart and loading the checkpoint of iteration " + std::to_string(checkpoints_.back().iteration) +
                " took " + pause_text(end - ready);
    cool(end - noticed);
    for (const Outage& outage : outages_)
        for (const int gpu : outage.gpus) fleet_.replace(gpu, environment_.surroundings[static_cast<std::size_t>(gpu)]);
    return go_on(end, std::move(what), false);
}

policies::RecoveryOutcome Trajectory::restart_under(const std::shared_ptr<PreparedPlan>& next) {
    const scenarios::Plan& plan = next->plan;
    std::string what;
    for (std::size_t i = 0; i < std::min(kOutagesTold, outages_.size()); ++i)
        what += (what.empty() ? "" : "; ") + outages_[i].what + " lost in iteration " + std::to_string(completed_);
    if (outages_.size() > kOutagesTold) what += "; and " + std::to_string(outages_.size() - kOutagesTold) + " more";
    // Machines that come back later are at rest.
    refresh_environment();
    for (const Outage& outage : outages_)
        for (const int gpu : outage.gpus) fleet_.replace(gpu, environment_.surroundings[static_cast<std::size_t>(gpu)]);
    const Duration end = until_the_end(now_ + next->checkpoint.restart);
    what += "; restarted without waiting under " + scenarios::describe(plan.layout) + " on " +
            std::to_string(plan.gpu_of_rank.size()) + " GPUs; restart and loading the checkpoint of iteration " +
            std::to_string(checkpoints_.back().iteration) + " took " + pause_text(end - now_);
    cool(end - now_);
    take_up(next);
    return go_on(end, std::move(what), true);
}

policies::RecoveryOutcome Trajectory::go_on(Duration end, std::string what, bool other_plan) {
    policies::RecoveryOutcome outcome;
    outcome.pause = end - now_;
    outcome.iterations_lost = static_cast<int>(completed_ - checkpoints_.back().iteration);
    outcome.plan = current_->plan;
    what += "; " + iterations_text(outcome.iterations_lost) + " to be trained again";
    ++vain_recoveries_;
    if (ended() && (!scenario_.run.time || end < *scenario_.run.time))
        what += "; the run ends here: one loss after the other undid what was trained between them";
    if (reporter_.sink() != nullptr) {
        scenarios::PauseEvent event;
        event.reason = scenarios::PauseEvent::Reason::kLoss;
        event.start_ns = broken_off_.ns();
        event.duration_ns = (end - broken_off_).ns();
        event.iterations_lost = outcome.iterations_lost;
        event.disturbance = outages_.front().disturbance;
        event.what = std::move(what);
        if (other_plan) event.plan = current_->plan;
        reporter_.sink()->pause(event);
    }
    completed_ = checkpoints_.back().iteration;
    outages_.clear();
    now_ = end;
    last_save_ = end;
    reporter_.disturbances(now_);
    return outcome;
}

}  // namespace headway::sim
