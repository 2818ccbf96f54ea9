#include "weir/serving/batch_queue.h"

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "weir/core/runtime/thread_pool.h"
#include "weir/core/tensor/mutex.h"

// How batches are formed. Each queue has groups, and each group two lanes of parts in the order of
// their arrival. A group is ready when it has the rows of a full batch, or when one of its parts is
// due. All queues share one set of threads. A thread that has nothing to run takes the first ready
// group whose queue may run one more batch:
//
//   1. Queues take turns. The search begins after the queue that was served last.
//   2. It looks for a group with parts of high priority, and only then for any ready group.
//      Of several such groups in a queue, it takes the one that has been due for longest.
//   3. The batch takes parts from the front of the high lane while they fit, then from the low
//      lane. A part that does not fit stays at the front, so large parts are not overtaken forever.
//   4. A queue counts the batches that ran anywhere while its low lane waited. From kMaxPassedOver
//      on, its low lane takes the place of the high one in 2 and 3. This bounds the wait of a low
//      part by a number of batches, not by a time, and so holds for models of any speed.
//
// Nothing runs at a due time unless a thread wakes then. At least one idle thread sleeps until the
// earliest due time (`alarm_`), the others until they are notified. A thread that takes a batch
// notifies another one, which takes over the alarm.
namespace weir::serving {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxPassedOver = 8;

// Parts that may share a batch.
struct Group {
  std::array<std::list<std::shared_ptr<BatchPart>>, 2> lanes;  // by Priority
  int64_t rows = 0;
  Clock::time_point due = Clock::time_point::max();  // the earliest of a part

  void UpdateDue() {
    due = Clock::time_point::max();
    for (const auto& lane : lanes) {
      for (const auto& part : lane) due = std::min(due, part->due);
    }
  }
};

}  // namespace

struct BatchQueue::State {
  int64_t max_batch_size = 0, max_waiting_rows = 0;
  int max_running = 0;
  std::function<void(const BatchParts&)> run;

  // Guarded by the scheduler's mutex.
  std::map<std::string, Group> groups;
  std::array<int64_t, 2> waiting_rows = {};  // by Priority
  int running = 0;                           // batches
  int passed_over = 0;                       // batches that ran elsewhere while the low lane waited
  bool closing = false;

  bool IsReady(const Group& group, Clock::time_point now) const {
    return closing || group.rows >= max_batch_size || group.due <= now;
  }
  Priority first_lane() const {
    return passed_over < kMaxPassedOver ? Priority::kHigh : Priority::kLow;
  }
};

// The threads of all queues. Exists while there are queues.
class BatchScheduler {
 public:
  using State = BatchQueue::State;
  static std::shared_ptr<BatchScheduler> Shared();
  ~BatchScheduler();

  void Add(State& queue);
  void Close(State& queue);
  // Waits until nothing waits or runs in the queue, which is closed.
  void Remove(State& queue);
  absl::Status AddParts(State& queue, const std::string& group, Priority priority,
                        const BatchParts& parts);
  void RemoveParts(State& queue, const std::string& group, Priority priority,
                   const BatchParts& parts);
  int64_t WaitingRows(const State& queue);
  bool TryBegin(State& queue);
  void End(State& queue);

 private:
  struct Batch {
    State* queue = nullptr;
    BatchParts parts;
  };
  using Place = std::map<std::string, Group>::iterator;

  void Work();
  Batch WaitForBatch();
  void Sleep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeBatch(Batch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FindGroup(bool first_lane_only, State** queue, Place* group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BatchParts TakeParts(State& queue, Place group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountPassedOver(const State& served, bool served_low) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndLocked(State& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRun(const State& queue) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return queue.running < queue.max_running && running_ < static_cast<int>(threads_.size());
  }

  Mutex mutex_;
  CondVar wake_, ended_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::vector<State*> queues_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;      // whose turn it is
  int running_ ABSL_GUARDED_BY(mutex_) = 0;      // batches
  int64_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // parts
  // When an idle thread wakes by itself.
  Clock::time_point alarm_ ABSL_GUARDED_BY(mutex_) = Clock::time_point::max();
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
};

std::shared_ptr<BatchScheduler> BatchScheduler::Shared() {
  static Mutex* const mutex = new Mutex;
  static std::weak_ptr<BatchScheduler>* const shared = new std::weak_ptr<BatchScheduler>;
  const MutexLock lock(*mutex);
  std::shared_ptr<BatchScheduler> scheduler = shared->lock();
  if (scheduler == nullptr) *shared = scheduler = std::make_shared<BatchScheduler>();
  return scheduler;
}

BatchScheduler::~BatchScheduler() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    threads.swap(threads_);
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads) thread.join();
}

void BatchScheduler::Add(State& queue) {
  const MutexLock lock(mutex_);
  queues_.push_back(&queue);
  try {
    while (static_cast<int>(threads_.size()) < queue.max_running)
      threads_.emplace_back([this] { Work(); });
  } catch (const std::system_error&) {
    // The system allows no more threads: those that exist run the batches.
  }
}

void BatchScheduler::Close(State& queue) {
  const MutexLock lock(mutex_);
  queue.closing = true;
  wake_.NotifyAll();
}

void BatchScheduler::Remove(State& queue) {
  const MutexLock lock(mutex_);
  while (!queue.groups.empty() || queue.running > 0) ended_.Wait(mutex_);
  const auto place = std::find(queues_.begin(), queues_.end(), &queue);
  if (static_cast<size_t>(place - queues_.begin()) < next_) --next_;
  queues_.erase(place);
}

absl::Status BatchScheduler::AddParts(State& queue, const std::string& name, Priority priority,
                                      const BatchParts& parts) {
  const MutexLock lock(mutex_);
  if (threads_.empty())
    return absl::UnavailableError("The system allows no threads to run batches on");
  int64_t rows = 0;
  for (const auto& part : parts) rows += part->rows();
  int64_t& waiting_rows = queue.waiting_rows[static_cast<size_t>(priority)];
  if (waiting_rows > 0 && waiting_rows + rows > queue.max_waiting_rows) {
    return absl::UnavailableError(absl::StrCat(
        "The batch scheduling queue to which this task was submitted is full: ", waiting_rows,
        " rows wait, and at most ", queue.max_waiting_rows,
        " may (max_enqueued_batches times max_batch_size); the call has ", rows,
        ". Try again later"));
  }
  Group& group = queue.groups[name];
  const bool was_ready = queue.IsReady(group, Clock::now());
  for (const auto& part : parts) {
    group.lanes[static_cast<size_t>(priority)].push_back(part);
    group.due = std::min(group.due, part->due);
  }
  group.rows += rows;
  waiting_rows += rows;
  waiting_ += static_cast<int64_t>(parts.size());
  if (group.due < alarm_ || (!was_ready && queue.IsReady(group, Clock::now()))) wake_.NotifyOne();
  return absl::OkStatus();
}

void BatchScheduler::RemoveParts(State& queue, const std::string& name, Priority priority,
                                 const BatchParts& parts) {
  const MutexLock lock(mutex_);
  const auto place = queue.groups.find(name);
  if (place == queue.groups.end()) return;
  Group& group = place->second;
  auto& lane = group.lanes[static_cast<size_t>(priority)];
  for (const auto& part : parts) {
    if (lane.remove(part) == 0) continue;
    group.rows -= part->rows();
    queue.waiting_rows[static_cast<size_t>(priority)] -= part->rows();
    --waiting_;
  }
  group.UpdateDue();
  if (group.rows == 0) queue.groups.erase(place);
  if (queue.closing) ended_.NotifyAll();
}

int64_t BatchScheduler::WaitingRows(const State& queue) {
  const MutexLock lock(mutex_);
  return queue.waiting_rows[0] + queue.waiting_rows[1];
}

bool BatchScheduler::TryBegin(State& queue) {
  const MutexLock lock(mutex_);
  if (waiting_ > 0 || !MayRun(queue)) return false;
  ++queue.running;
  ++running_;
  return true;
}

void BatchScheduler::End(State& queue) {
  const MutexLock lock(mutex_);
  EndLocked(queue);
  if (waiting_ > 0) wake_.NotifyOne();
}

void BatchScheduler::EndLocked(State& queue) {
  --queue.running;
  --running_;
  if (queue.closing) ended_.NotifyAll();
}

void BatchScheduler::Work() {
  while (true) {
    const Batch batch = WaitForBatch();
    if (batch.queue == nullptr) return;
    batch.queue->run(batch.parts);
    const MutexLock lock(mutex_);
    EndLocked(*batch.queue);
  }
}

// Returns an empty batch when the scheduler stops.
BatchScheduler::Batch BatchScheduler::WaitForBatch() {
  const MutexLock lock(mutex_);
  Batch batch;
  while (!stop_ && !TakeBatch(&batch)) Sleep();
  if (waiting_ > 0) wake_.NotifyOne();
  return batch;
}

void BatchScheduler::Sleep() {
  Clock::time_point due = Clock::time_point::max();
  for (const State* queue : queues_) {
    if (!MayRun(*queue)) continue;
    for (const auto& [name, group] : queue->groups) due = std::min(due, group.due);
  }
  if (due >= alarm_) return wake_.Wait(mutex_);
  alarm_ = due;
  wake_.WaitUntil(mutex_, due);
  if (alarm_ == due) alarm_ = Clock::time_point::max();
}

bool BatchScheduler::TakeBatch(Batch* batch) {
  Place group;
  if (!FindGroup(true, &batch->queue, &group) && !FindGroup(false, &batch->queue, &group))
    return false;
  State& queue = *batch->queue;
  const int64_t low_rows = queue.waiting_rows[static_cast<size_t>(Priority::kLow)];
  batch->parts = TakeParts(queue, group);
  CountPassedOver(queue, queue.waiting_rows[static_cast<size_t>(Priority::kLow)] < low_rows);
  ++queue.running;
  ++running_;
  return true;
}

// Sets the queue and the group that are served next. Returns false if none is ready.
bool BatchScheduler::FindGroup(bool first_lane_only, State** queue, Place* group) {
  const Clock::time_point now = Clock::now();
  for (size_t i = 0; i < queues_.size(); ++i) {
    State& candidate = *queues_[(next_ + i) % queues_.size()];
    if (!MayRun(candidate)) continue;
    bool found = false;
    for (auto g = candidate.groups.begin(); g != candidate.groups.end(); ++g) {
      if (!candidate.IsReady(g->second, now)) continue;
      const size_t lane = static_cast<size_t>(candidate.first_lane());
      if (first_lane_only && g->second.lanes[lane].empty()) continue;
      if (!found || g->second.due < (*group)->second.due) *group = g;
      found = true;
    }
    if (!found) continue;
    *queue = &candidate;
    next_ = (next_ + i + 1) % queues_.size();
    return true;
  }
  return false;
}

BatchParts BatchScheduler::TakeParts(State& queue, Place place) {
  Group& group = place->second;
  BatchParts parts;
  int64_t rows = 0;
  const size_t first = static_cast<size_t>(queue.first_lane());
  for (const size_t i : {first, 1 - first}) {
    auto& lane = group.lanes[i];
    while (!lane.empty() && rows + lane.front()->rows() <= queue.max_batch_size) {
      rows += lane.front()->rows();
      queue.waiting_rows[i] -= lane.front()->rows();
      parts.push_back(std::move(lane.front()));
      lane.pop_front();
    }
  }
  waiting_ -= static_cast<int64_t>(parts.size());
  group.rows -= rows;
  group.UpdateDue();
  if (group.rows == 0) queue.groups.erase(place);
  return parts;
}

void BatchScheduler::CountPassedOver(const State& served, bool served_low) {
  for (State* queue : queues_) {
    const bool waits = queue->waiting_rows[static_cast<size_t>(Priority::kLow)] > 0;
    if (!waits || (queue == &served && served_low)) {
      queue->passed_over = 0;
    } else {
      ++queue->passed_over;
    }
  }
}

BatchQueue::BatchQueue(const BatchingOptions& options, std::function<void(const BatchParts&)> run)
    : state_(std::make_unique<State>()), scheduler_(BatchScheduler::Shared()) {
  state_->max_batch_size = options.max_batch_size;
  state_->max_waiting_rows = options.max_enqueued_batches * options.max_batch_size;
  state_->max_running =
      options.num_batch_threads > 0 ? options.num_batch_threads : DefaultThreadPool().num_threads();
  state_->run = std::move(run);
  scheduler_->Add(*state_);
}
BatchQueue::~BatchQueue() {
  Close();
  scheduler_->Remove(*state_);
}
void BatchQueue::Close() { scheduler_->Close(*state_); }

absl::Status BatchQueue::Add(const std::string& group, Priority priority, const BatchParts& parts) {
  return scheduler_->AddParts(*state_, group, priority, parts);
}
void BatchQueue::Remove(const std::string& group, Priority priority, const BatchParts& parts) {
  scheduler_->RemoveParts(*state_, group, priority, parts);
}
int64_t BatchQueue::waiting_rows() const { return scheduler_->WaitingRows(*state_); }
bool BatchQueue::TryBegin() { return scheduler_->TryBegin(*state_); }
void BatchQueue::End() { scheduler_->End(*state_); }

}  // namespace weir::serving
