#ifndef WEIR_KERNELS_LIB_SEED_SOURCE_H_
#define WEIR_KERNELS_LIB_SEED_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "weir/core/tensor/mutex.h"

namespace weir {

// A generator of random numbers, or of seeds, whose draws can be repeated. Thread-safe.
class SeedSource {
 public:
  // The seeds, and how often they were drawn from.
  struct State {
    uint64_t seed = 0, seed2 = 0, draws = 0;
  };

  virtual ~SeedSource() = default;
  virtual State state() const = 0;
  virtual void Restore(const State& state) = 0;
  // The name by which another session finds the generator again; "" if there is none.
  virtual std::string source_name() const { return ""; }
  // Notes who draws. Returns who drew before, if that was another one and still exists.
  std::shared_ptr<void> SetUser(const std::shared_ptr<void>& user) {
    const MutexLock lock(user_mutex_);
    std::shared_ptr<void> before = user_.lock();
    if (before == user) return nullptr;
    user_ = user;
    return before;
  }
  // Distinguishes this generator from all others of the process, also those before it.
  uint64_t id() const { return id_; }

 protected:
  SeedSource() : id_(NextId()) {}

 private:
  static uint64_t NextId() {
    static std::atomic<uint64_t> next{0};
    return next.fetch_add(1, std::memory_order_relaxed);
  }

  const uint64_t id_;
  Mutex user_mutex_;
  std::weak_ptr<void> user_ ABSL_GUARDED_BY(user_mutex_);
};

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_SEED_SOURCE_H_
