#include "weir/rpc/session_table.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"

namespace weir::rpc {

std::string NewSessionHandle() {
  std::string bytes(16, 0);
  for (;;) {  // a signal may interrupt it before the system has gathered enough randomness
    if (getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()))
      return absl::BytesToHexString(bytes);
    if (errno == EINTR) continue;
    std::perror("weir: getrandom");
    std::abort();
  }
}

}  // namespace weir::rpc
