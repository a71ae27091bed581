#include "policies/learning/features.h"

#include <limits>
#include <stdexcept>

#include "policies/learning/feature_math.h"

namespace headway::policies {

namespace {

constexpr double kSlowIteration = 0.05;  // log: up by about 5 %
constexpr std::size_t kRemembered = 12;

double running_mean(double mean, double value, double decisions, std::int64_t seen) {
    const double weight = std::max(1.0 / decisions, 1.0 / static_cast<double>(seen + 1));
    return mean + weight * (value - mean);
}

void keep_latest(std::vector<double>& values, double value) {
    values.push_back(value);
    if (values.size() > kRemembered) values.erase(values.begin());
}

/// Change over the last 3 decisions.
double trend_of(const std::vector<double>& values) {
    if (values.size() < 2) return 0.0;
    return values.back() - values[values.size() - std::min<std::size_t>(values.size(), 4)];
}

double deviation_of_latest(const std::vector<double>& values, std::size_t count) {
    count = std::min(count, values.size());
    if (count < 2) return 0.0;
    double sum = 0.0;
    for (std::size_t i = values.size() - count; i < values.size(); ++i) sum += values[i];
    const double mean = sum / static_cast<double>(count);
    double squares = 0.0;
    for (std::size_t i = values.size() - count; i < values.size(); ++i)
        squares += (values[i] - mean) * (values[i] - mean);
    return std::sqrt(squares / static_cast<double>(count));
}

}  // namespace

void Spell::see(bool so) {
    if (so) {
        ++age_;
    } else if (age_ > 0) {
        ++spells_;
        total_ += age_;
        age_ = 0;
    }
}

void FeatureBuilder::start_episode(const ClusterFacts& facts) {
    *this = FeatureBuilder();
    facts_ = facts;
    double fastest = 0.0;
    double slowest = std::numeric_limits<double>::infinity();
    const scenarios::Cluster& cluster = facts_.cluster;
    int node = 0;
    for (const scenarios::NodeGroup& group : cluster.node_groups) {
        const scenarios::GpuType& type = group.node.gpu;
        const GpuFacts gpu{type.boost_clock.value, type.thermal.max_operating.value, type.power_limit.value, 0};
        fastest = std::max(fastest, type.peak_half.value);
        slowest = std::min(slowest, type.peak_half.value);
        for (int i = 0; i < group.count; ++i, ++node) {
            gpus_.insert(gpus_.end(), static_cast<std::size_t>(group.node.gpus), gpu);
            for (int slot = 0; slot < group.node.gpus; ++slot) {
                gpus_[gpus_.size() - 1 - static_cast<std::size_t>(slot)].node = node;
            }
        }
    }
    if (fastest > 0.0) slowest_type_ = slowest / fastest;
    initial_plan_ = plan_hash(facts_.initial_plan);
    plan_ = initial_plan_;
    layout_ = facts_.initial_plan.layout;
    healthy_s_ = facts_.healthy_iteration.s();
}

void FeatureBuilder::put(double value) {
    features_.global.push_back(static_cast<float>(std::clamp(value, -8.0, 8.0)));
}

const Features& FeatureBuilder::build(const Observation& observation, const std::vector<Candidate>& candidates) {
    if (candidates.empty()) throw std::invalid_argument("features of no candidates");
    follow(observation, candidates);
    features_.global.clear();
    write_state();
    write_ranks(observation);
    write_groups(observation);
    write_plan(observation);
    write_candidates(observation, candidates);
    write_choice(observation, candidates);
    if (features_.global.size() != global_features().size() ||
        features_.candidates.size() != candidates.size() * candidate_features().size()) {
        throw std::logic_error("features do not match their names");
    }
    remember(candidates);
    return features_;
}

void FeatureBuilder::follow(const Observation& observation, const std::vector<Candidate>& candidates) {
    const double previous_iteration = iteration_s_;
    iteration_s_ = observation.iteration.s();
    if (iteration_s_ <= 0.0) {  // nothing completed: as it was, else as is expected
        iteration_s_ = previous_iteration > 0.0 ? previous_iteration : candidates[0].predicted.iteration.s();
    }
    if (iteration_s_ <= 0.0) iteration_s_ = healthy_s_;
    slowdown_ = log_ratio(iteration_s_, healthy_s_);

    const std::uint64_t plan = plan_hash(observation.plan);
    just_switched_ = plan != plan_;
    if (just_switched_) {
        left_[plan_] = {decision_, miss_};
        switched_at_.push_back(decision_);
        plan_ = plan;
        plan_since_ = decision_;
        miss_ = 0.0;
        const auto offer = offered_.find(plan);
        has_prediction_ = offer != offered_.end();
        predicted_ = has_prediction_ ? offer->second : 0.0;
    } else if (!observation.loss && observation.iteration > Duration()) {
        const double iterations = (observation.now - previous_now_).s() / iteration_s_;
        if (iterations >= 0.5) iterations_per_interval_ = iterations;
    }
    if (iterations_per_interval_ <= 0.0) iterations_per_interval_ = 10.0;
    if (has_prediction_ && observation.iteration > Duration()) {
        miss_ = just_switched_ ? slowdown_ - predicted_ : 0.5 * (miss_ + slowdown_ - predicted_);
    }
    if (!(observation.plan.layout == layout_)) {
        layout_ = observation.plan.layout;
        best_bandwidth_ = {};
        best_exposed_ = 1.0;
    }
    fast_mean_ = running_mean(fast_mean_, slowdown_, 3.0, decision_);
    slow_mean_ = running_mean(slow_mean_, slowdown_, 12.0, decision_);
    best_slowdown_ = decision_ == 0 ? slowdown_ : std::min(best_slowdown_, slowdown_);
    slow_.see(slowdown_ - best_slowdown_ > kSlowIteration);
    keep_latest(slowdowns_, slowdown_);
    previous_now_ = observation.now;
}

void FeatureBuilder::write_state() {
    put(slowdown_);
    put(slowdown_ - fast_mean_);
    put(fast_mean_);
    put(slow_mean_);
    put(trend_of(slowdowns_));
    put(deviation_of_latest(slowdowns_, 8));
    put(best_slowdown_);
    put(signed_log(slow_.age()));
    put(signed_log(slow_.spells()));
    put(signed_log(slow_.mean_length()));
    put(signed_log(static_cast<double>(decision_ - plan_since_)));
    int lately = 0;
    for (const std::int64_t at : switched_at_) lately += decision_ - at < 12 ? 1 : 0;
    put(lately / 4.0);
    put(miss_);
    put(just_switched_ ? 1.0 : 0.0);
    put(log_ratio(iterations_per_interval_ * healthy_s_, 60.0));
    put(signed_log(static_cast<double>(decision_)));
}

void FeatureBuilder::write_choice(const Observation& observation, const std::vector<Candidate>& candidates) {
    double best_net = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < features_.gain.size(); ++i) {
        best_net = std::max(best_net, 12.0 * features_.gain[i] - features_.cost[i]);
    }
    put(signed_log(static_cast<double>(candidates.size()) - 1.0));
    put(best_gain_);
    put(gain_mean_);
    put(signed_log(gain_offered_.age()));
    put(signed_log(best_net));
    const double interval_s = iterations_per_interval_ * healthy_s_;
    put(observation.loss ? signed_log(share(candidates[0].predicted.pause.s(), interval_s)) : 0.0);
}

void FeatureBuilder::remember(const std::vector<Candidate>& candidates) {
    offered_.clear();
    for (const Candidate& candidate : candidates) {
        offered_[plan_hash(candidate.plan)] = log_ratio(candidate.predicted.iteration.s(), healthy_s_);
    }
    if (switched_at_.size() > kRemembered) switched_at_.erase(switched_at_.begin());
    if (left_.size() > 256) left_.clear();  // a long run: what was left that often says nothing any more
    ++decision_;
}

}  // namespace headway::policies
