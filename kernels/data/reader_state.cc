#include <algorithm>
#include <atomic>

#include "weir/core/io/coding.h"
#include "weir/kernels/data/reader.h"

namespace weir {

namespace {

// TensorFlow's message ReaderBaseState: three integers and a string, numbered from 1.
constexpr uint64_t kVarint = 0, kBytes = 2;

void PutField(uint64_t number, int64_t value, std::string* out) {
  if (value == 0) return;
  PutVarint64(out, number << 3 | kVarint);
  PutVarint64(out, static_cast<uint64_t>(value));
}

// Reads the next field. Its value is in one of the two members.
bool GetField(absl::string_view* in, uint64_t* number, int64_t* value, std::string* bytes) {
  uint64_t tag = 0, word = 0;
  if (!GetVarint64(in, &tag) || !GetVarint64(in, &word)) return false;
  *number = tag >> 3;
  if ((tag & 7) == kVarint) {
    *value = static_cast<int64_t>(word);
    return *number != 4;
  }
  if ((tag & 7) != kBytes || word > in->size() || *number < 4) return false;
  bytes->assign(in->data(), word);
  in->remove_prefix(word);
  return true;
}

}  // namespace

void ReaderState::WaitForTurn(Cancellation* cancellation, std::function<void(absl::Status)> turn) {
  const auto take = [this]() -> std::optional<absl::Status> {
    if (taken_) return std::nullopt;
    taken_ = true;
    return absl::OkStatus();
  };
  Wait(0, {.attempt = take,
           .roll_back = nullptr,
           .cancelled = "Reading was cancelled",
           .cancellation = cancellation,
           .done = std::move(turn)});
}

void ReaderState::EndTurn() {
  Change([this] { taken_ = false; });
}

void ReaderState::Read(std::shared_ptr<QueueState> queue, const StepInfo& step, ReadCallback done) {
  ReadUpTo(1, std::move(queue), step, std::move(done));
}

void ReaderState::ReadUpTo(int64_t count, std::shared_ptr<QueueState> queue, const StepInfo& step,
                           ReadCallback done) {
  if (count == 0) return done(Records());
  Begin(std::make_shared<ReadRequest>(ReadRequest{count, std::move(queue), step, std::move(done)}));
}

// Whichever comes second, the answer or the return of the call, continues; the exchange decides. So
// a queue with many empty files runs in a loop without recursion, and no file is read on the thread
// that happens to enqueue its name.
bool ReaderState::CallAsync(const AsyncCall& call, ThreadPool* pool, std::function<void()> resume) {
  const auto second = std::make_shared<std::atomic<bool>>(false);
  call([second, pool, resume = std::move(resume)] {
    if (second->exchange(true, std::memory_order_acq_rel)) pool->Schedule(resume);
  });
  return second->exchange(true, std::memory_order_acq_rel);
}

void ReaderState::Begin(std::shared_ptr<ReadRequest> request) {
  const auto resume = [this, request] {
    if (!request->answer.ok()) return request->done(request->answer.status());
    Continue(request);
  };
  const auto call = [this, request](std::function<void()> answered) {
    WaitForTurn(request->step.cancellation,
                [request, answered = std::move(answered)](absl::Status turn) {
                  if (!turn.ok()) request->answer = std::move(turn);
                  answered();
                });
  };
  if (CallAsync(call, request->step.pool, resume)) resume();
}

// Continues from the source's current position, or after the queue has been asked for work.
void ReaderState::Continue(const std::shared_ptr<ReadRequest>& request) {
  const auto start_work = [this, request] {
    const absl::Status started = StartWork(request->answer);
    if (!started.ok()) Finish(request.get(), started);
    return started.ok();
  };
  const auto resume = [this, request, start_work] {
    if (start_work()) Continue(request);
  };
  const auto call = [request](std::function<void()> answered) {
    request->queue->Dequeue(request->step.cancellation, [request, answered = std::move(answered)](
                                                            absl::StatusOr<Tensors> taken) {
      request->answer = std::move(taken);
      answered();
    });
  };
  for (;;) {
    if (!in_work() && (!CallAsync(call, request->step.pool, resume) || !start_work())) return;
    const absl::Status status = ReadMore(request.get());
    if (!status.ok() || !request->records.empty()) return Finish(request.get(), status);
  }
}

absl::Status ReaderState::StartWork(const absl::StatusOr<Tensors>& taken) {
  WEIR_RETURN_IF_ERROR(taken.status());
  if (taken->size() != 1) return InvalidArgument("Expected single component queue");
  const Tensor& work = (*taken)[0];
  if (work.dtype() != DT_STRING)
    return InvalidArgument("Expected queue with single string component");
  if (work.num_elements() != 1)
    return InvalidArgument("Expected to dequeue a one-element string tensor");
  WEIR_RETURN_IF_ERROR(source_->Start(work.scalar<std::string>()));
  const std::lock_guard<std::mutex> lock(mutex_);
  counts_.work = work.scalar<std::string>();
  ++counts_.started;
  return absl::OkStatus();
}

absl::Status ReaderState::ReadMore(ReadRequest* request) {
  Records& records = request->records;
  absl::Status status;
  bool at_end = false;
  while (status.ok() && !at_end && static_cast<int64_t>(records.size()) < request->wanted) {
    absl::StatusOr<std::optional<Record>> record = source_->Next();
    status = record.status();
    at_end = status.ok() && (!record->has_value() || source_->has_one_record());
    if (status.ok() && record->has_value()) records.push_back(**std::move(record));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  counts_.produced += static_cast<int64_t>(records.size());
  if (at_end) counts_.finished = counts_.started;
  return status;
}

// The caller keeps `request` alive.
void ReaderState::Finish(ReadRequest* request, const absl::Status& status) {
  EndTurn();
  if (status.ok()) {
    request->done(std::move(request->records));
  } else {
    request->done(status);
  }
}

int64_t ReaderState::records_produced() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_.produced;
}

int64_t ReaderState::units_completed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_.finished;
}

void ReaderState::Serialize(Cancellation* cancellation,
                            std::function<void(absl::StatusOr<std::string>)> done) {
  if (!source_->has_one_record()) return done(Unimplemented("Reader SerializeState"));
  WaitForTurn(cancellation, [this, done = std::move(done)](const absl::Status& turn) {
    if (!turn.ok()) return done(turn);
    std::string state;
    PutField(1, counts_.started, &state);
    PutField(2, counts_.finished, &state);
    PutField(3, counts_.produced, &state);
    if (!counts_.work.empty()) {
      PutVarint64(&state, 4 << 3 | kBytes);
      PutVarint64(&state, counts_.work.size());
      state += counts_.work;
    }
    EndTurn();
    done(std::move(state));
  });
}

absl::Status ReaderState::RestoreCounts(const std::string& state) {
  if (!source_->has_one_record()) return Unimplemented("Reader RestoreState");
  Counts counts;
  absl::string_view in = state;
  while (!in.empty()) {
    uint64_t number = 0;
    int64_t value = 0;
    std::string bytes;
    if (!GetField(&in, &number, &value, &bytes))
      return InvalidArgument("Could not parse state for ", name_);
    if (number == 1) counts.started = value;
    if (number == 2) counts.finished = value;
    if (number == 3) counts.produced = value;
    if (number == 4) counts.work = std::move(bytes);
  }
  if (counts.started < 0 || counts.finished < 0 || counts.produced < 0)
    return InvalidArgument("Unexpected negative value when restoring in ", name_);
  if (counts.started > counts.finished)
    return InvalidArgument("Inconsistent work started vs. finished when restoring in ", name_);
  counts_ = std::move(counts);
  return absl::OkStatus();
}

void ReaderState::Restore(const std::string& state, Cancellation* cancellation, Done done) {
  WaitForTurn(cancellation, [this, state, done = std::move(done)](const absl::Status& turn) {
    if (!turn.ok()) return done(turn);
    absl::Status restored;
    Change([&] {
      restored = RestoreCounts(state);
      if (!restored.ok()) counts_ = {};
      taken_ = false;
    });
    done(std::move(restored));
  });
}

void ReaderState::Reset(Cancellation* cancellation, Done done) {
  WaitForTurn(cancellation, [this, done = std::move(done)](const absl::Status& turn) {
    if (!turn.ok()) return done(turn);
    Change([this] {
      counts_ = {};
      taken_ = false;
    });
    done(absl::OkStatus());
  });
}

}  // namespace weir
