#pragma once

#include <functional>

#include "backend/communicator/communicator.h"
#include "backend/communicator/shared_memory.h"

/// Collectives of a group whose members share memory. They block. Tensors are added up in order of rank.
namespace headway::backend {

struct SharedCall {
    SharedRounds& rounds;
    std::function<void()> meet;  ///< of all members; throws when there is no meeting any more
};

void all_reduce(const SharedCall& call, const Tensor& tensor, ReduceOperation operation);
void reduce_scatter(const SharedCall& call, const Tensor& from, const Tensor& to);
void all_gather(const SharedCall& call, const Tensor& from, const Tensor& to);
void broadcast(const SharedCall& call, const Tensor& tensor, int root);

}  // namespace headway::backend
