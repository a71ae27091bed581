#include "backend/communicator/host_communicator.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "backend/communicator/reduction.h"

namespace headway::backend {

namespace {

/// Slots of messages: the group, what kind of call, which of them (modulo, far more than can be under way), and the
/// bytes, since messages of different sizes must not meet.
enum class SlotKind : std::uint64_t { kFirstPhase, kSecondPhase, kExchange };

std::uint64_t slot_of(std::uint64_t group, SlotKind kind, std::uint64_t count, std::int64_t bytes) {
    return group << 48 | static_cast<std::uint64_t>(kind) << 46 | (count & 0x3fff) << 32 |
           (static_cast<std::uint64_t>(bytes) & 0xffffffff);
}

class DoneWork final : public Work {
  public:
    void wait() override {}
    bool done() override { return true; }
};

class CollectiveWork final : public Work {
  public:
    explicit CollectiveWork(std::shared_ptr<QueuedCall> call) : call_(std::move(call)) {}
    ~CollectiveWork() override {
        try {
            call_->wait();
        } catch (const std::exception&) {  // whoever comes next is told
        }
    }
    void wait() override { call_->wait(); }
    bool done() override { return call_->done(); }

  private:
    std::shared_ptr<QueuedCall> call_;
};

}  // namespace

/// Transfers of one exchange. Its owner and, where one follows, a collective wait for it.
struct HostCommunicator::Exchange {
    std::mutex mutex;
    std::vector<std::shared_ptr<Transfer>> transfers;
};

class HostCommunicator::ExchangeWork final : public Work {
  public:
    ExchangeWork(std::shared_ptr<GlooMesh> mesh, std::string description, std::shared_ptr<Exchange> exchange,
                 std::shared_ptr<QueuedCall> posting)
        : mesh_(std::move(mesh)),
          description_(std::move(description)),
          exchange_(std::move(exchange)),
          posting_(std::move(posting)) {}
    ~ExchangeWork() override {
        try {
            wait();
        } catch (const std::exception&) {  // whoever comes next is told
        }
    }
    void wait() override {
        if (asked_.valid()) return asked_.get();
        std::promise<void> outcome;
        asked_ = outcome.get_future().share();
        try {
            wait_all();
            outcome.set_value();
        } catch (...) {
            outcome.set_exception(std::current_exception());
        }
        asked_.get();
    }
    bool done() override {
        // Gloo does not say whether a message is through, so somebody has to wait for it.
        if (!asked_.valid()) asked_ = std::async(std::launch::async, [this] { wait_all(); }).share();
        if (asked_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
        asked_.get();
        return true;
    }
    static void wait_for(GlooMesh& mesh, Exchange& exchange, const std::string& description) {
        std::vector<std::shared_ptr<Transfer>> transfers;
        {
            const std::lock_guard lock(exchange.mutex);
            transfers = exchange.transfers;
        }
        for (const auto& transfer : transfers) mesh.wait(*transfer, description);
    }

  private:
    void wait_all() {
        if (posting_) posting_->wait();
        wait_for(*mesh_, *exchange_, description_);
    }

    std::shared_ptr<GlooMesh> mesh_;
    std::string description_;
    std::shared_ptr<Exchange> exchange_;
    std::shared_ptr<QueuedCall> posting_;  ///< null: posted at once
    std::shared_future<void> asked_;       ///< last: uses the rest
};

HostCommunicator::HostCommunicator(std::shared_ptr<GlooMesh> mesh, std::shared_ptr<SharedRounds> shared,
                                   GroupSpec group, int rank, int number)
    : mesh_(std::move(mesh)),
      group_(std::move(group)),
      rank_(rank),
      number_(static_cast<std::uint64_t>(number)),
      shared_(std::move(shared)) {
    if (shared_) told_ = mesh_->control().when_failed([rounds = shared_](const std::string&) { rounds->stop(); });
}

HostCommunicator::~HostCommunicator() = default;

std::string HostCommunicator::described(const std::string& what) const {
    return what + " of group '" + group_.name + "' (member " + std::to_string(rank_) + " of " + std::to_string(size()) +
           ")";
}

void HostCommunicator::check_tensor(const std::string& what, const Tensor& tensor) const {
    if (!tensor.contiguous()) throw std::invalid_argument(described(what) + ": the tensor is not contiguous");
}

std::unique_ptr<Work> HostCommunicator::collective(const std::string& what, const Tensor& tensor,
                                                   std::function<void(const GroupCall&)> by_messages,
                                                   std::function<void(const SharedCall&)> in_memory) {
    const std::string description = described(what);
    mesh_->check(description);
    const std::uint64_t count = collectives_++;
    const std::uint64_t slot = slot_of(number_, SlotKind::kFirstPhase, count, tensor.bytes());
    const std::uint64_t second_slot = slot_of(number_, SlotKind::kSecondPhase, count, tensor.bytes());
    std::vector<std::shared_ptr<Exchange>> before = std::exchange(exchanges_, {});
    const auto run = [=, this, by_messages = std::move(by_messages), in_memory = std::move(in_memory)] {
        for (const std::shared_ptr<Exchange>& exchange : before)
            ExchangeWork::wait_for(*mesh_, *exchange, described("exchange"));
        if (!shared_) return by_messages({*mesh_, group_.members, rank_, slot, second_slot, description, scratch_});
        const std::uint64_t call = std::hash<std::string>()(what) ^ static_cast<std::uint64_t>(tensor.bytes());
        in_memory({*shared_, [&] { meet(call, description); }});
    };
    return std::make_unique<CollectiveWork>(queue_.add(run));
}

void HostCommunicator::meet(std::uint64_t call, const std::string& description) {
    const auto process = [&](int member) {
        return "rank " + std::to_string(group_.members[static_cast<std::size_t>(member)]);
    };
    std::string why;
    switch (shared_->meet(call, mesh_->timeout())) {
        case SharedRounds::Meeting::kMet:
            return;
        case SharedRounds::Meeting::kStopped:
            mesh_->fail_call(description, "the group has ended");
        case SharedRounds::Meeting::kLate:
            why = process(rank_) + " waited " + std::to_string(mesh_->timeout().count()) + " ms for " +
                  process(shared_->missing()) + " in " + description;
            break;
        case SharedRounds::Meeting::kLeft:
            // It may have left because of a failure that it has heard of first.
            mesh_->fail_call(description, process(shared_->missing()) + " has left");
        case SharedRounds::Meeting::kDisagree:
            why = process(shared_->disagreeing()) + " makes another call, or one of another size, than " + process(0);
            break;
    }
    mesh_->fail(why);
    mesh_->fail_call(description, why);
}

std::unique_ptr<Work> HostCommunicator::all_reduce(const Tensor& tensor, ReduceOperation operation) {
    check_tensor("all-reduce", tensor);
    if (tensor.type == DataType::kBfloat16) combine(tensor.type, operation, nullptr, nullptr, 0);
    if (size() == 1 || tensor.empty()) return std::make_unique<DoneWork>();
    const auto run = [=](const auto& call) { backend::all_reduce(call, tensor, operation); };
    return collective("all-reduce", tensor, run, run);
}

std::unique_ptr<Work> HostCommunicator::reduce_scatter(const Tensor& from, const Tensor& to) {
    check_tensor("reduce-scatter", from);
    check_tensor("reduce-scatter", to);
    if (from.type != to.type || from.count() != to.count() * size())
        throw std::invalid_argument(described("reduce-scatter") + ": 'from' is not one part for each member");
    if (to.type == DataType::kBfloat16) combine(to.type, ReduceOperation::kSum, nullptr, nullptr, 0);
    if (size() == 1 && from.data != to.data && !to.empty())
        std::memcpy(to.data, from.data, static_cast<std::size_t>(to.bytes()));
    if (size() == 1 || to.empty()) return std::make_unique<DoneWork>();
    const auto run = [=](const auto& call) { backend::reduce_scatter(call, from, to); };
    return collective("reduce-scatter", from, run, run);
}

std::unique_ptr<Work> HostCommunicator::all_gather(const Tensor& from, const Tensor& to) {
    check_tensor("all-gather", from);
    check_tensor("all-gather", to);
    if (from.type != to.type || from.count() * size() != to.count())
        throw std::invalid_argument(described("all-gather") + ": 'to' is not one part for each member");
    if (size() == 1 && from.data != to.data && !to.empty())
        std::memcpy(to.data, from.data, static_cast<std::size_t>(to.bytes()));
    if (size() == 1 || to.empty()) return std::make_unique<DoneWork>();
    const auto run = [=](const auto& call) { backend::all_gather(call, from, to); };
    return collective("all-gather", to, run, run);
}

std::unique_ptr<Work> HostCommunicator::broadcast(const Tensor& tensor, int root) {
    check_tensor("broadcast", tensor);
    if (root < 0 || root >= size()) throw std::invalid_argument(described("broadcast") + ": no such root");
    if (size() == 1 || tensor.empty()) return std::make_unique<DoneWork>();
    const auto run = [=](const auto& call) { backend::broadcast(call, tensor, root); };
    return collective("broadcast", tensor, run, run);
}

std::uint64_t HostCommunicator::message_slot(std::map<int, std::uint64_t>& counts, const Message& message) const {
    return slot_of(number_, SlotKind::kExchange, counts[message.peer]++, message.tensor.bytes());
}

void HostCommunicator::post(Exchange& exchange, std::span<const Message> messages) {
    const std::string description = described("exchange");
    const std::lock_guard lock(exchange.mutex);
    for (const Message& message : messages) {
        const int process = group_.members[static_cast<std::size_t>(message.peer)];
        const std::size_t bytes = static_cast<std::size_t>(message.tensor.bytes());
        const std::uint64_t slot = message_slot(message.send ? sent_ : received_, message);
        if (bytes == 0) continue;
        exchange.transfers.push_back(message.send
                                         ? mesh_->send(process, slot, message.tensor.data, bytes, description)
                                         : mesh_->receive(process, slot, message.tensor.data, bytes, description));
    }
}

std::unique_ptr<Work> HostCommunicator::exchange(std::span<const Message> messages) {
    for (const Message& message : messages) {
        check_tensor("exchange", message.tensor);
        if (message.peer < 0 || message.peer >= size() || message.peer == rank_)
            throw std::invalid_argument(described("exchange") + ": no peer " + std::to_string(message.peer));
    }
    mesh_->check(described("exchange"));
    const auto over = [&](const std::shared_ptr<Exchange>& before) { return before.use_count() == 1; };
    std::erase_if(exchanges_, over);  // a work that is gone has been waited for
    auto exchange = std::make_shared<Exchange>();
    exchanges_.push_back(exchange);
    std::shared_ptr<QueuedCall> posting;
    if (queue_.idle()) {
        post(*exchange, messages);
    } else {
        posting = queue_.add(
            [this, exchange, kept = std::vector<Message>(messages.begin(), messages.end())] { post(*exchange, kept); });
    }
    return std::make_unique<ExchangeWork>(mesh_, described("exchange"), std::move(exchange), std::move(posting));
}

void HostCommunicator::abort(const std::string& reason) {
    mesh_->fail(reason);
}

}  // namespace headway::backend
