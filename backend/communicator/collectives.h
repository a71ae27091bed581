#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/communicator/gloo_mesh.h"

/// Collectives by messages between the members of one group. They block; what they need of a group is GroupCall.
///
/// Small tensors go from every member to every other, which adds them up in order of rank. Larger ones go round a ring
/// (Patarasuk & Yuan 2009) in segments, so that adding, sending and receiving overlap; part p is added up beginning
/// with member p + 1. So the order of additions depends on the size of tensor and group alone.
namespace headway::backend {

/// One collective among one group's members.
struct GroupCall {
    GlooMesh& mesh;
    const std::vector<int>& members;  ///< processes
    int rank = 0;                     ///< in the group
    std::uint64_t slot = 0;           ///< of its messages
    std::uint64_t second_slot = 0;    ///< of those of a second phase
    std::string description;          ///< "all-reduce of group 'tensor 3'"
    std::vector<std::byte>& scratch;

    int size() const { return static_cast<int>(members.size()); }
    /// Neighbours in the ring.
    int next() const { return members[static_cast<std::size_t>((rank + 1) % size())]; }
    int previous() const { return members[static_cast<std::size_t>((rank + size() - 1) % size())]; }
};

void all_reduce(const GroupCall& call, const Tensor& tensor, ReduceOperation operation);
void reduce_scatter(const GroupCall& call, const Tensor& from, const Tensor& to);
void all_gather(const GroupCall& call, const Tensor& from, const Tensor& to);
void broadcast(const GroupCall& call, const Tensor& tensor, int root);

}  // namespace headway::backend
