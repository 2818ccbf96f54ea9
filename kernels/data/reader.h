#ifndef WEIR_KERNELS_DATA_READER_H_
#define WEIR_KERNELS_DATA_READER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/kernels/containers/queue.h"

namespace weir {

// A source of records that reads one unit of work after the other, for example files by their
// names. Not thread-safe.
class RecordSource {
 public:
  struct Record {
    std::string key, value;
  };
  virtual ~RecordSource() = default;
  // Starts request the records of `work`.
  virtual absl::Status Start(const std::string& work) = 0;
  // Returns the next record, or nullopt at the end of the work.
  virtual absl::StatusOr<std::optional<Record>> Next() = 0;
  // Returns whether each unit of work has one record and is finished once that is read.
  virtual bool has_one_record() const { return false; }
};

// A reader of records from a source, and of the units of work from a queue. Calls are served one at
// a time, in order. A call that waits for the queue blocks no thread. Thread-safe.
class ReaderState final : public WaitableResource {
 public:
  using Record = RecordSource::Record;
  using Records = std::vector<Record>;
  using ReadCallback = std::function<void(absl::StatusOr<Records>)>;

  ReaderState(std::string name, std::unique_ptr<RecordSource> source)
      : WaitableResource(/*lanes=*/1, /*in_order=*/true),
        name_(std::move(name)),
        source_(std::move(source)) {}

  std::string Describe() const override { return "reader '" + name_ + "'"; }
  // Read one record, or up to `count` records of one unit of work.
  void Read(std::shared_ptr<QueueState> queue, const StepInfo& step, ReadCallback done);
  void ReadUpTo(int64_t count, std::shared_ptr<QueueState> queue, const StepInfo& step,
                ReadCallback done);
  int64_t records_produced();
  int64_t units_completed();
  // Serializes the state as a TensorFlow ReaderBaseState. Returns UNIMPLEMENTED unless the reader
  // is between two units of work.
  void Serialize(Cancellation* cancellation, std::function<void(absl::StatusOr<std::string>)> done);
  void Restore(const std::string& state, Cancellation* cancellation, Done done);
  void Reset(Cancellation* cancellation, Done done);

 private:
  struct Counts {
    int64_t started = 0, finished = 0, produced = 0;
    std::string work;
  };
  // A read in progress: from its turn until it is done.
  struct ReadRequest {
    int64_t wanted;
    std::shared_ptr<QueueState> queue;
    StepInfo step;
    ReadCallback done;
    Records records;
    absl::StatusOr<Tensors> answer = Tensors();  // of the queue
  };
  // An asynchronous call that calls `answered` once its answer is available. CallAsync returns true
  // if the call was answered immediately; otherwise it schedules `resume` when the answer arrives.
  using AsyncCall = std::function<void(std::function<void()> answered)>;
  static bool CallAsync(const AsyncCall& call, ThreadPool* pool, std::function<void()> resume);

  void WaitForTurn(Cancellation* cancellation, std::function<void(absl::Status)> turn);
  void EndTurn();
  void Begin(std::shared_ptr<ReadRequest> request);
  void Continue(const std::shared_ptr<ReadRequest>& request);
  absl::Status ReadMore(ReadRequest* request);
  void Finish(ReadRequest* request, const absl::Status& status);
  absl::Status StartWork(const absl::StatusOr<Tensors>& taken);
  absl::Status RestoreCounts(const std::string& state);
  bool in_work() const { return counts_.started > counts_.finished; }
  void ResetState() override {}

  const std::string name_;
  // Only the holder of the turn accesses these. Counts are written with the lock held.
  const std::unique_ptr<RecordSource> source_;
  Counts counts_;
  bool taken_ = false;
};

// Returns the source for the op of a node, without the "V2": TextLineReader and so on.
absl::StatusOr<std::unique_ptr<RecordSource>> MakeRecordSource(const Node& node);

// A part of AddReaderKernels.
void AddRecordInputKernel(KernelRegistry* r);  // record_input.cc

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_READER_H_
