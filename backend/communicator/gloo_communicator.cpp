#include "backend/communicator/gloo_communicator.h"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend_error.h"
#include "backend/communicator/gloo_message.h"

namespace headway::backend {

namespace {

/// What Gloo publishes of a process goes to all others in one exchange.
class ExchangedStore final : public gloo::rendezvous::Store {
  public:
    explicit ExchangedStore(Rendezvous& rendezvous) : rendezvous_(rendezvous) {}

    void set(const std::string& key, const std::vector<char>& data) override {
        table_.merge(rendezvous_.exchange(key, data));
    }
    std::vector<char> get(const std::string& key) override {
        const auto found = table_.find(key);
        if (found == table_.end()) throw std::runtime_error("no process said that it is rank " + key);
        return found->second;
    }
    void wait(const std::vector<std::string>&) override {}

  private:
    Rendezvous& rendezvous_;
    Rendezvous::Table table_;
};

}  // namespace

class GlooCommunicator::Impl {
  public:
    Impl(const RendezvousPoint& point, int rank, int size, std::chrono::milliseconds timeout)
        : rank_(rank), size_(size) {
        try {
            Rendezvous rendezvous(point, rank, size, timeout);
            gloo::transport::tcp::attr where;
            where.hostname = rendezvous.own_address();
            std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(where);
            auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
            context->setTimeout(timeout);
            ExchangedStore store(rendezvous);
            context->connectFullMesh(store, device);
            context_ = std::move(context);
        } catch (const BackendError&) {
            throw;
        } catch (const std::exception& error) {
            throw BackendError(rank, size, "connecting to the other processes", without_gloo_place(error.what()));
        }
    }

    void sum(std::span<double> values) {
        if (!context_) throw BackendError(rank_, size_, "all-reduce", "the communicator has failed before");
        if (values.empty()) return;
        try {
            gloo::AllreduceOptions options(context_);
            options.setOutput(values.data(), values.size());
            options.setReduceFunction([](void* out, const void* a, const void* b, std::size_t count) {
                gloo::sum<double>(out, a, b, count);
            });
            options.setTag(tag_++);
            gloo::allreduce(options);
        } catch (const std::exception& error) {
            const std::string why = without_gloo_place(error.what());
            context_.reset();  // closes the connections, so that every other process notices too
            throw BackendError(rank_, size_, "all-reduce", why);
        }
    }

    int rank_;
    int size_;

  private:
    std::shared_ptr<gloo::Context> context_;
    std::uint32_t tag_ = 0;
};

GlooCommunicator::GlooCommunicator(const RendezvousPoint& point, int rank, int size, std::chrono::milliseconds timeout)
    : impl_(std::make_unique<Impl>(point, rank, size, timeout)) {}
GlooCommunicator::~GlooCommunicator() = default;

int GlooCommunicator::rank() const {
    return impl_->rank_;
}
int GlooCommunicator::size() const {
    return impl_->size_;
}
void GlooCommunicator::sum(std::span<double> values) {
    impl_->sum(values);
}

}  // namespace headway::backend
