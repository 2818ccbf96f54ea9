#include "weir/rpc/metrics.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir::rpc {
namespace {

using ::testing::HasSubstr;

int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  return fd;
}

void Send(int fd, const std::string& text) {
  EXPECT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

std::string ReadAll(int fd) {
  std::string all;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;)
    all.append(buffer, static_cast<size_t>(n));
  return all;
}

// Returns the page at http://127.0.0.1:port/metrics.
std::string Fetch(int port) {
  const int fd = Connect(port);
  Send(fd, "GET /metrics HTTP/1.0\r\n\r\n");
  const std::string page = ReadAll(fd);
  close(fd);
  return page;
}

TEST(Metrics, CountsCallsByMethodAndCode) {
  auto metrics = Metrics::Serve("127.0.0.1", 0);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  const Call call;
  const absl::Status good, bad = absl::AbortedError("x");
  (*metrics)->CountCall({"RunStep", "GRPC", call, good, std::chrono::milliseconds(2)});
  (*metrics)->CountCall({"RunStep", "GRPC", call, good, std::chrono::milliseconds(2)});
  (*metrics)->CountCall({"CreateSession", "GRPC", call, bad, std::chrono::milliseconds(1)});
  (*metrics)->SetLoadCallback([] { return Metrics::Load{3, 4}; });
  const std::string page = Fetch((*metrics)->port());
  EXPECT_THAT(page, HasSubstr(R"(weir_calls_total{code="OK",method="RunStep"} 2)"));
  EXPECT_THAT(page, HasSubstr(R"(weir_calls_total{code="ABORTED",method="CreateSession"} 1)"));
  EXPECT_THAT(page, HasSubstr(R"(weir_call_seconds_count{method="RunStep"} 2)"));
  EXPECT_THAT(page, HasSubstr("weir_sessions 3"));
  EXPECT_THAT(page, HasSubstr("weir_calls 4"));
}

TEST(Metrics, CountsCallsByModelUnderBothNames) {
  const auto metrics = Metrics::Create();
  Call call;
  call.model = "m";
  const absl::Status good, bad = absl::InvalidArgumentError("x");
  metrics->CountCall({"Predict", "GRPC", call, good, std::chrono::milliseconds(2)});
  metrics->CountCall({"Classify", "REST", call, bad, std::chrono::milliseconds(2)});
  const std::string page = metrics->Page();
  EXPECT_THAT(page, HasSubstr(R"(weir_model_calls_total{code="OK",method="Predict",model="m"} 1)"));
  EXPECT_THAT(page, HasSubstr(R"(weir_model_call_seconds_count{method="Predict",model="m"} 1)"));
  EXPECT_THAT(
      page,
      HasSubstr(
          R"(:tensorflow:serving:request_count{model_name="m",status="INVALID_ARGUMENT"} 1)"));
  EXPECT_THAT(page, HasSubstr(":tensorflow:serving:request_latency_count{API=\"Classify\","
                              "entrypoint=\"REST\",model_name=\"m\"} 1"));
  EXPECT_THAT(page, HasSubstr("entrypoint=\"GRPC\",model_name=\"m\",le=\"1983.59"))
      << "buckets of microseconds, 10 times powers of 1.8";
}

TEST(Metrics, HalfRequestsDelayNobody) {
  auto metrics = Metrics::Serve("127.0.0.1", 0);
  ASSERT_TRUE(metrics.ok());
  std::vector<int> connections;
  for (int i = 0; i < 200; ++i) {
    connections.push_back(Connect((*metrics)->port()));
    Send(connections.back(), "GET /metrics HTTP/1.1\r\nHost: x\r\n");
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(Fetch((*metrics)->port()), HasSubstr("weir_sessions 0"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  // The first ones were closed, and the last one can still complete its request.
  EXPECT_EQ(ReadAll(connections[0]), "");
  Send(connections.back(), "\r\n");
  EXPECT_THAT(ReadAll(connections.back()), HasSubstr("200 OK"));
  EXPECT_EQ(ReadAll(connections[190]), "") << "after five seconds";
  for (const int fd : connections) close(fd);
}

TEST(Metrics, RefusesOtherRequests) {
  auto metrics = Metrics::Serve("127.0.0.1", 0);
  ASSERT_TRUE(metrics.ok());
  const auto answer = [&](const std::string& request) {
    const int fd = Connect((*metrics)->port());
    Send(fd, request);
    const std::string got = ReadAll(fd);
    close(fd);
    return got.substr(0, got.find("\r\n"));
  };
  EXPECT_EQ(answer("GET /metrics?x=1 HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK");
  EXPECT_EQ(answer("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(answer("POST /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_EQ(answer("\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(answer(std::string(9000, 'x')), "HTTP/1.1 431 Request Header Fields Too Large");
}

TEST(Metrics, PortInUseIsUnavailable) {
  auto metrics = Metrics::Serve("127.0.0.1", 0);
  ASSERT_TRUE(metrics.ok());
  EXPECT_TRUE(absl::IsUnavailable(Metrics::Serve("127.0.0.1", (*metrics)->port()).status()));
}

}  // namespace
}  // namespace weir::rpc
