#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/variable_use.h"

// Runs initializers in dependency order. A graph does not order its initializers: `init` is one
// NoOp that depends on all of them. Yet the initial value of one variable may read another one,
// guarded by "is it initialized?" (initialized_value) or not. So in a step that runs several
// initializers, every node that reads variable u to compute v's initial value (the read, and the
// guard) runs after u's initializer, if that is in the step. All such nodes then see the same
// value, random draws included, and an imported TensorFlow graph is initialized correctly as well.
//
// The initializer of variable `w` is the assignment named `w/Assign`, which is how TensorFlow names
// it. This pass does not order other assignments, so a step that swaps two variables is still
// legal. Variables whose initial values depend on each other are an error that names them.
namespace weir {

namespace {

class InitializerOrder {
 public:
  explicit InitializerOrder(PlanGraph& plan) : plan_(plan) {}

  absl::Status Run() {
    FindInitializers();
    if (initializer_of_.size() < 2) return absl::OkStatus();
    for (const auto& [variable, initializer] : initializers_) CollectReads(variable, initializer);
    if (reads_.empty()) return absl::OkStatus();
    WEIR_RETURN_IF_ERROR(CheckCycles());
    for (const Read& read : reads_) {
      auto& controls = plan_.nodes[read.reader].controls;
      const int initializer = initializer_of_[read.variable];
      if (plan_.nodes[read.reader].loop != plan_.nodes[initializer].value_loop) continue;
      if (std::find(controls.begin(), controls.end(), initializer) == controls.end())
        controls.push_back(initializer);
    }
    return SortTopologically(plan_);
  }

 private:
  struct Read {
    int reader, variable, dependent;
  };

  void FindInitializers() {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (n.kind != PlanNode::Kind::kOp || n.inputs.size() < 2) continue;
      if (!n.Is(VariableUse::kReplaces)) continue;
      const int variable = n.inputs[0].node;
      if (!IsVariable(plan_.nodes[variable]) ||
          n.node->name() != plan_.nodes[variable].node->name() + "/Assign")
        continue;
      if (initializer_of_.emplace(variable, static_cast<int>(i)).second) {
        initializers_.emplace_back(variable, static_cast<int>(i));
      }
    }
  }

  // Finds all ancestors of the initial value of `variable` that read another variable.
  void CollectReads(int variable, int initializer) {
    std::vector<int> stack;
    absl::flat_hash_set<int> visited;
    const auto push = [&](int node) {
      if (!IsVariable(plan_.nodes[node]) && visited.insert(node).second) stack.push_back(node);
    };
    const PlanNode& init = plan_.nodes[initializer];
    for (size_t k = 1; k < init.inputs.size(); ++k) push(init.inputs[k].node);
    while (!stack.empty()) {
      const int reader = stack.back();
      stack.pop_back();
      for (const PlanValue& in : plan_.nodes[reader].inputs) {
        const auto initializer_of = initializer_of_.find(in.node);
        if (in.node != variable && initializer_of != initializer_of_.end() &&
            initializer_of->second != reader)
          reads_.push_back({reader, in.node, variable});
        push(in.node);
      }
      for (const int control : plan_.nodes[reader].controls) push(control);
    }
  }

  // Searches `dependencies` depth-first, by variables; reaching a variable that is still open
  // closes a cycle.
  absl::Status CheckCycles() const {
    absl::flat_hash_map<int, std::vector<int>> dependencies;
    for (const Read& read : reads_) dependencies[read.dependent].push_back(read.variable);
    absl::flat_hash_map<int, int> state;  // 1: open, 2: done
    for (const auto& [root, ignored] : initializers_) {
      if (state[root] != 0) continue;
      std::vector<std::pair<int, size_t>> path = {{root, 0}};
      state[root] = 1;
      while (!path.empty()) {
        const int v = path.back().first;
        const auto it = dependencies.find(v);
        if (it == dependencies.end() || path.back().second == it->second.size()) {
          state[v] = 2;
          path.pop_back();
          continue;
        }
        const int next = it->second[path.back().second++];
        if (state[next] == 1) return CycleError(path, next);
        if (state[next] == 0) {
          state[next] = 1;
          path.emplace_back(next, 0);
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CycleError(const std::vector<std::pair<int, size_t>>& path, int again) const {
    std::vector<std::string> names;
    bool inside = false;
    for (const auto& [v, next] : path) {
      inside = inside || v == again;
      if (inside) names.push_back(plan_.nodes[v].node->name());
    }
    names.push_back(plan_.nodes[again].node->name());
    return FailedPrecondition(
        "the initial values of these variables depend on each other in a cycle: ",
        absl::StrJoin(names, " -> "));
  }

  PlanGraph& plan_;
  absl::flat_hash_map<int, int> initializer_of_;  // variable -> initializer
  std::vector<std::pair<int, int>> initializers_;
  std::vector<Read> reads_;
};

}  // namespace

absl::Status OrderInitializers(PlanGraph& plan) { return InitializerOrder(plan).Run(); }

}  // namespace weir
