#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/lib/array.h"
#include "weir/session/session.h"

// A tensor of shape [n, 0] takes no memory, whatever n is; its rows as separate tensors do.
namespace weir {
namespace {

class EmptyRows : public ::testing::Test {
 protected:
  EmptyRows() : x_(Placeholder(g_, DT_FLOAT)) {}

  absl::Status Run(Operation op, int64_t rows, Cancellation* cancellation = nullptr) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_);
    const Feeds feeds = {{x_, Tensor(DT_FLOAT, {rows, 0})}};
    return session.Run(feeds, {}, {op}, {.cancellation = cancellation}).status();
  }

  Operation List() { return AddNode("TensorListFromTensor", {x_, Const(g_, -1)}); }

  Graph g_;
  const Output x_;
};

TEST_F(EmptyRows, RejectsMoreThanMemoryHolds) {
  const Operation list = List();
  g_.versions().producer = 10;  // a version that still has TensorArrayUnpack
  const Output array =
      AddOp("TensorArray", {Const(g_, 0)}, {{"dtype", DT_FLOAT}, {"dynamic_size", true}});
  const Operation unpacked = AddNode("TensorArrayUnpack", {array, x_, Const(g_, 0.f)});
  Node* queue = AddNode(g_, "FIFOQueueV2", {}, {{"component_types", DataTypes{DT_FLOAT}}});
  const Operation put = AddNode("QueueEnqueueManyV2", {Output(queue), Outputs{x_}});
  for (const Operation& op : {list, unpacked, put}) {
    EXPECT_TRUE(absl::IsResourceExhausted(Run(op, int64_t{1} << 40))) << op.name();
    EXPECT_TRUE(Run(op, 1000).ok()) << op.name();
  }
}

TEST_F(EmptyRows, ManyEndWithTheirStep) {
  Cancellation over;
  std::thread canceller([&over] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    over.Cancel(absl::DeadlineExceededError("over"));
  });
  const absl::Status status = Run(List(), int64_t{1} << 20, &over);  // a third of a second
  canceller.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

}  // namespace
}  // namespace weir
