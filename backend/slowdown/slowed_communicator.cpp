#include "backend/slowdown/slowed_communicator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace headway::backend {

using scenarios::Duration;

namespace {

using IssueCall = std::function<std::unique_ptr<Work>()>;

/// A call that was held back.
class HeldWork final : public Work {
  public:
    void issued(std::unique_ptr<Work> work, std::exception_ptr failure) {
        {
            const std::lock_guard lock(mutex_);
            work_ = std::move(work);
            failure_ = std::move(failure);
            issued_ = true;
        }
        changed_.notify_all();
    }
    void wait() override {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return issued_; });
        if (failure_) std::rethrow_exception(failure_);
        lock.unlock();
        work_->wait();
    }
    bool done() override {
        const std::lock_guard lock(mutex_);
        if (failure_) std::rethrow_exception(failure_);
        return issued_ && work_->done();
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool issued_ = false;
    std::unique_ptr<Work> work_;
    std::exception_ptr failure_;
};

/// The same, as its owner sees it.
class WorkHandle final : public Work {
  public:
    explicit WorkHandle(std::shared_ptr<HeldWork> held) : held_(std::move(held)) {}
    void wait() override { held_->wait(); }
    bool done() override { return held_->done(); }

  private:
    std::shared_ptr<HeldWork> held_;
};

/// Issues calls in order, each when it is due.
class HoldingQueue {
  public:
    HoldingQueue() : thread_([this] { run(); }) {}
    ~HoldingQueue() {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    std::unique_ptr<Work> add(Duration hold, IssueCall call) {
        auto held = std::make_shared<HeldWork>();
        {
            const std::lock_guard lock(mutex_);
            const auto due = std::chrono::steady_clock::now() + std::chrono::nanoseconds(hold.ns());
            waiting_.push_back({due, std::move(call), held});
        }
        changed_.notify_all();
        return std::make_unique<WorkHandle>(std::move(held));
    }

  private:
    struct Waiting {
        std::chrono::steady_clock::time_point due;
        IssueCall call;
        std::shared_ptr<HeldWork> held;
    };

    /// Calls that wait when the end comes are issued at once: their peers have issued theirs.
    void run() {
        std::unique_lock lock(mutex_);
        while (true) {
            changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
            if (waiting_.empty()) return;
            const auto due = waiting_.front().due;
            if (!ends_ && changed_.wait_until(lock, due, [&] { return ends_; })) continue;
            Waiting next = std::move(waiting_.front());
            waiting_.pop_front();
            lock.unlock();
            std::unique_ptr<Work> work;
            std::exception_ptr failure;
            try {
                work = next.call();
            } catch (...) {
                failure = std::current_exception();
            }
            next.held->issued(std::move(work), std::move(failure));
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Waiting> waiting_;
    bool ends_ = false;
    std::thread thread_;
};

class SlowedCommunicator final : public Communicator {
  public:
    SlowedCommunicator(std::unique_ptr<Communicator> inner, std::vector<int> gpus, std::vector<int> stages,
                       const PhysicalDisturbances& disturbances, const EpisodeClock& clock)
        : inner_(std::move(inner)),
          gpus_(std::move(gpus)),
          stages_(std::move(stages)),
          disturbances_(disturbances),
          clock_(clock),
          nodes_(disturbances.nodes_of(gpus_)) {}

    int rank() const override { return inner_->rank(); }
    int size() const override { return inner_->size(); }
    const std::string& name() const override { return inner_->name(); }

    std::unique_ptr<Work> all_reduce(const Tensor& tensor, ReduceOperation operation) override {
        const double members = size();
        return queue_.add(collective(2.0 * (members - 1.0) / members * static_cast<double>(tensor.bytes()), 2),
                          [this, tensor, operation] { return inner_->all_reduce(tensor, operation); });
    }
    std::unique_ptr<Work> reduce_scatter(const Tensor& from, const Tensor& to) override {
        return queue_.add(collective(static_cast<double>(to.bytes()) * (size() - 1.0), 1),
                          [this, from, to] { return inner_->reduce_scatter(from, to); });
    }
    std::unique_ptr<Work> all_gather(const Tensor& from, const Tensor& to) override {
        return queue_.add(collective(static_cast<double>(from.bytes()) * (size() - 1.0), 1),
                          [this, from, to] { return inner_->all_gather(from, to); });
    }
    std::unique_ptr<Work> broadcast(const Tensor& tensor, int root) override {
        return queue_.add(collective(static_cast<double>(tensor.bytes()), 1),
                          [this, tensor, root] { return inner_->broadcast(tensor, root); });
    }
    /// Held back at the sender alone; a batch that also receives waits with it.
    std::unique_ptr<Work> exchange(std::span<const Message> messages) override {
        Duration hold;
        for (const Message& message : messages)
            if (message.send)
                hold = std::max(hold, added(static_cast<std::size_t>(rank()), static_cast<std::size_t>(message.peer),
                                            true, static_cast<double>(message.tensor.bytes()), 1));
        return queue_.add(hold, [this, batch = std::vector<Message>(messages.begin(), messages.end())] {
            return inner_->exchange(batch);
        });
    }
    void abort(const std::string& reason) override { inner_->abort(reason); }

  private:
    /// By which `bytes`, delayed `times` over, come late from one member to another.
    Duration added(std::size_t from, std::size_t to, bool between_stages, double bytes, int times) const {
        const LinkState link = disturbances_.link(gpus_[from], gpus_[to], between_stages ? stages_[from] : -1,
                                                  between_stages ? stages_[to] : -1, clock_.now());
        if (link.healthy()) return {};
        const double nominal = disturbances_.nominal_bandwidth(gpus_[from], gpus_[to]);
        return Duration::seconds(bytes / nominal * (1.0 / link.bandwidth - 1.0)) + link.delay * times;
    }
    /// The same for a collective that goes around its nodes `passes` times: its slowest link. Causes that name a
    /// pipeline hop act on messages between stages alone.
    Duration collective(double bytes, int passes) const {
        Duration most;
        for (std::size_t member = 0; member < gpus_.size(); ++member)
            most = std::max(most, added(member, (member + 1) % gpus_.size(), false, bytes, passes * nodes_));
        return most;
    }

    std::unique_ptr<Communicator> inner_;
    std::vector<int> gpus_, stages_;  ///< [size]
    const PhysicalDisturbances& disturbances_;
    const EpisodeClock& clock_;
    const int nodes_;     ///< on which the members are
    HoldingQueue queue_;  ///< last: its thread uses the others
};

}  // namespace

SlowedCommunicators::SlowedCommunicators(CommunicatorMaker& inner, const PhysicalDisturbances& disturbances,
                                         const EpisodeClock& clock)
    : inner_(inner), disturbances_(disturbances), clock_(clock) {}

void SlowedCommunicators::place(const scenarios::Plan& plan) {
    stage_of_gpu_.clear();
    const int ranks_of_stage = plan.layout.ranks_per_worker() * plan.layout.data;
    for (std::size_t rank = 0; rank < plan.gpu_of_rank.size(); ++rank) {
        const auto gpu = static_cast<std::size_t>(plan.gpu_of_rank[rank]);
        if (stage_of_gpu_.size() <= gpu) stage_of_gpu_.resize(gpu + 1, -1);
        stage_of_gpu_[gpu] = static_cast<int>(rank) / ranks_of_stage;
    }
}

std::vector<std::unique_ptr<Communicator>> SlowedCommunicators::make(const std::vector<GroupSpec>& groups) {
    std::vector<std::unique_ptr<Communicator>> made = inner_.make(groups);
    if (!disturbances_.acts_on_links()) return made;
    for (std::size_t group = 0; group < groups.size(); ++group) {
        if (!made[group] || groups[group].members.size() < 2) continue;
        std::vector<int> stages;
        for (const int gpu : groups[group].members) {
            const auto at = static_cast<std::size_t>(gpu);
            stages.push_back(at < stage_of_gpu_.size() ? stage_of_gpu_[at] : -1);
        }
        made[group] = std::make_unique<SlowedCommunicator>(std::move(made[group]), groups[group].members, stages,
                                                           disturbances_, clock_);
    }
    return made;
}

}  // namespace headway::backend
