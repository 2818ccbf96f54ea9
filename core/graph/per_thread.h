#ifndef WEIR_CORE_GRAPH_PER_THREAD_H_
#define WEIR_CORE_GRAPH_PER_THREAD_H_

#include <map>
#include <thread>

#include "weir/core/tensor/api.h"

namespace WEIR_API weir {

// One T per thread, created on first use. Threads must not call get() concurrently; a thread that
// builds on another one's work has to synchronize with it anyway.
template <class T>
class PerThread {
 public:
  // Returns the calling thread's T. The reference is valid as long as this object.
  T& get() {
    const std::thread::id asking = std::this_thread::get_id();
    if (latest_ == nullptr || asking != owner_) {
      latest_ = &all_[asking];
      owner_ = asking;
    }
    return *latest_;
  }

 private:
  std::map<std::thread::id, T> all_;
  std::thread::id owner_;
  T* latest_ = nullptr;
};

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_PER_THREAD_H_
