#ifndef WEIR_TESTS_RPC_HTTP_CLIENT_H_
#define WEIR_TESTS_RPC_HTTP_CLIENT_H_

#include <string>

// A client for tests of HTTP servers, which can also send what no client should.
namespace weir::rpc {

// A connection to 127.0.0.1.
class RawConnection {
 public:
  explicit RawConnection(int port);
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  int fd() const { return fd_; }
  // Returns false if the server has closed the connection.
  bool Send(const std::string& text) const;
  // Reads one response: the header, and the body of the length that it states, unless
  // `without_body`. Less if the server closes the connection, or sends nothing for ten seconds.
  std::string ReadResponse(bool without_body = false) const;
  // Reads until the server closes the connection.
  std::string ReadAll() const;

 private:
  int fd_;
};

// Sends a request over a connection of its own. Returns the response.
std::string Exchange(int port, const std::string& request);
std::string Get(int port, const std::string& path);
std::string Post(int port, const std::string& path, const std::string& body);
// "200", and the body of a response.
std::string StatusOf(const std::string& response);
std::string BodyOf(const std::string& response);

}  // namespace weir::rpc

#endif  // WEIR_TESTS_RPC_HTTP_CLIENT_H_
