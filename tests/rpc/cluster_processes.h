#ifndef WEIR_TESTS_RPC_CLUSTER_PROCESSES_H_
#define WEIR_TESTS_RPC_CLUSTER_PROCESSES_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

// Clusters whose tasks are processes of their own, for tests.
namespace weir::testing {

// A cluster on this machine. Each task is a `weir serve`, which the test may kill, stop and start
// again on its port.
class ClusterProcesses {
 public:
  // With this program, so many tasks of each job, and further options of all tasks. Starts none.
  ClusterProcesses(std::string program, const std::map<std::string, int>& jobs,
                   std::vector<std::string> options);
  // Kills what still runs.
  ~ClusterProcesses();
  ClusterProcesses(const ClusterProcesses&) = delete;
  ClusterProcesses& operator=(const ClusterProcesses&) = delete;

  // Starts a task, or all that do not run. Returns when it listens. Aborts if it does not start.
  void Start(const std::string& job, int task, const std::vector<std::string>& more_options = {});
  void StartAll();
  // Sends SIGKILL and waits for the end, or another signal.
  void Kill(const std::string& job, int task);
  void Signal(const std::string& job, int task, int signal);

  // "127.0.0.1:41234"
  const std::string& address(const std::string& job, int task) const;
  std::string target(const std::string& job, int task) const;

 private:
  struct Task {
    std::string address;
    pid_t pid = 0;  // 0: does not run
  };
  std::string Spec() const;

  const std::string program_;
  const std::vector<std::string> options_;
  std::map<std::string, std::vector<Task>> jobs_;
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_RPC_CLUSTER_PROCESSES_H_
