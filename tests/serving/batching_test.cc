#include "weir/serving/batching.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/tests/serving/lib/watched_model.h"

namespace weir::serving {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::chrono::microseconds kLong = std::chrono::minutes(10);

// A matrix whose rows begin with these values.
NamedTensors Rows(const std::vector<float>& firsts, int64_t columns = 2) {
  Tensor x = Tensor::Zeros(DT_FLOAT, {static_cast<int64_t>(firsts.size()), columns});
  for (size_t i = 0; i < firsts.size(); ++i)
    x.data<float>()[static_cast<int64_t>(i) * columns] = firsts[i];
  return {{"x", x}};
}

void WaitForRows(const Batcher& batcher, int64_t rows) {
  while (batcher.waiting_rows() != rows) std::this_thread::sleep_for(milliseconds(1));
}

// A call on a thread of its own.
class Caller {
 public:
  Caller(Batcher& batcher, NamedTensors inputs, RunOptions options = {},
         Priority priority = Priority::kHigh, std::vector<std::string> outputs = {})
      : thread_([this, &batcher, inputs, options, priority, outputs] {
          result_ = batcher.Run(inputs, outputs, options, priority);
        }) {}
  Caller(Caller&&) = delete;
  ~Caller() {
    if (thread_.joinable()) thread_.join();
  }
  const absl::StatusOr<NamedTensors>& result() {
    if (thread_.joinable()) thread_.join();
    return result_;
  }
  // y of each row, divided by 2: what the rows began with.
  std::vector<float> firsts() {
    EXPECT_TRUE(result().ok()) << result().status();
    std::vector<float> firsts;
    if (!result().ok()) return firsts;
    const Tensor& y = result()->at("y");
    for (int64_t i = 0; i < y.dim(0); ++i) firsts.push_back(y.data<float>()[i * y.dim(1)] / 2);
    return firsts;
  }

 private:
  absl::StatusOr<NamedTensors> result_;
  std::thread thread_;
};

TEST(Batching, CallsShareAStepAndGetTheirOwnRows) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.max_batch_size = 4, .batch_timeout = kLong});
  Caller a(batcher, Rows({1})), b(batcher, Rows({2, 3})), c(batcher, Rows({4}));
  EXPECT_THAT(a.firsts(), ElementsAre(1));
  EXPECT_THAT(b.firsts(), ElementsAre(2, 3));
  EXPECT_THAT(c.firsts(), ElementsAre(4));
  ASSERT_THAT(model.steps(), SizeIs(1));
  EXPECT_THAT(model.steps()[0], UnorderedElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(a.result()->at("y").SharesBufferWith(b.result()->at("y"))) << "a copy of the results";
}

TEST(Batching, FirstCallOfABatchWaitsForTheTimeout) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.batch_timeout = milliseconds(40)});
  const Clock::time_point start = Clock::now();
  EXPECT_THAT(Caller(batcher, Rows({5})).firsts(), ElementsAre(5));
  EXPECT_GE(Clock::now() - start, milliseconds(40));
}

TEST(Batching, CallsThatArriveWhileThreadsAreBusyShareAStep) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.num_batch_threads = 1});
  model.Hold();
  Caller first(batcher, Rows({1}));
  model.WaitForSteps(1);
  Caller second(batcher, Rows({2})), third(batcher, Rows({3}));
  WaitForRows(batcher, 2);
  model.Release();
  EXPECT_THAT(first.firsts(), ElementsAre(1));
  EXPECT_THAT(second.firsts(), ElementsAre(2));
  EXPECT_THAT(third.firsts(), ElementsAre(3));
  EXPECT_THAT(model.steps(), ElementsAre(SizeIs(1), SizeIs(2)));
}

TEST(Batching, RunsStepsOfAllowedSizesOnly) {
  WatchedModel model;
  for (const std::chrono::microseconds timeout : {milliseconds(0), milliseconds(1)}) {
    Batcher batcher(model.servable(), "",
                    {.max_batch_size = 8, .batch_timeout = timeout, .allowed_batch_sizes = {4, 8}});
    EXPECT_THAT(Caller(batcher, Rows({1, 2, 3})).firsts(), ElementsAre(1, 2, 3));
    EXPECT_THAT(Caller(batcher, Rows({1, 2, 3, 4, 5})).firsts(), ElementsAre(1, 2, 3, 4, 5));
  }
  EXPECT_THAT(model.steps(),
              ElementsAre(ElementsAre(1, 2, 3, 3), ElementsAre(1, 2, 3, 4, 5, 5, 5, 5), SizeIs(4),
                          SizeIs(8)));
}

TEST(Batching, SplitsALargeCall) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.max_batch_size = 3, .max_enqueued_batches = 1});
  std::vector<float> rows;
  for (int i = 0; i < 10; ++i) rows.push_back(static_cast<float>(i));
  EXPECT_THAT(Caller(batcher, Rows(rows)).firsts(), ::testing::ElementsAreArray(rows));
  EXPECT_THAT(model.steps(), UnorderedElementsAre(SizeIs(3), SizeIs(3), SizeIs(3), SizeIs(1)));

  Batcher strict(model.servable(), "", {.max_batch_size = 3, .max_call_rows = 3});
  const absl::Status status = strict.Run(Rows(rows)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("10 is larger than maximum input batch size 3"));
}

TEST(Batching, CallsOfOtherDimensionsOrOutputsRunInOtherSteps) {
  WatchedModel model;
  Batcher batcher(model.servable(), "",
                  {.max_batch_size = 2, .batch_timeout = kLong, .num_batch_threads = 1});
  Caller a(batcher, Rows({1}, 2)), b(batcher, Rows({2}, 3));
  Caller c(batcher, Rows({3}, 2), {}, Priority::kHigh, {"y"});
  WaitForRows(batcher, 3);
  Caller d(batcher, Rows({4}, 2)), e(batcher, Rows({5}, 3));
  Caller f(batcher, Rows({6}, 2), {}, Priority::kHigh, {"y"});
  EXPECT_THAT(f.firsts(), ElementsAre(6));
  EXPECT_THAT(*f.result(), SizeIs(1));
  EXPECT_THAT(*a.result(), SizeIs(2));
  EXPECT_THAT(e.result()->at("y").shape().dims(), ElementsAre(1, 3));
  for (Caller* caller : {&a, &b, &c, &d, &e, &f}) EXPECT_THAT(caller->firsts(), SizeIs(1));
  EXPECT_THAT(model.steps(),
              UnorderedElementsAre(UnorderedElementsAre(1, 4), UnorderedElementsAre(2, 5),
                                   UnorderedElementsAre(3, 6)));
}

TEST(Batching, PadsOtherDimensionsToTheLargest) {
  WatchedModel model;
  Batcher batcher(
      model.servable(), "",
      {.max_batch_size = 2, .batch_timeout = kLong, .pad_variable_length_inputs = true});
  Caller a(batcher, Rows({1}, 2)), b(batcher, Rows({2}, 4));
  ASSERT_TRUE(a.result().ok()) << a.result().status();
  EXPECT_THAT(a.result()->at("y").flat<float>(), ElementsAre(2, 0, 2, 2))
      << "with its first element";
  EXPECT_THAT(b.result()->at("y").flat<float>(), ElementsAre(4, 0, 0, 0));
  EXPECT_THAT(model.steps(), SizeIs(1));
}

TEST(Batching, DoesNotPadManyCallsToTheSizeOfALargeOne) {
  WatchedModel model;
  Batcher batcher(
      model.servable(), "",
      {.max_batch_size = 16, .batch_timeout = kLong, .pad_variable_length_inputs = true});
  Caller large(batcher, Rows({7}, 1 << 20));  // 4 MB
  std::vector<std::unique_ptr<Caller>> small;
  for (int i = 0; i < 15; ++i) small.push_back(std::make_unique<Caller>(batcher, Rows({1})));
  int unpadded = 0;
  for (const auto& caller : small) {
    ASSERT_TRUE(caller->result().ok()) << caller->result().status();
    if (caller->result()->at("y").dim(1) == 2) ++unpadded;
  }
  EXPECT_GE(unpadded, 12);
  EXPECT_THAT(large.firsts(), ElementsAre(7));
}

TEST(Batching, CallLeavesABatchAtItsDeadlineAndTheOthersGoOn) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.max_batch_size = 2, .batch_timeout = kLong});
  model.Hold();
  Caller patient(batcher, Rows({1}));
  WaitForRows(batcher, 1);
  Caller hasty(batcher, Rows({2}), {.timeout = milliseconds(60)});
  EXPECT_EQ(hasty.result().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(hasty.result().status().message(), HasSubstr("while its batch ran"));
  model.Release();
  EXPECT_THAT(patient.firsts(), ElementsAre(1));
  EXPECT_EQ(model.num_cancelled(), 0);
}

TEST(Batching, StepWhoseCallersHaveAllLeftIsCancelled) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.max_batch_size = 2, .batch_timeout = kLong});
  model.Hold();
  Cancellation cancellation;
  Caller a(batcher, Rows({1}), {.timeout = milliseconds(60)});
  Caller b(batcher, Rows({2}), {.cancellation = &cancellation});
  model.WaitForSteps(1);
  EXPECT_EQ(a.result().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(model.num_cancelled(), 0);
  cancellation.Cancel(absl::CancelledError("the client is gone"));
  EXPECT_EQ(b.result().status(), absl::CancelledError("the client is gone"));
  while (model.num_cancelled() == 0) std::this_thread::sleep_for(milliseconds(1));
}

TEST(Batching, WaitingCallLeavesTheQueue) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.max_batch_size = 1, .num_batch_threads = 1});
  model.Hold();
  Caller running(batcher, Rows({1}));
  model.WaitForSteps(1);
  Cancellation cancellation;
  Caller cancelled(batcher, Rows({2, 2, 2}), {.cancellation = &cancellation});
  WaitForRows(batcher, 3);
  Caller late(batcher, Rows({3}), {.timeout = milliseconds(30)});
  EXPECT_EQ(late.result().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(late.result().status().message(), HasSubstr("while it waited for a batch"));
  cancellation.Cancel(absl::CancelledError("the client is gone"));
  EXPECT_EQ(cancelled.result().status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(batcher.waiting_rows(), 0);
  EXPECT_EQ(batcher.Run(Rows({4}), {}, {.cancellation = &cancellation}).status().code(),
            absl::StatusCode::kCancelled);
  model.Release();
  EXPECT_THAT(running.firsts(), ElementsAre(1));
  EXPECT_THAT(model.steps(), SizeIs(1));
}

TEST(Batching, CallAloneInItsBatchKeepsItsDeadlineAndCancellation) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.batch_timeout = milliseconds(1)});
  model.Hold();
  EXPECT_EQ(batcher.Run(Rows({1}), {}, {.timeout = milliseconds(50)}).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  Cancellation cancellation;
  Caller b(batcher, Rows({2}), {.cancellation = &cancellation});
  model.WaitForSteps(2);
  cancellation.Cancel(absl::CancelledError("the client is gone"));
  EXPECT_EQ(b.result().status().code(), absl::StatusCode::kCancelled);
}

TEST(Batching, CallWithADeadlineWaitsForOthersForHalfOfItsTime) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.batch_timeout = kLong});
  EXPECT_TRUE(batcher.Run(Rows({1}), {}, {.timeout = std::chrono::seconds(1)}).ok());
}

TEST(Batching, CallDoesNotWaitIfTheLastOneWaitedInVain) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.max_batch_size = 2, .batch_timeout = kLong});
  EXPECT_TRUE(batcher.Run(Rows({1}), {}, {.timeout = milliseconds(100)}).ok());
  EXPECT_TRUE(batcher.Run(Rows({2})).ok());
}

TEST(Batching, WarmUpRunsStepsOfTheAllowedSizes) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.max_batch_size = 6, .allowed_batch_sizes = {2, 3, 6}});
  EXPECT_TRUE(batcher.WarmUp(Rows({3, 4})).ok());
  EXPECT_THAT(model.steps(),
              ElementsAre(ElementsAre(3, 4), ElementsAre(3, 3), ElementsAre(3, 3, 3), SizeIs(6)));
  EXPECT_EQ(batcher.WarmUp({}).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Batching, FailingCallDoesNotFailItsMates) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.max_batch_size = 4, .batch_timeout = kLong});
  Caller a(batcher, Rows({1})), b(batcher, Rows({WatchedModel::kBadRow}));
  Caller c(batcher, Rows({3})), d(batcher, Rows({4}));
  EXPECT_EQ(b.result().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(b.result().status().message(), HasSubstr("a bad row"));
  EXPECT_THAT(a.firsts(), ElementsAre(1));
  EXPECT_THAT(c.firsts(), ElementsAre(3));
  EXPECT_THAT(d.firsts(), ElementsAre(4));
  EXPECT_THAT(model.steps(), SizeIs(5)) << "all; two halves; two quarters of one";
}

TEST(Batching, CallThatTheSignatureRefusesNeverJoins) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.max_batch_size = 2, .batch_timeout = kLong});
  const auto code = [&](const NamedTensors& inputs, const std::vector<std::string>& outputs = {}) {
    return batcher.Run(inputs, outputs).status().code();
  };
  EXPECT_EQ(code({}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"other", Tensor::Vector<float>({1})}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"x", Tensor::Vector<float>({1})}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"x", Tensor::Of<int32_t>({1, 1}, {1})}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Rows({1}), {"other"}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Rows({1}), {"y", "y"}), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(model.steps(), SizeIs(0));
  EXPECT_EQ(batcher.waiting_rows(), 0);

  Batcher unknown(model.servable(), "classify", {});
  EXPECT_EQ(unknown.Run(Rows({1})).status(), model.servable().Run("classify", Rows({1})).status());
}

TEST(Batching, CallWithoutRowsRunsAlone) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.batch_timeout = kLong, .allowed_batch_sizes = {1000}});
  const auto result = batcher.Run(Rows({}, 3));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->at("y").shape().dims(), ElementsAre(0, 3));
}

TEST(Batching, RefusesCallsBeyondTheQueue) {
  WatchedModel model;
  Batcher batcher(model.servable(), "",
                  {.max_batch_size = 2, .max_enqueued_batches = 2, .num_batch_threads = 1});
  model.Hold();
  Caller running(batcher, Rows({1}));
  model.WaitForSteps(1);
  Caller a(batcher, Rows({2, 3, 4}));
  WaitForRows(batcher, 3);
  const absl::Status status = batcher.Run(Rows({5, 6})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("queue to which this task was submitted is full"),
                                      HasSubstr("3 rows wait")));
  Caller low(batcher, Rows({7}), {}, Priority::kLow);  // the other lane has room
  WaitForRows(batcher, 4);
  model.Release();
  EXPECT_THAT(a.firsts(), ElementsAre(2, 3, 4));
  EXPECT_THAT(low.firsts(), ElementsAre(7));
}

TEST(Batching, HighPriorityGoesFirstAndLowIsNotStarved) {
  WatchedModel model;
  Batcher batcher(model.servable(), "",
                  {.max_batch_size = 1, .max_enqueued_batches = 100, .num_batch_threads = 1});
  model.Hold();
  Caller running(batcher, Rows({0}));
  model.WaitForSteps(1);
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < 2; ++i)
    callers.push_back(std::make_unique<Caller>(batcher, Rows({-1}), RunOptions{}, Priority::kLow));
  WaitForRows(batcher, 2);
  for (int i = 1; i <= 20; ++i) {
    callers.push_back(std::make_unique<Caller>(batcher, Rows({static_cast<float>(i)})));
    WaitForRows(batcher, 2 + i);
  }
  model.Release();
  for (const auto& caller : callers) EXPECT_THAT(caller->firsts(), SizeIs(1));
  std::vector<float> order;
  for (const auto& step : model.steps()) order.push_back(step[0]);
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, -1, 9, 10, 11, 12, 13, 14, 15, 16, -1,
                                 17, 18, 19, 20));
}

TEST(Batching, LowPriorityTakesTheRoomThatIsLeft) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.max_batch_size = 3, .num_batch_threads = 1});
  model.Hold();
  Caller running(batcher, Rows({0}));
  model.WaitForSteps(1);
  Caller low(batcher, Rows({-1}), {}, Priority::kLow);
  Caller low2(batcher, Rows({-2}), {}, Priority::kLow);
  WaitForRows(batcher, 2);
  Caller high(batcher, Rows({1, 2}));
  WaitForRows(batcher, 4);
  model.Release();
  EXPECT_THAT(high.firsts(), ElementsAre(1, 2));
  low.result(), low2.result();
  ASSERT_THAT(model.steps(), ElementsAre(SizeIs(1), SizeIs(3), SizeIs(1)));
  EXPECT_THAT(model.steps()[1], ElementsAre(1, 2, ::testing::Lt(0)));
}

// One thread runs all batches: each of two models, of which one is flooded, gets every second one.
TEST(Batching, ModelsTakeTurns) {
  WatchedModel model;
  const BatchingOptions options = {.max_batch_size = 1, .num_batch_threads = 1};
  Batcher flooded(model.servable(), "", options), other(model.servable(), "", options);
  model.Hold();
  Caller running(flooded, Rows({0}));
  model.WaitForSteps(1);
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < 8; ++i) callers.push_back(std::make_unique<Caller>(flooded, Rows({1})));
  WaitForRows(flooded, 8);
  for (int i = 0; i < 2; ++i) callers.push_back(std::make_unique<Caller>(other, Rows({2})));
  WaitForRows(other, 2);
  model.Release();
  for (const auto& caller : callers) EXPECT_THAT(caller->firsts(), SizeIs(1));
  const auto steps = model.steps();
  const auto is_other = [](const std::vector<float>& step) { return step[0] == 2; };
  EXPECT_EQ(std::count_if(steps.begin(), steps.begin() + 5, is_other), 2) << "of the first five";
}

TEST(Batching, DestructorFinishesTheCalls) {
  WatchedModel model;
  auto batcher =
      std::make_unique<Batcher>(model.servable(), "", BatchingOptions{.batch_timeout = kLong});
  Caller a(*batcher, Rows({1})), b(*batcher, Rows({2}));
  WaitForRows(*batcher, 2);
  batcher.reset();
  EXPECT_THAT(a.firsts(), ElementsAre(1));
  EXPECT_THAT(b.firsts(), ElementsAre(2));
}

TEST(Batching, RefusesSignaturesWithoutABatchDimension) {
  const auto status_of = [](const std::function<TestSignature(Graph&)>& build) {
    const auto servable = MakeServable(build);
    const absl::Status status =
        Batcher::CheckSignature(servable->signatures().at("serving_default"));
    EXPECT_EQ(Batcher(*servable, "", {}).Run({}).status(), status);
    return status;
  };
  const absl::Status scalar = status_of([](Graph& g) -> TestSignature {
    const Output x = Placeholder(g, DT_FLOAT, {-1}, "x");
    return {{{"x", x}}, {{"mean", ReduceMean(x)}}};
  });
  EXPECT_EQ(scalar.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(scalar.message(), HasSubstr("output 'mean' is a scalar"));
  const absl::Status fixed = status_of([](Graph& g) -> TestSignature {
    const Output x = Placeholder(g, DT_FLOAT, {1, 4}, "x");
    return {{{"x", x}}, {{"y", x * 2.f}}};
  });
  EXPECT_THAT(fixed.message(), HasSubstr("input 'x' has a first dimension of fixed size"));
}

TEST(Batching, ResultsWithoutARowForEachRowAreAnError) {
  const auto servable = MakeServable([](Graph& g) -> TestSignature {
    const Output x = Placeholder(g, DT_FLOAT, {-1}, "x");
    return {{{"x", x}}, {{"twice", Concat({x, x}, 0)}}};
  });
  for (const std::chrono::microseconds timeout : {milliseconds(0), milliseconds(1)}) {
    Batcher batcher(*servable, "", {.batch_timeout = timeout});
    const absl::Status status = batcher.Run({{"x", Tensor::Vector<float>({1, 2})}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("'twice' of a batch of 2 rows has shape [4]"),
                                        HasSubstr("0th dimension does not equal the sum")));
  }
}

TEST(Batching, InputsNeedOneNumberOfRows) {
  const auto servable = MakeServable([](Graph& g) -> TestSignature {
    const Output a = Placeholder(g, DT_FLOAT, Shape::UnknownRank(), "a");
    const Output b = Placeholder(g, DT_FLOAT, Shape::UnknownRank(), "b");
    return {{{"a", a}, {"b", b}}, {{"sum", a + b}}};
  });
  Batcher batcher(*servable, "", {});
  const Tensor one = Tensor::Vector<float>({1}), two = Tensor::Vector<float>({1, 2});
  EXPECT_THAT(batcher.Run({{"a", one}, {"b", two}}).status().message(),
              HasSubstr("must have equal 0th-dimension size"));
  EXPECT_THAT(batcher.Run({{"a", one}, {"b", Tensor::Scalar(1.f)}}).status().message(),
              HasSubstr("must have at least one dimension"));
  EXPECT_TRUE(batcher.Run({{"a", two}, {"b", two}}).ok());
}

TEST(Batching, RunReturnsWhatIsWrongWithTheOptions) {
  WatchedModel model;
  Batcher batcher(model.servable(), "", {.max_batch_size = 8, .allowed_batch_sizes = {2, 4}});
  EXPECT_THAT(batcher.Run(Rows({1})).status().message(), HasSubstr("last entry was 4; expected 8"));
}

// Ops that compute each row alike in steps of any number of rows. (Products of matrices add up in
// another order for one row than for several.)
TEST(Batching, RowsHaveTheSameBitsAsWithoutBatching) {
  const auto servable = MakeServable([](Graph& g) -> TestSignature {
    const Output x = Placeholder(g, DT_FLOAT, {-1, 784}, "x");
    return {{{"x", x}}, {{"y", Softmax(Tanh(x * 1.7f) + Sin(x))}}};
  });
  constexpr size_t kCalls = 32;
  Batcher batcher(*servable, "", {.max_batch_size = kCalls, .batch_timeout = kLong});
  std::mt19937 random(7);
  std::vector<NamedTensors> inputs;
  for (size_t i = 0; i < kCalls; ++i) {
    Tensor x(DT_FLOAT, {1, 784});
    for (float& v : x.flat<float>()) v = static_cast<float>(random() % 1000) / 500 - 1;
    inputs.push_back({{"x", x}});
  }
  std::vector<std::unique_ptr<Caller>> callers;
  for (const NamedTensors& input : inputs)
    callers.push_back(std::make_unique<Caller>(batcher, input));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto alone = servable->Run("", inputs[i]);
    ASSERT_TRUE(alone.ok() && callers[i]->result().ok());
    EXPECT_TRUE(IdenticalTensors(alone->at("y"), callers[i]->result()->at("y"))) << i;
  }
}

// The sum in a product of matrices has one order for each size of the step.
TEST(Batching, OneAllowedSizeMakesBitsIndependentOfOtherCalls) {
  const auto servable = MakeServable([](Graph& g) -> TestSignature {
    const Output x = Placeholder(g, DT_FLOAT, {-1, 784}, "x");
    const Variable w = GetVariable(g, "w", {784, 512}, GlorotUniform(1));
    return {{{"x", x}}, {{"y", Relu(MatMul(x, w.value()))}}};
  });
  Batcher batcher(*servable, "",
                  {.max_batch_size = 8, .batch_timeout = kLong, .allowed_batch_sizes = {8}});
  std::vector<NamedTensors> inputs;
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < 8; ++i) {
    Tensor x(DT_FLOAT, {1, 784});
    for (int64_t j = 0; j < 784; ++j)
      x.data<float>()[j] = static_cast<float>((j * 31 + i * 17) % 100) / 70;
    inputs.push_back({{"x", x}});
    callers.push_back(std::make_unique<Caller>(batcher, inputs.back()));
  }
  for (size_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(callers[i]->result().ok()) << callers[i]->result().status();
    const auto alone = batcher.Run(inputs[i], {}, {.timeout = milliseconds(200)});
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_TRUE(IdenticalTensors(alone->at("y"), callers[i]->result()->at("y"))) << i;
  }
}

// Calls of all kinds from many threads: each gets its own answer, or an error that it may get.
TEST(Batching, HoldsUnderLoad) {
  WatchedModel model;
  constexpr int kThreads = 16, kCalls = 150;
  std::vector<std::unique_ptr<Batcher>> batchers;
  for (const int timeout_us : {0, 200}) {
    batchers.push_back(std::make_unique<Batcher>(
        model.servable(), "",
        BatchingOptions{.max_batch_size = 8,
                        .batch_timeout = std::chrono::microseconds(timeout_us),
                        .max_enqueued_batches = 4,
                        .allowed_batch_sizes = {2, 4, 8}}));
  }
  std::atomic<int> answers{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < kCalls; ++i) {
        std::vector<float> firsts(random() % 12);
        for (float& v : firsts) v = static_cast<float>(random() % 100) + 20;
        const bool bad = !firsts.empty() && random() % 16 == 0;
        if (bad) firsts[0] = WatchedModel::kBadRow;
        Cancellation cancellation;
        if (random() % 16 == 0) cancellation.Cancel(absl::CancelledError(""));
        RunOptions options = {.cancellation = &cancellation};
        if (random() % 8 == 0) options.timeout = milliseconds(1);
        const Priority priority = random() % 2 == 0 ? Priority::kLow : Priority::kHigh;
        const NamedTensors inputs = Rows(firsts, 1 + random() % 2);
        const auto result = batchers[random() % 2]->Run(inputs, {}, options, priority);
        if (!result.ok()) {
          const absl::StatusCode code = result.status().code();
          const bool may_fail = code == absl::StatusCode::kUnavailable ||
                                code == absl::StatusCode::kDeadlineExceeded ||
                                code == absl::StatusCode::kCancelled ||
                                (bad && code == absl::StatusCode::kInvalidArgument);
          if (!may_fail) ++wrong;
          continue;
        }
        ++answers;
        const Tensor& x = inputs.at("x");
        const Tensor& y = result->at("y");
        bool right = !bad && y.shape() == x.shape();
        for (int64_t j = 0; right && j < x.num_elements(); ++j)
          right = y.data<float>()[j] == 2 * x.data<float>()[j];
        if (!right) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(answers, kThreads * kCalls / 4);
  for (const auto& batcher : batchers) EXPECT_EQ(batcher->waiting_rows(), 0);
}

}  // namespace
}  // namespace weir::serving
