#include "weir/core/runtime/rendezvous.h"

#include <optional>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir {
namespace {

using testing::HasSubstr;

constexpr char kEdge[] =
    "/job:ps/replica:0/task:0/device:CPU:0;88b14a9c0b901372;/job:worker/replica:0/task:0/"
    "device:CPU:0;edge_4_v/read;0:0";

RendezvousKey Key(const std::string& text) { return *RendezvousKey::Parse(text); }

// What a Receive has got, once it has got something.
struct Got {
  std::vector<absl::StatusOr<SentValue>> values;
  Rendezvous::Done Note() {
    return [this](absl::StatusOr<SentValue> value) { values.push_back(std::move(value)); };
  }
};

TEST(RendezvousKey, HasFiveParts) {
  const RendezvousKey key = Key(kEdge);
  EXPECT_EQ(key.send_device, "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(key.receive_device, "/job:worker/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(key.incarnation, 0x88b14a9c0b901372u);
  EXPECT_EQ(key.edge, "edge_4_v/read");
  EXPECT_EQ(key.text, kEdge);
  for (const char* text : {"", "a;b", "a;;c;d;0:0", "a;xyz;c;d;0:0", "a;0x1;c;d;0:0", "a;1;c;d;e;f",
                           ";1;c;d;0:0", "a;11112222333344445;c;d;0:0"}) {
    const auto bad = RendezvousKey::Parse(text);
    EXPECT_TRUE(absl::IsInvalidArgument(bad.status())) << text;
    EXPECT_THAT(bad.status().message(), HasSubstr("Invalid  rendezvous key: "));
  }
}

TEST(Rendezvous, ValuesWaitForReceivers) {
  LocalRendezvous rendezvous;
  const RendezvousKey key = Key(kEdge);
  ASSERT_TRUE(rendezvous.Send(key, {Tensor::Scalar(1.f), false}).ok());
  ASSERT_TRUE(rendezvous.Send(key, {Tensor(), true}).ok());
  Got got;
  rendezvous.Receive(key, nullptr, got.Note());
  rendezvous.Receive(key, nullptr, got.Note());
  ASSERT_EQ(got.values.size(), 2u);
  EXPECT_EQ(got.values[0]->value.scalar<float>(), 1.f);
  EXPECT_TRUE(got.values[1]->is_dead);
}

TEST(Rendezvous, ReceiversWaitForValues) {
  LocalRendezvous rendezvous;
  const RendezvousKey key = Key(kEdge);
  RendezvousKey other = key;
  other.text += "1";
  Got first, second;
  rendezvous.Receive(key, nullptr, first.Note());
  rendezvous.Receive(key, nullptr, second.Note());
  ASSERT_TRUE(rendezvous.Send(other, {Tensor::Scalar(0.f), false}).ok());
  EXPECT_TRUE(first.values.empty());
  ASSERT_TRUE(rendezvous.Send(key, {Tensor::Scalar(1.f), false}).ok());
  ASSERT_TRUE(rendezvous.Send(key, {Tensor::Scalar(2.f), false}).ok());
  ASSERT_EQ(first.values.size(), 1u);
  EXPECT_EQ(first.values[0]->value.scalar<float>(), 1.f);
  EXPECT_EQ(second.values[0]->value.scalar<float>(), 2.f);
}

TEST(Rendezvous, CancellingEndsAWait) {
  LocalRendezvous rendezvous;
  const RendezvousKey key = Key(kEdge);
  Cancellation cancellation;
  Got got, after;
  rendezvous.Receive(key, &cancellation, got.Note());
  cancellation.Cancel(absl::CancelledError("enough"));
  ASSERT_EQ(got.values.size(), 1u);
  EXPECT_EQ(got.values[0].status(), absl::CancelledError("enough"));
  rendezvous.Receive(key, &cancellation, after.Note());
  EXPECT_EQ(after.values[0].status(), absl::CancelledError("enough"));
  // The value is for whoever comes next.
  ASSERT_TRUE(rendezvous.Send(key, {Tensor::Scalar(3.f), false}).ok());
  Got next;
  rendezvous.Receive(key, nullptr, next.Note());
  EXPECT_EQ(next.values[0]->value.scalar<float>(), 3.f);
}

TEST(Rendezvous, AbortEndsAllWaits) {
  LocalRendezvous rendezvous;
  const RendezvousKey key = Key(kEdge);
  Got before, after;
  rendezvous.Receive(key, nullptr, before.Note());
  rendezvous.Abort(absl::AbortedError("Cleanup 7"));
  rendezvous.Abort(absl::InternalError("later"));
  rendezvous.Receive(key, nullptr, after.Note());
  EXPECT_EQ(before.values[0].status(), absl::AbortedError("Cleanup 7"));
  EXPECT_EQ(after.values[0].status(), absl::AbortedError("Cleanup 7"));
  EXPECT_EQ(rendezvous.Send(key, {}), absl::AbortedError("Cleanup 7"));
}

// Each wait ends once, whoever comes first.
TEST(Rendezvous, RacesOfValuesAndCancellations) {
  for (int i = 0; i < 300; ++i) {
    LocalRendezvous rendezvous;
    const RendezvousKey key = Key(kEdge);
    Cancellation cancellation;
    std::atomic<int> ended{0};
    rendezvous.Receive(key, &cancellation, [&](absl::StatusOr<SentValue>) { ++ended; });
    std::thread sender([&] { (void)rendezvous.Send(key, {Tensor::Scalar(1.f), false}); });
    std::thread canceller([&] { cancellation.Cancel(absl::CancelledError("enough")); });
    sender.join();
    canceller.join();
    EXPECT_EQ(ended, 1);
  }
}

}  // namespace
}  // namespace weir
