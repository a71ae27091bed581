#pragma once

/// NCCL as far as the communicators use it, among threads of one process over fake streams. Calls do not block: joining
/// takes until all have come, and what is issued runs when all members (of a message: both) have got there; aborting a
/// communicator ends what it runs. Stricter than NCCL in one thing: calls outside a group fail.
namespace headway::tests {

/// From now on ncclCommGetAsyncError of every communicator of `rank` in its group reports a remote error.
void fake_nccl_break(int rank, bool broken);
/// Communicators that are neither destroyed nor aborted.
int fake_nccl_living();

}  // namespace headway::tests
