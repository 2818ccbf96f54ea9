#ifndef WEIR_SESSION_PLAN_TASK_REACHABILITY_H_
#define WEIR_SESSION_PLAN_TASK_REACHABILITY_H_

#include <algorithm>
#include <vector>

namespace weir {

// Tells which tasks of a plan have finished when another one starts.
class TaskReachability {
 public:
  // `predecessors`: by task, the tasks it depends on, in ascending order and with smaller numbers;
  // it outlives this. All tasks depend on task 0.
  explicit TaskReachability(const std::vector<std::vector<int>>& predecessors)
      : predecessors_(predecessors) {
    const size_t n = predecessors.size();
    if (n < 2 || n > kMaxExact) return;
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

  // True if task `first` has finished when `task`, another one, starts. In a plan of more than
  // kMaxExact tasks only those that `task` depends on directly are known to have.
  bool IsBefore(int first, int task) const {
    if (!is_before_.empty()) return is_before_[task][first];
    const std::vector<int>& direct = predecessors_[task];
    return first == 0 || std::binary_search(direct.begin(), direct.end(), first);
  }

 private:
  static constexpr size_t kMaxExact = 4096;  // a bit for each pair: 2 MB

  const std::vector<std::vector<int>>& predecessors_;
  std::vector<std::vector<bool>> is_before_;  // [task][other]: other comes before task
};

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_TASK_REACHABILITY_H_
