#include "weir/tools/serve/process.h"

#include <malloc.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

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

void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the maximum value
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

}  // namespace weir::tools
