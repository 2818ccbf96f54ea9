#ifndef WEIR_KERNELS_LIB_HASH_INDEX_H_
#define WEIR_KERNELS_LIB_HASH_INDEX_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir {

// A hash index of keys that are stored in an array of the caller. It stores positions in that
// array, never the keys themselves, and asks the caller whether the key at a position equals the
// one searched for.
//
// Hash tables whose size depends on a graph's data use this class or the standard library, not
// Abseil: after a failed allocation, the destructor of an Abseil container accesses memory that was
// not allocated. A failed allocation leaves this index unchanged. Concurrent lookups are safe.
//
// Open addressing with linear probing, at most half full. Each slot also stores the key's hash, so
// most unequal keys are rejected, and the index grows, without reading the array. Removal moves the
// following entries back to where a search would begin, so there are no tombstones (Knuth, The Art
// of Computer Programming 3, algorithm 6.4R).
class HashIndex {
 public:
  // Returns the position, among those added with this hash, for which `is_key(position)` is true;
  // -1 if there is none.
  template <class IsKey>
  int64_t Find(size_t hash, IsKey&& is_key) const {
    return slots_.empty() ? -1 : slots_[SlotOf(hash, is_key)].position;
  }

  // Like Find, but adds a missing key at position `next` and returns `next`.
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

  // Adds a key that is not in the index.
  void Add(size_t hash, int64_t position) {
    FindOrAdd(hash, position, [](int64_t) { return false; });
  }

  // Reserves room for `count` keys, so that adding up to that many allocates nothing.
  void Reserve(size_t count) {
    if (slots_.size() >= 2 * count) return;
    HashIndex larger;
    larger.slots_.resize(std::max<size_t>(16, std::bit_ceil(2 * count)));
    for (const Slot& slot : slots_) {
      if (slot.position >= 0) larger.Add(slot.hash, slot.position);
    }
    slots_.swap(larger.slots_);
  }

  // Removes the existing key at `position`.
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

  // Changes the position of the existing key at `from` to `to`.
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
    int64_t position = -1;  // empty
  };

  size_t mask() const { return slots_.size() - 1; }
  size_t Next(size_t i) const { return (i + 1) & mask(); }

  // Returns the slot of the key, or where it would be added.
  template <class IsKey>
  size_t SlotOf(size_t hash, IsKey&& is_key) const {
    size_t i = hash & mask();
    while (slots_[i].position >= 0 && (slots_[i].hash != hash || !is_key(slots_[i].position))) {
      i = Next(i);
    }
    return i;
  }

  std::vector<Slot> slots_;  // size is a power of two, or 0
  size_t count_ = 0;
};

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_HASH_INDEX_H_
