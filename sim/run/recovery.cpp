// What a trajectory does when a part of its machines is lost, and when it moves to another plan.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "sim/run/trajectory.h"

namespace headway::sim {
namespace {

std::string seconds_text(Duration d) {
    const double value = d.s();
    if (value >= 10.0 || value == std::floor(value)) return std::to_string(static_cast<long long>(std::llround(value))) + " s";
    const std::string text = std::to_string(value);
    return text.substr(0, text.find('.') + 2) + " s";
}

std::string iterations_text(std::int64_t n) { return std::to_string(n) + (n == 1 ? " iteration" : " iterations"); }

}  // namespace

std::optional<Duration> Trajectory::next_loss(const scenarios::Plan& plan, Duration before) {
    // Losses of machines the job does not use pass by; they only cannot be used until they are repaired.
    const auto& losses = timeline_.losses();
    for (; next_loss_ < losses.size() && losses[next_loss_].at < before; ++next_loss_) {
        const LossEvent& loss = losses[next_loss_];
        const auto hits = [&](int gpu) {
            return loss.gpu >= 0 ? gpu == loss.gpu : topology_.node_of_gpu(gpu) == loss.node;
        };
        if (std::any_of(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), hits)) return loss.at;
        for (int gpu = 0; gpu < scenario_.cluster.gpus(); ++gpu)
            if (hits(gpu)) unusable_until_[static_cast<std::size_t>(gpu)] = loss.at + loss.repair;
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
        if (loss.gpu >= 0) {
            outage.gpus = {loss.gpu};
            outage.what = "GPU " + std::to_string(loss.gpu) + " (node " + std::to_string(outage.node) + ")";
        } else {
            for (int slot = 0; slot < scenario_.cluster.node(loss.node).gpus; ++slot)
                outage.gpus.push_back(scenario_.cluster.first_gpu(loss.node) + slot);
            outage.what = "node " + std::to_string(loss.node);
        }
        absorb(outage);
    }
}

void Trajectory::absorb(const Outage& outage) { outages_.push_back(outage); }

void Trajectory::lose(const scenarios::Plan& plan, Duration at, const std::vector<int>& shut_down) {
    broken_off_ = now_;
    lost_at_ = at;
    const Duration noticed = at + scenario_.job.checkpoint.detection;
    for (const int gpu : shut_down) {
        Outage outage;
        outage.gpus = {gpu};
        outage.node = topology_.node_of_gpu(gpu);
        outage.noticed = noticed;
        outage.repaired = noticed + scenario_.cluster.facility.gpu_repair;
        outage.what = "GPU " + std::to_string(gpu) + " (node " + std::to_string(outage.node) + ", shut down by heat)";
        absorb(outage);
    }
    take_losses(plan, noticed, noticed);
    fleet_.cool(environment_.surroundings, noticed - at);
    now_ = noticed;
    reporter_.disturbances(now_);
}

policies::RecoveryOutcome Trajectory::recover(policies::Recovery choice) {
    if (choice != policies::Recovery::kWaitForReplacement) throw std::invalid_argument("unknown recovery");
    if (outages_.empty()) throw std::invalid_argument("nothing is lost: there is nothing to recover from");
    Prepared& prepared = prepared_.front().second;
    const scenarios::Plan plan = prepared.model->plan();
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
            const Facility::Replacement replacement = facility_.replace(outage, std::max(noticed, outage.noticed));
            const std::string waited = seconds_text(replacement.at - noticed);
            what += (what.empty() ? "" : "; ") + outage.what + " lost in iteration " + std::to_string(completed_) + ": " +
                    (replacement.spare ? "waited " + waited + " for a spare node to join"
                                       : "no spare node, so the job stood still for " + waited + " until it was repaired");
            ready = std::max(ready, replacement.at);
            reporter_.loss_ends(outage.disturbance, replacement.at);
        }
        const std::optional<Duration> next = next_loss(plan, ready + prepared.checkpoint.restart);
        if (!next) break;
        ready = std::max(ready, *next + checkpointing.detection);
        take_losses(plan, *next, *next + checkpointing.detection);
    }
    const Duration end = ready + prepared.checkpoint.restart;

    // Back to the last checkpoint that was safe when the first part was lost.
    while (checkpoints_.size() > 1 && checkpoints_.back().durable > lost_at_) checkpoints_.pop_back();
    policies::RecoveryOutcome outcome;
    outcome.pause = end - noticed;
    outcome.iterations_lost = static_cast<int>(completed_ - checkpoints_.back().iteration);
    outcome.plan = plan;
    what += "; restart and loading the checkpoint of iteration " + std::to_string(checkpoints_.back().iteration) + " took " +
            seconds_text(prepared.checkpoint.restart) + "; " + iterations_text(outcome.iterations_lost) + " to be trained again";

    refresh_environment();
    fleet_.cool(environment_.surroundings, end - noticed);
    for (const Outage& outage : outages_)
        for (const int gpu : outage.gpus) fleet_.replace(gpu, environment_.surroundings[static_cast<std::size_t>(gpu)]);
    if (reporter_.sink() != nullptr) {
        scenarios::PauseEvent event;
        event.reason = scenarios::PauseEvent::Reason::kLoss;
        event.start_ns = broken_off_.ns();
        event.duration_ns = (end - broken_off_).ns();
        event.iterations_lost = outcome.iterations_lost;
        event.disturbance = outages_.front().disturbance;
        event.what = what;
        reporter_.sink()->pause(event);
    }
    completed_ = checkpoints_.back().iteration;
    outages_.clear();
    now_ = end;
    last_save_ = end;
    reporter_.disturbances(now_);
    return outcome;
}

Duration Trajectory::move_to(const scenarios::Plan& plan) {
    check_plan(plan);
    if (plan == prepared_.front().first) return Duration();
    // Stop, save, restart under the new plan: what every training stack can do.
    const Duration save = prepared_.front().second.checkpoint.save;
    Prepared& next = prepare(plan);
    const Duration pause = save + next.checkpoint.restart;
    refresh_environment();
    fleet_.cool(environment_.surroundings, pause);
    if (reporter_.sink() != nullptr) {
        scenarios::PauseEvent event;
        event.reason = scenarios::PauseEvent::Reason::kSwitch;
        event.start_ns = now_.ns();
        event.duration_ns = pause.ns();
        event.what = "saved, and restarted under " + scenarios::describe(plan.layout);
        reporter_.sink()->pause(event);
    }
    checkpoints_ = {{completed_, now_ + save}};
    now_ += pause;
    last_save_ = now_;
    busy_ = next.busy;
    last_duration_ = next.healthy.duration;
    return pause;
}

}  // namespace headway::sim
