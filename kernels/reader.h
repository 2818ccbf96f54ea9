#ifndef WEIR_KERNELS_READER_H_
#define WEIR_KERNELS_READER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/kernels/queue.h"

namespace weir {

// What is read, from one unit of work after the other: a file by its name. For one thread at a
// time.
class RecordSource {
 public:
  struct Record {
    std::string key, value;
  };
  virtual ~RecordSource() = default;
  // The records of `work` come next.
  virtual absl::Status Start(const std::string& work) = 0;
  // Nothing at the end of the work.
  virtual absl::StatusOr<std::optional<Record>> Next() = 0;
  // True for one that is at its end after one record: the work is then finished with it.
  virtual bool has_one_record() const { return false; }
};

// Reads records from a source, and the names of what to read from a queue. Calls are served one
// after the other; one that waits for the queue holds no thread. Thread-safe.
class ReaderState final : public WaitableResource {
 public:
  using Record = RecordSource::Record;
  using Records = std::vector<Record>;
  using DoneReading = std::function<void(absl::StatusOr<Records>)>;

  ReaderState(std::string name, std::unique_ptr<RecordSource> source)
      : WaitableResource(/*lanes=*/1, /*in_order=*/true),
        name_(std::move(name)),
        source_(std::move(source)) {}

  std::string Describe() const override { return "reader '" + name_ + "'"; }
  // One record; or up to `count`, all of one unit of work.
  void Read(std::shared_ptr<QueueState> queue, const StepInfo& step, DoneReading done);
  void ReadUpTo(int64_t count, std::shared_ptr<QueueState> queue, const StepInfo& step,
                DoneReading done);
  int64_t records_produced();
  int64_t units_completed();
  // As bytes of TensorFlow's ReaderBaseState. Only of readers whose place is between two units of
  // work; of others it is UNIMPLEMENTED.
  void Serialize(Cancellation* cancellation, std::function<void(absl::StatusOr<std::string>)> done);
  void Restore(const std::string& state, Cancellation* cancellation, Done done);
  void Reset(Cancellation* cancellation, Done done);

 private:
  struct Counts {
    int64_t started = 0, finished = 0, produced = 0;
    std::string work;
  };
  // One that reads: from its turn on until it is through.
  struct Reading {
    int64_t wanted;
    std::shared_ptr<QueueState> queue;
    StepInfo step;
    DoneReading done;
    Records records;
    absl::StatusOr<Tensors> answer = Tensors();  // of the queue
  };
  // Somebody else's answer, once it is there. True if that was at once; if not, `go_on` is
  // scheduled when it comes.
  using Ask = std::function<void(std::function<void()> answered)>;
  static bool AskFor(const Ask& ask, ThreadPool* pool, std::function<void()> go_on);

  void WaitForTurn(Cancellation* cancellation, std::function<void(absl::Status)> turn);
  void EndTurn();
  void Begin(std::shared_ptr<Reading> reading);
  void Continue(const std::shared_ptr<Reading>& reading);
  absl::Status ReadMore(Reading* reading);
  void Finish(Reading* reading, const absl::Status& status);
  absl::Status StartWork(const absl::StatusOr<Tensors>& taken);
  absl::Status RestoreCounts(const std::string& state);
  bool in_work() const { return counts_.started > counts_.finished; }
  void Forget() override {}

  const std::string name_;
  // Who has the turn uses these; counts change with the lock held.
  const std::unique_ptr<RecordSource> source_;
  Counts counts_;
  bool taken_ = false;
};

// A source by the op of its node, without the "V2": TextLineReader and so on.
absl::StatusOr<std::unique_ptr<RecordSource>> MakeRecordSource(const Node& node);

// A part of AddReaderKernels.
void AddRecordInputKernel(KernelRegistry* r);  // record_input.cc

}  // namespace weir

#endif  // WEIR_KERNELS_READER_H_
