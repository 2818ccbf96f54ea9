#include "weir/session/plan/external_waits.h"

#include <algorithm>
#include <bit>

namespace weir {

namespace {

constexpr size_t kMaxBytes = size_t{32} << 20;

// Asynchronous kernels wait. A call has such a kernel if its callee may wait.
bool MayBlock(const PlanNode& n) {
  return n.runs() && n.kind == PlanNode::Kind::kOp &&
         (n.kernel.is_async() || n.traits().waits == WaitsFor::kValue);
}

}  // namespace

bool ExternalWaits::WaitsForInput(const PlanNode& n) {
  return MayBlock(n) && n.traits().waits != WaitsFor::kRoom;
}

bool ExternalWaits::Sets::Add(Word* to, const Word* from) const {
  bool changed = false;
  for (size_t w = 0; w < words; ++w) {
    changed |= (from[w] & ~to[w]) != 0;
    to[w] |= from[w];
  }
  return changed;
}

int ExternalWaits::Sets::Count(int i) const {
  int count = 0;
  for (size_t w = 0; w < words; ++w) count += std::popcount(of(i)[w]);
  return count;
}

ExternalWaits::ExternalWaits(const PlanGraph& graph) : graph_(graph) {
  const size_t count = graph.nodes.size();
  std::vector<int> number(count, -1);
  for (size_t i = 0; i < count; ++i) {
    if (MayBlock(graph.nodes[i])) number[i] = num_waiting_++;
  }
  counts_.assign(count, 0);
  loop_counts_.assign(graph.loops.size(), 0);
  if (empty()) return;
  size_t words = static_cast<size_t>(num_waiting_ + 63) / 64;
  if (words * count * sizeof(Word) > kMaxBytes) {
    exact_ = false;
    words = 1;
    for (int& n : number) n = std::min(n, 0);
  }
  of_node_ = {std::vector<Word>(count * words, 0), words};
  of_loop_ = {std::vector<Word>(graph.loops.size() * words, 0), words};
  for (size_t i = 0; i < count; ++i) {
    if (number[i] >= 0)
      of_node_.of(static_cast<int>(i))[number[i] / 64] |= Word{1} << (number[i] % 64);
  }
  // A fixed-point iteration: the set of a loop grows with the sets of its inputs, and the sets of
  // its users grow with that of the loop.
  while (Update() && !graph.loops.empty()) {
  }
  for (size_t i = 0; i < count; ++i) counts_[i] = of_node_.Count(static_cast<int>(i));
  for (size_t l = 0; l < graph.loops.size(); ++l)
    loop_counts_[l] = of_loop_.Count(static_cast<int>(l));
}

// Returns what the unit of `region` waits for that is or contains the node.
const ExternalWaits::Word* ExternalWaits::SetOf(int node, int region) const {
  const int loop = graph_.OutermostLoopExcluding(node, region);
  return loop < 0 ? of_node_.of(node) : of_loop_.of(loop);
}

bool ExternalWaits::AddDependency(int node, int on) {
  const int region = graph_.CommonLoop(graph_.nodes[node].loop, graph_.nodes[on].loop);
  const int loop = graph_.OutermostLoopExcluding(node, region);
  return (loop < 0 ? of_node_ : of_loop_)
      .Add(loop < 0 ? of_node_.of(node) : of_loop_.of(loop), SetOf(on, region));
}

// Visits all nodes once. Returns whether a set has changed.
bool ExternalWaits::Update() {
  bool changed = false;
  for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
    const PlanNode& n = graph_.nodes[i];
    const auto depend_on = [&](int on) {
      changed |= AddDependency(i, on);
      const int exited = graph_.ExitedLoop(graph_.nodes[on], n);
      if (exited >= 0) changed |= AddDependency(i, graph_.loops[exited].condition);
    };
    for (const PlanValue& v : n.inputs) depend_on(v.node);
    for (const int control : n.controls) depend_on(control);
    const Word* set = of_node_.of(i);
    for (int l = n.loop; l >= 0; l = graph_.loops[l].parent) {
      changed |= of_loop_.Add(of_loop_.of(l), set);
      set = of_loop_.of(l);
    }
  }
  return changed;
}

bool ExternalWaits::MayOrder(int first, int second) const {
  if (empty()) return true;
  const int region = graph_.CommonLoop(graph_.nodes[first].loop, graph_.nodes[second].loop);
  const Word *const a = SetOf(first, region), *const b = SetOf(second, region);
  for (size_t w = 0; w < of_node_.words; ++w) {
    if ((a[w] & (exact_ ? ~b[w] : ~Word{0})) != 0) return false;
  }
  return true;
}

}  // namespace weir
