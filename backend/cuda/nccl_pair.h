#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/cuda/nccl_link.h"
#include "backend/cuda/pair_ids.h"

namespace headway::backend {

/// The messages between this process and one other member of a group: a communicator of the two with its own stream,
/// so that messages with different peers do not wait for each other. It is made at the first message, by a thread of
/// its own: the other may come to its first only after this process has gone on.
class NcclPair {
  public:
    struct Place {
        std::string group;  ///< for messages
        std::string key;    ///< of the two, the same in both processes
        int own_process, peer_process;
        bool first;  ///< this process makes the id
    };

    NcclPair(std::shared_ptr<NcclSession> session, std::shared_ptr<PairIds> ids, Place place);
    ~NcclPair();

    /// `messages` in order; `after` as recorded on the compute stream.
    void post(std::shared_ptr<NcclCall> call, std::shared_ptr<cuda::OwnedEvent> after, std::vector<Message> messages);

  private:
    struct Posted {
        std::shared_ptr<NcclCall> call;
        std::shared_ptr<cuda::OwnedEvent> after;
        std::vector<Message> messages;
    };

    void connect();
    ncclUniqueId agreed_id();
    void issue(const Posted& posted);

    std::shared_ptr<NcclSession> session_;
    std::shared_ptr<PairIds> ids_;
    Place place_;
    NcclLink link_;
    std::mutex mutex_;
    bool connected_ = false;  // and nothing waits: posts are issued by who posts
    std::deque<Posted> waiting_;
    std::thread connecting_;
};

}  // namespace headway::backend
