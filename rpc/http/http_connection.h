#ifndef WEIR_RPC_HTTP_HTTP_CONNECTION_H_
#define WEIR_RPC_HTTP_HTTP_CONNECTION_H_

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <list>
#include <memory>
#include <string>

#include "weir/rpc/http/http_server.h"

// One connection of an HttpServer. All of this runs on the server's I/O thread.
namespace weir::rpc {

class HttpConnection;

// What a connection needs of its server, which outlives it.
class HttpHost {
 public:
  virtual ~HttpHost() = default;

  virtual const HttpServerOptions& options() const = 0;
  // Whether connections are closed after their next response.
  virtual bool is_draining() const = 0;
  // Runs the handler on another thread, and then connection->Respond() on this one. Returns false
  // if too many requests wait.
  virtual bool Handle(const std::shared_ptr<HttpConnection>& connection, HttpRequest request) = 0;
  // Called when the request that was handled has been answered, or its client has gone.
  virtual void Handled(const std::string& method) = 0;
  // Counts the bytes of bodies in memory: more of them, or fewer. Returns whether there are too
  // many.
  virtual bool CountBytes(int64_t more) = 0;
  // The connection waits for its client, and may be closed in favor of a new one; it no longer
  // does; it has ended.
  virtual void Waits(HttpConnection& connection) = 0;
  virtual void Works(HttpConnection& connection) = 0;
  virtual void Ended(HttpConnection& connection) = 0;
};

class HttpConnection {
 public:
  virtual ~HttpConnection() = default;
  virtual void Start() = 0;
  virtual void Respond(HttpResponse response) = 0;
  // Closes the socket. The object is destroyed by the operations that this ends.
  virtual void Close() = 0;

  // For the host.
  std::string client;                       // the address of the peer
  std::list<HttpConnection*>::iterator at;  // its place in the list of those that wait
  bool is_waiting = false;
};

// With a `tls` context, a connection under TLS.
std::shared_ptr<HttpConnection> MakeHttpConnection(boost::asio::ip::tcp::socket socket,
                                                   boost::asio::ssl::context* tls, HttpHost& host);

}  // namespace weir::rpc

#endif  // WEIR_RPC_HTTP_HTTP_CONNECTION_H_
