#ifndef WEIR_KERNELS_DATA_ITERATOR_STATE_H_
#define WEIR_KERNELS_DATA_ITERATOR_STATE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/runtime/resource.h"
#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/tensor.h"
#include "weir/kernels/data/dataset_ahead.h"
#include "weir/kernels/lib/draw_order.h"
#include "weir/kernels/lib/waiter_queue.h"

// Iterators of a session, and where an iteration over a dataset stands, in a form that can be
// saved: the number of elements that it has returned, and the state of each generator when the
// iteration first used it.
//
// An iteration is restored by repeating it: its dataset is iterated over again from the start, with
// the same seeds, and as many elements are dropped. Datasets return the same elements in the same
// order for the same seeds, also those that work ahead, so the next element is the one that the
// saved iteration would have returned. This takes the time of the elements before, and no code or
// memory of the many kinds of iterators. The random ops in the functions of datasets draw the same
// numbers again, for the elements that were returned and for those that had only been prepared.
// Functions that change any other state change it again.
namespace weir {

// Thread-safe; owned by a shared_ptr.
class IteratorPosition : public std::enable_shared_from_this<IteratorPosition> {
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
  // The same for a generator that has a name, in a call of `function`.
  void UseIn(const Function& function, SeedSource& source);
  // Called with the description of a node whose function changes state that is not repeated.
  void NoteChange(const std::string& node);
  // Returns what repeating the iteration does not repeat, for people.
  std::vector<std::string> lost() const;
  // Called for each element or error that the iteration has returned, and for its end.
  void CountCall();

  // Returns the position as tensors.
  Tensors Save() const;
  // Returns the position that was saved, with no call made so far; `calls` is how many to repeat.
  // INVALID_ARGUMENT for tensors that Save did not return.
  static absl::StatusOr<std::shared_ptr<IteratorPosition>> Load(const Tensors& saved,
                                                                int64_t* calls);
  // Called once, when the iterator of the dataset exists. DATA_LOSS if by then another number of
  // generators was used than for the iteration that was saved. (Later uses may be ahead of it.)
  absl::Status CheckBegin();

 private:
  static thread_local constinit IteratorPosition* current_;

  mutable Mutex mutex_;
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t used_at_begin_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<int64_t> saved_used_at_begin_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> sources_ ABSL_GUARDED_BY(mutex_);  // ids
  // Of generators without a name, in the order of first uses.
  std::vector<SeedSource::State> states_ ABSL_GUARDED_BY(mutex_);
  std::vector<SeedSource::State> to_restore_ ABSL_GUARDED_BY(mutex_);
  // Of the others, by name: calls at the same time may use them in any order.
  std::map<std::string, SeedSource::State> named_states_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, SeedSource::State> named_to_restore_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, const Function*> functions_ ABSL_GUARDED_BY(mutex_);  // by generator
  std::set<std::string> changes_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> shared_ ABSL_GUARDED_BY(mutex_);  // generators that others use too
};

// The draws of a call of a dataset's `function`: notes them in a position, then makes them in the
// order of the step, if it has one.
class NotedDraws final : public DrawOrder {
 public:
  // `order` may be null. All outlive this object.
  NotedDraws(IteratorPosition& position, const Function& function, DrawOrder* order)
      : position_(position), function_(function), order_(order) {}
  Philox Draw(SeedSource& stream, absl::FunctionRef<Philox()> reserve) override;

 private:
  IteratorPosition& position_;
  const Function& function_;
  DrawOrder* const order_;
};

// An iterator of a session: the state of an iteration over a dataset. Thread-safe.
class IteratorState final : public Resource {
 public:
  explicit IteratorState(ResourceName name) : name_(std::move(name)) {}

  std::string Describe() const override { return "iterator '" + name_.name + "'"; }
  void Clear() override;
  const ResourceName& name() const { return name_; }

  // Restarts at the beginning of the dataset.
  absl::Status Start(DatasetPtr dataset);
  // Starts at the beginning unless already started.
  absl::Status StartOnce(const std::function<absl::StatusOr<DatasetPtr>()>& make);
  // Returns nullopt at the end.
  MaybeElement Next(const StepInfo& step, const Node& caller);
  // Whether it has a dataset.
  bool started();

  // Returns where the iteration stands.
  absl::StatusOr<Tensors> Save();
  // Continues, with the dataset that it has, where a saved iteration stood.
  absl::Status Restore(const StepInfo& step, const Node& caller, const Tensors& saved);
  // The same, before the next element, with the dataset that it has then. So the first Start in a
  // resumed run continues instead of starting over.
  absl::Status RestoreLater(Tensors saved);
  // IteratorPosition::lost of the iteration.
  std::vector<std::string> lost();

  // FAILED_PRECONDITION: the iterator has no dataset, which `call` needs.
  static absl::Status Uninitialized(absl::string_view call);

 private:
  struct Iteration {
    DatasetPtr dataset;  // referenced by the iterator
    std::shared_ptr<IteratorPosition> position;
    std::unique_ptr<DatasetIterator> iterator;
    std::optional<MaybeElement> late;  // came when the step that asked for it had ended
    bool ended = false;

    static absl::StatusOr<Iteration> Of(DatasetPtr dataset,
                                        std::shared_ptr<IteratorPosition> position);
    MaybeElement Next(const DatasetContext& x);
  };

  absl::Status Repeat(const StepInfo& step, const Node& caller, const Tensors& saved);
  void Replace(Iteration iteration);

  const ResourceName name_;
  std::mutex start_mutex_;
  std::mutex mutex_;
  AheadGroup ahead_;
  Iteration iteration_;
  Tensors
      pending_;  // where the iteration continues before its next element; empty: where it stands
};

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_ITERATOR_STATE_H_
