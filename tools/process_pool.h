#ifndef WEIR_TOOLS_PROCESS_POOL_H_
#define WEIR_TOOLS_PROCESS_POOL_H_

#include <chrono>
#include <functional>
#include <string>

namespace weir::tools {

// How a piece of work ended that had a process of its own.
struct ProcessResult {
  std::string output;  // what it returned
  std::string
      death;  // empty, or "killed by signal 11 (Segmentation fault)", "took longer than 60 s", ...
};

// Runs work(0) ... work(count - 1), each in a process forked for it, at most `jobs` at a time, so
// that a crash or a hang of one ends that one only. Calls `done` in order of the numbers, as soon
// as all before it are done. The calling process has one thread when it calls this.
void RunInProcesses(int count, int jobs, std::chrono::milliseconds limit,
                    const std::function<std::string(int)>& work,
                    const std::function<void(int, const ProcessResult&)>& done);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_PROCESS_POOL_H_
