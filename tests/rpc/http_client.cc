#include "weir/tests/rpc/http_client.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace weir::rpc {

RawConnection::RawConnection(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
  const timeval limit = {.tv_sec = 10};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
}

RawConnection::~RawConnection() { close(fd_); }

bool RawConnection::Send(const std::string& text) const {
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t n = send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

std::string RawConnection::ReadResponse(bool without_body) const {
  std::string response;
  size_t size = std::string::npos;
  char buffer[65536];
  while (response.size() < size) {
    // Not beyond the response, behind which another one may follow.
    const size_t wanted =
        size == std::string::npos ? 1 : std::min(sizeof(buffer), size - response.size());
    const ssize_t n = recv(fd_, buffer, wanted, 0);
    if (n <= 0) break;
    response.append(buffer, static_cast<size_t>(n));
    if (size != std::string::npos || response.size() < 4 ||
        response.compare(response.size() - 4, 4, "\r\n\r\n") != 0)
      continue;
    const size_t field = response.find("Content-Length: ");
    size_t length = 0;
    if (!without_body && field != std::string::npos)
      length = std::stoul(response.substr(field + sizeof("Content-Length: ") - 1));
    size = response.size() + length;
  }
  return response;
}

std::string RawConnection::ReadAll() const {
  std::string all;
  char buffer[65536];
  for (ssize_t n; (n = recv(fd_, buffer, sizeof(buffer), 0)) > 0;)
    all.append(buffer, static_cast<size_t>(n));
  return all;
}

std::string Exchange(int port, const std::string& request) {
  const RawConnection connection(port);
  connection.Send(request);
  return connection.ReadResponse();
}

std::string Get(int port, const std::string& path) {
  return Exchange(port, absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"));
}

std::string Post(int port, const std::string& path, const std::string& body) {
  return Exchange(port, absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: x\r\nContent-Length: ",
                                     body.size(), "\r\n\r\n", body));
}

std::string StatusOf(const std::string& response) {
  return response.substr(0, 9) == "HTTP/1.1 " ? response.substr(9, 3) : "none";
}

std::string BodyOf(const std::string& response) {
  const size_t end = response.find("\r\n\r\n");
  return end == std::string::npos ? "" : response.substr(end + 4);
}

}  // namespace weir::rpc
