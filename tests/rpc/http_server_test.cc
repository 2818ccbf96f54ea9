#include "weir/rpc/http/http_server.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/tests/rpc/certificates.h"
#include "weir/tests/rpc/http_client.h"

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

// Sends a request under TLS, as a client that trusts `authority`. Returns the status, or "none".
std::string StatusUnderTls(int port, const Certificate& authority,
                           const Certificate* own = nullptr) {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  BIO* bio = BIO_new_mem_buf(authority.certificate.data(), -1);
  X509* const trusted = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context), trusted);
  X509_free(trusted);
  BIO_free(bio);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (own != nullptr) {
    bio = BIO_new_mem_buf(own->certificate.data(), -1);
    X509* const certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    SSL_CTX_use_certificate(context, certificate);
    X509_free(certificate);
    BIO_free(bio);
    bio = BIO_new_mem_buf(own->key.data(), -1);
    EVP_PKEY* const key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
    SSL_CTX_use_PrivateKey(context, key);
    EVP_PKEY_free(key);
    BIO_free(bio);
  }
  SSL* const tls = SSL_new(context);
  const RawConnection connection(port);
  SSL_set_fd(tls, connection.fd());
  std::string response;
  static constexpr absl::string_view kRequest = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
  if (SSL_connect(tls) == 1 && SSL_write(tls, kRequest.data(), kRequest.size()) > 0) {
    char buffer[4096];
    for (int n; (n = SSL_read(tls, buffer, sizeof(buffer))) > 0;)
      response.append(buffer, static_cast<size_t>(n));
  }
  SSL_free(tls);
  SSL_CTX_free(context);
  return StatusOf(response);
}

TEST(HttpServer, Tls) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to connections that the server has closed
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
  std::signal(SIGPIPE, SIG_IGN);
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

}  // namespace
}  // namespace weir::rpc
