#ifndef WEIR_TESTS_SESSION_LATE_DEVICE_H_
#define WEIR_TESTS_SESSION_LATE_DEVICE_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "weir/core/device.h"
#include "weir/core/kernel.h"
#include "weir/session/session.h"

namespace weir {

// Work that one thread runs in the order it was enqueued, later than whoever enqueued it goes on.
class LateStream {
 public:
  // Each piece of work waits `delay` before it runs, and the first after a rest ten times as long.
  explicit LateStream(std::chrono::microseconds delay);
  ~LateStream();  // runs what is left

  void Enqueue(std::function<void()> work);
  // Until all that is enqueued by now has run.
  void Wait();
  // Between the two nothing runs.
  void Pause();
  void Resume();
  // Pieces of work that have not run.
  int64_t waiting();

 private:
  void Run();

  const std::chrono::microseconds delay_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  int64_t enqueued_ = 0, finished_ = 0;
  bool paused_ = false, stop_ = false;
  std::thread thread_;
};

// Memory that is mapped twice. Tensors hold addresses of a mapping that nobody may read or write,
// so whatever touches one on the host dies on the spot, on any thread and at any time. Work on the
// stream goes through the other mapping. A block handed out or given back is filled with ones (NaN,
// or -1) in stream order, so that work which runs too early or too late computes nonsense.
class LateMemory : public Allocator {
 public:
  LateMemory(size_t bytes, LateStream& stream);
  ~LateMemory() override;

  absl::string_view name() const override { return "late"; }
  void* Allocate(size_t bytes) override;
  void Deallocate(void* data, size_t bytes) override;
  bool host_accessible() const override { return false; }
  int64_t bytes_in_use() const override;
  int64_t bytes_free() const override;

  // Between the two the host may touch it at the addresses that tensors hold: for work on the
  // stream that has nothing else to go by.
  void Open();
  void Close();

  bool Contains(const void* data) const;
  // Where the stream finds the byte that the host knows as `data`.
  char* Inside(const void* data) const;

 private:
  static size_t Rounded(size_t bytes);
  void Fill(size_t offset, size_t bytes);

  const size_t bytes_;
  LateStream& stream_;
  char* outside_ = nullptr;
  char* inside_ = nullptr;
  mutable std::mutex mutex_;
  std::map<size_t, size_t> free_;  // offset -> bytes
  int64_t in_use_ = 0;
};

struct LateDeviceOptions {
  int id = 0;
  std::chrono::microseconds delay{10};
  size_t memory = size_t{256} << 20;
  // Whose CPU kernels it runs; null for the built-in ones.
  const KernelRegistry* kernels = nullptr;
  // Which kernels placement takes to be its own: kGpu for a device that lacks some of the CPU's.
  enum Place place = kCpu;
};

// A simulated accelerator, "/device:GPU:<id>", for tests of the session: memory that the host
// cannot touch, and a stream that runs late. It runs every op that has a kernel for the CPU:
//   * kernels that look at no element in device memory (Reshape, ReadVariableOp, Assign, all whose
//     arguments are host arguments) run on the host as they are, as an accelerator's would;
//   * the others run on the stream, on copies of their host arguments and with raw addresses of the
//     device ones, which nobody keeps alive. Outputs are allocated when the kernel is enqueued,
//     from the shapes that the op's shape rule gives. Variables to be updated are made writable
//     then;
//   * where that does not tell the shape (Where, Unique), or an output lies on the host, the kernel
//     is an asynchronous one: done when the stream has come to it.
// An error found on the stream cancels the step with node, op and device; what the step has
// enqueued behind it is not run.
class LateDevice : public Device {
 public:
  explicit LateDevice(const LateDeviceOptions& options = {});
  ~LateDevice() override;

  bool has_stream() const override { return true; }
  Allocator& allocator() override { return memory_; }
  std::string Description() const override { return "simulated accelerator"; }
  int64_t memory_limit() const override { return static_cast<int64_t>(limit_); }
  void CopyFromHost(const Tensor& from, const Tensor& to, Done done) override;
  void CopyToHost(const Tensor& from, const Tensor& to, Done done) override;
  absl::Status CopyOnDevice(const Tensor& from, const Tensor& to) override;
  absl::Status Synchronize() override;
  Kernel Wrap(const KernelInit& init, Kernel kernel) override;

  LateStream& late_stream() { return stream_; }
  LateMemory& memory() { return memory_; }
  const KernelRegistry& kernels() const { return kernels_; }
  // The next Synchronize fails with this, as after an error that belongs to no kernel.
  void FailNextSynchronize(absl::Status why);

  // How often a node's kernel has run on the stream, by name of the node.
  std::map<std::string, int> runs() const;
  void CountRun(const Node& node);
  // Copies between host and device.
  int64_t copies_in() const { return copies_in_; }
  int64_t copies_out() const { return copies_out_; }

 private:
  const size_t limit_;
  const KernelRegistry& kernels_;
  LateStream stream_;
  LateMemory memory_;
  mutable std::mutex mutex_;
  absl::Status failure_;
  std::map<std::string, int> runs_;
  std::atomic<int64_t> copies_in_{0}, copies_out_{0};
};

// `options` with `count` simulated accelerators, "/gpu:0" and so on, made like `device`.
SessionOptions WithLateDevices(SessionOptions options = {}, int count = 1,
                               LateDeviceOptions device = {});
// Number i of a session that was made with them.
LateDevice& LateDeviceOf(const Session& session, int i = 0);

}  // namespace weir

#endif  // WEIR_TESTS_SESSION_LATE_DEVICE_H_
