#ifndef WEIR_RPC_LIB_BACKGROUND_WRITER_H_
#define WEIR_RPC_LIB_BACKGROUND_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "weir/core/tensor/mutex.h"

namespace weir::rpc {

// Writes data of calls on a thread of its own, so that a slow disk or terminal delays no call. Data
// that arrives faster than it can be written is dropped and counted. Thread-safe.
class BackgroundWriter {
 public:
  struct Item {
    std::string key;  // what it is about; its meaning is the user's
    std::string data;
  };

  // `write` is called with the items in the order of their arrival, and about once per second with
  // none, on the thread of this object. At most `max_bytes` of data wait.
  BackgroundWriter(int64_t max_bytes, std::function<void(std::vector<Item>)> write);
  // Writes what waits.
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // Never waits for `write`.
  void Add(Item item);
  // The number of items that were dropped.
  int64_t dropped() const;

 private:
  void Run();

  const int64_t max_bytes_;
  const std::function<void(std::vector<Item>)> write_;
  mutable Mutex mutex_;
  CondVar wake_;
  std::vector<Item> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the waiting items and those being written
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_BACKGROUND_WRITER_H_
