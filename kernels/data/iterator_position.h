#ifndef WEIR_KERNELS_DATA_ITERATOR_POSITION_H_
#define WEIR_KERNELS_DATA_ITERATOR_POSITION_H_

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/tensor.h"

// Where an iteration over a dataset stands, in a form that can be saved: the number of elements
// that it has returned, and the state of each generator of seeds when the iteration first used it.
//
// An iteration is restored by repeating it: its dataset is iterated over again from the start, with
// the same seeds, and as many elements are dropped. Datasets return the same elements in the same
// order for the same seeds, also those that work ahead, so the next element is the one that the
// saved iteration would have returned. This takes the time of the elements before, and no code or
// memory of the many kinds of iterators. Functions that change state change it again, except random
// ops, whose streams a new session starts at their beginning too.
namespace weir {

// A generator whose draws an iteration must repeat. Thread-safe.
class SeedSource {
 public:
  // The seeds, and how often they were drawn from.
  struct State {
    uint64_t seed = 0, seed2 = 0, draws = 0;
  };

  virtual ~SeedSource() = default;
  virtual State state() const = 0;
  virtual void Restore(const State& state) = 0;
  // Distinguishes this generator from all others of the process, also those before it.
  uint64_t id() const { return id_; }

 protected:
  SeedSource();

 private:
  const uint64_t id_;
};

// Thread-safe.
class IteratorPosition {
 public:
  IteratorPosition() = default;

  // The position of the iteration that this thread works for; null if it works for none.
  static IteratorPosition* Current() { return current_; }
  // Sets it while in scope.
  class Scope {
   public:
    explicit Scope(IteratorPosition* position) : saved_(std::exchange(current_, position)) {}
    ~Scope() { current_ = saved_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    IteratorPosition* const saved_;
  };

  // Called before a generator draws. Notes its state, or restores the one that was saved.
  void Use(SeedSource& source);
  // Called for each element or error that the iteration has returned, and for its end.
  void CountCall();

  // Returns the position as tensors.
  Tensors Save() const;
  // Returns the position that was saved, with no call made so far; `calls` is how many to repeat.
  // INVALID_ARGUMENT for tensors that Save did not return.
  static absl::StatusOr<std::shared_ptr<IteratorPosition>> Load(const Tensors& saved,
                                                                int64_t* calls);
  // Whether all generators that were saved have been used again.
  bool has_restored_all() const;

 private:
  static thread_local constinit IteratorPosition* current_;

  mutable Mutex mutex_;
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<uint64_t> sources_ ABSL_GUARDED_BY(mutex_);             // ids
  std::vector<SeedSource::State> states_ ABSL_GUARDED_BY(mutex_);  // in the order of first uses
  std::vector<SeedSource::State> to_restore_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_ITERATOR_POSITION_H_
