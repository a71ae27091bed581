#include "tests/backend/cuda/libraries/fake_nccl.h"

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/backend/cuda/libraries/fake_cuda.h"

namespace headway::tests::fake_nccl {

std::mutex all_mutex;  // one for everything: this is about order, not speed
std::condition_variable all_changed;
std::atomic<int> broken_rank{-1};
int living = 0;

enum class Kind { kAllReduce, kReduceScatter, kAllGather, kBroadcast };

struct Part {
    const void* from = nullptr;
    void* to = nullptr;
    bool there = false;
};
struct Collective {
    std::vector<Part> parts;
    int arrived = 0;
    bool done = false;
};
struct Transfer {
    void* memory;
    std::size_t bytes;
    std::shared_ptr<bool> done;
};
struct Channel {
    std::deque<Transfer> sent, wanted;
};

/// What the members of one id share.
struct Meeting {
    int arrived = 0;
    std::map<std::int64_t, Collective> collectives;   // by their number
    std::map<std::pair<int, int>, Channel> channels;  // from, to
};
std::map<std::int64_t, std::shared_ptr<Meeting>> meetings;
std::int64_t next_id = 1;

std::size_t size_of(ncclDataType_t type) {
    switch (type) {
        case ncclFloat64:
            return 8;
        case ncclFloat32:
        case ncclInt32:
            return 4;
        case ncclBfloat16:
            return 2;
        default:
            return 1;
    }
}

}  // namespace headway::tests::fake_nccl

struct ncclComm {
    std::shared_ptr<headway::tests::fake_nccl::Meeting> meeting;
    int rank = 0, size = 1;
    std::int64_t issued = 0;
    bool aborted = false;
};

namespace headway::tests::fake_nccl {

thread_local int depth = 0;
thread_local std::vector<std::function<void()>> issued;
struct Message {
    ncclComm_t communicator;
    cudaStream_t stream;
    bool send;
    int peer;
    void* memory;
    std::size_t bytes;
};
thread_local std::vector<Message> messages;

/// Elements as they lie in memory, as numbers and back; rounded after each sum, as on a way through the members.
struct Floats {
    using Stored = float;
    static double number(float stored) { return static_cast<double>(stored); }
    static float stored(double number) { return static_cast<float>(number); }
};
struct Doubles {
    using Stored = double;
    static double number(double stored) { return stored; }
    static double stored(double number) { return number; }
};
struct Bfloats {
    using Stored = std::uint16_t;
    static double number(std::uint16_t stored) {
        return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(stored) << 16));
    }
    static std::uint16_t stored(double number) {
        const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(number));
        return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
    }
};

template <typename Type>
void reduce(const Collective& call, std::size_t first, std::size_t count, ncclRedOp_t operation, void* to) {
    using Stored = typename Type::Stored;
    std::vector<Stored> result(count);
    for (std::size_t member = 0; member < call.parts.size(); ++member) {
        const Stored* from = static_cast<const Stored*>(call.parts[member].from) + first;
        for (std::size_t i = 0; i < count; ++i) {
            const double own = Type::number(from[i]), before = Type::number(result[i]);
            result[i] =
                member == 0 ? from[i] : Type::stored(operation == ncclSum ? before + own : std::max(before, own));
        }
    }
    std::memcpy(to, result.data(), count * sizeof(Stored));
}

/// Computes a collective whose members are all there.
void finish(Collective& call, Kind kind, std::size_t count, ncclDataType_t type, ncclRedOp_t operation, int root) {
    const std::size_t bytes = count * size_of(type), members = call.parts.size();
    std::vector<std::vector<char>> results(members);
    for (std::size_t member = 0; member < members; ++member) {
        std::vector<char>& result = results[member];
        result.resize(kind == Kind::kAllGather ? bytes * members : bytes);
        const std::size_t first = kind == Kind::kReduceScatter ? member * count : 0;
        if (kind == Kind::kAllGather) {
            for (std::size_t other = 0; other < members; ++other)
                std::memcpy(result.data() + other * bytes, call.parts[other].from, bytes);
        } else if (kind == Kind::kBroadcast) {
            std::memcpy(result.data(), call.parts[static_cast<std::size_t>(root)].from, bytes);
        } else if (type == ncclFloat32) {
            reduce<Floats>(call, first, count, operation, result.data());
        } else if (type == ncclBfloat16) {
            reduce<Bfloats>(call, first, count, operation, result.data());
        } else {
            reduce<Doubles>(call, first, count, operation, result.data());
        }
    }
    for (std::size_t member = 0; member < members; ++member)
        std::memcpy(call.parts[member].to, results[member].data(), results[member].size());
}

ncclResult_t add_collective(Kind kind, const void* from, void* to, std::size_t count, ncclDataType_t type,
                            ncclRedOp_t operation, int root, ncclComm_t communicator, cudaStream_t stream) {
    if (depth == 0 || communicator == nullptr) return ncclInvalidUsage;
    issued.push_back([=] {
        const std::int64_t number = communicator->issued++;
        headway::tests::fake_stream_call(stream, [=] {
            std::unique_lock lock(all_mutex);
            Collective& call = communicator->meeting->collectives[number];
            call.parts.resize(static_cast<std::size_t>(communicator->size));
            call.parts[static_cast<std::size_t>(communicator->rank)] = {from, to, true};
            if (++call.arrived == communicator->size) {
                finish(call, kind, count, type, operation, root);
                call.done = true;
                all_changed.notify_all();
            }
            all_changed.wait(lock, [&] { return call.done || communicator->aborted; });
        });
    });
    return ncclSuccess;
}

void match(Channel& channel) {
    while (!channel.sent.empty() && !channel.wanted.empty()) {
        const Transfer sent = channel.sent.front(), wanted = channel.wanted.front();
        channel.sent.pop_front();
        channel.wanted.pop_front();
        std::memcpy(wanted.memory, sent.memory, std::min(sent.bytes, wanted.bytes));
        *sent.done = *wanted.done = true;
    }
}

ncclResult_t add_message(bool send, const void* memory, std::size_t bytes, int peer, ncclComm_t communicator,
                         cudaStream_t stream) {
    if (depth == 0 || communicator == nullptr) return ncclInvalidUsage;
    messages.push_back({communicator, stream, send, peer, const_cast<void*>(memory), bytes});
    return ncclSuccess;
}

/// All messages of a group are under way at the same time.
void issue_messages() {
    if (messages.empty()) return;
    headway::tests::fake_stream_call(messages.front().stream, [group = messages] {
        std::unique_lock lock(all_mutex);
        std::vector<std::shared_ptr<bool>> done;
        for (const Message& message : group) {
            const int own = message.communicator->rank;
            const auto ends = message.send ? std::pair(own, message.peer) : std::pair(message.peer, own);
            Channel& channel = message.communicator->meeting->channels[ends];
            done.push_back(std::make_shared<bool>(false));
            (message.send ? channel.sent : channel.wanted).push_back({message.memory, message.bytes, done.back()});
            match(channel);
        }
        all_changed.notify_all();
        all_changed.wait(lock, [&] {
            bool all = true;
            for (const auto& one : done) all = all && *one;
            return all || group.front().communicator->aborted;
        });
    });
    messages.clear();
}

}  // namespace headway::tests::fake_nccl

namespace headway::tests {

void fake_nccl_break(int rank, bool broken) {
    fake_nccl::broken_rank = broken ? rank : -1;
}
int fake_nccl_living() {
    const std::lock_guard lock(fake_nccl::all_mutex);
    return fake_nccl::living;
}

}  // namespace headway::tests

using namespace headway::tests::fake_nccl;

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    const std::lock_guard lock(all_mutex);
    std::memset(id, 0, sizeof *id);
    std::memcpy(id->internal, &next_id, sizeof next_id);
    ++next_id;
    return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
    if (config->blocking != 0) return ncclInvalidUsage;
    std::int64_t number = 0;
    std::memcpy(&number, id.internal, sizeof number);
    const std::lock_guard lock(all_mutex);
    std::shared_ptr<Meeting>& meeting = meetings[number];
    if (!meeting) meeting = std::make_shared<Meeting>();
    ++meeting->arrived;
    ++living;
    *communicator = new ncclComm{meeting, rank, size, 0, false};
    return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
    const std::lock_guard lock(all_mutex);
    *error = communicator->meeting->arrived < communicator->size ? ncclInProgress
             : broken_rank == communicator->rank                 ? ncclRemoteError
                                                                 : ncclSuccess;
    return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) {
    return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
    const std::lock_guard lock(all_mutex);
    --living;
    delete communicator;
    return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
    const std::lock_guard lock(all_mutex);
    --living;
    communicator->aborted = true;  // kept: its stream may still look at it
    all_changed.notify_all();
    return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) {
    return "fake error of NCCL";
}
const char* ncclGetLastError(ncclComm_t) {
    return "";
}
ncclResult_t ncclGroupStart() {
    ++depth;
    return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
    if (--depth > 0) return ncclSuccess;
    for (const auto& issue : issued) issue();
    issued.clear();
    issue_messages();
    return ncclInProgress;  // as a communicator that does not block may say
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream) {
    return add_collective(Kind::kAllReduce, from, to, count, type, operation, 0, communicator, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
    return add_collective(Kind::kReduceScatter, from, to, count, type, operation, 0, communicator, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
    return add_collective(Kind::kAllGather, from, to, count, type, ncclSum, 0, communicator, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
    return add_collective(Kind::kBroadcast, from, to, count, type, ncclSum, root, communicator, stream);
}
ncclResult_t ncclSend(const void* memory, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
    return add_message(true, memory, count * size_of(type), peer, communicator, stream);
}
ncclResult_t ncclRecv(void* memory, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
    return add_message(false, memory, count * size_of(type), peer, communicator, stream);
}
}
