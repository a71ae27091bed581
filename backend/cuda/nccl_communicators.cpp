#include "backend/cuda/nccl_communicators.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "backend/backend_error.h"
#include "backend/cuda/single_communicator.h"

namespace headway::backend {

namespace {

/// Calls under way, on the group's stream or those of pairs.
class NcclWork final : public Work {
  public:
    NcclWork(std::shared_ptr<NcclSession> session, std::vector<std::shared_ptr<NcclCall>> calls)
        : session_(std::move(session)), calls_(std::move(calls)) {}
    ~NcclWork() override {
        try {
            wait();
        } catch (const BackendError&) {  // found by the next call
        }
    }
    void wait() override {
        CudaDevice& device = session_->device();
        device.make_current();
        for (const auto& call : calls_) call->hold_up(device.stream(), session_->failure());
        calls_.clear();
    }
    bool done() override {
        session_->failure().check();
        return std::all_of(calls_.begin(), calls_.end(),
                           [&](const auto& call) { return call->done(session_->failure()); });
    }

  private:
    std::shared_ptr<NcclSession> session_;
    std::vector<std::shared_ptr<NcclCall>> calls_;
};

ncclDataType_t nccl_type(DataType type) {
    switch (type) {
        case DataType::kFloat64:
            return ncclFloat64;
        case DataType::kFloat32:
            return ncclFloat32;
        case DataType::kBfloat16:
            return ncclBfloat16;
        case DataType::kInt32:
            return ncclInt32;
    }
    throw std::invalid_argument("no such data type");
}

std::size_t count_of(const Tensor& tensor) {
    return static_cast<std::size_t>(tensor.count());
}

/// FNV-1a over what every process has to state in the same way.
std::uint64_t fingerprint(const std::vector<GroupSpec>& groups) {
    std::uint64_t hash = 14695981039346656037u;
    const auto add = [&](const std::string& text) {
        for (const char c : text + ";") hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    };
    for (const GroupSpec& group : groups) {
        add(group.name);
        for (const int member : group.members) add(std::to_string(member));
    }
    return hash;
}

}  // namespace

NcclCommunicator::NcclCommunicator(std::shared_ptr<NcclSession> session, std::shared_ptr<PairIds> ids,
                                   const GroupSpec& group, int rank, std::string key, const ncclUniqueId& id)
    : session_(session),
      ids_(std::move(ids)),
      group_(group),
      rank_(rank),
      key_(std::move(key)),
      link_(std::move(session), group.name, rank, static_cast<int>(group.members.size()), 0) {
    link_.connect(id);
}

void NcclCommunicator::require(const char* call, bool holds, const char* what) const {
    if (!holds) throw std::invalid_argument(std::string(call) + " of group '" + group_.name + "': " + what);
}

void NcclCommunicator::check_tensor(const char* call, const Tensor& tensor) const {
    require(call, tensor.contiguous(), "the tensor is not contiguous");
    require(call, tensor.data != nullptr || tensor.empty(), "the tensor has no memory");
}

std::shared_ptr<cuda::OwnedEvent> NcclCommunicator::now_on_device() const {
    session_->device().make_current();
    auto now = std::make_shared<cuda::OwnedEvent>(false);
    now->record(session_->device().stream());
    return now;
}

std::shared_ptr<NcclCall> NcclCommunicator::new_call(const std::string& call) const {
    return std::make_shared<NcclCall>(call, session_->timeout());
}

std::unique_ptr<Work> NcclCommunicator::issue(const char* call, const NcclLink::Issue& what) {
    session_->failure().check();
    const auto after = now_on_device();
    auto issued = new_call(call);
    link_.issue(*issued, *after, what);
    link_.watch(issued);
    return std::make_unique<NcclWork>(session_, std::vector{std::move(issued)});
}

std::unique_ptr<Work> NcclCommunicator::all_reduce(const Tensor& tensor, ReduceOperation operation) {
    check_tensor("all-reduce", tensor);
    return issue("all-reduce", [&](ncclComm_t communicator, cudaStream_t stream) {
        return ncclAllReduce(tensor.data, tensor.data, count_of(tensor), nccl_type(tensor.type),
                             operation == ReduceOperation::kSum ? ncclSum : ncclMax, communicator, stream);
    });
}

std::unique_ptr<Work> NcclCommunicator::reduce_scatter(const Tensor& from, const Tensor& to) {
    check_tensor("reduce-scatter", from);
    check_tensor("reduce-scatter", to);
    require("reduce-scatter", from.type == to.type && from.count() == to.count() * size(),
            "'from' is not one part for each member");
    return issue("reduce-scatter", [&](ncclComm_t communicator, cudaStream_t stream) {
        return ncclReduceScatter(from.data, to.data, count_of(to), nccl_type(to.type), ncclSum, communicator, stream);
    });
}

std::unique_ptr<Work> NcclCommunicator::all_gather(const Tensor& from, const Tensor& to) {
    check_tensor("all-gather", from);
    check_tensor("all-gather", to);
    require("all-gather", from.type == to.type && from.count() * size() == to.count(),
            "'to' is not one part for each member");
    return issue("all-gather", [&](ncclComm_t communicator, cudaStream_t stream) {
        return ncclAllGather(from.data, to.data, count_of(from), nccl_type(from.type), communicator, stream);
    });
}

std::unique_ptr<Work> NcclCommunicator::broadcast(const Tensor& tensor, int root) {
    check_tensor("broadcast", tensor);
    require("broadcast", root >= 0 && root < size(), "no such root");
    return issue("broadcast", [&](ncclComm_t communicator, cudaStream_t stream) {
        return ncclBroadcast(tensor.data, tensor.data, count_of(tensor), nccl_type(tensor.type), root, communicator,
                             stream);
    });
}

NcclPair& NcclCommunicator::pair_with(int peer) {
    std::unique_ptr<NcclPair>& pair = pairs_[peer];
    if (!pair) {
        NcclPair::Place place;
        const std::string low = std::to_string(std::min(rank_, peer)), high = std::to_string(std::max(rank_, peer));
        place.group = group_.name + ", ranks " + low + " and " + high;
        place.key = key_ + ":" + low + "-" + high;
        place.own_process = group_.members[static_cast<std::size_t>(rank_)];
        place.peer_process = group_.members[static_cast<std::size_t>(peer)];
        place.first = rank_ < peer;
        pair = std::make_unique<NcclPair>(session_, ids_, std::move(place));
    }
    return *pair;
}

std::unique_ptr<Work> NcclCommunicator::exchange(std::span<const Message> messages) {
    std::map<int, std::vector<Message>> of_peer;
    for (const Message& message : messages) {
        check_tensor("exchange", message.tensor);
        require("exchange", message.peer >= 0 && message.peer < size() && message.peer != rank_, "no such peer");
        if (!message.tensor.empty()) of_peer[message.peer].push_back(message);
    }
    session_->failure().check();
    const auto after = now_on_device();
    std::vector<std::shared_ptr<NcclCall>> calls;
    for (auto& [peer, own] : of_peer) {
        auto call = new_call("exchange");
        pair_with(peer).post(call, after, std::move(own));
        calls.push_back(std::move(call));
    }
    return std::make_unique<NcclWork>(session_, std::move(calls));
}

void NcclCommunicator::abort(const std::string& reason) {
    session_->fail(BackendError(rank_, size(), "group '" + group_.name + "'", reason));
}

NcclCommunicatorMaker::NcclCommunicatorMaker(CudaDevice& device, Control& control, const CommunicatorOptions& options)
    : control_(control),
      single_too_(options.single_too),
      session_(std::make_shared<NcclSession>(device, control, options.timeout)),
      ids_(std::make_shared<PairIds>(control)) {}

std::vector<std::unique_ptr<Communicator>> NcclCommunicatorMaker::make(const std::vector<GroupSpec>& groups) {
    const auto through_nccl = [&](const GroupSpec& group) { return group.members.size() > 1 || single_too_; };
    // The first member of a group makes its id; one exchange tells everybody all of them.
    const std::uint64_t own_fingerprint = fingerprint(groups);
    std::vector<char> told(sizeof own_fingerprint);
    std::memcpy(told.data(), &own_fingerprint, sizeof own_fingerprint);
    for (const GroupSpec& group : groups) {
        for (const int member : group.members) {
            if (member < 0 || member >= control_.size() ||
                std::count(group.members.begin(), group.members.end(), member) != 1) {
                throw std::invalid_argument("group '" + group.name + "': " + std::to_string(member) +
                                            " is no process of the job, or named twice");
            }
        }
        if (group.members.empty()) throw std::invalid_argument("group '" + group.name + "' has no members");
        if (!through_nccl(group) || group.members.front() != control_.rank()) continue;
        ncclUniqueId id{};
        const ncclResult_t result = ncclGetUniqueId(&id);
        if (result != ncclSuccess) throw BackendError("ncclGetUniqueId", ncclGetErrorString(result));
        told.insert(told.end(), id.internal, id.internal + sizeof id.internal);
    }
    const std::vector<std::vector<char>> all = control_.all_gather(told);
    std::vector<std::size_t> read(all.size(), sizeof own_fingerprint);
    for (std::size_t process = 0; process < all.size(); ++process) {
        if (all[process].size() < sizeof own_fingerprint ||
            std::memcmp(all[process].data(), told.data(), sizeof own_fingerprint) != 0) {
            throw BackendError(control_.rank(), control_.size(), "making groups",
                               "process " + std::to_string(process) + " wants other groups");
        }
    }

    std::vector<std::unique_ptr<Communicator>> communicators;
    for (const GroupSpec& group : groups) {
        const std::string key = "g" + std::to_string(made_++);
        ncclUniqueId id{};
        if (through_nccl(group)) {
            const auto first = static_cast<std::size_t>(group.members.front());
            if (read[first] + sizeof id.internal > all[first].size()) {
                throw BackendError(control_.rank(), control_.size(), "making groups",
                                   "process " + std::to_string(first) + " told too few ids");
            }
            std::memcpy(id.internal, all[first].data() + read[first], sizeof id.internal);
            read[first] += sizeof id.internal;
        }
        const auto own = std::find(group.members.begin(), group.members.end(), control_.rank());
        if (own == group.members.end()) {
            communicators.push_back(nullptr);
        } else if (through_nccl(group)) {
            communicators.push_back(std::make_unique<NcclCommunicator>(
                session_, ids_, group, static_cast<int>(own - group.members.begin()), key, id));
        } else {
            communicators.push_back(std::make_unique<SingleCommunicator>(session_->device(), group.name));
        }
    }
    return communicators;
}

}  // namespace headway::backend
