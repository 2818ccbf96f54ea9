#ifndef WEIR_SESSION_PLAN_DISJOINT_SETS_H_
#define WEIR_SESSION_PLAN_DISJOINT_SETS_H_

#include <vector>

namespace weir {

// A union-find structure over indices. At first each index is a set of its own.
class DisjointSets {
 public:
  explicit DisjointSets(int size = 0) {
    while (this->size() < size) Add();
  }
  int size() const { return static_cast<int>(parent_.size()); }
  void Add() { parent_.push_back(size()); }
  // Returns the representative of the set of `i`.
  int Find(int i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  // Merges the set of `from` into that of `to`, which keeps its representative.
  void Join(int from, int to) { parent_[Find(from)] = Find(to); }

 private:
  std::vector<int> parent_;
};

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_DISJOINT_SETS_H_
