#include "policies/planning/reasons.h"

#include <algorithm>
#include <cmath>

namespace headway::policies {

using scenarios::Plan;

namespace {

constexpr std::size_t kGpusNamed = 3;

double middle_of(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

int layers_of_stage(const Plan& plan, int replica, int stage) {
    int layers = 0;
    for (int chunk = 0; chunk < plan.layout.virtual_pipeline; ++chunk)
        layers += plan.layers(replica, chunk * plan.layout.pipeline + stage);
    return layers;
}

std::string counted(int count, const char* what, const char* plural) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : plural);
}

}  // namespace

std::string short_number(double value) {
    const int decimals = value < 1.995 ? 2 : value < 9.95 ? 1 : 0;
    const double scale = std::pow(10.0, decimals);
    std::string text = std::to_string(std::round(value * scale) / scale);
    text.resize(text.find('.') + (decimals > 0 ? static_cast<std::size_t>(decimals) + 1 : 0));
    return text;
}

std::string gpus_text(std::vector<int> gpus) {
    std::sort(gpus.begin(), gpus.end());
    std::string text = gpus.size() == 1 ? "GPU " : "GPUs ";
    const std::size_t named = gpus.size() <= kGpusNamed + 1 ? gpus.size() : kGpusNamed;
    for (std::size_t i = 0; i < named; ++i) {
        const bool last = i + 1 == gpus.size();
        text += (i == 0 ? "" : last ? " and " : ", ") + std::to_string(gpus[i]);
    }
    if (named < gpus.size()) text += " and " + std::to_string(gpus.size() - named) + " more";
    return text;
}

std::string why_shared(Rebalancer& rebalancer, const Plan& from, const Plan& to) {
    std::size_t least = 0;
    const auto change = [&](std::size_t r) {
        return static_cast<double>(to.micro_batches_of_replica[r]) / from.micro_batches_of_replica[r];
    };
    std::vector<double> seconds;
    for (std::size_t r = 0; r < to.micro_batches_of_replica.size(); ++r) {
        if (change(r) < change(least)) least = r;
        seconds.push_back(rebalancer.slowest_stage_seconds(to, static_cast<int>(r)));
    }
    const double slower = seconds[least] / middle_of(seconds);
    std::string text = "replica " + std::to_string(least);
    if (slower > 1.01)
        text += " takes " + short_number(slower) + " times as long a micro-batch:";
    else
        text += ":";
    return text + " " + std::to_string(to.micro_batches_of_replica[least]) + " instead of " +
           counted(from.micro_batches_of_replica[least], "micro-batch", "es");
}

std::string why_split(Rebalancer& rebalancer, const Plan& from, const Plan& to) {
    int replica = 0, stage = 0;
    double most = 1.0;
    std::vector<double> seconds;
    for (int r = 0; r < to.layout.data; ++r)
        for (int s = 0; s < to.layout.pipeline; ++s) {
            const double before = layers_of_stage(from, r, s), after = layers_of_stage(to, r, s);
            const double change = before > 0.0 ? after / before : 1.0;
            if (before > 0.0) seconds.push_back(rebalancer.stage_seconds(from, r, s) / before);
            if (change >= most) continue;
            most = change;
            replica = r;
            stage = s;
        }
    const int before = layers_of_stage(from, replica, stage);
    const double slower =
        before > 0 ? rebalancer.stage_seconds(from, replica, stage) / before / middle_of(seconds) : 1.0;
    std::string text = "stage " + std::to_string(stage);
    if (!to.same_layers_everywhere()) text += " of replica " + std::to_string(replica);
    if (slower > 1.01) text += " takes " + short_number(slower) + " times as long a layer";
    return text + ": " + std::to_string(layers_of_stage(to, replica, stage)) + " instead of " +
           counted(before, "layer", "s");
}

}  // namespace headway::policies
