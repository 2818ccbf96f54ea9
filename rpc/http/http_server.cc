#include "weir/rpc/http/http_server.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "weir/core/tensor/mutex.h"
#include "weir/rpc/http/http_connection.h"
#include "weir/rpc/lib/listener.h"

namespace weir::rpc {

namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using Error = boost::system::error_code;

constexpr int kGetThreads = 2;
constexpr int kMaxWaitingGets = 100;

// Returns the context of these files; null if there are none.
absl::StatusOr<std::shared_ptr<ssl::context>> MakeTls(const std::string& certificate,
                                                      const std::string& key,
                                                      const std::string& client_authority) {
  if (certificate.empty() && key.empty() && client_authority.empty())
    return std::shared_ptr<ssl::context>();
  auto tls = std::make_shared<ssl::context>(ssl::context::tls_server);
  Error error;
  tls->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                       ssl::context::no_tlsv1_1 | SSL_OP_NO_RENEGOTIATION,
                   error);
  tls->use_certificate_chain(asio::buffer(certificate), error);
  if (error) return InvalidArgument("Cannot use the TLS certificate: ", error.message());
  tls->use_private_key(asio::buffer(key), ssl::context::pem, error);
  if (error) return InvalidArgument("Cannot use the TLS key: ", error.message());
  if (SSL_CTX_check_private_key(tls->native_handle()) != 1)
    return InvalidArgument("The TLS key is not that of the certificate");
  static constexpr unsigned char kName[] = "weir";  // of the sessions that clients resume
  SSL_CTX_set_session_id_context(tls->native_handle(), kName, sizeof(kName));
  if (client_authority.empty()) return tls;
  tls->add_certificate_authority(asio::buffer(client_authority), error);
  if (error) return InvalidArgument("Cannot use the TLS client authority: ", error.message());
  tls->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  return tls;
}

// The family of the socket's addresses, and the address of its peer; "" if that has gone.
std::pair<int, std::string> PeerOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  char host[INET6_ADDRSTRLEN] = {};
  const void* const bytes =
      address.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  inet_ntop(address.ss_family, bytes, host, sizeof(host));
  return {address.ss_family, host};
}

// A request that is handled. Nothing is allocated for it once the handler has run, so that the
// client of a server without memory gets an answer.
struct HandledRequest {
  std::shared_ptr<HttpConnection> connection;
  HttpRequest request;
  HttpResponse response = HttpError(503, "The server is out of memory");
};

void RunHandler(const HttpHandler& handler, HandledRequest& handled) {
  try {
    handled.response = handler(handled.request);
  } catch (const std::bad_alloc&) {  // the response is already there
  } catch (const std::exception& e) {
    handled.response = HttpError(500, e.what());
  }
}

}  // namespace

std::string HttpRequest::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

absl::string_view HttpRequest::Path() const {
  return absl::string_view(target).substr(0, target.find('?'));
}

HttpResponse HttpError(int status, absl::string_view message) {
  const nlohmann::json error = {{"error", std::string(message)}};
  return {status, "application/json",
          error.dump(4, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

struct HttpServer::Impl final : HttpHost {
  Impl(const HttpServerOptions& o, HttpHandler h)
      : settings(o), handler(std::move(h)), threads(o.num_threads) {}

  ~Impl() override {
    listener = nullptr;
    work.reset();
    io.stop();
    if (io_thread.joinable()) io_thread.join();
    threads.join();
    get_threads.join();
  }

  // Called on the listener's thread.
  void Take(int fd) {
    asio::post(io, [this, fd] { Accept(fd); });
  }

  void RunIo() {
    for (;;) {
      try {
        io.run();
        return;
      } catch (const std::exception&) {
        // Out of memory: the operation that threw is gone, and its connection with it.
      }
    }
  }

  void Accept(int fd) {
    const auto [family, client] = PeerOf(fd);
    if (client.empty() || !MakeRoom(client)) {
      close(fd);
      return;
    }
    asio::ip::tcp::socket socket(io);
    Error error;
    socket.assign(family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), fd, error);
    if (error) {
      close(fd);
      return;
    }
    std::shared_ptr<ssl::context> current;
    {
      const MutexLock lock(mutex);
      current = tls;
    }
    const auto connection = MakeHttpConnection(std::move(socket), current.get(), *this);
    connection->client = client;
    ++num_connections;
    ++clients[client];
    connection->Start();
  }

  // Closes a waiting connection if there are too many. Returns false if none waits.
  bool MakeRoom(const std::string& client) {
    const auto count = clients.find(client);
    const bool is_client_full =
        count != clients.end() && count->second >= settings.max_client_connections;
    if (!is_client_full && num_connections < settings.max_connections) return true;
    const auto oldest = std::find_if(waiting.begin(), waiting.end(), [&](HttpConnection* c) {
      return !is_client_full || c->client == client;
    });
    if (oldest == waiting.end()) return false;
    HttpConnection& closed = **oldest;
    Works(closed);  // out of the list
    closed.Close();
    return true;
  }

  // ---- for connections

  const HttpServerOptions& options() const override { return settings; }
  bool is_draining() const override { return draining; }

  bool Handle(const std::shared_ptr<HttpConnection>& connection, HttpRequest request) override {
    const bool is_get = request.method == "GET";
    std::atomic<int>& count = is_get ? num_gets : num_posts;
    const int limit = is_get ? kMaxWaitingGets : 2 * settings.num_threads;
    if (count >= limit) return false;
    ++count;
    const auto handled = std::make_shared<HandledRequest>(connection, std::move(request));
    asio::post(is_get ? get_threads : threads, [this, handled] {
      RunHandler(handler, *handled);
      handled->request = {};
      Return(handled);
    });
    return true;
  }

  // Passes the response, and the last reference to the connection, to the I/O thread.
  void Return(const std::shared_ptr<HandledRequest>& handled) {
    constexpr std::chrono::milliseconds kPause{10};
    for (;;) {
      try {
        asio::post(io, [handled] {
          const std::shared_ptr<HttpConnection> connection = std::move(handled->connection);
          connection->Respond(std::move(handled->response));
        });
        return;
      } catch (const std::bad_alloc&) {
        std::this_thread::sleep_for(kPause);
      }
    }
  }

  void Handled(const std::string& method) override { --(method == "GET" ? num_gets : num_posts); }

  bool CountBytes(int64_t more) override {
    buffered_bytes += more;
    return buffered_bytes <= static_cast<int64_t>(settings.max_buffered_bytes);
  }

  void Waits(HttpConnection& connection) override {
    Works(connection);
    connection.at = waiting.insert(waiting.end(), &connection);
    connection.is_waiting = true;
  }
  void Works(HttpConnection& connection) override {
    if (!std::exchange(connection.is_waiting, false)) return;
    waiting.erase(connection.at);
  }
  void Ended(HttpConnection& connection) override {
    Works(connection);
    --num_connections;
    const auto count = clients.find(connection.client);
    if (count != clients.end() && --count->second == 0) clients.erase(count);
  }

  const HttpServerOptions settings;
  const HttpHandler handler;
  std::atomic<bool> draining = false;
  std::atomic<int> num_posts = 0, num_gets = 0;
  Mutex mutex;
  std::shared_ptr<ssl::context> tls ABSL_GUARDED_BY(mutex);
  // Of the I/O thread.
  int num_connections = 0;
  std::map<std::string, int> clients;  // the number of connections, by address
  std::list<HttpConnection*> waiting;  // for their clients; the longest first
  int64_t buffered_bytes = 0;
  // Its pending operations own connections, which use what is above when they are destroyed.
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  asio::thread_pool threads, get_threads{kGetThreads};
  std::unique_ptr<Listener> listener;  // null while draining
  int port = 0;
  std::thread io_thread;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options,
                                                              HttpHandler handler) {
  auto impl = std::make_unique<Impl>(options, std::move(handler));
  {
    const MutexLock lock(impl->mutex);
    WEIR_ASSIGN_OR_RETURN(impl->tls,
                          MakeTls(options.certificate, options.key, options.client_authority));
  }
  WEIR_ASSIGN_OR_RETURN(impl->listener, Listener::Bind(options.address, options.port));
  impl->port = impl->listener->port();
  impl->io_thread = std::thread([server = impl.get()] { server->RunIo(); });
  impl->listener->Start([server = impl.get()](int fd) { server->Take(fd); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->port; }

int HttpServer::num_requests() const { return impl_->num_posts + impl_->num_gets; }

absl::Status HttpServer::ReplaceTlsFiles(const std::string& certificate, const std::string& key,
                                         const std::string& client_authority) {
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<ssl::context> tls,
                        MakeTls(certificate, key, client_authority));
  const MutexLock lock(impl_->mutex);
  if ((tls == nullptr) != (impl_->tls == nullptr))
    return FailedPrecondition("TLS cannot be turned on or off while the server runs");
  impl_->tls = std::move(tls);
  return absl::OkStatus();
}

void HttpServer::Drain(std::chrono::milliseconds grace) {
  constexpr std::chrono::milliseconds kPoll{10};
  impl_->draining = true;
  impl_->listener = nullptr;
  const auto end = std::chrono::steady_clock::now() + grace;
  while (num_requests() > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kPoll);
}

}  // namespace weir::rpc
