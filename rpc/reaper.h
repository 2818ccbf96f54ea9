#ifndef WEIR_RPC_REAPER_H_
#define WEIR_RPC_REAPER_H_

#include "weir/core/tensor/mutex.h"

namespace weir::rpc {

class MasterSession;

// Destroys sessions. The destructor of a session waits for its kernels, some of which cannot be
// interrupted (one call of LAPACK). So each session is destroyed on a thread of its own, for which
// the caller waits only briefly. Thread-safe.
class Reaper {
 public:
  Reaper() = default;
  // Waits until all sessions are destroyed.
  ~Reaper();
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // Returns when the session is destroyed, but after a tenth of a second at the latest.
  void Destroy(MasterSession* session);

 private:
  Mutex mutex_;
  CondVar destroyed_;
  int num_destroying_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_REAPER_H_
