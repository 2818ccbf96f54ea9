#include "weir/rpc/reaper.h"

#include <chrono>
#include <memory>
#include <system_error>
#include <thread>

#include "weir/proto/config.pb.h"
#include "weir/rpc/master_session.h"

namespace weir::rpc {

namespace {

constexpr std::chrono::milliseconds kPatience{100};

}  // namespace

Reaper::~Reaper() {
  const MutexLock lock(mutex_);
  while (num_destroying_ > 0) destroyed_.Wait(mutex_);
}

void Reaper::Destroy(MasterSession* session) {
  const auto is_destroyed = std::make_shared<bool>(false);  // guarded by the mutex
  const auto destroy = [this, session, is_destroyed] {
    delete session;
    const MutexLock lock(mutex_);
    *is_destroyed = true;
    --num_destroying_;
    destroyed_.NotifyAll();
  };
  {
    const MutexLock lock(mutex_);
    ++num_destroying_;
  }
  try {
    std::thread(destroy).detach();
  } catch (const std::system_error&) {  // there are too many threads
    destroy();
  }
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const MutexLock lock(mutex_);
  while (!*is_destroyed && destroyed_.WaitUntil(mutex_, until)) {
  }
}

}  // namespace weir::rpc
