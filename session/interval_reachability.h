#ifndef WEIR_SESSION_INTERVAL_REACHABILITY_H_
#define WEIR_SESSION_INTERVAL_REACHABILITY_H_

#include <algorithm>
#include <iterator>
#include <map>

namespace weir {

// Which positions of nodes one may come down to from where, though every edge leads up: by way of a
// region or a loop, which is entered at one node and left from another that stood before it.
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
  // The lowest position that may come after this one.
  int LowestAfter(int position) const {
    const auto it = intervals_.upper_bound(position);
    if (it == intervals_.begin() || std::prev(it)->second < position) return position;
    return std::prev(it)->first;
  }

 private:
  std::map<int, int> intervals_;  // disjoint: the last position by the first
};

}  // namespace weir

#endif  // WEIR_SESSION_INTERVAL_REACHABILITY_H_
