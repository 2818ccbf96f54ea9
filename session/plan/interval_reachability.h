#ifndef WEIR_SESSION_PLAN_INTERVAL_REACHABILITY_H_
#define WEIR_SESSION_PLAN_INTERVAL_REACHABILITY_H_

#include <algorithm>
#include <iterator>
#include <map>

namespace weir {

// Intervals of node positions that are entered at one node and left from an earlier one: regions
// that will be fused, and loops. Every edge of the graph leads to a higher position; this class
// tells which lower positions are reachable through such intervals.
class IntervalReachability {
 public:
  void Add(int low, int high) {
    auto it = intervals_.upper_bound(low);
    if (it != intervals_.begin() && std::prev(it)->second >= low) --it;
    while (it != intervals_.end() && it->first <= high) {
      low = std::min(low, it->first);
      high = std::max(high, it->second);
      it = intervals_.erase(it);
    }
    intervals_.emplace(low, high);
  }
  // Returns the lowest position that is reachable from this one.
  int LowestAfter(int position) const {
    const auto it = intervals_.upper_bound(position);
    if (it == intervals_.begin() || std::prev(it)->second < position) return position;
    return std::prev(it)->first;
  }

 private:
  std::map<int, int> intervals_;  // disjoint intervals: the last position by the first
};

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_INTERVAL_REACHABILITY_H_
