#include "scenarios/language/disturbance.h"

#include <type_traits>

namespace headway::scenarios {
namespace {

std::string target_text(const GpuTarget& at) {
    if (at.gpu >= 0) return "GPU " + std::to_string(at.gpu);
    if (at.node >= 0) return "node " + std::to_string(at.node);
    if (at.rack >= 0) return "rack " + std::to_string(at.rack);
    return "the whole cluster";
}

std::string target_text(const LinkTarget& at) {
    if (at.rack_uplink >= 0) return "rack " + std::to_string(at.rack_uplink) + " uplink";
    if (at.node_network >= 0) return "node " + std::to_string(at.node_network) + " network";
    if (at.nic >= 0) return "GPU " + std::to_string(at.nic) + " NIC";
    if (at.node_fabric >= 0) return "node " + std::to_string(at.node_fabric) + " fabric";
    return "pipeline hop " + std::to_string(at.pipeline_hop) + "-" + std::to_string(at.pipeline_hop + 1);
}

}  // namespace

const char* kind_of(const Cause& cause) {
    return kCauseKinds[cause.index()];
}

bool is_loss(const Cause& cause) {
    return std::holds_alternative<GpuLoss>(cause) || std::holds_alternative<NodeLoss>(cause);
}

std::string default_name(const Cause& cause) {
    std::string kind = kind_of(cause);
    for (char& c : kind) {
        if (c == '_') c = ' ';
    }
    return std::visit(
        [&kind](const auto& c) -> std::string {
            using T = std::decay_t<decltype(c)>;
            if constexpr (std::is_same_v<T, GpuLoss>)
                return "loss of GPU " + std::to_string(c.gpu);
            else if constexpr (std::is_same_v<T, NodeLoss>)
                return "loss of node " + std::to_string(c.node);
            else if constexpr (std::is_same_v<T, NodeArrival>)
                return "arrival of " + std::to_string(c.nodes) + (c.nodes == 1 ? " spare node" : " spare nodes");
            else if constexpr (requires { c.at; })
                return kind + " of " + target_text(c.at);
            else
                return kind;
        },
        cause);
}

}  // namespace headway::scenarios
