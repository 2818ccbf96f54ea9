#ifndef WEIR_KERNELS_HASH_INDEX_H_
#define WEIR_KERNELS_HASH_INDEX_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir {

// Finds keys that lie in an array of the caller's by their hash: it holds positions in that array,
// never the keys themselves, and asks the caller whether the key at a position is the one looked
// for.
//
// Tables whose size the data of a graph sets are made of this, or of the standard library's, and
// not of Abseil's: those read memory that never came when they are destroyed after an allocation
// of theirs has failed. This one is as it was then. Threads may look things up together.
//
// Open addressing with linear probing, at most half full. Beside each position lies the hash of its
// key, so that most other keys are told apart, and the table grows, without a look at the array.
// Removal moves what follows back to where a search would begin to look for it, so that there are
// no marks of what was removed (Knuth, The Art of Computer Programming 3, algorithm 6.4R).
class HashIndex {
 public:
  // The position for which `is_key(position)` holds, of those put in with this hash; -1 if none.
  template <class IsKey>
  int64_t Find(size_t hash, IsKey&& is_key) const {
    return slots_.empty() ? -1 : slots_[SlotOf(hash, is_key)].position;
  }

  // As Find; what is not found is put in at `next`, and `next` returned.
  template <class IsKey>
  int64_t FindOrAdd(size_t hash, int64_t next, IsKey&& is_key) {
    Reserve(count_ + 1);
    Slot& slot = slots_[SlotOf(hash, is_key)];
    if (slot.position < 0) {
      slot = {hash, next};
      ++count_;
    }
    return slot.position;
  }

  // Puts in a key that is not there.
  void Add(size_t hash, int64_t position) {
    FindOrAdd(hash, position, [](int64_t) { return false; });
  }

  // Room for that many keys, so that adding up to there allocates nothing.
  void Reserve(size_t count) {
    if (slots_.size() >= 2 * count) return;
    HashIndex larger;
    larger.slots_.resize(std::max<size_t>(16, std::bit_ceil(2 * count)));
    for (const Slot& slot : slots_) {
      if (slot.position >= 0) larger.Add(slot.hash, slot.position);
    }
    slots_.swap(larger.slots_);
  }

  // Takes out the key at `position`, which is there.
  void Remove(size_t hash, int64_t position) {
    size_t hole = SlotOf(hash, [position](int64_t p) { return p == position; });
    --count_;
    for (size_t i = Next(hole); slots_[i].position >= 0; i = Next(i)) {
      const size_t behind_home = (i - slots_[i].hash) & mask(), behind_hole = (i - hole) & mask();
      if (behind_home < behind_hole) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = Slot();
  }

  // The key at `from`, which is there, lies at `to` from now on.
  void Move(size_t hash, int64_t from, int64_t to) {
    slots_[SlotOf(hash, [from](int64_t p) { return p == from; })].position = to;
  }

  void Clear() {
    slots_.clear();
    count_ = 0;
  }

 private:
  struct Slot {
    size_t hash = 0;
    int64_t position = -1;  // nothing is here
  };

  size_t mask() const { return slots_.size() - 1; }
  size_t Next(size_t i) const { return (i + 1) & mask(); }

  // Of the key, or where it would be put in.
  template <class IsKey>
  size_t SlotOf(size_t hash, IsKey&& is_key) const {
    size_t i = hash & mask();
    while (slots_[i].position >= 0 && (slots_[i].hash != hash || !is_key(slots_[i].position))) {
      i = Next(i);
    }
    return i;
  }

  std::vector<Slot> slots_;  // a power of two, or none
  size_t count_ = 0;
};

}  // namespace weir

#endif  // WEIR_KERNELS_HASH_INDEX_H_
