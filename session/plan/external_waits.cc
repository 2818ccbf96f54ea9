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
  inner_.words = static_cast<size_t>(num_waiting_ + 63) / 64;
  if (inner_.words * count * sizeof(Word) > kMaxBytes) {
    exact_ = false;
    inner_.words = 1;
    for (int& n : number) n = std::min(n, 0);
  }
  FindInIterations(number);
  if (!graph.loops.empty()) FindAcrossLoops();
}

int ExternalWaits::OutermostLoop(int node) const {
  int loop = graph_.nodes[node].loop;
  while (loop >= 0 && graph_.loops[loop].parent >= 0) loop = graph_.loops[loop].parent;
  return loop;
}

void ExternalWaits::AddDependencies(int node, Sets* sets) const {
  const PlanNode& n = graph_.nodes[node];
  Word* const to = sets->of(node);
  const auto depend_on = [&](int on) {
    sets->Add(to, sets->of(on));
    const int exited = graph_.ExitedLoop(graph_.nodes[on], n);
    if (exited >= 0) sets->Add(to, sets->of(graph_.loops[exited].condition));
  };
  for (const PlanValue& v : n.inputs) depend_on(v.node);
  for (const int control : n.controls) depend_on(control);
}

void ExternalWaits::FindInIterations(const std::vector<int>& number) {
  const int count = static_cast<int>(graph_.nodes.size());
  inner_.bits.assign(count * inner_.words, 0);
  Sets of_loops{std::vector<Word>(graph_.loops.size() * inner_.words, 0), inner_.words};
  for (int i = 0; i < count; ++i) {
    if (number[i] >= 0) inner_.of(i)[number[i] / 64] |= Word{1} << (number[i] % 64);
    AddDependencies(i, &inner_);
    counts_[i] = inner_.Count(i);
    for (int l = graph_.nodes[i].loop; l >= 0; l = graph_.loops[l].parent)
      inner_.Add(of_loops.of(l), inner_.of(i));
  }
  for (size_t l = 0; l < graph_.loops.size(); ++l)
    loop_counts_[l] = of_loops.Count(static_cast<int>(l));
}

// A fixed-point iteration: the set of a loop grows with the sets of its inputs, and the sets of its
// outputs grow with that of the loop.
void ExternalWaits::FindAcrossLoops() {
  outer_ = inner_;
  Sets of_loops{std::vector<Word>(graph_.loops.size() * inner_.words, 0), inner_.words};
  const int count = static_cast<int>(graph_.nodes.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < count; ++i) {
      AddDependencies(i, &outer_);
      const int loop = OutermostLoop(i);
      if (loop < 0) continue;
      changed |= outer_.Add(of_loops.of(loop), outer_.of(i));
      changed |= outer_.Add(outer_.of(i), of_loops.of(loop));
    }
  }
  for (int i = 0; i < count; ++i) {
    if (OutermostLoop(i) < 0) counts_[i] = outer_.Count(i);
  }
  for (size_t l = 0; l < graph_.loops.size(); ++l) {
    if (graph_.loops[l].parent < 0) loop_counts_[l] = of_loops.Count(static_cast<int>(l));
  }
}

bool ExternalWaits::MayOrder(int first, int second) const {
  if (empty()) return true;
  const int loop = OutermostLoop(first);
  const bool in_same_loop = outer_.words == 0 || (loop >= 0 && loop == OutermostLoop(second));
  const Sets& sets = in_same_loop ? inner_ : outer_;
  const Word *const a = sets.of(first), *const b = sets.of(second);
  for (size_t w = 0; w < sets.words; ++w) {
    if ((a[w] & (exact_ ? ~b[w] : ~Word{0})) != 0) return false;
  }
  return true;
}

}  // namespace weir
