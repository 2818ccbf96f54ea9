#include "weir/rpc/http/http_server.h"

#include <atomic>
#include <thread>

#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/tests/rpc/certificates.h"
#include "weir/tests/rpc/http_client.h"
#include "weir/tests/rpc/tls_client.h"

namespace weir::rpc {
namespace {

using ::testing::HasSubstr;
using weir::testing::Certificate;
using Clock = std::chrono::steady_clock;

// Answers with the body, and the method and the target of the request.
HttpResponse Echo(const HttpRequest& request) {
  return {200, "text/plain", absl::StrCat(request.method, " ", request.target, " ", request.body)};
}

std::unique_ptr<HttpServer> Serve(const HttpServerOptions& options = {},
                                  const HttpHandler& handler = Echo) {
  auto server = HttpServer::Start(options, handler);
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

// Sends a request under TLS. Returns the status, or "none".
std::string StatusUnderTls(int port, const Certificate& authority,
                           const Certificate* own = nullptr) {
  TlsConnection connection(port, authority, own);
  connection.Send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  return StatusOf(connection.ReadAll());
}

TEST(HttpServer, KeepsConnectionsAndAnswersInOrder) {
  const auto server = Serve();
  const RawConnection connection(server->port());
  connection.Send("GET /a HTTP/1.1\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyz");
  connection.Send("GET /c HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(BodyOf(connection.ReadResponse()), "GET /a ");
  EXPECT_EQ(BodyOf(connection.ReadResponse()), "POST /b xyz");
  const std::string last = connection.ReadAll();
  EXPECT_EQ(BodyOf(last), "GET /c ");
  EXPECT_THAT(last, HasSubstr("Connection: close"));
  EXPECT_THAT(Exchange(server->port(), "GET /old HTTP/1.0\r\n\r\n"), HasSubstr("GET /old"));
}

TEST(HttpServer, ReadsChunksAndAnswersExpectations) {
  const auto server = Serve();
  EXPECT_EQ(BodyOf(Exchange(server->port(),
                            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")),
            "POST / abcde");
  const RawConnection connection(server->port());
  connection.Send("POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(connection.ReadResponse(), "HTTP/1.1 100 Continue\r\n\r\n");
  connection.Send("ok");
  EXPECT_EQ(BodyOf(connection.ReadResponse()), "POST / ok");
}

TEST(HttpServer, HeadHasTheHeaderOfGet) {
  const auto server = Serve();
  const RawConnection connection(server->port());
  connection.Send("HEAD /head HTTP/1.1\r\n\r\nGET /next HTTP/1.1\r\n\r\n");
  EXPECT_THAT(connection.ReadResponse(/*without_body=*/true), HasSubstr("Content-Length: 10\r\n"));
  EXPECT_EQ(BodyOf(connection.ReadResponse()), "GET /next ");
}

TEST(HttpServer, RefusesWhatIsMalformedOrTooLarge) {
  HttpServerOptions options;
  options.max_body_bytes = 100;
  const auto server = Serve(options);
  const auto status = [&](const std::string& request) {
    return StatusOf(Exchange(server->port(), request));
  };
  EXPECT_EQ(status("\r\n\r\n"), "400");
  EXPECT_EQ(status("GET / HTTP/9.9\r\n\r\n"), "400");
  EXPECT_EQ(status("GET / HTTP/1.1\r\nbad header\r\n\r\n"), "400");
  EXPECT_EQ(status(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15)), "400");
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), "400");
  EXPECT_EQ(
      status("POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
      "400");
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"), "400");
  EXPECT_EQ(status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"), "400");
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n" + std::string(101, 'x')),
            "413");
  EXPECT_EQ(status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n"), "413");
  EXPECT_EQ(status("GET / HTTP/1.1\r\nX: " + std::string(9000, 'x') + "\r\n\r\n"), "431");
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"),
            "415");
  EXPECT_EQ(status("POST / HTTP/1.1\r\nExpect: miracles\r\nContent-Length: 3\r\n\r\nabc"), "417");
  EXPECT_EQ(status("GET / HTTP/1.1\r\n\r\n"), "200") << "the server goes on";
}

TEST(HttpServer, AnswersEvenIfTheBodyIsNotRead) {
  HttpServerOptions options;
  options.max_body_bytes = 10;
  const auto server = Serve(options);
  const RawConnection connection(server->port());
  connection.Send("POST / HTTP/1.1\r\nContent-Length: 500000\r\n\r\n" + std::string(500000, 'x'));
  EXPECT_EQ(StatusOf(connection.ReadAll()), "413");
}

TEST(HttpServer, ClosesConnectionsThatSendTooSlowly) {
  HttpServerOptions options;
  options.header_timeout = std::chrono::milliseconds(300);
  options.transfer_timeout = std::chrono::milliseconds(300);
  options.idle_timeout = std::chrono::milliseconds(600);
  const auto server = Serve(options);
  const RawConnection silent(server->port()), header(server->port()), body(server->port());
  const RawConnection idle(server->port());
  const auto begin = Clock::now();
  idle.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(StatusOf(idle.ReadResponse()), "200");
  body.Send("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n");
  // A byte now and then does not help.
  for (int i = 0; i < 8; ++i) {
    header.Send("G");
    body.Send("x");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_EQ(header.ReadAll(), "");
  EXPECT_EQ(body.ReadAll(), "");
  EXPECT_EQ(idle.ReadAll(), "");
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

TEST(HttpServer, SlowReadersDelayNobody) {
  HttpServerOptions options;
  options.num_threads = 1;
  constexpr size_t kBytes = 32 << 20;
  const auto server = Serve(options, [](const HttpRequest& request) {
    return HttpResponse{200, "text/plain", std::string(request.method == "POST" ? kBytes : 1, 'x')};
  });
  const RawConnection slow(server->port());
  slow.Send("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(BodyOf(Get(server->port(), "/")), "x");
  EXPECT_EQ(BodyOf(Post(server->port(), "/", "")).size(), kBytes);
}

TEST(HttpServer, NewConnectionsReplaceTheOldestThatWait) {
  HttpServerOptions options;
  options.max_connections = options.max_client_connections = 20;
  const auto server = Serve(options);
  std::vector<std::unique_ptr<RawConnection>> half;
  for (int i = 0; i < 100; ++i) {
    half.push_back(std::make_unique<RawConnection>(server->port()));
    half.back()->Send("GET / HTTP/1.1\r\n");
  }
  EXPECT_EQ(StatusOf(Get(server->port(), "/")), "200");
  EXPECT_EQ(half.front()->ReadAll(), "") << "closed";
  half.back()->Send("\r\n");
  EXPECT_EQ(StatusOf(half.back()->ReadResponse()), "200") << "still open";
}

TEST(HttpServer, BusyServersRefusePostsAndAnswerGets) {
  HttpServerOptions options;
  options.num_threads = 2;
  absl::Notification go_on;
  const auto server = Serve(options, [&](const HttpRequest& request) {
    if (request.method == "POST") go_on.WaitForNotification();
    return Echo(request);
  });
  std::vector<std::unique_ptr<RawConnection>> busy;
  for (int i = 0; i < 4; ++i) {
    busy.push_back(std::make_unique<RawConnection>(server->port()));
    busy.back()->Send("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  }
  while (server->num_requests() < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(StatusOf(Post(server->port(), "/", "")), "503");
  EXPECT_EQ(StatusOf(Get(server->port(), "/")), "200");
  go_on.Notify();
  for (const auto& connection : busy) EXPECT_EQ(StatusOf(connection->ReadResponse()), "200");
}

TEST(HttpServer, LimitsTheMemoryOfAllBodies) {
  HttpServerOptions options;
  options.max_buffered_bytes = 1'000'000;
  const auto server = Serve(options);
  const RawConnection first(server->port());
  first.Send("POST / HTTP/1.1\r\nContent-Length: 900000\r\n\r\n" + std::string(800000, 'x'));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(StatusOf(Post(server->port(), "/", std::string(400000, 'x'))), "503");
  first.Send(std::string(100000, 'x'));
  EXPECT_EQ(StatusOf(first.ReadResponse()), "200");
  // The memory is free again once the server has sent the response.
  std::string status;
  for (int i = 0; i < 100 && status != "200"; ++i)
    status = StatusOf(Post(server->port(), "/", std::string(400000, 'x')));
  EXPECT_EQ(status, "200");
}

// Answers when the client has gone, or after ten seconds, and reports which.
struct Departures {
  HttpResponse Handle(const HttpRequest& request) {
    if (request.target != "/wait") return Echo(request);
    entered.Notify();
    for (int i = 0; i < 1000 && !request.cancellation->cancelled(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    was_noticed = request.cancellation->cancelled();
    done.Notify();
    return Echo(request);
  }
  absl::Notification entered, done;
  std::atomic<bool> was_noticed = false;
};

TEST(HttpServer, NoticesThatClientsHaveGone) {
  Departures departures;
  const auto server = Serve({}, [&](const HttpRequest& r) { return departures.Handle(r); });
  {
    const RawConnection connection(server->port());
    connection.Send("POST /wait HTTP/1.1\r\nContent-Length: 2\r\n\r\nxy");
    departures.entered.WaitForNotification();
  }
  departures.done.WaitForNotification();
  EXPECT_TRUE(departures.was_noticed);
  EXPECT_EQ(StatusOf(Get(server->port(), "/")), "200");
}

TEST(HttpServer, NoticesThatClientsUnderTlsHaveGone) {
  const Certificate authority = weir::testing::MakeAuthority();
  const Certificate own = weir::testing::MakeCertificate(authority);
  Departures departures;
  const auto server = Serve({.certificate = own.certificate, .key = own.key},
                            [&](const HttpRequest& r) { return departures.Handle(r); });
  {
    TlsConnection connection(server->port(), authority);
    connection.Send("POST /wait HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    departures.entered.WaitForNotification();
  }
  departures.done.WaitForNotification();
  EXPECT_TRUE(departures.was_noticed);
  EXPECT_EQ(StatusUnderTls(server->port(), authority), "200");
}

TEST(HttpServer, ReadsTheNextRequestThatArrivesDuringOne) {
  absl::Notification entered, go_on;
  const auto server = Serve({}, [&](const HttpRequest& request) {
    if (request.target == "/first") {
      entered.Notify();
      go_on.WaitForNotification();
      EXPECT_FALSE(request.cancellation->cancelled());
    }
    return Echo(request);
  });
  const RawConnection connection(server->port());
  connection.Send("POST /first HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  entered.WaitForNotification();
  connection.Send("POST /second HTTP/1.1\r\nContent-Le");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  go_on.Notify();
  EXPECT_EQ(BodyOf(connection.ReadResponse()), "POST /first ");
  connection.Send("ngth: 3\r\n\r\nabc");
  EXPECT_EQ(BodyOf(connection.ReadResponse()), "POST /second abc");
}

TEST(HttpServer, AdmissionPrecedesTheBody) {
  HttpServerOptions options;
  options.admit = [](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.Header("x-secret") == "yes") return std::nullopt;
    return HttpError(401, "who are you?");
  };
  const auto server = Serve(options);
  const std::string refused = Exchange(
      server->port(), "POST / HTTP/1.1\r\nContent-Length: 50000\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(StatusOf(refused), "401") << "no body, and none is asked for";
  EXPECT_THAT(refused, HasSubstr("Connection: close"));
  EXPECT_EQ(StatusOf(Exchange(server->port(), "GET / HTTP/1.1\r\nX-Secret: yes\r\n\r\n")), "200");
}

TEST(HttpServer, HandlersMayThrow) {
  const auto server = Serve({}, [](const HttpRequest& request) -> HttpResponse {
    if (request.target == "/memory") throw std::bad_alloc();
    throw std::runtime_error("broken \"\xff");
  });
  EXPECT_EQ(StatusOf(Get(server->port(), "/memory")), "503");
  const std::string response = Get(server->port(), "/other");
  EXPECT_EQ(StatusOf(response), "500");
  EXPECT_THAT(response, HasSubstr("broken \\\"\xef\xbf\xbd")) << "JSON in UTF-8";
}

TEST(HttpServer, DrainFinishesRequests) {
  absl::Notification entered, go_on;
  const auto server = Serve({}, [&](const HttpRequest& request) {
    entered.Notify();
    go_on.WaitForNotification();
    return Echo(request);
  });
  const RawConnection connection(server->port());
  connection.Send("GET / HTTP/1.1\r\n\r\n");
  entered.WaitForNotification();
  std::thread drain([&] { server->Drain(std::chrono::seconds(20)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  go_on.Notify();
  EXPECT_THAT(connection.ReadAll(), HasSubstr("Connection: close"));
  drain.join();
}

TEST(HttpServer, ManyClients) {
  const auto server = Serve();
  std::atomic<int> good = 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < 16; ++c) {
    clients.emplace_back([&, c] {
      const RawConnection connection(server->port());
      for (int i = 0; i < 100; ++i) {
        const std::string body = absl::StrCat(c, ":", i);
        connection.Send(
            absl::StrCat("POST / HTTP/1.1\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
        if (BodyOf(connection.ReadResponse()) == absl::StrCat("POST / ", body)) ++good;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, 1600);
}

TEST(HttpServer, Tls) {
  const Certificate authority = weir::testing::MakeAuthority(),
                    other = weir::testing::MakeAuthority();
  const Certificate own = weir::testing::MakeCertificate(authority);
  HttpServerOptions options;
  options.certificate = own.certificate;
  options.key = own.key;
  options.header_timeout = std::chrono::milliseconds(500);
  const auto server = Serve(options);
  EXPECT_EQ(StatusUnderTls(server->port(), authority), "200");
  EXPECT_EQ(StatusUnderTls(server->port(), other), "none");
  EXPECT_EQ(StatusOf(Get(server->port(), "/")), "none") << "not encrypted";
  const RawConnection silent(server->port());
  EXPECT_EQ(silent.ReadAll(), "") << "the handshake has a time limit";

  const Certificate replaced = weir::testing::MakeCertificate(other);
  EXPECT_TRUE(absl::IsInvalidArgument(server->ReplaceTlsFiles("x", "y", "")));
  EXPECT_TRUE(absl::IsInvalidArgument(server->ReplaceTlsFiles(replaced.certificate, own.key, "")));
  EXPECT_TRUE(absl::IsFailedPrecondition(server->ReplaceTlsFiles("", "", "")));
  EXPECT_EQ(StatusUnderTls(server->port(), authority), "200") << "unchanged";
  ASSERT_TRUE(server->ReplaceTlsFiles(replaced.certificate, replaced.key, "").ok());
  EXPECT_EQ(StatusUnderTls(server->port(), other), "200");
}

TEST(HttpServer, ClientCertificates) {
  const Certificate authority = weir::testing::MakeAuthority(),
                    other = weir::testing::MakeAuthority();
  const Certificate own = weir::testing::MakeCertificate(authority);
  HttpServerOptions options;
  options.certificate = own.certificate;
  options.key = own.key;
  options.client_authority = authority.certificate;
  const auto server = Serve(options);
  const Certificate client = weir::testing::MakeCertificate(authority);
  const Certificate stranger = weir::testing::MakeCertificate(other);
  EXPECT_EQ(StatusUnderTls(server->port(), authority, &client), "200");
  EXPECT_EQ(StatusUnderTls(server->port(), authority, &stranger), "none");
  EXPECT_EQ(StatusUnderTls(server->port(), authority), "none");
}

TEST(HttpServer, ClientCertificatesHaveNames) {
  const Certificate authority = weir::testing::MakeAuthority();
  const Certificate own = weir::testing::MakeCertificate(authority);
  const Certificate client = weir::testing::MakeCertificate(authority, "carol.example.com");
  const HttpServerOptions options = {
      .certificate = own.certificate, .key = own.key, .client_authority = authority.certificate};
  const auto server = Serve(options, [](const HttpRequest& request) {
    return HttpResponse{200, "text/plain", absl::StrJoin(request.certificate_names, " ")};
  });
  TlsConnection connection(server->port(), authority, &client);
  connection.Send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(BodyOf(connection.ReadAll()), "127.0.0.1 carol.example.com");
}

}  // namespace
}  // namespace weir::rpc
