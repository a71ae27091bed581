#include "scenarios/language/plan.h"

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

}  // namespace headway::scenarios
