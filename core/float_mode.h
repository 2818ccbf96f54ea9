#ifndef WEIR_CORE_FLOAT_MODE_H_
#define WEIR_CORE_FLOAT_MODE_H_

#include <cstdint>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace weir {

// How this thread computes with floats: whether subnormal numbers count as zero, and what else the
// processor's register of control says. A new thread has the default, in which they are kept; the
// pool's threads take over the mode of whoever gives them work.
class FloatMode {
 public:
  static FloatMode Current() {
    FloatMode mode;
#if defined(__SSE__)
    mode.bits_ = _mm_getcsr() & ~kExceptions;
#elif defined(__aarch64__)
    asm volatile("mrs %0, fpcr" : "=r"(mode.bits_));
#endif
    return mode;
  }
  // This mode, but that subnormal operands and results are zeros of their sign.
  FloatMode Flushing() const {
    FloatMode mode = *this;
    mode.bits_ |= kFlushes;
    return mode;
  }
  friend bool operator==(FloatMode a, FloatMode b) { return a.bits_ == b.bits_; }

 private:
  friend class ScopedFloatMode;
  void Set() const {
#if defined(__SSE__)
    _mm_setcsr(static_cast<unsigned>(bits_));
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" : : "r"(bits_));
#endif
  }
#if defined(__SSE__)
  static constexpr uint64_t kFlushes = 0x8040,
                            kExceptions = 0x3f;  // FTZ and DAZ; what has happened
#else
  static constexpr uint64_t kFlushes = uint64_t{1} << 24;  // FZ
#endif
  uint64_t bits_ = 0;
};

// This thread is in the mode as long as it lives, and then in the one before.
class ScopedFloatMode {
 public:
  explicit ScopedFloatMode(FloatMode mode)
      : saved_(FloatMode::Current()), changes_(saved_ != mode) {
    if (changes_) mode.Set();
  }
  ~ScopedFloatMode() {
    if (changes_) saved_.Set();
  }
  ScopedFloatMode(const ScopedFloatMode&) = delete;
  ScopedFloatMode& operator=(const ScopedFloatMode&) = delete;

 private:
  const FloatMode saved_;
  const bool changes_;
};

}  // namespace weir

#endif  // WEIR_CORE_FLOAT_MODE_H_
