#ifndef WEIR_SESSION_DISJOINT_SETS_H_
#define WEIR_SESSION_DISJOINT_SETS_H_

#include <vector>

namespace weir {

// Numbers that belong together. At first each is a set of its own.
class DisjointSets {
 public:
  explicit DisjointSets(int size = 0) {
    while (this->size() < size) Add();
  }
  int size() const { return static_cast<int>(parent_.size()); }
  void Add() { parent_.push_back(size()); }
  // The member that stands for the set of `i`.
  int Find(int i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  // The set of `from` joins that of `to`, whose member goes on standing for it.
  void Join(int from, int to) { parent_[Find(from)] = Find(to); }

 private:
  std::vector<int> parent_;
};

}  // namespace weir

#endif  // WEIR_SESSION_DISJOINT_SETS_H_
