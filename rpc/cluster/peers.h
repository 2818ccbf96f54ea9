#ifndef WEIR_RPC_CLUSTER_PEERS_H_
#define WEIR_RPC_CLUSTER_PEERS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "weir/core/runtime/rendezvous.h"
#include "weir/core/tensor/mutex.h"

namespace google::protobuf {
class MessageLite;
}
namespace grpc {
class Channel;
}

namespace weir::rpc {

// A number for each request, so that a task can refuse one that arrives twice.
int64_t NewRequestId();

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

  // How a call waits.
  struct AskOptions {
    Cancellation* cancellation = nullptr;  // as above
    std::chrono::milliseconds limit{0};    // zero: none
    // Waits for a task that is not up, instead of returning UNAVAILABLE.
    bool wait_for_ready = false;
  };
  // Called once, on a thread of gRPC's, or before Ask returns.
  using Answered = std::function<void(const absl::Status&)>;
  // Calls a method of the task's WorkerService, "GetStatus", without holding a thread. `response`
  // outlives the call of `answered`.
  void Ask(const std::string& address, const char* method,
           const google::protobuf::MessageLite& request, google::protobuf::MessageLite* response,
           const AskOptions& options, Answered answered);

 private:
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address);

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_PEERS_H_
