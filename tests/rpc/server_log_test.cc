#include "weir/rpc/lib/server_log.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/rpc/lib/clients.h"

namespace weir::rpc {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// Returns what a log writes.
template <class Use>
std::string Written(ServerLog::Format format, ServerLog::Calls calls, Use&& use) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  {
    ServerLog log(format, calls, ends[1]);
    use(log);
  }
  close(ends[1]);
  std::string all;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;)
    all.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  return all;
}

void LogTwoCalls(ServerLog& log) {
  Call call;
  call.connection = "ipv4:127.0.0.1:7";
  call.request_id = "r-1";
  call.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  call.model = "m";
  call.version = 3;
  call.signature = "serving_default";
  const absl::Status good, bad = InvalidArgument("no \"x\"\nhere \xff");
  log.LogCall({"Predict", "GRPC", call, good, std::chrono::microseconds(312)});
  log.LogCall({"Predict", "GRPC", call, bad, std::chrono::microseconds(5)});
}

TEST(ServerLog, TextLines) {
  const std::string text = Written(ServerLog::Format::kText, ServerLog::Calls::kAll, LogTwoCalls);
  const size_t end = text.find('\n');
  EXPECT_THAT(text.substr(0, end),
              MatchesRegex(R"(20..-..-..T..:..:..\.......Z info call method=Predict )"
                           R"(entrypoint=GRPC code=OK micros=312 client=ipv4:127.0.0.1:7 )"
                           R"(request_id=r-1 model=m version=3 signature=serving_default )"
                           R"(trace_id=0af7651916cd43dd8448eb211c80319c )"
                           R"(parent_span_id=b7ad6b7169203331)"));
  const std::string second = text.substr(end + 1);
  EXPECT_THAT(second,
              HasSubstr(" error call method=Predict entrypoint=GRPC code=INVALID_ARGUMENT "));
  EXPECT_THAT(second, HasSubstr(R"(error="no \"x\"\nhere )"));
  EXPECT_EQ(std::count(second.begin(), second.end(), '\n'), 1) << "texts do not break lines";
}

TEST(ServerLog, JsonLines) {
  const std::string text =
      Written(ServerLog::Format::kJson, ServerLog::Calls::kErrors, [](ServerLog& log) {
        LogTwoCalls(log);
        log.LogEvent(ServerLog::Level::kInfo, "model", "m is here");
      });
  ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << "the call without an error is not";
  const auto call = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(call["level"], "error");
  EXPECT_EQ(call["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(call["version"], 3);
  EXPECT_THAT(call["error"].get<std::string>(), HasSubstr("no \"x\"\nhere"));
  const auto event = nlohmann::json::parse(text.substr(text.find('\n') + 1));
  EXPECT_EQ(event["event"], "model");
  EXPECT_EQ(event["text"], "m is here");
}

TEST(ServerLog, NamesTheClientThatTheServerKnows) {
  const std::string text =
      Written(ServerLog::Format::kText, ServerLog::Calls::kAll, [](ServerLog& log) {
        Call call;
        call.connection = "ipv4:127.0.0.1:7";
        call.client = std::make_shared<Client>("alice");
        const absl::Status good;
        log.LogCall({"Predict", "REST", call, good, std::chrono::microseconds(1)});
      });
  EXPECT_THAT(text, HasSubstr(" client=ipv4:127.0.0.1:7 client_name=alice request_id="));
}

TEST(ServerLog, NoCalls) {
  EXPECT_EQ(Written(ServerLog::Format::kText, ServerLog::Calls::kNone, LogTwoCalls), "");
}

TEST(ServerLog, SlowReadersDelayNoCall) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  auto log = std::make_unique<ServerLog>(ServerLog::Format::kText, ServerLog::Calls::kAll, ends[1]);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 60'000; ++i) LogTwoCalls(*log);  // 30 MB, of which 16 may wait
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  std::string last;
  std::thread reader([&] {
    char buffer[1 << 16];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) {
      last.append(buffer, static_cast<size_t>(n));
      if (last.size() > 4096) last.erase(0, last.size() - 4096);
    }
  });
  log = nullptr;
  close(ends[1]);
  reader.join();
  close(ends[0]);
  EXPECT_THAT(last, HasSubstr(" warning dropped lines="));
}

}  // namespace
}  // namespace weir::rpc
