#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "weir/core/tensor/exception.h"
#include "weir/kernels/data/dataset_prefetch.h"

// Prefetching iterators, which run on the session's threads. Elements read and computed ahead are
// queued, up to a limit, in input order.
//
// The pool has few threads, and some of them may themselves be waiting for an element of such an
// iterator. So nobody ever waits for work that has not started: if no thread has taken the next
// call, the consumer makes the call itself, and if nobody is reading the input, the consumer reads.
// A consumer waits only for running work, which in turn waits at most for running work further
// upstream. A task reads one element or makes one call and then goes to the end of the pool's
// queue, so that steps get their turn. With a pool of one thread, nothing is prefetched.
//
// The work belongs to no step: it has its own cancellation and ends with the iterator.
namespace weir {

namespace {

// An element in flight.
struct Call {
  Tensors element;
  MaybeElement result;
  bool taken = false, done = false;
};

class Prefetcher : public std::enable_shared_from_this<Prefetcher> {
 public:
  Prefetcher(std::unique_ptr<DatasetIterator> input, ElementFn f, int64_t limit)
      : input_(std::move(input)), f_(std::move(f)), limit_(limit) {}

  MaybeElement Next(const DatasetContext& x) {
    std::unique_lock<std::mutex> lock(mutex_);
    Begin(x);
    for (;;) {
      if (!calls_.empty()) {
        const std::shared_ptr<Call> call = calls_.front();
        if (call->done || !call->taken) {
          calls_.pop_front();
          ReadAhead();
          if (call->done) return std::move(call->result);
          call->taken = true;
          lock.unlock();
          return Apply(x, call->element);
        }
      } else if (ended_) {
        return std::nullopt;
      } else if (!reading_) {
        return ReadNow(x, &lock);
      }
      WEIR_RETURN_IF_ERROR(Wait(x, &lock));
    }
  }

  // Cancels running work and waits for it to end.
  void Stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
    }
    cancellation_.Cancel(absl::CancelledError("The iterator was destroyed"));
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return running_ == 0; });
    calls_.clear();
    input_ = nullptr;
  }

 private:
  // Captures the state that outlives the first step that calls Next().
  void Begin(const DatasetContext& x) {
    if (caller_ != nullptr) return;
    caller_ = &x.caller;
    step_.step_id = x.step.step_id;
    step_.pool = x.step.pool;
    step_.resources = x.step.resources;
    step_.cancellation = &cancellation_;
    const int64_t threads = step_.pool->num_threads();
    if (limit_ < 0) limit_ = std::clamp<int64_t>(threads, 2, 16);
    if (threads == 1) limit_ = 0;
    ReadAhead();
  }

  // An exception must neither skip the state updates in the callers nor end a thread of the pool.
  MaybeElement Read(const DatasetContext& x) {
    return CatchExceptions("The dataset", [&] { return input_->Next(x); });
  }
  MaybeElement Apply(const DatasetContext& x, const Tensors& element) {
    return CatchExceptions("The dataset", [&] { return f_(x, element); });
  }

  MaybeElement ReadNow(const DatasetContext& x, std::unique_lock<std::mutex>* lock) {
    reading_ = true;
    lock->unlock();
    MaybeElement element = Read(x);
    lock->lock();
    reading_ = false;
    ended_ = element.ok() && !element->has_value();
    changed_.notify_all();
    ReadAhead();
    lock->unlock();
    if (!element.ok() || !element->has_value() || f_ == nullptr) return element;
    return Apply(x, **element);
  }

  void ReadAhead() {
    const bool full = static_cast<int64_t>(calls_.size()) >= limit_;
    if (full || stopped_ || ended_ || reading_ || scheduled_) return;
    scheduled_ = true;
    step_.pool->Schedule([self = shared_from_this()] { self->ReadNext(); });
  }

  void ReadNext() {
    std::unique_lock<std::mutex> lock(mutex_);
    scheduled_ = false;
    if (stopped_ || ended_ || reading_) return;
    reading_ = true;
    ++running_;
    lock.unlock();
    MaybeElement element = Read({step_, *caller_});
    lock.lock();
    --running_;
    reading_ = false;
    ended_ = element.ok() && !element->has_value();
    if (!stopped_ && !ended_) Append(std::move(element));
    ReadAhead();
    changed_.notify_all();
  }

  void Append(MaybeElement element) {
    auto call = std::make_shared<Call>();
    calls_.push_back(call);
    if (!element.ok() || f_ == nullptr) {
      call->result = std::move(element);
      call->taken = call->done = true;
      return;
    }
    call->element = std::move(**element);
    step_.pool->Schedule([self = shared_from_this(), call] { self->Run(*call); });
  }

  void Run(Call& call) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (stopped_ || call.taken) return;
    call.taken = true;
    ++running_;
    lock.unlock();
    MaybeElement result = Apply({step_, *caller_}, call.element);
    lock.lock();
    --running_;
    call.result = std::move(result);
    call.done = true;
    changed_.notify_all();
  }

  // Waits until the state has changed or the step is cancelled.
  absl::Status Wait(const DatasetContext& x, std::unique_lock<std::mutex>* lock) {
    Cancellation* const cancellation = x.step.cancellation;
    if (cancellation == nullptr) {
      changed_.wait(*lock);
      return absl::OkStatus();
    }
    if (cancellation->cancelled()) return cancellation->status();
    lock->unlock();
    int64_t token = 0;
    const bool waits = cancellation->OnCancel(
        [this] {
          const std::lock_guard<std::mutex> wakes(mutex_);
          changed_.notify_all();
        },
        &token);
    lock->lock();
    // The state may have changed while the lock was released.
    const bool ready = calls_.empty() ? ended_ || !reading_ : calls_.front()->done;
    if (waits && !ready && !cancellation->cancelled()) changed_.wait(*lock);
    lock->unlock();
    if (waits) cancellation->Unregister(token);
    lock->lock();
    return absl::OkStatus();
  }

  std::unique_ptr<DatasetIterator> input_;
  const ElementFn f_;
  int64_t limit_;  // maximum number of queued calls

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Call>> calls_;
  bool reading_ = false, scheduled_ = false, ended_ = false, stopped_ = false;
  int running_ = 0;  // running tasks
  Cancellation cancellation_;
  StepInfo step_;
  const Node* caller_ = nullptr;
};

class PrefetchIterator final : public DatasetIterator {
 public:
  explicit PrefetchIterator(std::shared_ptr<Prefetcher> prefetcher)
      : prefetcher_(std::move(prefetcher)) {}
  ~PrefetchIterator() override { prefetcher_->Stop(); }
  MaybeElement Next(const DatasetContext& x) override { return prefetcher_->Next(x); }

 private:
  const std::shared_ptr<Prefetcher> prefetcher_;
};

}  // namespace

absl::Status WrapDataset(KernelContext& c, WrapIterator wrap) {
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr input, DatasetIn(c.input(0)));
  c.SetOutput(0, DatasetTensor(DatasetOf([input, wrap = std::move(wrap)]() -> MaybeIterator {
                WEIR_ASSIGN_OR_RETURN(std::unique_ptr<DatasetIterator> iterator, input->Iterate());
                return wrap(std::move(iterator));
              })));
  return absl::OkStatus();
}

std::unique_ptr<DatasetIterator> Prefetched(std::unique_ptr<DatasetIterator> input,
                                            int64_t buffer_size) {
  return PrefetchedMap(std::move(input), nullptr, buffer_size);
}

std::unique_ptr<DatasetIterator> PrefetchedMap(std::unique_ptr<DatasetIterator> input, ElementFn f,
                                               int64_t calls) {
  return std::make_unique<PrefetchIterator>(
      std::make_shared<Prefetcher>(std::move(input), std::move(f), calls));
}

}  // namespace weir
