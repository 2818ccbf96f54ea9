#include "weir/rpc/lib/background_writer.h"

#include <chrono>
#include <utility>

namespace weir::rpc {

namespace {

constexpr std::chrono::seconds kPeriod{1};
constexpr int64_t kItemBytes = 128;  // of an item besides its data

}  // namespace

BackgroundWriter::BackgroundWriter(int64_t max_bytes, std::function<void(std::vector<Item>)> write)
    : max_bytes_(max_bytes), write_(std::move(write)), thread_([this] { Run(); }) {}

BackgroundWriter::~BackgroundWriter() {
  {
    const MutexLock lock(mutex_);
    stops_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

void BackgroundWriter::Add(Item item) {
  const int64_t bytes = kItemBytes + static_cast<int64_t>(item.key.size() + item.data.size());
  const MutexLock lock(mutex_);
  if (bytes_ + bytes > max_bytes_) {
    ++dropped_;
    return;
  }
  bytes_ += bytes;
  waiting_.push_back(std::move(item));
  wake_.NotifyAll();
}

int64_t BackgroundWriter::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

void BackgroundWriter::Run() {
  for (bool stops = false; !stops;) {
    std::vector<Item> items;
    int64_t bytes = 0;
    {
      const MutexLock lock(mutex_);
      const auto until = std::chrono::steady_clock::now() + kPeriod;
      while (!stops_ && waiting_.empty() && wake_.WaitUntil(mutex_, until)) {
      }
      stops = stops_;
      items.swap(waiting_);
      bytes = bytes_;
    }
    write_(std::move(items));
    const MutexLock lock(mutex_);
    bytes_ -= bytes;
  }
}

}  // namespace weir::rpc
