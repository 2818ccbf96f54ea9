#ifndef WEIR_KERNELS_LIB_SEED_SOURCE_H_
#define WEIR_KERNELS_LIB_SEED_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <string>

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
};

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_SEED_SOURCE_H_
