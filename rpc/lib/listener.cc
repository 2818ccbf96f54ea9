#include "weir/rpc/lib/listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>

namespace weir::rpc {

namespace {

// Descriptors reserved for files opened by graphs and for gRPC: at most this many, and at most a
// quarter of all.
constexpr int kReserved = 64;
constexpr std::chrono::milliseconds kPause{10};

// Raises the descriptor limit as far as the system allows. Returns the new limit.
int RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur, INT_MAX));
}

int OpenSpare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

// Returns a listening socket, or -1 with errno.
int ListenAt(const addrinfo& at, int port) {
  const int fd = socket(at.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (at.ai_family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    reinterpret_cast<sockaddr_in6*>(at.ai_addr)->sin6_port = htons(static_cast<uint16_t>(port));
  } else {
    reinterpret_cast<sockaddr_in*>(at.ai_addr)->sin_port = htons(static_cast<uint16_t>(port));
  }
  if (bind(fd, at.ai_addr, at.ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// Finds the addresses to listen on, which the caller frees. Returns an error as getaddrinfo does.
int Resolve(const std::string& address, addrinfo** all) {
  const bool in_brackets = address.size() > 2 && address.front() == '[' && address.back() == ']';
  const std::string host = in_brackets ? address.substr(1, address.size() - 2) : address;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  return getaddrinfo(host.c_str(), nullptr, &hints, all);
}

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  constexpr uint32_t kNetwork = 127;  // 127.0.0.0/8
  return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24 == kNetwork;
}

}  // namespace

bool IsLoopback(const std::string& address) {
  addrinfo* all = nullptr;
  if (Resolve(address, &all) != 0) return false;
  bool is_loopback = true;
  for (const addrinfo* at = all; at != nullptr; at = at->ai_next)
    is_loopback = is_loopback && IsLoopback(at->ai_addr);
  freeaddrinfo(all);
  return is_loopback;
}

absl::StatusOr<std::unique_ptr<Listener>> Listener::Bind(const std::string& address, int port) {
  std::unique_ptr<Listener> listener(new Listener);
  const int descriptors = RaiseDescriptorLimit();
  listener->limit_ = descriptors - std::min(kReserved, descriptors / 4);
  listener->stop_ = eventfd(0, EFD_CLOEXEC);
  listener->spare_ = OpenSpare();
  addrinfo* all = nullptr;
  if (const int error = Resolve(address, &all); error != 0)
    return absl::UnavailableError(
        absl::StrCat("Cannot listen on ", address, ": ", gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> freed(all, &freeaddrinfo);
  listener->port_ = port;
  int error = 0;
  for (const addrinfo* at = all; at != nullptr; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    const int fd = ListenAt(*at, listener->port_);
    if (fd < 0) {
      error = errno;
      continue;
    }
    listener->sockets_.push_back(fd);
    listener->port_ = PortOf(fd);
  }
  if (!listener->sockets_.empty()) return listener;
  return absl::UnavailableError(
      absl::StrCat("Cannot listen on ", address, ":", port, ": ", strerror(error)));
}

Listener::~Listener() {
  if (thread_.joinable()) {
    eventfd_write(stop_, 1);
    thread_.join();
  }
  for (const int socket : sockets_) close(socket);
  for (const int fd : {stop_, spare_}) {
    if (fd >= 0) close(fd);
  }
}

void Listener::Start(std::function<void(int)> take) {
  take_ = std::move(take);
  thread_ = std::thread([this] { Accept(); });
}

void Listener::Accept() {
  std::vector<pollfd> waits;
  for (const int fd : sockets_) waits.push_back({fd, POLLIN, 0});
  waits.push_back({stop_, POLLIN, 0});
  for (;;) {
    if (poll(waits.data(), waits.size(), -1) < 0) continue;  // interrupted by a signal
    if (waits.back().revents != 0) return;
    for (size_t i = 0; i + 1 < waits.size(); ++i) {
      if (waits[i].revents != 0) AcceptConnection(waits[i].fd);
    }
  }
}

// The system allocates the lowest free descriptor, so a descriptor above the limit means that
// nearly all are in use.
void Listener::AcceptConnection(int socket) {
  const int fd = accept4(socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= limit_) {
    close(fd);
    return;
  }
  if (fd >= 0) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    take_(fd);
    return;
  }
  if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
  if (spare_ >= 0) close(spare_);
  const int refused = accept4(socket, nullptr, nullptr, SOCK_CLOEXEC);
  if (refused >= 0) close(refused);
  spare_ = OpenSpare();
  if (refused < 0) std::this_thread::sleep_for(kPause);  // the connection stays queued
}

}  // namespace weir::rpc
