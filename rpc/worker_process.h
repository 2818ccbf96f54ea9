#ifndef WEIR_RPC_WORKER_PROCESS_H_
#define WEIR_RPC_WORKER_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/status.h"

namespace grpc {
class Channel;
}

namespace weir::rpc {

// A process that a server has started, and the channel to it. Thread-safe.
class WorkerProcess {
 public:
  // Starts a program with these arguments. It finds its end of the socket at descriptor 3, and no
  // other descriptor but the standard output and the standard error. Returns UNAVAILABLE if the
  // system cannot start a process.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(
      const std::string& program, const std::vector<std::string>& arguments);
  // Ends the process.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t pid() const { return pid_; }
  grpc::Channel& channel() const { return *channel_; }
  // The processor time that its threads have used, in seconds.
  double CpuSeconds();
  // Ends the process at once.
  void Kill();
  // After the channel has failed: returns UNAVAILABLE with how the process ended. Waits a moment
  // for its end.
  absl::Status HowItEnded();

 private:
  WorkerProcess() = default;
  // Starts the process and waits for its end. The system ends the process with the thread that has
  // started it (PR_SET_PDEATHSIG), so this thread must live as long.
  void Watch(const std::string& program, const std::vector<std::string>& arguments, int socket);

  std::shared_ptr<grpc::Channel> channel_;
  pid_t pid_ = -1;       // set before started_
  absl::Status start_;   // set before started_
  int wait_status_ = 0;  // of waitpid; set before ended_
  absl::Notification started_, ended_;
  Mutex mutex_;
  bool is_running_ ABSL_GUARDED_BY(mutex_) = false;  // the pid is this process's
  double final_cpu_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_WORKER_PROCESS_H_
