#include "weir/ops/containers/queue.h"

#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/lib/array.h"
#include "weir/session/session.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// A queue of int32 scalars, in either form.
class QueuesTest : public ::testing::TestWithParam<bool> {
 protected:
  Queue Fifo(int64_t capacity, const char* shared_name = "") {
    return Queue::Fifo(g_, capacity, {DT_INT32}, Options(shared_name));
  }
  static QueueOptions Options(const char* shared_name = "") {
    return {.shapes = {Shape()}, .shared_name = shared_name, .use_resource = GetParam()};
  }
  Operation Put(const Queue& q, std::initializer_list<int32_t> values) {
    return q.EnqueueMany({Const(g_, values)});
  }
  Session& session() {
    if (!session_) {
      EXPECT_TRUE(g_.status().ok()) << g_.status();
      session_.emplace(*Session::Create(g_, {.num_threads = 2}));
    }
    return *session_;
  }
  absl::Status Run(const Operation& op, std::chrono::milliseconds timeout = {}) {
    return session().Run(Feeds{}, {}, {op}, {.timeout = timeout}).status();
  }
  absl::StatusOr<std::vector<int32_t>> Get(const Output& y,
                                           std::chrono::milliseconds timeout = {}) {
    const auto out = session().Run(Feeds{}, {y}, {}, {.timeout = timeout});
    if (!out.ok()) return out.status();
    const auto flat = (*out)[0].flat<int32_t>();
    return std::vector<int32_t>(flat.begin(), flat.end());
  }
  std::vector<int32_t> Ints(const Output& y) {
    const auto ints = Get(y);
    EXPECT_TRUE(ints.ok()) << ints.status();
    return ints.value_or(std::vector<int32_t>{-1});
  }
  // Waits until pending operations have left this many elements in the queue.
  void AwaitSize(const Output& size, int32_t want) {
    while (Ints(size)[0] != want) std::this_thread::yield();
  }

  Graph g_;
  std::optional<Session> session_;
};

INSTANTIATE_TEST_SUITE_P(Forms, QueuesTest, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Resource" : "Reference");
});

TEST_P(QueuesTest, ReturnsElementsInOrder) {
  const Queue q = Fifo(10);
  const Operation put = Put(q, {1, 2, 3, 4}), one = q.Enqueue({Const(g_, 5)});
  const Output first = q.Dequeue()[0], three = q.DequeueMany(3)[0], size = q.Size();
  EXPECT_EQ(q.handle().node->name(), "fifo_queue");
  EXPECT_EQ(three.node->name(), "fifo_queue_DequeueMany");
  EXPECT_EQ(three.node->input(1).name(), "fifo_queue_DequeueMany/n:0");
  EXPECT_EQ(three.shape(), Shape({3}));
  ASSERT_TRUE(Run(put).ok());
  ASSERT_TRUE(Run(one).ok());
  EXPECT_THAT(Ints(size), ElementsAre(5));
  EXPECT_THAT(Ints(first), ElementsAre(1));
  EXPECT_THAT(Ints(three), ElementsAre(2, 3, 4));
  EXPECT_THAT(Ints(size), ElementsAre(1));
}

TEST_P(QueuesTest, ATupleMayHaveManyTypes) {
  const Queue q = Queue::Fifo(g_, 10, {DT_FLOAT, DT_STRING},
                              {.shapes = {Shape({2}), Shape()}, .use_resource = GetParam()});
  const Operation put = q.EnqueueMany(
      {Const<float>(g_, {2, 2}, {1, 2, 3, 4}), Const(g_, std::vector<std::string>{"a", "b"})});
  const Outputs both = q.DequeueMany(2), none = q.DequeueMany(0);
  ASSERT_TRUE(Run(put).ok());
  const auto empty = session().Run(none);
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ((*empty)[0].shape(), Shape({0, 2}));
  const auto out = session().Run(both);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(IdenticalTensors((*out)[0], Tensor::Of<float>({2, 2}, {1, 2, 3, 4})));
  EXPECT_THAT((*out)[1].flat<std::string>(), ElementsAre("a", "b"));
}

TEST_P(QueuesTest, AClosedQueueReturnsItsElementsThenOutOfRange) {
  const Queue q = Fifo(10);
  const Operation put = Put(q, {1, 2, 3}), close = q.Close();
  const Output two = q.DequeueMany(2)[0], up_to = q.DequeueUpTo(2)[0], one = q.Dequeue()[0];
  const Output is_closed = q.IsClosed();
  ASSERT_TRUE(Run(put).ok());
  EXPECT_FALSE((*session().Run({is_closed}))[0].scalar<bool>());
  ASSERT_TRUE(Run(close).ok());
  EXPECT_TRUE((*session().Run({is_closed}))[0].scalar<bool>());
  EXPECT_THAT(Ints(two), ElementsAre(1, 2));
  const absl::Status too_few = Get(two).status();
  EXPECT_TRUE(absl::IsOutOfRange(too_few)) << too_few;
  EXPECT_THAT(too_few.message(),
              HasSubstr("FIFOQueue '_0_fifo_queue' is closed and has insufficient elements "
                        "(requested 2, current size 1)"));
  EXPECT_THAT(Ints(up_to), ElementsAre(3));
  EXPECT_TRUE(absl::IsOutOfRange(Get(up_to).status()));
  EXPECT_THAT(Get(one).status().message(), HasSubstr("(requested 1, current size 0)"));
  const absl::Status late = Run(put);
  EXPECT_TRUE(absl::IsCancelled(late)) << late;
  EXPECT_THAT(late.message(), HasSubstr("FIFOQueue '_0_fifo_queue' is closed."));
  const absl::Status again = Run(close);
  EXPECT_TRUE(absl::IsCancelled(again)) << again;
  EXPECT_THAT(again.message(), HasSubstr("Queue '_0_fifo_queue' is already closed."));
}

TEST_P(QueuesTest, PendingDequeuesAreServedInOrder) {
  const Queue q = Fifo(10);
  const Operation put = Put(q, {1, 2, 3});
  const Output three = q.DequeueMany(3)[0];
  session();
  std::vector<int32_t> got;
  std::thread taker([&] { got = Ints(three); });
  ASSERT_TRUE(Run(put).ok());
  taker.join();
  EXPECT_THAT(got, ElementsAre(1, 2, 3));
}

TEST_P(QueuesTest, OneStepMayPutAndTake) {
  const Queue q = Fifo(1);
  const Operation put = Put(q, {1, 2, 3});
  const auto out = session().Run(Feeds{}, {q.DequeueMany(3)[0]}, {put});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<int32_t>(), ElementsAre(1, 2, 3));
}

TEST_P(QueuesTest, ABatchMayBeLargerThanTheQueue) {
  const Queue q = Fifo(2);
  const Operation put = Put(q, {1, 2, 3, 4, 5});
  const Output five = q.DequeueMany(5)[0];
  session();
  std::thread putter([&] { EXPECT_TRUE(Run(put).ok()); });
  EXPECT_THAT(Ints(five), ElementsAre(1, 2, 3, 4, 5));
  putter.join();
}

TEST_P(QueuesTest, AFailedStepLeavesTheQueueUnchanged) {
  const Queue q = Fifo(3);
  const Operation put = Put(q, {1, 2, 3}), one_more = q.Enqueue({Const(g_, 4)});
  const Output four = q.DequeueMany(4)[0], three = q.DequeueMany(3)[0], size = q.Size();
  ASSERT_TRUE(Run(put).ok());
  const absl::Status slow = Get(four, std::chrono::milliseconds(30)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(slow)) << slow;
  EXPECT_THAT(Ints(size), ElementsAre(3));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Run(one_more, std::chrono::milliseconds(30))));
  EXPECT_THAT(Ints(three), ElementsAre(1, 2, 3));
  EXPECT_THAT(Ints(size), ElementsAre(0));
}

TEST_P(QueuesTest, AnotherErrorOfTheStepEndsTheWait) {
  const Queue q = Fifo(3);
  const Output taken = q.Dequeue()[0];
  const Operation failure = Assert(Const(g_, false), {Const(g_, "no")});
  const absl::Status s = session().Run(Feeds{}, {taken}, {failure}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
}

TEST_P(QueuesTest, ClosingReturnsElementsOfAPendingBatch) {
  const Queue q = Fifo(3);
  const Operation put = Put(q, {1, 2, 3}), close = q.Close();
  const Output four = q.DequeueMany(4)[0], three = q.DequeueMany(3)[0], size = q.Size();
  ASSERT_TRUE(Run(put).ok());
  absl::Status waited;
  std::thread taker([&] { waited = Get(four).status(); });
  AwaitSize(size, 0);
  ASSERT_TRUE(Run(close).ok());
  taker.join();
  EXPECT_TRUE(absl::IsOutOfRange(waited)) << waited;
  EXPECT_THAT(waited.message(), HasSubstr("(requested 1, current size 0)"));
  EXPECT_THAT(Ints(three), ElementsAre(1, 2, 3));
}

TEST_P(QueuesTest, ClosingServesOrFailsPendingOperations) {
  for (const bool cancel : {false, true}) {
    Graph g;
    const Queue q = Queue::Fifo(g, 1, {DT_INT32}, Options());
    const Operation put = q.EnqueueMany({Const(g, {1, 2})}), close = q.Close(cancel);
    const Output size = q.Size(), one = q.Dequeue()[0];
    Session s = *Session::Create(g);
    absl::Status waited, closed;
    std::thread putter([&] { waited = s.Run(put); });
    while ((*s.Run({size}))[0].scalar<int32_t>() != 1) std::this_thread::yield();
    std::thread closer([&] { closed = s.Run(close); });
    if (cancel) closer.join();
    EXPECT_EQ((*s.Run({one}))[0].scalar<int32_t>(), 1);
    putter.join();
    if (!cancel) closer.join();
    EXPECT_TRUE(closed.ok()) << closed;
    if (cancel) {
      EXPECT_TRUE(absl::IsCancelled(waited)) << waited;
      EXPECT_THAT(waited.message(), HasSubstr("Enqueue operation was cancelled"));
    } else {
      EXPECT_TRUE(waited.ok()) << waited;
      EXPECT_EQ((*s.Run({one}))[0].scalar<int32_t>(), 2);
    }
    EXPECT_TRUE(absl::IsOutOfRange(s.Run({one}).status()));
  }
}

TEST_P(QueuesTest, ClosingTheSessionEndsAllWaits) {
  const Queue q = Fifo(1);
  const Output one = q.Dequeue()[0];
  session();
  absl::Status waited;
  std::thread taker([&] { waited = Get(one).status(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  session().Close();
  taker.join();
  EXPECT_TRUE(absl::IsCancelled(waited)) << waited;
}

TEST_P(QueuesTest, ManyPuttersAndTakersLoseNothing) {
  constexpr int kThreads = 4, kEach = 100;
  const Queue q = Fifo(3);
  const Output x = Placeholder(g_, DT_INT32, Shape({5}));
  const Operation put = q.EnqueueMany({x});
  const Output some = q.DequeueMany(4)[0];
  session();
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const Tensor batch = Tensor::Vector<int32_t>({t, t + 1, i, i + 1, 7});
        EXPECT_TRUE(session().Run({{x, batch}}, {}, {put}).ok());
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < kEach * 5 / 4; ++i) {
        const auto got = Get(some);
        ASSERT_TRUE(got.ok()) << got.status();
        for (const int32_t v : *got) sum += v;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  int64_t want = 0;
  for (int t = 0; t < kThreads; ++t)
    for (int i = 0; i < kEach; ++i) want += t + t + 1 + i + i + 1 + 7;
  EXPECT_EQ(sum, want);
}

// Recorded with TensorFlow 2.21: 12 numbers, three dequeued one by one, four in a batch, and the
// rest after the queue was closed.
TEST_P(QueuesTest, ShufflesAsTensorFlow) {
  g_.set_seed(87654321);
  const Queue q = Queue::RandomShuffle(g_, 20, 2, {DT_INT32}, Options(), 7);
  const Operation put = Put(q, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), close = q.Close();
  const Output one = q.Dequeue()[0], four = q.DequeueMany(4)[0], rest = q.DequeueUpTo(9)[0];
  ASSERT_TRUE(Run(put).ok());
  EXPECT_THAT(Ints(one), ElementsAre(3));
  EXPECT_THAT(Ints(one), ElementsAre(10));
  EXPECT_THAT(Ints(one), ElementsAre(5));
  EXPECT_THAT(Ints(four), ElementsAre(4, 0, 8, 7));
  ASSERT_TRUE(Run(close).ok());
  EXPECT_THAT(Ints(rest), ElementsAre(6, 9, 1, 11, 2));
}

TEST_P(QueuesTest, ShufflingQueueKeepsItsMinimumUntilClosed) {
  const Queue q = Queue::RandomShuffle(g_, 20, 2, {DT_INT32}, Options());
  const Operation put = Put(q, {1, 2, 3}), close = q.Close();
  const Output one = q.Dequeue()[0], two = q.DequeueMany(2)[0];
  ASSERT_TRUE(Run(put).ok());
  const int32_t first = Ints(one)[0];
  EXPECT_TRUE(absl::IsDeadlineExceeded(Get(one, std::chrono::milliseconds(20)).status()));
  ASSERT_TRUE(Run(close).ok());
  std::vector<int32_t> all = Ints(two);
  all.push_back(first);
  EXPECT_THAT(all, UnorderedElementsAre(1, 2, 3));
}

TEST_P(QueuesTest, PaddingQueueBatchesDifferentShapes) {
  const Queue q =
      Queue::PaddingFifo(g_, 10, {DT_INT32, DT_STRING},
                         {.shapes = {Shape({-1, 2}), Shape({-1})}, .use_resource = GetParam()});
  const Output x = Placeholder(g_, DT_INT32), s = Placeholder(g_, DT_STRING);
  const Operation put = q.Enqueue({x, s});
  const Outputs batch = q.DequeueMany(3);
  const auto run = [&](const Tensor& a, const Tensor& b) {
    return session().Run({{x, a}, {s, b}}, {}, {put}).status();
  };
  ASSERT_TRUE(run(Tensor::Of<int32_t>({1, 2}, {1, 2}), Tensor::Vector<std::string>({"a"})).ok());
  ASSERT_TRUE(
      run(Tensor::Of<int32_t>({2, 2}, {3, 4, 5, 6}), Tensor::Vector<std::string>({"b", "c"})).ok());
  ASSERT_TRUE(run(Tensor(DT_INT32, Shape({0, 2})), Tensor(DT_STRING, Shape({0}))).ok());
  const absl::Status wrong =
      run(Tensor::Vector<int32_t>({1, 2}), Tensor::Vector<std::string>({"a"}));
  EXPECT_TRUE(absl::IsInvalidArgument(wrong)) << wrong;
  EXPECT_THAT(wrong.message(), HasSubstr("Shape mismatch in tuple component 0. Expected"));
  const auto out = session().Run(batch);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(IdenticalTensors(
      (*out)[0], Tensor::Of<int32_t>({3, 2, 2}, {1, 2, 0, 0, 3, 4, 5, 6, 0, 0, 0, 0})));
  EXPECT_TRUE(
      IdenticalTensors((*out)[1], Tensor::Of<std::string>({3, 2}, {"a", "", "b", "c", "", ""})));
}

TEST_P(QueuesTest, PriorityQueueReturnsTheSmallestFirst) {
  const Queue q = Queue::Priority(g_, 10, {DT_INT32}, Options());
  const Operation put =
      q.EnqueueMany({Const<int64_t>(g_, {5, -1, 3, 3}), Const(g_, {50, -10, 30, 31})});
  const Operation bad = q.Enqueue({Const<int64_t>(g_, {1, 2}), Const(g_, 1)});
  const Outputs one = q.Dequeue(), three = q.DequeueMany(3);
  ASSERT_TRUE(Run(put).ok());
  EXPECT_THAT(Ints(one[1]), ElementsAre(-10));
  EXPECT_THAT(Ints(three[1]), ElementsAre(30, 31, 50));
  EXPECT_TRUE(absl::IsInvalidArgument(Run(bad)));
}

// ---- errors

TEST_P(QueuesTest, RejectsMismatches) {
  const Queue q =
      Queue::Fifo(g_, 3, {DT_INT32}, {.shapes = {Shape({2})}, .use_resource = GetParam()});
  const Queue open = Queue::Fifo(g_, 3, {DT_INT32}, {.use_resource = GetParam()});
  const Output x = Placeholder(g_, DT_INT32), n = Placeholder(g_, DT_INT32);
  const Operation one = q.Enqueue({x}), many = q.EnqueueMany({x});
  const Operation wrong = q.Enqueue({Const(g_, {1.f, 2.f})});
  const Outputs take = q.DequeueMany(n), no_shapes = open.DequeueMany(2);
  const auto message = [&](const absl::Status& s) {
    EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
    return std::string(s.message());
  };
  const auto put = [&](const Operation& op, const Shape& shape) {
    return message(session().Run({{x, Tensor::Zeros(DT_INT32, shape)}}, {}, {op}).status());
  };
  EXPECT_THAT(put(one, Shape({3})),
              HasSubstr("Shape mismatch in tuple component 0. Expected [2], got [3]"));
  EXPECT_THAT(put(many, Shape({3, 3})),
              HasSubstr("Shape mismatch in tuple component 0. Expected [3,2], got [3,3]"));
  EXPECT_THAT(put(many, Shape()), HasSubstr("must be a vector at least"));
  EXPECT_THAT(message(Run(wrong)), HasSubstr("Type mismatch in tuple component 0"));
  EXPECT_THAT(message(session().Run({{n, Tensor::Scalar<int32_t>(-1)}}, take).status()),
              HasSubstr("DequeueManyOp requested -1 < 0 elements"));
  EXPECT_THAT(message(session().Run(no_shapes).status()), HasSubstr("specified shapes"));
}

TEST_P(QueuesTest, QueuesOfOneSharedNameMustAgree) {
  const Queue a = Fifo(3, "s"), same = Fifo(3, "s"), larger = Fifo(4, "s");
  const Queue shuffled = Queue::RandomShuffle(g_, 3, 0, {DT_INT32}, Options("s"));
  const Operation put = Put(a, {1});
  const Output size = same.Size(), other = larger.Size(), other_kind = shuffled.Size();
  ASSERT_TRUE(Run(put).ok());
  EXPECT_THAT(Ints(size), ElementsAre(1));
  const absl::Status s = Get(other).status(), kind = Get(other_kind).status();
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  EXPECT_THAT(s.message(),
              HasSubstr("Shared queue 's' has capacity 3 but requested capacity was 4"));
  EXPECT_THAT(kind.message(), HasSubstr("Expected FIFOQueue, found RandomShuffleQueue"));
}

TEST_P(QueuesTest, RejectsContradictoryAttributes) {
  const Output few = Queue::RandomShuffle(g_, 3, 3, {DT_INT32}, Options()).Size();
  const Output more = Queue::Fifo(g_, 3, {DT_INT32, DT_INT32}, Options()).Size();
  const Output unknown =
      Queue::Fifo(g_, 3, {DT_INT32}, {.shapes = {Shape({-1})}, .use_resource = GetParam()}).Size();
  const Output no_shape =
      Queue::PaddingFifo(g_, 3, {DT_INT32}, {.use_resource = GetParam()}).Size();
  for (const Output& size : {few, more, unknown, no_shape}) {
    const absl::Status s = Get(size).status();
    EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  }
}

TEST_P(QueuesTest, ResetDeletesTheQueueAndCancelsPendingOperations) {
  const Queue q = Fifo(3);
  const Operation put = Put(q, {1, 2});
  const Output three = q.DequeueMany(3)[0], size = q.Size();
  ASSERT_TRUE(Run(put).ok());
  absl::Status waited;
  std::thread taker([&] { waited = Get(three).status(); });
  AwaitSize(size, 0);
  session().Reset();
  taker.join();
  EXPECT_TRUE(absl::IsCancelled(waited)) << waited;
  EXPECT_THAT(Ints(size), ElementsAre(0));
  EXPECT_TRUE(Run(put).ok());
}

}  // namespace
}  // namespace weir
