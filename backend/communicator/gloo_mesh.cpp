#include "backend/communicator/gloo_mesh.h"

#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <signal.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>

#include "backend/backend_error.h"
#include "backend/communicator/address_exchange.h"
#include "backend/communicator/gloo_message.h"

namespace headway::backend {

namespace {

using GlooContext = gloo::transport::Context;
using GlooBuffer = gloo::transport::UnboundBuffer;

/// How long the control may take to tell why a connection ended.
constexpr std::chrono::milliseconds kForTheReason{500};

/// A write to a process that is gone is an error of that write, not the end of this process.
void ignore_broken_pipes() {
    struct sigaction now {};
    ::sigaction(SIGPIPE, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

std::string name_of_rank(int rank) {
    return "rank " + std::to_string(rank);
}

}  // namespace

/// Gloo lets one thread wait for a buffer once, closes all connections when that is too long, and does not tell every
/// buffer of a lost connection. Here any number of threads wait, and stop() ends their wait.
class Transfer {
  public:
    enum class State { kPending, kDone, kFailed };

    Transfer(GlooContext& context, int process, bool sends, void* data, std::size_t bytes)
        : process_(process), sends_(sends), buffer_(context.createUnboundBuffer(data, bytes)) {}

    void start(std::uint64_t slot) {
        sends_ ? buffer_->send(process_, slot, 0, buffer_->size) : buffer_->recv(process_, slot, 0, buffer_->size);
    }
    int process() const { return process_; }
    State wait(std::chrono::milliseconds timeout) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !waiting_; });
        if (state_ != State::kPending) return state_;
        waiting_ = true;
        lock.unlock();
        State state = State::kFailed;
        std::string error;
        try {
            const bool through = sends_ ? buffer_->waitSend(timeout) : buffer_->waitRecv(timeout);
            if (through) state = State::kDone;
        } catch (const std::exception& thrown) {
            error = without_gloo_place(thrown.what());
        }
        lock.lock();
        waiting_ = false;
        state_ = state;
        error_ = error;
        changed_.notify_all();
        return state_;
    }
    State state() {
        const std::lock_guard lock(mutex_);
        return state_;
    }
    std::string error() {
        const std::lock_guard lock(mutex_);
        return error_;
    }
    void stop() { sends_ ? buffer_->abortWaitSend() : buffer_->abortWaitRecv(); }

  private:
    const int process_;
    const bool sends_;
    const std::unique_ptr<GlooBuffer> buffer_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool waiting_ = false;  ///< some thread is in Gloo's wait
    State state_ = State::kPending;
    std::string error_;
};

class GlooMesh::Connections {
  public:
    explicit Connections(int size) : connected(static_cast<std::size_t>(size), false) {}

    /// The pairs are made by one thread and closed by another.
    std::mutex mutex;
    bool ended = false;
    std::condition_variable closed;  ///< all connections: from here on nothing is written to anybody's memory
    bool all_closed = false;
    std::shared_ptr<gloo::transport::Device> device;
    std::shared_ptr<GlooContext> context;
    std::vector<bool> connected;

    struct Registry {
        std::mutex mutex;
        bool stopped = false;
        std::unordered_set<Transfer*> transfers;
    };
    std::shared_ptr<Registry> registry = std::make_shared<Registry>();

    std::shared_ptr<Transfer> new_transfer(int process, bool sends, void* data, std::size_t bytes) {
        const auto forget = [all = registry](Transfer* transfer) {
            {
                const std::lock_guard lock(all->mutex);
                all->transfers.erase(transfer);
            }
            delete transfer;
        };
        const std::shared_ptr<Transfer> transfer(new Transfer(*context, process, sends, data, bytes), forget);
        const std::lock_guard lock(registry->mutex);
        if (registry->stopped) transfer->stop();
        registry->transfers.insert(transfer.get());
        return transfer;
    }
};

GlooMesh::GlooMesh(Control& control, std::chrono::milliseconds timeout)
    : control_(control), timeout_(timeout), connections_(std::make_unique<Connections>(control.size())) {
    ignore_broken_pipes();
    told_ = control_.when_failed([this](const std::string&) { end(); });
}

GlooMesh::~GlooMesh() = default;

std::string GlooMesh::failure() const {
    std::string reason;
    const std::shared_ptr<void> asked = control_.when_failed([&](const std::string& why) { reason = why; });
    return reason;
}

void GlooMesh::end() {
    Connections& all = *connections_;
    {
        const std::lock_guard lock(all.registry->mutex);
        all.registry->stopped = true;
        for (Transfer* const transfer : all.registry->transfers) transfer->stop();
    }
    const std::lock_guard lock(all.mutex);
    all.ended = true;
    if (all.context)
        for (int process = 0; process < all.context->size; ++process)
            if (const auto& pair = all.context->getPair(process)) pair->close();
    all.all_closed = true;
    all.closed.notify_all();
}

void GlooMesh::fail(const std::string& reason) {
    control_.abort(reason);
}

void GlooMesh::check(const std::string& call) const {
    {
        const std::lock_guard lock(connections_->registry->mutex);
        if (!connections_->registry->stopped) return;
    }
    throw BackendError(control_.rank(), control_.size(), call, failure());
}

void GlooMesh::fail_call(const std::string& call, const std::string& what) {
    // A connection also ends because its other end heard before this one that something else failed.
    std::string reason;
    {
        std::mutex mutex;
        std::condition_variable told;
        const std::shared_ptr<void> asked = control_.when_failed([&](const std::string& why) {
            const std::lock_guard lock(mutex);
            reason = why;
            told.notify_all();
        });
        std::unique_lock lock(mutex);
        told.wait_for(lock, kForTheReason, [&] { return !reason.empty(); });
        lock.unlock();
    }
    if (reason.empty()) {
        fail(what);
        reason = failure();  // somebody else may have been faster
    }
    std::unique_lock lock(connections_->mutex);
    connections_->closed.wait(lock, [&] { return connections_->all_closed; });
    throw BackendError(control_.rank(), control_.size(), call, reason);
}

void GlooMesh::connect(const std::vector<int>& processes, std::uint64_t agreed) {
    const std::string call = "making groups";
    check(call);
    Connections& all = *connections_;
    std::vector<int> missing;
    for (const int process : processes)
        if (process != control_.rank() && !all.connected[static_cast<std::size_t>(process)]) missing.push_back(process);
    try {
        std::vector<std::vector<char>> addresses(static_cast<std::size_t>(control_.size()));
        {
            const std::lock_guard lock(all.mutex);
            if (!missing.empty() && !all.context && !all.ended) {
                gloo::transport::tcp::attr where;
                where.hostname = control_.address();
                all.device = gloo::transport::tcp::CreateDevice(where);
                all.context =
                    std::dynamic_pointer_cast<GlooContext>(all.device->createContext(control_.rank(), control_.size()));
                all.context->setTimeout(timeout_);
            }
            for (const int process : missing)
                if (!all.ended)
                    addresses[static_cast<std::size_t>(process)] = all.context->createPair(process)->address().bytes();
        }
        const auto told = exchange_addresses(control_, agreed, addresses);
        for (const int process : missing) {
            // Ends also when the pair is closed because something failed meanwhile.
            all.context->getPair(process)->connect(told[static_cast<std::size_t>(process)]);
            all.connected[static_cast<std::size_t>(process)] = true;
        }
    } catch (const BackendError&) {
        throw;
    } catch (const std::exception& error) {
        fail_call(call, without_gloo_place(error.what()));
    }
    check(call);
}

std::shared_ptr<Transfer> GlooMesh::post(int process, bool sends, std::uint64_t slot, void* data, std::size_t bytes,
                                         const std::string& call) {
    check(call);
    std::shared_ptr<Transfer> transfer = connections_->new_transfer(process, sends, data, bytes);
    try {
        transfer->start(slot);
    } catch (const std::exception& error) {
        fail_call(call, "connection to " + name_of_rank(process) + ": " + without_gloo_place(error.what()));
    }
    return transfer;
}

std::shared_ptr<Transfer> GlooMesh::send(int process, std::uint64_t slot, const void* data, std::size_t bytes,
                                         const std::string& call) {
    bytes_sent_ += static_cast<std::int64_t>(bytes);
    return post(process, true, slot, const_cast<void*>(data), bytes, call);
}

std::shared_ptr<Transfer> GlooMesh::receive(int process, std::uint64_t slot, void* data, std::size_t bytes,
                                            const std::string& call) {
    return post(process, false, slot, data, bytes, call);
}

void GlooMesh::wait(Transfer& transfer, const std::string& call) {
    const auto begin = std::chrono::steady_clock::now();
    if (transfer.wait(timeout_) == Transfer::State::kDone) return;
    if (std::chrono::steady_clock::now() - begin >= timeout_) {
        fail(name_of_rank(control_.rank()) + " waited " + std::to_string(timeout_.count()) + " ms for " +
             name_of_rank(transfer.process()) + " in " + call);
    }
    fail_call(call, "connection to " + name_of_rank(transfer.process()) + ": " + transfer.error());
}

}  // namespace headway::backend
