#include "weir/rpc/lib/call.h"

#include "gtest/gtest.h"

namespace weir::rpc {
namespace {

TEST(Call, RequestIdsOfClientsAreKeptIfTheyAreVisible) {
  EXPECT_EQ(RequestId("abc/1"), "abc/1");
  const std::string made = RequestId("");
  EXPECT_NE(made, "");
  EXPECT_NE(RequestId(""), made);
  EXPECT_NE(RequestId("two words"), "two words");
  EXPECT_NE(RequestId("a\nb"), "a\nb");
  EXPECT_EQ(RequestId(std::string(128, 'x')).size(), 128);
  EXPECT_LT(RequestId(std::string(129, 'x')).size(), 64);
}

TEST(Call, TraceparentsAreThoseOfW3C) {
  const std::string good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  EXPECT_EQ(Traceparent(good), good);
  EXPECT_EQ(Traceparent("cc" + good.substr(2) + "-more"), "cc" + good.substr(2));
  EXPECT_EQ(Traceparent(good + "-more"), "") << "version 00 has four parts";
  EXPECT_EQ(Traceparent("ff" + good.substr(2)), "");
  EXPECT_EQ(Traceparent(""), "");
  EXPECT_EQ(Traceparent("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"), "");
  EXPECT_EQ(Traceparent("00-00000000000000000000000000000000-b7ad6b7169203331-01"), "");
  EXPECT_EQ(Traceparent("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"), "");
}

TEST(Priority, IsHighUnlessTheClientSaysLow) {
  EXPECT_FALSE(*IsLowPriority(""));
  EXPECT_FALSE(*IsLowPriority("high"));
  EXPECT_TRUE(*IsLowPriority("low"));
  const absl::Status other = IsLowPriority("Low\n").status();
  EXPECT_TRUE(absl::IsInvalidArgument(other));
  EXPECT_EQ(other.message(), "x-weir-priority is 'Low\\n'; expected high or low");
}

}  // namespace
}  // namespace weir::rpc
