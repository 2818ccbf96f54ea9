#include "weir/rpc/lib/connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace weir::rpc {

namespace {

// Many connections may be refused per second; each asking about all others would take too long.
constexpr std::chrono::milliseconds kBetweenRemovals{100};

// Returns the name of the connection without the port, and the port; empty if there is none.
std::pair<std::string, int> PeerOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  char host[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET6) {
    const auto& peer = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &peer.sin6_addr, host, sizeof(host));
    const std::string scope =
        peer.sin6_scope_id == 0 ? "" : absl::StrCat("%25", peer.sin6_scope_id);
    return {absl::StrCat("ipv6:%5B", host, scope, "%5D"), ntohs(peer.sin6_port)};
  }
  const auto& peer = reinterpret_cast<const sockaddr_in&>(address);
  inet_ntop(AF_INET, &peer.sin_addr, host, sizeof(host));
  return {absl::StrCat("ipv4:", host), ntohs(peer.sin_port)};
}

std::string NameOf(int fd) {
  const auto [client, port] = PeerOf(fd);
  return absl::StrCat(client, ":", port);
}

}  // namespace

bool Connections::HasRoom(const std::string& client) const {
  const auto count = counts_.find(client);
  return static_cast<int>(descriptors_.size()) < limit_ &&
         (count == counts_.end() || count->second < limit_per_client_);
}

bool Connections::Add(int fd) {
  const auto [client, port] = PeerOf(fd);
  if (client.empty()) return false;  // already gone
  const MutexLock lock(mutex_);
  if (!HasRoom(client)) RemoveClosed();
  if (!HasRoom(client)) return false;
  const auto [place, is_new] = descriptors_.insert_or_assign(absl::StrCat(client, ":", port), fd);
  if (is_new) ++counts_[client];
  return true;
}

bool Connections::IsOpen(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = descriptors_.find(name);
  return found != descriptors_.end() && NameOf(found->second) == name;
}

void Connections::RemoveClosed() {
  const auto now = std::chrono::steady_clock::now();
  if (now - removed_at_ < kBetweenRemovals) return;
  removed_at_ = now;
  counts_.clear();
  std::erase_if(descriptors_,
                [](const auto& named) { return NameOf(named.second) != named.first; });
  for (const auto& [name, fd] : descriptors_) ++counts_[name.substr(0, name.rfind(':'))];
}

}  // namespace weir::rpc
