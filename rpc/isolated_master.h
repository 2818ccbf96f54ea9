#ifndef WEIR_RPC_ISOLATED_MASTER_H_
#define WEIR_RPC_ISOLATED_MASTER_H_

#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "weir/rpc/master.h"
#include "weir/rpc/session_table.h"

namespace weir::rpc {

// The counterpart of Master for sessions in processes of their own. It forwards the calls of a
// session to its process, as bytes: it parses neither graphs nor tensors. When a process ends, by
// itself or by the system, all calls of its session return UNAVAILABLE with the reason, and other
// sessions do not notice. The state of a session is its own, and ends with it. Thread-safe.
class IsolatedMaster {
 public:
  // The program that runs a worker (worker.h), and its arguments.
  struct Program {
    std::string path;
    std::vector<std::string> arguments;
  };

  // Creates it without sessions. Of `options`, the numbers of sessions and their time limits count
  // here; the rest is what the arguments of the workers say.
  static absl::StatusOr<std::unique_ptr<IsolatedMaster>> Create(const MasterOptions& options,
                                                                Program program);
  ~IsolatedMaster();

  // Answers a request for a method of the master service: "RunStep". The status has the errors of
  // Master's methods, and UNAVAILABLE if the process cannot be started or has ended.
  absl::Status Run(const std::string& method, grpc::ByteBuffer* request, Call& call,
                   grpc::ByteBuffer* response);

  // See Master. CloseIdleSessions also charges the clients with processor time.
  void CloseIdleSessions(absl::FunctionRef<bool(const std::string& connection)> is_open);
  void CloseAll();
  int num_sessions() const;

 private:
  class Session;

  IsolatedMaster(const MasterOptions& options, Program program);
  absl::Status CreateSession(grpc::ByteBuffer* request, Call& call, grpc::ByteBuffer* response);
  absl::Status ListDevices(const std::string& handle, Call& call, grpc::ByteBuffer* response);

  const Program program_;
  std::unique_ptr<Master> devices_;  // has no sessions, but knows the devices
  std::atomic<size_t> num_creating_{0};
  SessionTable<Session> sessions_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_ISOLATED_MASTER_H_
