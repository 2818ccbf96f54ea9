#ifndef WEIR_EXAMPLES_CLUSTER_PROCESSES_H_
#define WEIR_EXAMPLES_CLUSTER_PROCESSES_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "weir/core/tensor/status.h"

namespace cluster {

// Returns addresses of this machine, "127.0.0.1:41234", with ports that are free.
absl::StatusOr<std::vector<std::string>> FreeAddresses(int count);

// Processes that run this program again. Those that still run are killed when this object is
// destroyed, and by EndWithParent also when this process ends in another way.
class Processes {
 public:
  Processes() = default;
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // Starts a process with these arguments. `name` is for errors. One that need not end serves the
  // others as long as they run.
  absl::Status Start(const std::string& name, const std::vector<std::string>& arguments,
                     bool must_end);
  // Returns when all processes that must end have ended. ABORTED as soon as a process has failed,
  // or one that serves the others has ended.
  absl::Status Wait();

 private:
  struct Process {
    std::string name;
    bool must_end;
  };
  std::map<pid_t, Process> running_;
};

// Kills this process when its parent, which must be `parent`, ends.
void EndWithParent(pid_t parent);

}  // namespace cluster

#endif  // WEIR_EXAMPLES_CLUSTER_PROCESSES_H_
