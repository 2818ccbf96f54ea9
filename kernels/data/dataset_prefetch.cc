#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "weir/core/tensor/exception.h"
#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/data/iterator_state.h"
#include "weir/kernels/lib/draw_order.h"

// Prefetching iterators, which run on the session's threads. Elements read and computed ahead are
// queued, up to a limit, in input order.
//
// Work is divided by elements: a thread reads the next element, which one thread does at a time,
// appends it to the queue, lets the next thread read, and calls the function for its element. The
// consumer is one of these threads. It never waits for work that nobody does: it reads and calls
// itself, and while its element is being computed by another thread, it prepares later ones, its
// own or those of an iterator upstream (AheadGroup). So a pipeline needs no thread but its
// consumer's, and one helper doubles its speed. This is work stealing between a parent and its
// children: Blumofe and Leiserson, "Scheduling multithreaded computations by work stealing", 1999;
// tf.data instead has a thread per iterator and a pool for its calls, whose hand-over costs tens of
// microseconds per element.
//
// A waiting thread helps only upstream of the iterators whose exclusive reader it is, and calls
// depend on nothing but their elements; hence no thread waits, directly or not, for itself. A
// thread that does wait runs chunks of any loops. The pool's own tasks prepare one element each and
// then go to the end of the pool's queue, so that steps get their turn.
//
// A hand-over to another thread costs some microseconds, and most functions of data sets take less
// than one. So elements are read and mapped one by one, by the consumer, unless the last few took
// 30 microseconds or more each (Pace). With a pool of one thread, nothing is prefetched.
//
// Work of a pool's task belongs to no step: it has its own cancellation and ends with the iterator.
// Work of a consumer is a part of its step. If the step ends before the element is ready, the call
// waits to be made again, with the same random numbers. Later calls that wait for it to draw give
// way: otherwise they could occupy all threads until the next step comes, which may need them.
namespace weir {

namespace {

// An element in flight. Guarded by the mutex of its Prefetcher, except what a kRunning call's
// thread uses.
struct Call {
  enum class State { kWaiting, kRunning, kDone };
  State state = State::kWaiting;
  Tensors element;
  MaybeElement result;
  int64_t bytes = 0;
  Pace::Clock::duration spent{0};
  std::vector<std::pair<const SeedSource*, Philox>> drawn;  // by stream: what it has drawn
  std::atomic<bool> gives_way{false};                       // to an earlier call

  const Philox* Drawn(const SeedSource* stream) const {
    const auto it = absl::c_find_if(drawn, [&](const auto& d) { return d.first == stream; });
    return it == drawn.end() ? nullptr : &it->second;
  }
};

// Helps the pool until `done`, or until the cancellation, which is done() too.
void HelpUntil(ThreadPool& pool, Cancellation* cancellation, absl::FunctionRef<bool()> done) {
  int64_t token = 0;
  const bool waits =
      cancellation != nullptr && cancellation->OnCancel([&pool] { pool.Wake(); }, &token);
  pool.HelpUntil([&] { return (cancellation != nullptr && cancellation->cancelled()) || done(); });
  if (waits) cancellation->Unregister(token);
}

// A step for work that a consumer does ahead, which also ends with the iterator.
class HelperStep {
 public:
  HelperStep(const StepInfo& step, Cancellation& iterator)
      : of_step_(step.cancellation, ends_), of_iterator_(&iterator, ends_), step_(step) {
    step_.cancellation = &ends_;
    step_.draws = nullptr;
  }
  const StepInfo& step() const { return step_; }

 private:
  Cancellation ends_;
  const LinkedCancellation of_step_, of_iterator_;
  StepInfo step_;
};

class Prefetcher final : public AheadWork, public std::enable_shared_from_this<Prefetcher> {
 public:
  Prefetcher(std::unique_ptr<DatasetIterator> input, ElementFn f, int64_t limit, bool draws,
             std::shared_ptr<Pace> pace)
      : input_(std::move(input)),
        f_(std::move(f)),
        draws_(draws),
        pace_(pace != nullptr ? std::move(pace) : std::make_shared<Pace>()),
        limit_(limit) {}

  MaybeElement Next(const DatasetContext& x) {
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        Begin(x);
        if (!calls_.empty() && calls_.front()->state == Call::State::kDone) return TakeFirst();
        if (calls_.empty() && ended_) return std::nullopt;
        if (calls_.empty() && !reading_ && !MayBeAhead()) return ReadNow(x, &lock);
      }
      if (x.step.cancellation != nullptr && x.step.cancellation->cancelled())
        return x.step.cancellation->status();
      WEIR_ASSIGN_OR_RETURN(const bool worked, WorkAsConsumer(x));
      if (worked || x.ahead.Work(x)) continue;
      HelpUntil(*step_.pool, x.step.cancellation,
                [&] { return IsReadyForConsumer() || x.ahead.HasWork(); });
    }
  }

  bool HasWork() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (CanPrepare()) return true;
      if (!reading_ || stopped_) return false;
    }
    return upstream_.HasWork();
  }

  bool Work(const DatasetContext& x) override {
    {
      const HelperStep helper(x.step, cancellation_);
      std::unique_lock<std::mutex> lock(mutex_);
      if (CanPrepare()) {
        // If the step is over, its consumer notices.
        Prepare({helper.step(), x.caller, upstream_}, &lock).IgnoreError();
        return true;
      }
      if (!reading_ || stopped_) return false;
    }
    return upstream_.Work(x);
  }

  // Cancels running work and waits for it to end.
  void Stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
    }
    cancellation_.Cancel(absl::CancelledError("The iterator was destroyed"));
    if (step_.pool != nullptr) {
      step_.pool->HelpUntil([&] {
        const std::lock_guard<std::mutex> lock(mutex_);
        return running_ == 0;
      });
    }
    input_ = nullptr;
    f_ = nullptr;  // a task in the pool's queue may outlive the session, and must not own resources
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.clear();
  }

 private:
  // A call's place in the order of draws.
  class Draws final : public DrawOrder {
   public:
    Draws(Prefetcher& prefetcher, Call& call, Cancellation* cancellation)
        : prefetcher_(prefetcher), call_(call), cancellation_(cancellation) {}
    Philox Draw(SeedSource& stream, absl::FunctionRef<Philox()> reserve) override {
      std::optional<Philox> drawn;
      HelpUntil(*prefetcher_.step_.pool, cancellation_, [&] {
        drawn = prefetcher_.TryDraw(call_, &stream, reserve);
        return drawn || call_.gives_way;
      });
      if (drawn) return *drawn;
      if (call_.gives_way) throw StepCancelled{absl::AbortedError("An earlier call is made first")};
      throw StepCancelled{cancellation_->status()};
    }

   private:
    Prefetcher& prefetcher_;
    Call& call_;
    Cancellation* const cancellation_;
  };

  // Returns nothing if an earlier call has not drawn. If that call is not even running, this one
  // has to give way.
  std::optional<Philox> TryDraw(Call& call, const SeedSource* stream,
                                absl::FunctionRef<Philox()> reserve) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const Philox* const before = call.Drawn(stream)) return *before;
    for (const auto& earlier : calls_) {
      if (earlier.get() == &call) break;
      if (earlier->state == Call::State::kDone || earlier->Drawn(stream) != nullptr) continue;
      call.gives_way = earlier->state == Call::State::kWaiting;
      return std::nullopt;
    }
    call.drawn.emplace_back(stream, reserve());
    if (calls_.back().get() != &call) step_.pool->Wake();
    return call.drawn.back().second;
  }

  // Captures the state that outlives the first step that calls Next().
  void Begin(const DatasetContext& x) {
    if (caller_ != nullptr) return;
    caller_ = &x.caller;
    position_ = IteratorPosition::Current();
    step_.step_id = x.step.step_id;
    step_.pool = x.step.pool;
    step_.resources = x.step.resources;
    step_.cancellation = &cancellation_;
    const int64_t threads = step_.pool->num_threads();
    if (limit_ < 0) {
      limit_ = std::clamp<int64_t>(threads, 2, 16);
      most_bytes_ = kMostBytesAhead;
    }
    if (threads == 1) limit_ = 0;
    x.ahead.Add(weak_from_this());
  }

  // An exception must neither skip the state updates in the callers nor end a thread of the pool.
  MaybeElement Read(const DatasetContext& x) {
    return CatchExceptions("The dataset", [&] {
      return input_->Next({x.step, x.caller, upstream_});
    });
  }
  MaybeElement Apply(const DatasetContext& x, const Tensors& element) {
    return CatchExceptions("The dataset", [&] { return f_(x, element); });
  }

  // ---- the following require the lock

  bool MayBeAhead() const { return limit_ > 0 && pace_->is_slow(); }

  // A few elements may be done while their consumer is busy with another one.
  int64_t Room() const {
    constexpr int64_t kMostDone = 2;
    const auto queued = static_cast<int64_t>(calls_.size());
    if (f_ == nullptr) return limit_ - queued;
    return std::min(limit_ - calling_, limit_ + kMostDone - queued);
  }

  std::shared_ptr<Call> FirstWaiting() const {
    for (const auto& call : calls_) {
      if (call->state == Call::State::kWaiting) return call;
    }
    return nullptr;
  }

  bool CanPrepare() const {
    if (stopped_ || !MayBeAhead()) return false;
    if (num_waiting_ > 0) return true;
    return !ended_ && !reading_ && Room() > 0 && bytes_ < most_bytes_;
  }

  // Whether only this consumer can go on.
  bool IsConsumersTurn() const {
    if (calls_.empty()) return !reading_ && !ended_;
    return calls_.front()->state == Call::State::kWaiting;
  }

  MaybeElement TakeFirst() {
    const std::shared_ptr<Call> first = std::move(calls_.front());
    calls_.pop_front();
    bytes_ -= first->bytes;
    ScheduleAhead();
    return std::move(first->result);
  }

  // Reads and maps an element by itself.
  MaybeElement ReadNow(const DatasetContext& x, std::unique_lock<std::mutex>* lock) {
    reading_ = true;
    lock->unlock();
    const auto begin = Pace::Clock::now();
    MaybeElement element = Read(x);
    const bool ended = element.ok() && !element->has_value();
    std::shared_ptr<Call> ended_call;
    if (element.ok() && !ended && f_ != nullptr) {
      Tensors input = **std::move(element);
      element = Apply(x, input);
      if (!element.ok() && HasEnded(x.step)) {
        ended_call = std::make_shared<Call>();
        ended_call->element = std::move(input);
      }
    }
    if (!ended) pace_->Report(Pace::Clock::now() - begin);
    lock->lock();
    reading_ = false;
    ended_ = ended;
    if (ended_call != nullptr && !stopped_) {
      calls_.push_back(std::move(ended_call));
      ++num_waiting_;
    }
    if (MayBeAhead()) Announce();
    return element;
  }

  void Announce() {
    ScheduleAhead();
    step_.pool->Wake();
  }

  void ScheduleAhead() {
    if (!CanPrepare()) return;
    const int64_t wanted = std::min<int64_t>(step_.pool->num_threads() - 1,
                                             num_waiting_ + std::max<int64_t>(Room(), 0));
    for (; scheduled_ < wanted; ++scheduled_)
      step_.pool->Schedule([self = shared_from_this()] { self->RunTask(); });
  }

  void RunTask() {
    std::unique_lock<std::mutex> lock(mutex_);
    --scheduled_;
    const IteratorPosition::Scope scope(position_);
    if (CanPrepare()) Prepare({step_, *caller_, upstream_}, &lock).IgnoreError();
  }

  absl::StatusOr<bool> WorkAsConsumer(const DatasetContext& x) {
    const HelperStep helper(x.step, cancellation_);
    std::unique_lock<std::mutex> lock(mutex_);
    if (!IsConsumersTurn() && !CanPrepare()) return false;
    WEIR_RETURN_IF_ERROR(Prepare({helper.step(), x.caller, upstream_}, &lock));
    return true;
  }

  bool IsReadyForConsumer() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (calls_.empty() ? ended_ : calls_.front()->state == Call::State::kDone) return true;
    return IsConsumersTurn() || CanPrepare();
  }

  // Makes the first call that waits, or reads an element and makes the call for it. Returns an
  // error only if the step is over before that is done.
  absl::Status Prepare(const DatasetContext& x, std::unique_lock<std::mutex>* lock) {
    ++running_;
    absl::Status status;
    std::shared_ptr<Call> call = FirstWaiting();
    if (call == nullptr) {
      absl::StatusOr<std::shared_ptr<Call>> read = ReadNext(x, lock);
      status = read.status();
      if (read.ok()) call = *std::move(read);
    }
    if (call != nullptr && call->state == Call::State::kWaiting) status = Run(x, *call, lock);
    --running_;
    Announce();
    return status;
  }

  // Returns null at the end.
  absl::StatusOr<std::shared_ptr<Call>> ReadNext(const DatasetContext& x,
                                                 std::unique_lock<std::mutex>* lock) {
    reading_ = true;
    lock->unlock();
    const auto begin = Pace::Clock::now();
    MaybeElement element = Read(x);
    const auto spent = Pace::Clock::now() - begin;
    lock->lock();
    reading_ = false;
    if (!element.ok() && HasEnded(x.step)) return element.status();
    ended_ = element.ok() && !element->has_value();
    if (ended_ || stopped_) return nullptr;
    auto call = std::make_shared<Call>();
    call->spent = spent;
    calls_.push_back(call);
    if (!element.ok() || f_ == nullptr) {
      pace_->Report(spent);
      Finish(*call, std::move(element));
      return call;
    }
    call->element = **std::move(element);
    ++num_waiting_;
    return call;
  }

  absl::Status Run(const DatasetContext& x, Call& call, std::unique_lock<std::mutex>* lock) {
    call.state = Call::State::kRunning;
    --num_waiting_;
    ++calling_;
    Announce();  // the next element may be read
    lock->unlock();
    StepInfo step = x.step;
    Draws draws(*this, call, x.step.cancellation);
    if (draws_) step.draws = &draws;
    const auto begin = Pace::Clock::now();
    MaybeElement result = Apply({step, x.caller, x.ahead}, call.element);
    pace_->Report(call.spent + (Pace::Clock::now() - begin));
    lock->lock();
    --calling_;
    const bool gave_way = call.gives_way.exchange(false);
    if (!result.ok() && (gave_way || HasEnded(x.step))) {
      call.state = Call::State::kWaiting;
      ++num_waiting_;
      return gave_way ? absl::OkStatus() : result.status();
    }
    Finish(call, std::move(result));
    return absl::OkStatus();
  }

  void Finish(Call& call, MaybeElement result) {
    call.element.clear();
    call.result = std::move(result);
    call.state = Call::State::kDone;
    if (most_bytes_ == kMostBytesAhead && call.result.ok() && *call.result)
      call.bytes = ElementBytes(**call.result);
    bytes_ += call.bytes;
  }

  std::unique_ptr<DatasetIterator> input_;
  ElementFn f_;
  const bool draws_;
  const std::shared_ptr<Pace> pace_;
  int64_t limit_;  // maximum number of running calls; without a function, of queued elements
  int64_t most_bytes_ = std::numeric_limits<int64_t>::max();

  AheadGroup upstream_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<Call>> calls_;
  bool reading_ = false, ended_ = false, stopped_ = false;
  int64_t scheduled_ = 0;                  // tasks in the pool's queue
  int64_t running_ = 0;                    // threads in Prepare
  int64_t calling_ = 0, num_waiting_ = 0;  // calls in these states
  int64_t bytes_ = 0;                      // of the elements that are done, if they are limited
  Cancellation cancellation_;
  StepInfo step_;
  const Node* caller_ = nullptr;
  IteratorPosition* position_ = nullptr;  // of the iteration that it is a part of
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

int64_t ElementBytes(const Tensors& element) {
  int64_t bytes = 0;
  for (const Tensor& t : element) {
    bytes += static_cast<int64_t>(t.num_bytes());
    if (t.dtype() != DT_STRING) continue;
    for (const std::string& s : t.flat<std::string>()) bytes += static_cast<int64_t>(s.size());
  }
  return bytes;
}

std::unique_ptr<DatasetIterator> Prefetched(std::unique_ptr<DatasetIterator> input,
                                            int64_t buffer_size, std::shared_ptr<Pace> pace) {
  return std::make_unique<PrefetchIterator>(std::make_shared<Prefetcher>(
      std::move(input), nullptr, buffer_size, /*draws=*/false, std::move(pace)));
}

std::unique_ptr<DatasetIterator> PrefetchedMap(std::unique_ptr<DatasetIterator> input, ElementFn f,
                                               int64_t calls, bool draws) {
  return std::make_unique<PrefetchIterator>(
      std::make_shared<Prefetcher>(std::move(input), std::move(f), calls, draws, nullptr));
}

}  // namespace weir
