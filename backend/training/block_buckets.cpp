#include "backend/training/block_buckets.h"

namespace headway::backend {

std::vector<int> virtual_stages_of(const scenarios::Plan& plan, const scenarios::Block& block) {
    using scenarios::BlockKind;
    const int stages = plan.layout.virtual_stages();
    std::vector<int> result(static_cast<std::size_t>(plan.layout.data), 0);
    if (block.layer >= 0) {
        for (int replica = 0; replica < plan.layout.data; ++replica) {
            int stage = 0;
            for (int end = plan.layers(replica, 0); end <= block.layer; end += plan.layers(replica, stage)) ++stage;
            result[static_cast<std::size_t>(replica)] = stage;
        }
    } else if (block.kind == BlockKind::kFinalNorm || block.kind == BlockKind::kHead) {
        result.assign(result.size(), stages - 1);
    }
    return result;
}

std::vector<std::size_t> bucket_starts(std::span<const BucketCandidate> blocks, std::int64_t most_elements) {
    std::vector<std::size_t> starts;
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const bool fits = i > 0 && !blocks[i].alone && !blocks[i - 1].alone &&
                          blocks[i].virtual_stages == blocks[i - 1].virtual_stages &&
                          elements + blocks[i].elements <= most_elements;
        if (!fits) {
            starts.push_back(i);
            elements = 0;
        }
        elements += blocks[i].elements;
    }
    return starts;
}

}  // namespace headway::backend
