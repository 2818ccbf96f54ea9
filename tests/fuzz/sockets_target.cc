#include <sys/socket.h>

#include <string>

#include "weir/rpc/client.h"
#include "weir/rpc/http/http_server.h"
#include "weir/rpc/server.h"
#include "weir/tests/fuzz/targets.h"
#include "weir/tests/rpc/http_client.h"

// What a client writes to the sockets of a server, of gRPC or of HTTP: the first byte selects the
// server and how the connection begins, the rest is sent in pieces. Afterward both servers answer.
namespace weir::fuzz {

namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const std::string& Settings() {
  static const auto* const frame = new std::string("\0\0\0\4\0\0\0\0\0", 9);
  return *frame;
}

class Servers {
 public:
  Servers() {
    auto grpc = rpc::Server::Start({});
    Require(grpc.ok(), "a server starts");
    grpc_ = *std::move(grpc);
    auto http = rpc::HttpServer::Start({}, [](const rpc::HttpRequest& request) {
      return rpc::HttpResponse{200, "text/plain", request.body};
    });
    Require(http.ok(), "an HTTP server starts");
    http_ = *std::move(http);
  }

  void Send(Input in) {
    const uint8_t how = in.Byte();
    const bool is_http = how % 2 != 0, has_preface = how % 4 == 0;
    {
      const rpc::RawConnection client(is_http ? http_->port() : grpc_->port());
      bool is_open = !has_preface || client.Send(std::string(kPreface) + Settings());
      while (is_open && !in.empty()) is_open = client.Send(std::string(in.NextBytes()));
      if (how % 8 < 4) {  // otherwise the client leaves at once
        shutdown(client.fd(), SHUT_WR);
        client.ReadAll();
      }
    }
    Require(rpc::StatusOf(rpc::Post(http_->port(), "/", "x")) == "200", "HTTP answers afterward");
    const auto status = rpc::GetServerStatus(grpc_->target(), {});
    Require(status.ok() && status->serving, "gRPC answers afterward");
  }

 private:
  std::unique_ptr<rpc::Server> grpc_;
  std::unique_ptr<rpc::HttpServer> http_;
};

}  // namespace

void Sockets(absl::string_view bytes) {
  static Servers* const servers = new Servers;
  servers->Send(Input(bytes));
}

std::vector<Row> Rows() { return {{"sockets", Sockets, 60}}; }

}  // namespace weir::fuzz
