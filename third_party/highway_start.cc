#include <cstdint>

// libhwy of Debian 12 (Highway 1.0.3) measures how fine the processor's timer is while it is
// loaded, for benchmarks that nobody here runs: four milliseconds of every start, more than all
// else that happens before main(). The dynamic linker finds this function before that of the
// shared library.
namespace hwy::platform {

[[gnu::visibility("default")]] uint64_t TimerResolution();
uint64_t TimerResolution() { return 1; }

}  // namespace hwy::platform
