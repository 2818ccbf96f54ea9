// Right and wrong uses of locks, for mutex_analysis_test.sh: Clang reports each wrong one with the
// expected warning, and nothing else.

#include "weir/core/tensor/mutex.h"

namespace weir {

class Counters {
 public:
  int Right() {
    const MutexLock lock(mutex_);
    while (n_ == 0) changed_.Wait(mutex_);
    mutex_.unlock();
    mutex_.lock();
    Increment();
    const auto increment = [this] {
      mutex_.AssertHeld();
      ++n_;
    };
    increment();
    return n_;
  }
  int RightReader() {
    const ReaderLock lock(shared_);
    return m_;
  }
  void RightWriter() {
    const WriterLock lock(shared_);
    ++m_;
  }

  int Reads() { return n_; }        // expected-warning {{reading variable 'n_' requires holding}}
  void Writes() { ++n_; }           // expected-warning {{writing variable 'n_' requires holding}}
  void Calls() { Increment(); }     // expected-warning {{calling function 'Increment' requires}}
  int ReadsShared() { return m_; }  // expected-warning {{reading variable 'm_' requires holding}}
  void Waits() {
    changed_.Wait(mutex_);  // expected-warning {{calling function 'Wait' requires holding}}
  }
  void WritesAsReader() {
    const ReaderLock lock(shared_);
    ++m_;  // expected-warning {{writing variable 'm_' requires holding}}
  }
  void WritesAfterUnlock() {
    { const MutexLock lock(mutex_); }
    ++n_;  // expected-warning {{writing variable 'n_' requires holding}}
  }
  void LocksTwice() {
    const MutexLock outer(mutex_);  // expected-note {{mutex acquired here}}
    const MutexLock inner(mutex_);  // expected-warning {{already held}}
  }

 private:
  void Increment() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { ++n_; }

  Mutex mutex_;
  CondVar changed_;
  int n_ ABSL_GUARDED_BY(mutex_) = 0;
  SharedMutex shared_;
  int m_ ABSL_GUARDED_BY(shared_) = 0;
};

}  // namespace weir
