#include "policies/rules/rehearsal.h"

namespace headway::policies {

namespace {

class RehearsedEpisode final : public EpisodeSink {
  public:
    explicit RehearsedEpisode(PlanPool* pool) : pool_(pool) {}
    bool decided(const Decision& decision) override {
        if (pool_ != nullptr) pool_->decided(decision);
        return recorder.decided(decision);
    }
    ScheduleRecorder recorder;

  private:
    PlanPool* pool_;
};

}  // namespace

Rehearsal::Rehearsal(const PolicyResources& resources, std::uint64_t seed)
    : options_(resources.episode), world_(resources.worlds()), generator_(world_->facts()) {
    options_.seed = seed;
}

EpisodeSummary Rehearsal::play(Policy& policy, PlanPool* pool) {
    RehearsedEpisode episode(pool);
    const EpisodeSummary done = run_episode(*world_, generator_, policy, options_, episode);
    const double rate = done.wall > Duration() ? static_cast<double>(done.iterations) / done.wall.s() : 0.0;
    if (rate > best_rate_) {
        best_rate_ = rate;
        best_ = episode.recorder.schedule();
    }
    return done;
}

}  // namespace headway::policies
