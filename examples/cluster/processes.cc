#include "weir/examples/cluster/processes.h"

#include <arpa/inet.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

extern char** environ;

namespace cluster {

namespace {

// Binds the socket to a free port, and returns the port.
absl::StatusOr<int> BindToFreePort(int socket) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket, any, size) != 0 || getsockname(socket, any, &size) != 0)
    return absl::UnavailableError(absl::StrCat("No free port: ", std::strerror(errno)));
  return ntohs(address.sin_port);
}

std::string Describe(int wait_status) {
  return WIFSIGNALED(wait_status) ? absl::StrCat("was ended by signal ", WTERMSIG(wait_status))
                                  : absl::StrCat("exited with status ", WEXITSTATUS(wait_status));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FreeAddresses(int count) {
  std::vector<std::string> addresses;
  std::vector<int> sockets;  // open until all ports are known, so that these differ
  absl::Status status;
  for (int i = 0; i < count && status.ok(); ++i) {
    sockets.push_back(socket(AF_INET, SOCK_STREAM, 0));
    const absl::StatusOr<int> port = BindToFreePort(sockets.back());
    status = port.status();
    if (port.ok()) addresses.push_back(absl::StrCat("127.0.0.1:", *port));
  }
  for (const int socket : sockets) close(socket);
  if (!status.ok()) return status;
  return addresses;
}

Processes::~Processes() {
  for (const auto& [pid, process] : running_) kill(pid, SIGKILL);
  for (const auto& [pid, process] : running_) waitpid(pid, nullptr, 0);
}

absl::Status Processes::Start(const std::string& name, const std::vector<std::string>& arguments,
                              bool must_end) {
  const std::string program = "/proc/self/exe", parent = absl::StrCat("--parent=", getpid());
  std::vector<char*> argv = {const_cast<char*>("cluster"), const_cast<char*>(parent.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv.data(), environ);
  if (error != 0)
    return absl::UnavailableError(absl::StrCat("Cannot start ", name, ": ", std::strerror(error)));
  running_[pid] = {name, must_end};
  return absl::OkStatus();
}

absl::Status Processes::Wait() {
  const auto must_end = [](const auto& entry) { return entry.second.must_end; };
  while (std::any_of(running_.begin(), running_.end(), must_end)) {
    int status = 0;
    const pid_t pid = wait(&status);
    const auto ended = running_.find(pid);
    if (ended == running_.end()) continue;  // a signal has interrupted the call
    const Process process = ended->second;
    running_.erase(ended);
    const bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!succeeded || !process.must_end)
      return absl::AbortedError(absl::StrCat(process.name, " ", Describe(status)));
  }
  return absl::OkStatus();
}

void EndWithParent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) std::_Exit(1);  // it has ended already
}

}  // namespace cluster
