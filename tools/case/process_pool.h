#ifndef WEIR_TOOLS_CASE_PROCESS_POOL_H_
#define WEIR_TOOLS_CASE_PROCESS_POOL_H_

#include <chrono>
#include <functional>
#include <string>

namespace weir::tools {

// The result of a work item that ran in its own process.
struct ProcessResult {
  std::string output;  // the returned string
  std::string
      death;  // empty, or "killed by signal 11 (Segmentation fault)", "took longer than 60 s", ...
};

// Runs work(0) ... work(count - 1), each in a forked process, at most `jobs` at a time, so that a
// crash or hang affects only one work item. Calls `done` in order of the indices, as soon as all
// earlier items are done. The calling process must have only one thread.
void RunInProcesses(int count, int jobs, std::chrono::milliseconds limit,
                    const std::function<std::string(int)>& work,
                    const std::function<void(int, const ProcessResult&)>& done);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CASE_PROCESS_POOL_H_
