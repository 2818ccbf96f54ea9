#include "weir/tests/session/lib/late_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "weir/kernels/lib/backend.h"

namespace weir {

// ---- the stream

LateStream::LateStream(std::chrono::microseconds delay)
    : delay_(delay), thread_([this] { Run(); }) {}

LateStream::~LateStream() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    paused_ = false;
    changed_.notify_all();
  }
  thread_.join();
}

void LateStream::Enqueue(std::function<void()> work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  queue_.push_back(std::move(work));
  ++enqueued_;
  changed_.notify_all();
}

void LateStream::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  const int64_t ticket = enqueued_;
  changed_.wait(lock, [&] { return finished_ >= ticket; });
}

void LateStream::Pause() {
  const std::lock_guard<std::mutex> lock(mutex_);
  paused_ = true;
}

void LateStream::Resume() {
  const std::lock_guard<std::mutex> lock(mutex_);
  paused_ = false;
  changed_.notify_all();
}

int64_t LateStream::num_pending() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return enqueued_ - finished_;
}

void LateStream::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    const bool rested = queue_.empty();
    changed_.wait(lock, [&] { return stop_ || (!paused_ && !queue_.empty()); });
    if (queue_.empty()) return;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    std::this_thread::sleep_for(rested ? 10 * delay_ : delay_);
    work();
    work = nullptr;  // its tensors are released before anyone is notified that it has run
    lock.lock();
    ++finished_;
    changed_.notify_all();
  }
}

// ---- the memory

namespace {

[[noreturn]] void Give(const char* what) {
  std::perror(what);
  std::abort();
}

}  // namespace

LateMemory::LateMemory(size_t bytes, LateStream& stream) : bytes_(bytes), stream_(stream) {
  const int file = memfd_create("late_memory", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) Give("memfd_create");
  void* outside = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0);
  void* inside = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (outside == MAP_FAILED || inside == MAP_FAILED) Give("mmap");
  close(file);
  host_mapping_ = static_cast<char*>(outside);
  stream_mapping_ = static_cast<char*>(inside);
  free_[0] = bytes;
}

LateMemory::~LateMemory() {
  munmap(host_mapping_, bytes_);
  munmap(stream_mapping_, bytes_);
}

size_t LateMemory::RoundUp(size_t bytes) {
  return (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

// First fit; adjacent free blocks are merged.
void* LateMemory::Allocate(size_t bytes) {
  if (bytes > bytes_) return nullptr;
  const size_t wanted = RoundUp(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [offset, size] = *it;
    if (size < wanted) continue;
    free_.erase(it);
    if (size > wanted) free_[offset + wanted] = size - wanted;
    in_use_ += static_cast<int64_t>(bytes);
    Fill(offset, wanted);
    return host_mapping_ + offset;
  }
  return nullptr;
}

void LateMemory::Deallocate(void* data, size_t bytes) {
  if (data == nullptr) return;
  size_t offset = static_cast<size_t>(static_cast<char*>(data) - host_mapping_),
         size = RoundUp(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  Fill(offset, size);
  in_use_ -= static_cast<int64_t>(bytes);
  const auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + size == next->first) {
    size += next->second;
    free_.erase(next);
  }
  const auto after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free_[offset] = size;
}

void LateMemory::Fill(size_t offset, size_t bytes) {
  stream_.Enqueue([to = stream_mapping_ + offset, bytes] { std::memset(to, 0xff, bytes); });
}

int64_t LateMemory::bytes_in_use() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return in_use_;
}

int64_t LateMemory::bytes_free() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  int64_t bytes = 0;
  for (const auto& [offset, size] : free_) bytes += static_cast<int64_t>(size);
  return bytes;
}

void LateMemory::Open() {
  if (mprotect(host_mapping_, bytes_, PROT_READ | PROT_WRITE) != 0) Give("mprotect");
}

void LateMemory::Close() {
  if (mprotect(host_mapping_, bytes_, PROT_NONE) != 0) Give("mprotect");
}

bool LateMemory::Contains(const void* data) const {
  return data >= host_mapping_ && data < host_mapping_ + bytes_;
}

char* LateMemory::StreamAddress(const void* data) const {
  return stream_mapping_ + (static_cast<const char*>(data) - host_mapping_);
}

// ---- the device

LateDevice::LateDevice(const LateDeviceOptions& options, const DeviceName& task)
    : Device(LocalDeviceName("GPU", options.id, task), options.place),
      limit_(options.memory),
      kernels_(options.kernels != nullptr ? *options.kernels : BuiltinKernels()),
      stream_(options.delay),
      memory_(options.memory, stream_) {}

// Completed work may release tensors, whose memory is filled by further work.
LateDevice::~LateDevice() {
  while (stream_.num_pending() > 0) stream_.Wait();
}

namespace {

absl::Status SameSize(const Tensor& from, const Tensor& to) {
  if (from.num_bytes() == to.num_bytes()) return absl::OkStatus();
  return Internal("copy between ", from.Description(), " and ", to.Description());
}

}  // namespace

// The source may change as soon as `done` is called, so it is copied now and written later.
void LateDevice::CopyFromHost(const Tensor& from, const Tensor& to, Done done) {
  absl::Status status = SameSize(from, to);
  ++copies_in_;
  if (status.ok() && from.num_bytes() > 0) {
    const char* bytes = static_cast<const char*>(from.raw());
    stream_.Enqueue(
        [staged = std::string(bytes, from.num_bytes()), target = memory_.StreamAddress(to.raw())] {
          std::memcpy(target, staged.data(), staged.size());
        });
  }
  done(std::move(status));
}

void LateDevice::CopyToHost(const Tensor& from, const Tensor& to, Done done) {
  ++copies_out_;
  stream_.Enqueue([this, from, to, done = std::move(done)] {
    const absl::Status status = SameSize(from, to);
    if (status.ok() && from.num_bytes() > 0) {
      std::memcpy(const_cast<void*>(to.raw()), memory_.StreamAddress(from.raw()), from.num_bytes());
    }
    done(status);
  });
}

absl::Status LateDevice::CopyOnDevice(const Tensor& from, const Tensor& to) {
  WEIR_RETURN_IF_ERROR(SameSize(from, to));
  if (from.num_bytes() == 0 || from.raw() == to.raw()) return absl::OkStatus();
  stream_.Enqueue([source = memory_.StreamAddress(from.raw()),
                   target = memory_.StreamAddress(to.raw()),
                   bytes = from.num_bytes()] { std::memmove(target, source, bytes); });
  return absl::OkStatus();
}

absl::Status LateDevice::Synchronize() {
  stream_.Wait();
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(failure_, absl::OkStatus());
}

void LateDevice::FailNextSynchronize(absl::Status why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  failure_ = std::move(why);
}

std::map<std::string, int> LateDevice::runs() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return runs_;
}

void LateDevice::CountRun(const Node& node) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++runs_[node.name()];
}

namespace {

// It has no kernels: its devices run the CPU's.
class LateBackend final : public Backend {
 public:
  LateBackend(int count, const LateDeviceOptions& device)
      : Backend("GPU"), count_(count), device_(device) {}

  absl::StatusOr<std::vector<std::unique_ptr<Device>>> CreateDevices(
      const DeviceName& task) const override {
    std::vector<std::unique_ptr<Device>> devices;
    for (int i = 0; i < count_; ++i) {
      LateDeviceOptions one = device_;
      one.id = i;
      devices.push_back(std::make_unique<LateDevice>(one, task));
    }
    return devices;
  }

 private:
  const int count_;
  const LateDeviceOptions device_;
};

}  // namespace

SessionOptions WithLateDevices(SessionOptions options, int count, LateDeviceOptions device) {
  auto backends = std::make_shared<BackendRegistry>();
  if (!backends->Add(std::make_unique<LateBackend>(count, device)).ok())
    Give("BackendRegistry::Add");
  options.backends = std::move(backends);
  return options;
}

LateDevice& LateDeviceOf(const Session& session, int i) {
  return *dynamic_cast<LateDevice*>(session.devices()[static_cast<size_t>(i) + 1]);
}

}  // namespace weir
