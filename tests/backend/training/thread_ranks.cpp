#include "tests/backend/training/thread_ranks.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "backend/backend_error.h"
#include "tests/backend/device/bfloat16_device.h"

namespace headway::tests {

using backend::BackendError;
using backend::Communicator;
using backend::DataType;
using backend::GroupSpec;
using backend::Message;
using backend::ReduceOperation;
using backend::Tensor;
using backend::Work;

namespace {

template <class T>
void fold_into(ReduceOperation operation, const void* from, void* to, std::int64_t count) {
    const T* const a = static_cast<const T*>(from);
    T* const b = static_cast<T*>(to);
    for (std::int64_t i = 0; i < count; ++i)
        b[i] = operation == ReduceOperation::kSum ? static_cast<T>(b[i] + a[i]) : std::max(a[i], b[i]);
}

void fold(ReduceOperation operation, DataType type, const void* from, void* to, std::int64_t count) {
    if (type == DataType::kFloat64) return fold_into<double>(operation, from, to, count);
    if (type == DataType::kFloat32) return fold_into<float>(operation, from, to, count);
    if (type == DataType::kBfloat16) return fold_into<Bfloat16>(operation, from, to, count);
    throw std::invalid_argument("thread ranks do not reduce whole numbers");
}

std::byte* part_of_tensor(const Tensor& tensor, int part, int parts) {
    return static_cast<std::byte*>(tensor.data) + tensor.bytes() / parts * part;
}

}  // namespace

/// One call of one member: what it gave, and whether it is done.
struct ThreadCall {
    std::string what;
    Tensor from, to;
    ReduceOperation operation = ReduceOperation::kSum;
    int messages_left = 0;  // of an exchange
    bool done = false;
    std::condition_variable changed;  // one a call: who is not concerned sleeps on

    void finish() {
        done = true;
        changed.notify_all();
    }
};

/// Messages of one exchange with one peer.
struct ThreadExchange {
    std::shared_ptr<ThreadCall> call;
    std::deque<Message> sends, receives;
    bool empty() const { return sends.empty() && receives.empty(); }
};

struct ThreadGroup {
    GroupSpec spec;
    std::vector<std::deque<std::shared_ptr<ThreadCall>>> collectives;     // [members] not yet complete
    std::map<std::pair<int, int>, std::deque<ThreadExchange>> exchanges;  // member, peer
};

class ThreadHub {
  public:
    explicit ThreadHub(std::chrono::milliseconds timeout) : timeout_(timeout) {}

    std::vector<std::shared_ptr<ThreadGroup>> groups(int round, const std::vector<GroupSpec>& specs) {
        const std::lock_guard lock(mutex_);
        auto [at, fresh] = rounds_.try_emplace(round);
        if (fresh) {
            for (const GroupSpec& spec : specs) {
                at->second.push_back(std::make_shared<ThreadGroup>());
                at->second.back()->spec = spec;
                at->second.back()->collectives.resize(spec.members.size());
            }
        }
        bool alike = at->second.size() == specs.size();
        for (std::size_t i = 0; alike && i < specs.size(); ++i)
            alike = at->second[i]->spec.name == specs[i].name && at->second[i]->spec.members == specs[i].members;
        if (!alike) throw std::logic_error("processes ask for different groups");
        return at->second;
    }

    void collective(ThreadGroup& group, int member, const std::shared_ptr<ThreadCall>& call) {
        const std::lock_guard lock(mutex_);
        check(group, call->what);
        group.collectives[static_cast<std::size_t>(member)].push_back(call);
        const auto waits = [](const auto& queue) { return !queue.empty(); };
        while (std::all_of(group.collectives.begin(), group.collectives.end(), waits)) {
            std::vector<std::shared_ptr<ThreadCall>> calls;
            for (auto& queue : group.collectives) {
                calls.push_back(queue.front());
                queue.pop_front();
            }
            run(group, calls);
            for (const auto& one : calls) one->finish();
        }
    }

    void exchange(ThreadGroup& group, int member, const std::shared_ptr<ThreadCall>& call,
                  std::span<const Message> messages) {
        const std::lock_guard lock(mutex_);
        check(group, call->what);
        call->messages_left = static_cast<int>(messages.size());
        call->done = messages.empty();
        std::map<int, ThreadExchange> by_peer;
        for (const Message& message : messages) {
            if (message.peer == member) throw std::logic_error("a message to oneself");
            ThreadExchange& exchange = by_peer[message.peer];
            exchange.call = call;
            (message.send ? exchange.sends : exchange.receives).push_back(message);
        }
        for (auto& [peer, exchange] : by_peer) {
            group.exchanges[{member, peer}].push_back(std::move(exchange));
            match(group, member, peer);
        }
    }

    void wait(ThreadGroup& group, ThreadCall& call) {
        std::unique_lock lock(mutex_);
        if (!call.done) waiting_.insert(&call);
        const bool in_time = call.changed.wait_for(lock, timeout_, [&] { return call.done || !failure_.empty(); });
        waiting_.erase(&call);
        if (call.done) return;
        if (!in_time) fail(group.spec.name + ": " + call.what + ": timed out");
        check(group, call.what);
    }

    bool done(ThreadGroup& group, ThreadCall& call) {
        const std::lock_guard lock(mutex_);
        if (!call.done) check(group, call.what);
        return call.done;
    }

    void abort(const std::string& reason) {
        const std::lock_guard lock(mutex_);
        fail(reason);
    }

  private:
    void fail(const std::string& reason) {
        if (failure_.empty()) failure_ = reason;
        for (ThreadCall* const call : waiting_) call->changed.notify_all();
    }
    void check(const ThreadGroup& group, const std::string& what) const {
        if (!failure_.empty()) throw BackendError(0, 1, group.spec.name + ": " + what, failure_);
    }

    void match(ThreadGroup& group, int a, int b) {
        auto& mine = group.exchanges[{a, b}];
        auto& theirs = group.exchanges[{b, a}];
        const auto deliver = [&](ThreadExchange& from, ThreadExchange& to) {
            bool moved = false;
            while (!from.sends.empty() && !to.receives.empty()) {
                const Tensor source = from.sends.front().tensor, target = to.receives.front().tensor;
                if (source.bytes() != target.bytes()) throw std::logic_error("a message of another size");
                std::memcpy(target.data, source.data, static_cast<std::size_t>(source.bytes()));
                from.sends.pop_front();
                to.receives.pop_front();
                for (ThreadExchange* const end : {&from, &to})
                    if (--end->call->messages_left == 0) end->call->finish();
                moved = true;
            }
            return moved;
        };
        for (bool moved = true; moved && !mine.empty() && !theirs.empty();) {
            moved = deliver(mine.front(), theirs.front());
            moved = deliver(theirs.front(), mine.front()) || moved;
            if (mine.front().empty()) mine.pop_front();
            if (theirs.front().empty()) theirs.pop_front();
        }
    }

    void run(const ThreadGroup& group, const std::vector<std::shared_ptr<ThreadCall>>& calls) {
        const int size = static_cast<int>(calls.size());
        const ThreadCall& first = *calls.front();
        for (const auto& call : calls)
            if (call->what != first.what || call->from.bytes() != first.from.bytes() ||
                call->to.bytes() != first.to.bytes() || call->from.type != first.from.type) {
                fail(group.spec.name + ": one member calls " + first.what + ", another " + call->what);
                check(group, first.what);
            }
        if (first.what.starts_with("all-reduce")) {
            for (int r = 1; r < size; ++r)
                fold(first.operation, first.to.type, calls[static_cast<std::size_t>(r)]->to.data, first.to.data,
                     first.to.count());
            for (int r = 1; r < size; ++r)
                std::memcpy(calls[static_cast<std::size_t>(r)]->to.data, first.to.data,
                            static_cast<std::size_t>(first.to.bytes()));
        } else if (first.what.starts_with("reduce-scatter")) {
            for (int r = 0; r < size; ++r) {
                const Tensor to = calls[static_cast<std::size_t>(r)]->to;
                std::vector<std::byte> sum(static_cast<std::size_t>(to.bytes()));
                std::memcpy(sum.data(), part_of_tensor(first.from, r, size), sum.size());
                for (int other = 1; other < size; ++other)
                    fold(ReduceOperation::kSum, to.type,
                         part_of_tensor(calls[static_cast<std::size_t>(other)]->from, r, size), sum.data(), to.count());
                std::memcpy(to.data, sum.data(), sum.size());
            }
        } else {  // all-gather
            for (int r = 0; r < size; ++r)
                for (int other = 0; other < size; ++other) {
                    const Tensor from = calls[static_cast<std::size_t>(other)]->from;
                    std::memmove(part_of_tensor(calls[static_cast<std::size_t>(r)]->to, other, size), from.data,
                                 static_cast<std::size_t>(from.bytes()));
                }
        }
    }

    const std::chrono::milliseconds timeout_;
    std::mutex mutex_;
    std::set<ThreadCall*> waiting_;
    std::string failure_;
    std::map<int, std::vector<std::shared_ptr<ThreadGroup>>> rounds_;
};

namespace {

class ThreadWork final : public Work {
  public:
    ThreadWork(std::shared_ptr<ThreadHub> hub, std::shared_ptr<ThreadGroup> group, std::shared_ptr<ThreadCall> call)
        : hub_(std::move(hub)), group_(std::move(group)), call_(std::move(call)) {}
    void wait() override { hub_->wait(*group_, *call_); }
    bool done() override { return hub_->done(*group_, *call_); }

  private:
    std::shared_ptr<ThreadHub> hub_;
    std::shared_ptr<ThreadGroup> group_;
    std::shared_ptr<ThreadCall> call_;
};

class ThreadCommunicator final : public Communicator {
  public:
    ThreadCommunicator(std::shared_ptr<ThreadHub> hub, std::shared_ptr<ThreadGroup> group, int rank)
        : hub_(std::move(hub)), group_(std::move(group)), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(group_->spec.members.size()); }
    const std::string& name() const override { return group_->spec.name; }

    std::unique_ptr<Work> all_reduce(const Tensor& tensor, ReduceOperation operation) override {
        return collective("all-reduce", tensor, tensor, operation);
    }
    std::unique_ptr<Work> reduce_scatter(const Tensor& from, const Tensor& to) override {
        if (from.bytes() != to.bytes() * size()) throw std::logic_error("reduce-scatter of unequal parts");
        return collective("reduce-scatter", from, to, ReduceOperation::kSum);
    }
    std::unique_ptr<Work> all_gather(const Tensor& from, const Tensor& to) override {
        if (to.bytes() != from.bytes() * size()) throw std::logic_error("all-gather of unequal parts");
        return collective("all-gather", from, to, ReduceOperation::kSum);
    }
    std::unique_ptr<Work> broadcast(const Tensor&, int) override {
        throw std::logic_error("thread ranks do not broadcast");
    }
    std::unique_ptr<Work> exchange(std::span<const Message> messages) override {
        auto call = std::make_shared<ThreadCall>();
        call->what = "exchange";
        for (const Message& message : messages)
            if (!message.tensor.contiguous()) throw std::logic_error("a strided message");
        hub_->exchange(*group_, rank_, call, messages);
        return std::make_unique<ThreadWork>(hub_, group_, call);
    }
    void abort(const std::string& reason) override { hub_->abort(reason); }

  private:
    std::unique_ptr<Work> collective(const std::string& what, const Tensor& from, const Tensor& to,
                                     ReduceOperation operation) {
        if (!from.contiguous() || !to.contiguous()) throw std::logic_error("a strided collective");
        auto call = std::make_shared<ThreadCall>();
        call->what = what + " of " + std::to_string(from.bytes());
        call->from = from;
        call->to = to;
        call->operation = operation;
        hub_->collective(*group_, rank_, call);
        return std::make_unique<ThreadWork>(hub_, group_, call);
    }

    std::shared_ptr<ThreadHub> hub_;
    std::shared_ptr<ThreadGroup> group_;
    int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> ThreadMaker::make(const std::vector<GroupSpec>& groups) {
    std::vector<std::unique_ptr<Communicator>> made(groups.size());
    const std::vector<std::shared_ptr<ThreadGroup>> shared = hub_->groups(made_++, groups);
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const std::vector<int>& members = groups[i].members;
        const auto own = std::find(members.begin(), members.end(), process_);
        if (own != members.end())
            made[i] = std::make_unique<ThreadCommunicator>(hub_, shared[i], static_cast<int>(own - members.begin()));
    }
    return made;
}

void run_thread_ranks(int processes, std::chrono::milliseconds timeout,
                      const std::function<void(int, backend::CommunicatorMaker&)>& rank) {
    const auto hub = std::make_shared<ThreadHub>(timeout);
    std::mutex mutex;
    std::exception_ptr first;
    std::vector<std::thread> threads;
    for (int process = 0; process < processes; ++process) {
        threads.emplace_back([&, process] {
            try {
                ThreadMaker maker(hub, process);
                rank(process, maker);
            } catch (const std::exception& error) {
                {
                    const std::lock_guard lock(mutex);
                    if (!first) first = std::current_exception();
                }
                hub->abort(error.what());
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    if (first) std::rethrow_exception(first);
}

}  // namespace headway::tests
