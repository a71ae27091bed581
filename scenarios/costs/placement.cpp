#include "scenarios/costs/placement.h"

#include <algorithm>
#include <map>

namespace headway::scenarios {

Placement::Placement(const Plan& plan, const Cluster& cluster) : plan_(plan) {
    const Layout& layout = plan.layout;
    std::map<int, int> used;
    node_of_rank_.reserve(plan.gpu_of_rank.size());
    for (const int gpu : plan.gpu_of_rank) {
        node_of_rank_.push_back(cluster.node_of(gpu));
        most_on_a_node_ = std::max(most_on_a_node_, ++used[node_of_rank_.back()]);
    }

    std::vector<std::vector<int>> groups;
    for (int p = 0; p < layout.pipeline; ++p)
        for (int d = 0; d < layout.data; ++d)
            for (int c = 0; c < layout.context; ++c) {
                groups.emplace_back();
                for (int t = 0; t < layout.tensor; ++t) groups.back().push_back(plan.rank(t, c, d, p));
            }
    tensor_ = widest(groups);

    groups.clear();
    for (int p = 0; p < layout.pipeline; ++p)
        for (int d = 0; d < layout.data; ++d)
            for (int t = 0; t < layout.tensor; ++t) {
                groups.emplace_back();
                for (int c = 0; c < layout.context; ++c) groups.back().push_back(plan.rank(t, c, d, p));
            }
    context_ = widest(groups);

    for (int p = 0; p < layout.pipeline; ++p) {
        groups.clear();
        for (int t = 0; t < layout.tensor; ++t) {
            groups.emplace_back();
            for (int d = 0; d < layout.data; ++d)
                for (int c = 0; c < layout.context; ++c) groups.back().push_back(plan.rank(t, c, d, p));
        }
        data_.push_back(widest(groups));
    }

    groups.clear();
    if (layout.pipeline > 1) {
        for (int d = 0; d < layout.data; ++d)
            for (int c = 0; c < layout.context; ++c)
                for (int t = 0; t < layout.tensor; ++t)
                    groups.push_back({plan.rank(t, c, d, 0), plan.rank(t, c, d, layout.pipeline - 1)});
        tied_ = widest(groups);
    }
}

GroupShape Placement::widest(const std::vector<std::vector<int>>& groups) const {
    GroupShape widest;
    std::vector<int> nodes;
    for (const auto& group : groups) {
        nodes.clear();
        for (const int rank : group) nodes.push_back(node_of_rank_[static_cast<std::size_t>(rank)]);
        std::sort(nodes.begin(), nodes.end());
        int count = 0, most = 0, run = 0;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            run = i > 0 && nodes[i] == nodes[i - 1] ? run + 1 : 1;
            count += run == 1;
            most = std::max(most, run);
        }
        if (count > widest.nodes || (count == widest.nodes && most > widest.ranks_per_node)) {
            widest.nodes = count;
            widest.ranks_per_node = most;
        }
    }
    widest.groups_per_node = std::max(1, most_on_a_node_ / widest.ranks_per_node);
    return widest;
}

}  // namespace headway::scenarios
