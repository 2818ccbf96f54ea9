#include "weir/tools/serve/process.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "absl/time/time.h"

namespace weir::tools {

Signals::Signals() {
  sigemptyset(&signals_);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals_, signal);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

Signals::~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

int Signals::Wait() const {
  int signal = 0;
  sigwait(&signals_, &signal);
  return signal;
}

void StopTimer::Start(std::chrono::seconds limit, int status) {
  thread_ = std::thread([this, limit, status] {
    if (stopped_.WaitForNotificationWithTimeout(absl::FromChrono(limit))) return;
    std::fprintf(stderr, "weir: warning: ending while steps still run\n");
    std::_Exit(status);
  });
}

StopTimer::~StopTimer() {
  stopped_.Notify();
  if (thread_.joinable()) thread_.join();
}

namespace {

// The smallest limit on the address space or the data of the process.
int64_t AddressSpace() {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit;
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur < static_cast<rlim_t>(least))
      least = static_cast<int64_t>(limit.rlim_cur);
  }
  return least;
}

// Programs with less address space than this are careful with it.
constexpr int64_t kPlentyOfSpace = int64_t{64} << 30;
// Each keeps up to 64 MB that it has freed, by default eight for each processor.
constexpr int kMaxArenas = 4;
constexpr int64_t kStackBytes = int64_t{2} << 20;

}  // namespace

void PrepareMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the maximum value
  const int64_t space = AddressSpace();
  mallopt(M_TRIM_THRESHOLD, static_cast<int>(std::min<int64_t>(256 << 20, space / 16)));
  mallopt(M_ARENA_MAX, space < kPlentyOfSpace ? 1 : kMaxArenas);
  if (space >= kPlentyOfSpace) return;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

int AffordableThreads(int wanted) {
  const int64_t space = AddressSpace();
  if (space >= kPlentyOfSpace) return wanted;
  return static_cast<int>(
      std::min<int64_t>(wanted, std::max<int64_t>(space / 16 / kStackBytes, 8)));
}

}  // namespace weir::tools
