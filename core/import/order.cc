#include "weir/core/import/order.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "absl/strings/str_join.h"

namespace weir {

namespace {

// Walks backwards among the blocked nodes until a node repeats. `waiting` counts the edges from
// blocked nodes into each node.
absl::Status CycleError(absl::Span<const NodeHeader> nodes, const ImportEdges& edges,
                        const std::vector<int>& waiting, size_t count) {
  const auto blocked = [&](const ImportEdge& e) { return e.orders() && waiting[e.def] > 0; };
  const auto first = std::find_if(waiting.begin(), waiting.end(), [](int w) { return w > 0; });
  int at = static_cast<int>(first - waiting.begin());
  std::vector<int> position(nodes.size(), -1);
  std::vector<int> path;
  while (position[at] < 0) {
    position[at] = static_cast<int>(path.size());
    path.push_back(at);
    const absl::Span<const ImportEdge> inputs = edges.Into(at);
    at = std::find_if(inputs.begin(), inputs.end(), blocked)->def;
  }
  path.erase(path.begin(), path.begin() + position[at]);
  path.push_back(at);
  std::reverse(path.begin(), path.end());
  constexpr size_t kMaxNamed = 10;
  const size_t left_out = path.size() > kMaxNamed ? path.size() - kMaxNamed : 0;
  path.resize(path.size() - left_out);
  return InvalidArgument(
      count, count == 1 ? " node" : " nodes", " in a cycle: ",
      absl::StrJoin(path, " -> ",
                    [&](std::string* out, int i) { absl::StrAppend(out, nodes[i].name); }),
      left_out > 0 ? " -> ..." : "");
}

}  // namespace

absl::StatusOr<std::vector<int>> TopologicalOrder(absl::Span<const NodeHeader> nodes,
                                                  const ImportEdges& edges) {
  const int n = edges.num_nodes();
  std::vector<int> waiting(n, 0);
  std::vector<size_t> begin(n + 1, 0);  // of the consumers of each node
  for (const ImportEdge& edge : edges.all()) {
    if (edge.orders()) ++begin[edge.def + 1];
  }
  for (int i = 0; i < n; ++i) begin[i + 1] += begin[i];
  std::vector<int> consumers(begin[n]);
  std::vector<size_t> next = begin;
  for (int i = 0; i < n; ++i) {
    for (const ImportEdge& edge : edges.Into(i)) {
      if (!edge.orders()) continue;
      ++waiting[i];
      consumers[next[edge.def]++] = i;
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int i = 0; i < n; ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  std::vector<int> order;
  order.reserve(n);
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    order.push_back(i);
    for (size_t c = begin[i]; c < begin[i + 1]; ++c) {
      if (--waiting[consumers[c]] == 0) ready.push(consumers[c]);
    }
  }
  if (static_cast<int>(order.size()) < n)
    return CycleError(nodes, edges, waiting, n - order.size());
  return order;
}

}  // namespace weir
