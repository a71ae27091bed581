#include "sim/thermal/fleet.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace headway::sim {
namespace {

constexpr double kBusyGrid = 32.0;
constexpr double kLongestStep = 1.0;  // s
constexpr double kLongestFollowed =
    1800.0;                         // s of one iteration; by then heat is level or swings as it will go on swinging
constexpr int kWarmUpSteps = 1800;  // of a second
constexpr std::size_t kKnownEquilibria = 24;
constexpr int kMeanSteps = 120;  // at the end of it, over which a swinging clock is averaged

/// Slots that sat 10 K warmer than the others in every 8-GPU node that was measured.
bool is_hot_slot(int slot) {
    return slot == 0 || slot == 3 || slot == 4 || slot == 7;
}

double busy_on_grid(double busy) {
    return busy < 0.0 ? -1.0 : std::round(std::min(1.0, busy) * kBusyGrid) / kBusyGrid;
}

/// The steps in which an iteration is followed; what is left of a very long one is like its end.
struct HeatSteps {
    int count;
    double seconds;  ///< of one step
};

HeatSteps heat_steps(scenarios::Duration duration) {
    const double followed = std::min(duration.s(), kLongestFollowed);
    const int count = std::max(1, static_cast<int>(std::ceil(followed / kLongestStep)));
    return {count, followed / count};
}

}  // namespace

double Fleet::load_of(std::size_t gpu, double busy) const {
    if (busy < 0.0) return -1.0;
    if (load_[gpu] >= 0.0 && std::abs(busy - load_[gpu]) <= 1.0 / kBusyGrid) return load_[gpu];
    return busy_on_grid(busy);
}

std::vector<GpuThermal::Step> Fleet::steps_of(double seconds) const {
    std::vector<GpuThermal::Step> steps;
    for (const GpuThermal& thermal : *models_) steps.push_back(thermal.step(seconds));
    return steps;
}

Fleet::Fleet(const scenarios::Cluster& cluster) {
    std::vector<GpuThermal> models;
    std::map<std::pair<int, bool>, std::size_t> known;  // node group and slot kind
    int node = 0;
    for (std::size_t group = 0; group < cluster.node_groups.size(); ++group) {
        const scenarios::NodeGroup& nodes = cluster.node_groups[group];
        for (int n = 0; n < nodes.count; ++n, ++node) {
            for (int slot = 0; slot < nodes.node.gpus; ++slot) {
                const bool hot = is_hot_slot(slot);
                const auto [at, is_new] = known.try_emplace({static_cast<int>(group), hot}, models.size());
                if (is_new) models.emplace_back(nodes.node.gpu, hot);
                model_of_.push_back(at->second);
                clock_step_.push_back(nodes.node.gpu.clock_step.value);
            }
        }
    }
    equilibria_.resize(models.size());
    models_ = std::make_shared<const std::vector<GpuThermal>>(std::move(models));
    states_.resize(model_of_.size());
    settled_.resize(model_of_.size());
    reference_.assign(model_of_.size(), 1.0);
}

double Fleet::clock_of(std::size_t gpu, const GpuSurroundings& around) const {
    return model(gpu).clock(states_[gpu], around);
}

Fleet::Level Fleet::level_of(std::size_t gpu, const GpuSurroundings& around, double share) const {
    const GpuThermal& thermal = model(gpu);
    Level level;
    level.state = thermal.equilibrium({}, around, share);
    level.clock = thermal.clock(level.state, around);
    level.settled = thermal.settles(level.state, level.state, around);
    if (level.settled) return level;
    // A slowdown acts: no equilibrium, but what half an hour of load from rest ends in.
    level.state = GpuThermalState{};
    thermal.cool(level.state, around, 1e9);
    level.clock = 0.0;
    const GpuThermal::Step step = thermal.step(kLongestStep);
    for (int i = 0; i < kWarmUpSteps; ++i) {
        const double clock = thermal.advance(level.state, around, share, step);
        level.shuts_down = level.shuts_down || thermal.shuts_down(level.state, around);
        if (i >= kWarmUpSteps - kMeanSteps) level.clock += clock / kMeanSteps;
    }
    return level;
}

std::vector<Fleet::Level> Fleet::levels(const std::vector<GpuSurroundings>& around,
                                        const std::vector<double>& busy) const {
    std::map<std::tuple<std::size_t, double, double, double, double>, Level> known;
    std::vector<Level> result(states_.size());
    for (std::size_t gpu = 0; gpu < states_.size(); ++gpu) {
        const double share = busy_on_grid(busy[gpu]);
        if (share < 0.0) continue;
        const GpuSurroundings& here = around[gpu];
        const auto [at, is_new] =
            known.try_emplace({model_of_[gpu], share, here.inlet_c, here.resistance_factor, here.power_limit_w});
        if (is_new) at->second = level_of(gpu, here, share);
        result[gpu] = at->second;
    }
    return result;
}

std::vector<double> Fleet::references(const std::vector<double>& busy) const {
    double busiest = 0.0;
    for (const double share : busy) busiest = std::max(busiest, busy_on_grid(share));
    const GpuSurroundings nominal;
    std::vector<double> of_model;
    for (const GpuThermal& thermal : *models_)
        of_model.push_back(thermal.clock(thermal.equilibrium({}, nominal, busiest), nominal));
    std::vector<double> result;
    for (const std::size_t at : model_of_) result.push_back(of_model[at]);
    return result;
}

Fleet::HealthyPace Fleet::healthy_pace(const std::vector<GpuSurroundings>& healthy,
                                       const std::vector<double>& busy) const {
    const std::vector<double> reference = references(busy);
    const std::vector<Level> level = levels(healthy, busy);
    HealthyPace result{std::vector<double>(states_.size(), 1.0), -1};
    for (std::size_t gpu = 0; gpu < states_.size(); ++gpu) {
        if (busy[gpu] < 0.0) continue;
        result.pace[gpu] = std::min(1.0, level[gpu].clock / reference[gpu]);
        if (level[gpu].shuts_down && result.shuts_down < 0) result.shuts_down = static_cast<int>(gpu);
    }
    return result;
}

void Fleet::start(const std::vector<GpuSurroundings>& healthy, const std::vector<double>& busy) {
    reference_ = references(busy);
    const std::vector<Level> level = levels(healthy, busy);
    load_.assign(states_.size(), -1.0);
    elapsed_s_ = 0.0;
    idle_since_s_.assign(states_.size(), 0.0);
    unsettled_ = 0;
    for (std::size_t gpu = 0; gpu < states_.size(); ++gpu) {
        const double share = load_[gpu] = busy_on_grid(busy[gpu]);
        settled_[gpu] = {true, healthy[gpu], share};
        if (share < 0.0) {
            replace(static_cast<int>(gpu), healthy[gpu]);
            continue;
        }
        states_[gpu] = level[gpu].state;
        settled_[gpu].is = level[gpu].settled;
        if (!level[gpu].settled) ++unsettled_;
    }
}

void Fleet::take_up(const std::vector<GpuSurroundings>& around, const std::vector<double>& busy) {
    reference_ = references(busy);
    for (std::size_t gpu = 0; gpu < states_.size(); ++gpu) {
        const bool was = settled_[gpu].busy >= 0.0;
        const bool is = busy[gpu] >= 0.0;
        if (was == is) continue;
        if (is)
            model(gpu).cool(states_[gpu], around[gpu], elapsed_s_ - idle_since_s_[gpu]);
        else
            idle_since_s_[gpu] = elapsed_s_;
        if (was && !settled_[gpu].is) --unsettled_;
        if (is) ++unsettled_;
        settled_[gpu] = {false, around[gpu], is ? busy_on_grid(busy[gpu]) : -1.0};
        load_[gpu] = settled_[gpu].busy;
    }
}

void Fleet::replace(int gpu, const GpuSurroundings& around) {
    const auto g = static_cast<std::size_t>(gpu);
    states_[g] = GpuThermalState{};
    model(g).cool(states_[g], around, 1e9);
    if (settled_[g].is && settled_[g].busy >= 0.0) ++unsettled_;
    settled_[g].is = false;
}

std::vector<double> Fleet::pace_over(const std::vector<GpuSurroundings>& around, const std::vector<double>& busy,
                                     scenarios::Duration duration) {
    std::vector<double> pace(states_.size(), 1.0);
    const auto [steps, seconds] = heat_steps(duration);
    const std::vector<GpuThermal::Step> step = steps_of(seconds);
    for (std::size_t gpu = 0; gpu < states_.size(); ++gpu) {
        const double share = load_of(gpu, busy[gpu]);
        if (share < 0.0) continue;
        double clock = 0.0;
        const Settled& settled = settled_[gpu];
        if (settled.is && settled.around == around[gpu] && settled.busy == share) {
            clock = clock_of(gpu, around[gpu]);
        } else {
            GpuThermalState state = states_[gpu];
            const GpuThermalState end = equilibrium_of(gpu, state, around[gpu], share);
            if (model(gpu).calm(state, end, around[gpu]) &&
                model(gpu).lowest_clock(state, end, around[gpu]) >= reference_[gpu])
                continue;
            for (int i = 0; i < steps; ++i)
                clock += model(gpu).advance(state, around[gpu], share, step[model_of_[gpu]]);
            clock /= steps;
        }
        pace[gpu] = std::min(1.0, clock / reference_[gpu]);
    }
    return pace;
}

std::vector<int> Fleet::advance(const std::vector<GpuSurroundings>& around, const std::vector<double>& busy,
                                scenarios::Duration duration) {
    std::vector<int> shut_down;
    const auto [steps, seconds] = heat_steps(duration);
    const std::vector<GpuThermal::Step> step = steps_of(seconds);
    const std::vector<GpuThermal::Step> whole = steps_of(duration.s());
    elapsed_s_ += duration.s();
    unsettled_ = 0;
    for (std::size_t gpu = 0; gpu < states_.size(); ++gpu) {
        const double share = load_[gpu] = load_of(gpu, busy[gpu]);
        if (share < 0.0) continue;
        Settled& settled = settled_[gpu];
        if (settled.is && settled.around == around[gpu] && settled.busy == share) continue;
        settled = {false, around[gpu], share};
        GpuThermalState& state = states_[gpu];
        const GpuThermal& thermal = model(gpu);
        bool lost = false;
        const GpuThermalState there = equilibrium_of(gpu, state, around[gpu], share);
        if (thermal.calm(state, there, around[gpu])) {
            thermal.advance(state, around[gpu], share, whole[model_of_[gpu]]);
            if (thermal.settles(state, there, around[gpu])) {
                state = there;
                settled.is = true;
            } else {
                ++unsettled_;
            }
            continue;
        }
        for (int i = 0; i < steps && !lost; ++i) {
            thermal.advance(state, around[gpu], share, step[model_of_[gpu]]);
            lost = thermal.shuts_down(state, around[gpu]);
        }
        if (lost) shut_down.push_back(static_cast<int>(gpu));
        const GpuThermalState end = equilibrium_of(gpu, state, around[gpu], share);
        if (!lost && thermal.settles(state, end, around[gpu])) {
            state = end;
            settled.is = true;
        } else {
            ++unsettled_;
        }
    }
    return shut_down;
}

GpuThermalState Fleet::equilibrium_of(std::size_t gpu, const GpuThermalState& state, const GpuSurroundings& around,
                                      double busy) {
    // Neighbours are mostly in the same situation, and stay in it: few answers serve nearly always.
    Equilibria& of_model = equilibria_[model_of_[gpu]];
    const auto fits = [&](const Equilibrium& e) {
        return e.busy == busy && e.steps == state.slowdown_steps && e.hardware == state.hardware_slowdown &&
               e.around == around;
    };
    if (of_model.latest < of_model.known.size() && fits(of_model.known[of_model.latest]))
        return of_model.known[of_model.latest].state;
    for (std::size_t i = 0; i < of_model.known.size(); ++i) {
        if (!fits(of_model.known[i])) continue;
        of_model.latest = i;
        return of_model.known[i].state;
    }
    const Equilibrium fresh{around, busy, state.slowdown_steps, state.hardware_slowdown,
                            model(gpu).equilibrium(state, around, busy)};
    if (of_model.known.size() < kKnownEquilibria) {
        of_model.latest = of_model.known.size();
        of_model.known.push_back(fresh);
    } else {
        of_model.latest = of_model.oldest;
        of_model.oldest = (of_model.oldest + 1) % kKnownEquilibria;
        of_model.known[of_model.latest] = fresh;
    }
    return fresh.state;
}

bool Fleet::at_rest(const std::vector<GpuSurroundings>& around, const std::vector<double>& busy) const {
    for (std::size_t gpu = 0; gpu < states_.size(); ++gpu) {
        const Settled& settled = settled_[gpu];
        const double share = load_of(gpu, busy[gpu]);
        if (share >= 0.0 && !(settled.is && settled.busy == share && settled.around == around[gpu])) return false;
    }
    return true;
}

void Fleet::cool(const std::vector<GpuSurroundings>& around, scenarios::Duration duration) {
    elapsed_s_ += duration.s();
    for (std::size_t gpu = 0; gpu < states_.size(); ++gpu) {
        if (settled_[gpu].busy < 0.0) continue;
        model(gpu).cool(states_[gpu], around[gpu], duration.s());
        if (duration <= scenarios::Duration()) continue;
        if (settled_[gpu].is) ++unsettled_;
        settled_[gpu].is = false;
    }
}

double Fleet::temperature_c(int gpu, const GpuSurroundings& around) const {
    const auto g = static_cast<std::size_t>(gpu);
    return model(g).temperature(states_[g], around);
}

double Fleet::clock_mhz(int gpu, const GpuSurroundings& around) const {
    const auto g = static_cast<std::size_t>(gpu);
    const double clock = clock_of(g, around);
    return clock_step_[g] > 0.0 ? std::round(clock / clock_step_[g]) * clock_step_[g] : clock;
}

double Fleet::power_w(int gpu, const GpuSurroundings& around, double busy) const {
    const auto g = static_cast<std::size_t>(gpu);
    return busy < 0.0 ? model(g).idle_power() : model(g).power(clock_of(g, around), load_of(g, busy));
}

std::uint32_t Fleet::throttle_reasons(int gpu, const GpuSurroundings& around) const {
    const auto g = static_cast<std::size_t>(gpu);
    return model(g).throttle_reasons(states_[g], around);
}

}  // namespace headway::sim
