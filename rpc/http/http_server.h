#ifndef WEIR_RPC_HTTP_HTTP_SERVER_H_
#define WEIR_RPC_HTTP_HTTP_SERVER_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/status.h"

// A server for HTTP 1.0 and 1.1, with and without TLS, by Boost.Beast. Clients are not trusted: one
// thread reads from and writes to all connections without waiting for any, so that slow clients and
// half requests occupy no thread; sizes, times and numbers are limited.
namespace weir::rpc {

struct HttpRequest {
  std::string method;                          // "GET"; for a HEAD request also "GET"
  std::string target;                          // "/v1/models/m?x=1", as sent
  std::map<std::string, std::string> headers;  // by name in lower case
  std::string body;
  std::string client;  // the address of the peer: "127.0.0.1"
  // Of the certificate that the client has shown (certificate_names.h).
  std::vector<std::string> certificate_names = {};
  // Cancelled when the client closes the connection, or its half of it, before the response. Null
  // in HttpAdmission.
  std::shared_ptr<Cancellation> cancellation = nullptr;

  // The value of a header; "" if there is none.
  std::string Header(const std::string& name) const;
  // The target without its query.
  absl::string_view Path() const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // others
  // Owned until the response has been sent, such as a count of its memory.
  std::shared_ptr<const void> memory = {};
};

// An error in the form of TensorFlow Serving: {"error": "..."}. Bytes of the message that are not
// UTF-8 are replaced.
HttpResponse HttpError(int status, absl::string_view message);

// Runs on threads of the server, several at once.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;
// Decides on a request by its header, before the body is read. A response refuses the request. Runs
// on the thread that serves all connections, so it must not wait.
using HttpAdmission = std::function<std::optional<HttpResponse>(const HttpRequest&)>;

struct HttpServerOptions {
  std::string address = "127.0.0.1";  // "0.0.0.0": all
  int port = 0;                       // 0: a free one
  // TLS, in PEM format: the server's certificate and its key. With `client_authority`, clients need
  // a certificate that this authority has signed. Without a certificate, connections are not
  // encrypted.
  std::string certificate = {}, key = {}, client_authority = {};
  // Requests that are handled at once. As many again wait; more are refused with 503. GET requests
  // do not count: they have threads of their own, so that a busy server can be watched.
  int num_threads = 64;
  size_t max_body_bytes = size_t{64} << 20;  // of one request; larger ones are refused with 413
  // Of all requests and responses in memory; beyond it, requests are refused with 503.
  size_t max_buffered_bytes = size_t{512} << 20;
  // A new connection takes the place of the one that has waited longest for its client: among all
  // connections, or among those from the same address, if there are too many.
  int max_connections = 1000, max_client_connections = 500;
  bool keep_alive = true;    // otherwise, a connection is closed after one response
  HttpAdmission admit = {};  // if set, asked about each request
  // From the start of a connection to the end of its first header; for later headers, since the
  // response before.
  std::chrono::milliseconds header_timeout = std::chrono::seconds(10);
  std::chrono::milliseconds idle_timeout = std::chrono::minutes(1);
  // A body and a response may take this time, and another second for each 64 KB.
  std::chrono::milliseconds transfer_timeout = std::chrono::seconds(30);
};

// A running server. A request is refused with 400 (malformed), 413 (large body), 415 (compressed
// body), 417 (unknown expectation), 431 (headers of more than 8 KB) or 503 (busy); otherwise the
// handler's response is sent. An exception of the handler is an error 500, bad_alloc 503.
class HttpServer {
 public:
  // Listens on return. Returns INVALID_ARGUMENT for invalid certificates, UNAVAILABLE if the port
  // is in use.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                           HttpHandler handler);
  // Closes all connections, and waits for handlers that are running.
  ~HttpServer();

  int port() const;
  // The number of requests that are handled now or wait for a thread.
  int num_requests() const;
  // Uses other files for later connections. INVALID_ARGUMENT, and no change, if they are invalid.
  absl::Status ReplaceTlsFiles(const std::string& certificate, const std::string& key,
                               const std::string& client_authority);
  // Stops listening, and returns when the requests in progress are answered, or after `grace`.
  void Drain(std::chrono::milliseconds grace);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_HTTP_HTTP_SERVER_H_
