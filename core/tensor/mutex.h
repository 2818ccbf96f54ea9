#ifndef WEIR_CORE_TENSOR_MUTEX_H_
#define WEIR_CORE_TENSOR_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#include "absl/base/thread_annotations.h"

#include "weir/core/tensor/api.h"

// The standard library's locks, annotated for Clang's thread-safety analysis: `tools/check.sh
// threads` reports a member with ABSL_GUARDED_BY that is used without its lock. They wrap the
// standard locks at no cost: the thread sanitizer understands these, but not Debian's prebuilt
// absl::Mutex.
//
// The analysis does not look into lambdas: a loop around CondVar::Wait takes the place of a
// predicate, and a lambda that runs under a lock begins with Mutex::AssertHeld.
namespace WEIR_API weir {

// A lock that one thread at a time holds; not recursive.
class ABSL_LOCKABLE Mutex {
 public:
  // Named as in the standard library, for std::scoped_lock of several mutexes and std::unique_lock.
  // Others use MutexLock.
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  // Tells the analysis, in code that is always called with the lock held, that it is. Checks
  // nothing.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a Mutex for its lifetime.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  // Waits until no other thread holds the mutex, which must outlive this object.
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A mutex that any number of readers, or one writer, may hold.
class ABSL_LOCKABLE SharedMutex {
 private:
  friend class ReaderLock;
  friend class WriterLock;
  std::shared_mutex mutex_;
};

// Holds a SharedMutex for its lifetime, as one of its readers.
class ABSL_SCOPED_LOCKABLE ReaderLock {
 public:
  // Waits until no writer holds the mutex, which must outlive this object.
  explicit ReaderLock(SharedMutex& mutex) ABSL_SHARED_LOCK_FUNCTION(mutex) : mutex_(mutex.mutex_) {
    mutex_.lock_shared();
  }
  ~ReaderLock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock_shared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  std::shared_mutex& mutex_;
};

// The same as its only writer.
class ABSL_SCOPED_LOCKABLE WriterLock {
 public:
  // Waits until no other thread holds the mutex, which must outlive this object.
  explicit WriterLock(SharedMutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex.mutex_) {
    mutex_.lock();
  }
  ~WriterLock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  std::shared_mutex& mutex_;
};

// A condition variable. Waits end spuriously, so they belong in a loop that checks the condition.
class CondVar {
 public:
  // Releases the mutex, which the caller holds, while waiting.
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    wake_.wait(lock);
    lock.release();
  }
  // Same, but returns false if the deadline has passed.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool in_time = wake_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  // Wakes one waiting thread, or all of them. The caller need not hold the mutex.
  void NotifyOne() { wake_.notify_one(); }
  void NotifyAll() { wake_.notify_all(); }

 private:
  std::condition_variable wake_;
};

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_MUTEX_H_
