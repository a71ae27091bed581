#include "scenarios/language/plan.h"

#include <algorithm>
#include <cstddef>

#include "scenarios/language/words.h"

namespace headway::scenarios {

std::string describe(const Layout& layout) {
    std::string text = "t" + std::to_string(layout.tensor) + " p" + std::to_string(layout.pipeline) + " d" +
                       std::to_string(layout.data) + " c" + std::to_string(layout.context);
    if (layout.virtual_pipeline > 1) text += " v" + std::to_string(layout.virtual_pipeline);
    text += " " + std::string(word_of(layout.schedule));
    if (layout.zero_bubble_memory > 1) text += " with " + std::to_string(layout.zero_bubble_memory) + "x memory";
    text += ", recompute " + std::string(word_of(layout.recompute));
    if (layout.sequence_parallel) text += ", sequence parallel";
    if (layout.distributed_optimizer) text += ", distributed optimizer";
    return text;
}

bool Plan::same_layers_everywhere() const {
    const auto first = layers_of_cell.begin();
    const auto length = static_cast<std::ptrdiff_t>(layout.virtual_stages());
    for (auto split = first; split != layers_of_cell.end(); split += length)
        if (!std::equal(first, first + length, split)) return false;
    return true;
}

std::vector<int> same_layers(const std::vector<int>& split, int data) {
    std::vector<int> layers;
    for (int replica = 0; replica < data; ++replica) layers.insert(layers.end(), split.begin(), split.end());
    return layers;
}

}  // namespace headway::scenarios
