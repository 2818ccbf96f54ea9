#ifndef WEIR_RPC_CLUSTER_PEERS_H_
#define WEIR_RPC_CLUSTER_PEERS_H_

#include <map>
#include <memory>
#include <string>

#include "weir/core/runtime/rendezvous.h"
#include "weir/core/tensor/mutex.h"

namespace grpc {
class Channel;
}

namespace weir::rpc {

// The other tasks of clusters, by address. A connection is made when it is needed first, and again
// within a second after it was lost. Thread-safe.
class Peers {
 public:
  Peers() = default;
  ~Peers();

  // Asks the task at `address` for a value (RecvTensor), without holding a thread. Cancelling
  // `cancellation` (may be null; outlives the call of `done`) ends the call. Errors are those of
  // the other task, and UNAVAILABLE.
  void Receive(const std::string& address, int64_t step_id, const RendezvousKey& key,
               Cancellation* cancellation, Rendezvous::Done done);

 private:
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address);

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_PEERS_H_
