#ifndef WEIR_CORE_RUNTIME_FLOAT_MODE_H_
#define WEIR_CORE_RUNTIME_FLOAT_MODE_H_

#include <cstdint>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace weir {

// The floating-point mode of a thread: whether subnormal numbers are flushed to zero, and the other
// bits of the control register. A new thread has the default mode, which keeps subnormals. The
// threads of a pool use the mode of the thread that submits the work.
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
  // Returns this mode with subnormal operands and results flushed to zeros of their sign.
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
                            kExceptions = 0x3f;  // FTZ and DAZ; the exception flags
#else
  static constexpr uint64_t kFlushes = uint64_t{1} << 24;  // FZ
#endif
  uint64_t bits_ = 0;
};

// Sets the thread's mode while in scope, and then restores the previous one.
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

#endif  // WEIR_CORE_RUNTIME_FLOAT_MODE_H_
