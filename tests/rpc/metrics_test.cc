#include "weir/rpc/metrics.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir::rpc {
namespace {

using ::testing::HasSubstr;

// Returns the page at http://127.0.0.1:port/metrics.
std::string Fetch(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string page;
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) {
    const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
    EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    char buffer[4096];
    for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;)
      page.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return page;
}

TEST(Metrics, CountsCallsByMethodAndCode) {
  auto metrics = Metrics::Serve("127.0.0.1", 0);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  (*metrics)->CountCall("RunStep", absl::OkStatus(), std::chrono::milliseconds(2));
  (*metrics)->CountCall("RunStep", absl::OkStatus(), std::chrono::milliseconds(2));
  (*metrics)->CountCall("CreateSession", absl::AbortedError("x"), std::chrono::milliseconds(1));
  (*metrics)->SetLoadCallback([] { return Metrics::Load{3, 4}; });
  const std::string page = Fetch((*metrics)->port());
  EXPECT_THAT(page, HasSubstr(R"(weir_calls_total{code="OK",method="RunStep"} 2)"));
  EXPECT_THAT(page, HasSubstr(R"(weir_calls_total{code="ABORTED",method="CreateSession"} 1)"));
  EXPECT_THAT(page, HasSubstr(R"(weir_call_seconds_count{method="RunStep"} 2)"));
  EXPECT_THAT(page, HasSubstr("weir_sessions 3"));
  EXPECT_THAT(page, HasSubstr("weir_calls 4"));
}

TEST(Metrics, PortInUseIsUnavailable) {
  auto metrics = Metrics::Serve("127.0.0.1", 0);
  ASSERT_TRUE(metrics.ok());
  EXPECT_TRUE(absl::IsUnavailable(Metrics::Serve("127.0.0.1", (*metrics)->port()).status()));
}

}  // namespace
}  // namespace weir::rpc
