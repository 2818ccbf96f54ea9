#ifndef WEIR_TESTS_RPC_CALL_TRAP_H_
#define WEIR_TESTS_RPC_CALL_TRAP_H_

#include <latch>
#include <string>
#include <vector>

#include "weir/core/tensor/mutex.h"

namespace weir::testing {

// One system call of the process that names a file, starts a program, or connects.
struct TrappedCall {
  std::string name;  // "openat"
  // The absolute path that it leads to, without a link that it follows; empty without a path.
  std::string path;
  // It opens a file as a place (O_PATH) or examines it; the contents stay unknown and unchanged.
  bool only_looks = false;
  int thread = 0;  // gettid()
  bool from_door = false;
};

// Records the system calls above of the thread that starts it, and of the threads that this thread
// starts afterwards, as long as the process lives. The system reports each call to a thread of this
// class (seccomp), which lets it continue, so what a library calls is recorded as well. Needs no
// privilege.
class CallTrap {
 public:
  // Returns null, with errno, if the system does not allow it.
  static CallTrap* Start();

  // Returns the calls since the last Take. For one thread at a time.
  std::vector<TrappedCall> Take();

  // Calls of this thread come from the one place that may open files while such an object lives.
  class Door {
   public:
    explicit Door(CallTrap& trap);
    ~Door();
    Door(const Door&) = delete;
    Door& operator=(const Door&) = delete;

   private:
    CallTrap& trap_;
  };

 private:
  struct Record;

  CallTrap();
  void Listen();

  int listener_ = -1;  // set before installed_
  std::latch installed_{1};
  std::vector<Record> taken_;  // what Take has read; empty in between
  Mutex mutex_;                // never held while memory is allocated or freed
  std::vector<Record> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> threads_in_door_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_RPC_CALL_TRAP_H_
