#ifndef WEIR_RPC_WORKER_H_
#define WEIR_RPC_WORKER_H_

#include <string>
#include <vector>

#include "weir/rpc/master.h"

// The process that runs one session of a server with --isolate-sessions. It serves TensorFlow's
// master service on a socket that it shares with the server, which forwards the calls of the
// session's client.
namespace weir::rpc {

// The name of the command that runs a worker: "weir-serve session-worker ...".
inline constexpr char kWorkerCommand[] = "session-worker";
// The descriptor of a worker's socket.
inline constexpr int kWorkerSocket = 3;

// What a server tells its workers.
struct WorkerOptions {
  MasterOptions master = {};
  // The memory of tensors; zero: what the system has when the worker starts.
  int64_t memory_bytes = 0;
  int64_t cpu_seconds = 0;  // of the whole session; zero: any number
  int64_t max_message_bytes = 0x7fffffff, max_request_bytes = 256 << 20;  // see ServerOptions

  // The arguments of the worker's command, and back. Of the session's options, only the numbers and
  // the task are passed on. Returns INVALID_ARGUMENT for unknown arguments.
  std::vector<std::string> ToArguments() const;
  static absl::StatusOr<WorkerOptions> FromArguments(const std::vector<std::string>& arguments);
};

// Runs a worker in this process, which must have nothing else to do, until the server closes the
// socket or ends; then ends the process. Returns the error if it cannot start.
absl::Status RunWorker(WorkerOptions options);

}  // namespace weir::rpc

#endif  // WEIR_RPC_WORKER_H_
