#ifndef WEIR_SESSION_PLAN_TASK_REACHABILITY_H_
#define WEIR_SESSION_PLAN_TASK_REACHABILITY_H_

#include <vector>

namespace weir {

// Tells which tasks of a plan have finished when another one starts.
class TaskReachability {
 public:
  // `predecessors`: by task, the tasks it depends on, which have smaller numbers. All tasks depend
  // on task 0.
  explicit TaskReachability(const std::vector<std::vector<int>>& predecessors) {
    const size_t n = predecessors.size();
    if (n < 2) return;
    is_before_.assign(n, std::vector<bool>(n, false));
    for (size_t t = 1; t < n; ++t) {
      is_before_[t][0] = true;
      for (const int p : predecessors[t]) {
        is_before_[t][p] = true;
        for (size_t q = 0; q < n; ++q) {
          if (is_before_[p][q]) is_before_[t][q] = true;
        }
      }
    }
  }

  // True if task `first` has finished when `task`, another one, starts.
  bool IsBefore(int first, int task) const { return is_before_[task][first]; }

 private:
  std::vector<std::vector<bool>> is_before_;  // [task][other]: other comes before task
};

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_TASK_REACHABILITY_H_
