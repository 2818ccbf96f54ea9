#include "weir/rpc/http_page.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_split.h"

namespace weir::rpc {

namespace {

constexpr std::chrono::seconds kTimeLimit{5};
constexpr size_t kMaxConnections = 64, kMaxRequestBytes = 8192;

std::string Response(const char* status, absl::string_view body) {
  return absl::StrCat("HTTP/1.1 ", status,
                      "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                      "Content-Length: ",
                      body.size(), "\r\nConnection: close\r\n\r\n", body);
}

bool WouldBlock(ssize_t result) {
  return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpPage>> HttpPage::Serve(const std::string& address, int port,
                                                          const std::string& path,
                                                          std::function<std::string()> page) {
  std::unique_ptr<HttpPage> served(new HttpPage(path, std::move(page)));
  WEIR_ASSIGN_OR_RETURN(served->listener_, Listener::Bind(address, port));
  served->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (served->wake_ < 0) return absl::ErrnoToStatus(errno, "cannot make an eventfd");
  served->thread_ = std::thread([page = served.get()] { page->Run(); });
  served->listener_->Start([page = served.get()](int connection) {
    const MutexLock lock(page->mutex_);
    page->new_connections_.push_back(connection);
    eventfd_write(page->wake_, 1);
  });
  return served;
}

HttpPage::~HttpPage() {
  listener_ = nullptr;
  {
    const MutexLock lock(mutex_);
    stops_ = true;
  }
  if (thread_.joinable()) {
    eventfd_write(wake_, 1);
    thread_.join();
  }
  for (const Connection& connection : connections_) close(connection.fd);
  if (wake_ >= 0) close(wake_);
}

void HttpPage::TakeNewConnections() {
  eventfd_t ignored;
  eventfd_read(wake_, &ignored);
  const MutexLock lock(mutex_);
  for (const int fd : new_connections_) {
    connections_.push_back({fd, Clock::now() + kTimeLimit});
    if (connections_.size() <= kMaxConnections) continue;
    close(connections_.front().fd);
    connections_.pop_front();
  }
  new_connections_.clear();
}

void HttpPage::Run() {
  for (;;) {
    TakeNewConnections();
    {
      const MutexLock lock(mutex_);
      if (stops_) return;
    }
    const Clock::time_point now = Clock::now();
    std::erase_if(connections_, [&](Connection& connection) {
      if (now < connection.until && Progress(&connection)) return false;
      close(connection.fd);
      return true;
    });
    std::vector<pollfd> waits = {{wake_, POLLIN, 0}};
    for (const Connection& connection : connections_)
      waits.push_back(
          {connection.fd, connection.answer.empty() ? short{POLLIN} : short{POLLOUT}, 0});
    // The first connection is the first to time out.
    const auto left = connections_.empty() ? kTimeLimit : connections_.front().until - Clock::now();
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    poll(waits.data(), waits.size(), static_cast<int>(std::max<int64_t>(ms, 0)));
  }
}

bool HttpPage::Progress(Connection* connection) {
  while (connection->answer.empty()) {
    char buffer[2048];
    const ssize_t got = recv(connection->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got <= 0) return WouldBlock(got);
    std::string& request = connection->request;
    request.append(buffer, static_cast<size_t>(got));
    if (request.find("\r\n\r\n") != std::string::npos) {
      connection->answer = Answer(request);
    } else if (request.size() > kMaxRequestBytes) {
      connection->answer = Response("431 Request Header Fields Too Large", "");
    }
  }
  std::string& answer = connection->answer;
  while (!answer.empty()) {
    const ssize_t sent =
        send(connection->fd, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return WouldBlock(sent);
    answer.erase(0, static_cast<size_t>(sent));
  }
  shutdown(connection->fd, SHUT_WR);
  return false;
}

std::string HttpPage::Answer(absl::string_view request) const {
  const std::vector<absl::string_view> words =
      absl::StrSplit(request.substr(0, request.find("\r\n")), ' ');
  if (words.size() != 3) return Response("400 Bad Request", "");
  if (words[0] != "GET") return Response("405 Method Not Allowed", "");
  if (words[1].substr(0, words[1].find('?')) != path_) return Response("404 Not Found", "");
  return Response("200 OK", page_());
}

}  // namespace weir::rpc
