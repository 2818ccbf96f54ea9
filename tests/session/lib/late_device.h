#ifndef WEIR_TESTS_SESSION_LIB_LATE_DEVICE_H_
#define WEIR_TESTS_SESSION_LIB_LATE_DEVICE_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "weir/core/runtime/device.h"
#include "weir/core/runtime/kernel.h"
#include "weir/session/session.h"

namespace weir {

// Work that one thread runs in the order of enqueueing, later than the caller continues.
class LateStream {
 public:
  // Each piece of work waits `delay` before it runs; the first after an idle period waits ten times
  // as long.
  explicit LateStream(std::chrono::microseconds delay);
  ~LateStream();  // runs the remaining work

  void Enqueue(std::function<void()> work);
  // Waits until everything enqueued so far has run.
  void Wait();
  // No work runs between the two calls.
  void Pause();
  void Resume();
  // Returns the number of pieces of work that have not run.
  int64_t num_pending();

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

// Memory that is mapped twice. Tensors hold addresses of a mapping without read or write
// permission, so any access from the host crashes immediately, on any thread and at any time. Work
// on the stream uses the other mapping. A block that is allocated or freed is filled with ones
// (NaN, or -1) in stream order, so that work that runs too early or too late computes wrong
// results.
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

  // Between the two calls the host may access the memory at the addresses that tensors hold: for
  // work on the stream that has no other way.
  void Open();
  void Close();

  bool Contains(const void* data) const;
  // Returns the stream's address of the byte that the host addresses as `data`.
  char* StreamAddress(const void* data) const;

 private:
  static size_t RoundUp(size_t bytes);
  void Fill(size_t offset, size_t bytes);

  const size_t bytes_;
  LateStream& stream_;
  char* host_mapping_ = nullptr;
  char* stream_mapping_ = nullptr;
  mutable std::mutex mutex_;
  std::map<size_t, size_t> free_;  // offset -> bytes
  int64_t in_use_ = 0;
};

struct LateDeviceOptions {
  int id = 0;
  std::chrono::microseconds delay{10};
  size_t memory = size_t{256} << 20;
  // The registry of the CPU kernels that it runs; null for the built-in ones.
  const KernelRegistry* kernels = nullptr;
  // The kernels that placement considers its own: kGpu for a device that lacks some of the CPU's.
  class Place place = kCpu;
};

// A simulated accelerator, "/device:GPU:<id>", for tests of the session: its memory is inaccessible
// to the host, and its stream runs late. It runs every op that has a CPU kernel:
//   * kernels that access no element in device memory (Reshape, ReadVariableOp, Assign, all whose
//     arguments are host arguments) run on the host unchanged, as an accelerator's would;
//   * the others run on the stream, on copies of their host arguments and with raw addresses of the
//     device ones, which nothing keeps alive. Outputs are allocated when the kernel is enqueued,
//     with the shapes of the op's shape function. Variables to be updated are made writable
//     then;
//   * if the shape function does not determine the shape (Where, Unique), or an output is in host
//     memory, the kernel is asynchronous: it is done when the stream has run it.
// An error on the stream cancels the step with node, op and device; work that the step has enqueued
// behind it is not run.
class LateDevice : public Device {
 public:
  explicit LateDevice(const LateDeviceOptions& options = {}, const DeviceName& task = {});
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

  // The number of runs of a node's kernel on the stream, by node name.
  std::map<std::string, int> runs() const;
  void CountRun(const Node& node);
  // The number of copies between host and device.
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

// Returns `options` with the backend of `count` simulated accelerators, "/gpu:0" and so on, created
// with `device`, in place of the built-in backends.
SessionOptions WithLateDevices(SessionOptions options = {}, int count = 1,
                               LateDeviceOptions device = {});
// Returns accelerator number i of a session that was created with these options.
LateDevice& LateDeviceOf(const Session& session, int i = 0);

}  // namespace weir

#endif  // WEIR_TESTS_SESSION_LIB_LATE_DEVICE_H_
