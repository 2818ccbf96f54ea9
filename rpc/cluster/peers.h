#ifndef WEIR_RPC_CLUSTER_PEERS_H_
#define WEIR_RPC_CLUSTER_PEERS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "weir/core/runtime/rendezvous.h"
#include "weir/core/tensor/mutex.h"
#include "weir/rpc/cluster/peer_watch.h"
#include "weir/rpc/lib/timer.h"

namespace google::protobuf {
class MessageLite;
}
namespace grpc {
class Channel;
}

namespace weir::rpc {

// A number for each request, so that a task can refuse one that arrives twice.
int64_t NewRequestId();

// How a task calls others.
struct PeerOptions {
  // TLS, in PEM format: the authority that signs the certificates of the tasks, and this task's own
  // certificate and key, by which others know it. Each task must have a certificate for the name or
  // the address that it has in the cluster. Without an authority, nothing is encrypted.
  std::string authority = {}, certificate = {}, key = {};
  // Proves who this task is, to tasks that ask for a token. Without TLS it is sent to `addresses`
  // only, as clients may name others (ConfigProto.cluster_def).
  std::string token = {};
  std::set<std::string> addresses = {};
  // See PeerWatch; zero: waits forever.
  std::chrono::milliseconds timeout{60'000};
};

// The other tasks of clusters, by address. A connection is made when it is needed first, and again
// within a second after it was lost. Calls to a task that does not answer end (PeerWatch).
//
//   FAILED_PRECONDITION  the task speaks no TLS, or its certificate is not what it must be
//
// Thread-safe.
class Peers {
 public:
  // `timer` outlives the peers.
  explicit Peers(Timer& timer, PeerOptions options = {});
  ~Peers();

  // Asks a task for a value (RecvTensor), without holding a thread. Cancelling `cancellation` (may
  // be null; outlives the call of `done`) ends the call. Errors are those of the other task, of
  // PeerWatch, and UNAVAILABLE.
  void Receive(const PeerTask& task, int64_t step_id, const RendezvousKey& key,
               Cancellation* cancellation, Rendezvous::Done done);

  // How a call waits.
  struct AskOptions {
    Cancellation* cancellation = nullptr;  // as above
    std::chrono::milliseconds limit{0};    // zero: none
    // What an error says of the call (PeerWait).
    int64_t step_id = 0;
    uint64_t incarnation = 0;
  };
  // Called once, on a thread of gRPC's, or before Ask returns.
  using Answered = std::function<void(const absl::Status&)>;
  // Calls a method of the task's WorkerService, "GetStatus", without holding a thread. `response`
  // outlives the call of `answered`.
  void Ask(const PeerTask& task, const char* method, const google::protobuf::MessageLite& request,
           google::protobuf::MessageLite* response, const AskOptions& options, Answered answered);

  // Uses these files for later connections.
  void ReplaceTlsFiles(const std::string& authority, const std::string& certificate,
                       const std::string& key);

 private:
  class Connections;

  const std::shared_ptr<Connections> connections_;  // probes in progress use it too
  const std::shared_ptr<PeerWatch> watch_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_CLUSTER_PEERS_H_
