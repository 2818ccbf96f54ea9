// Data sets whose elements are prepared ahead: by which threads, in which order, how many, and how
// errors and cancellations end them.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/shape_context.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

// What the kernels of the test have seen.
struct Calls {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> begun{0}, running{0}, most_running{0};
  std::atomic<bool> endless{false};

  void Begin() {
    ++begun;
    const int now = ++running;
    for (int most = most_running; most < now && !most_running.compare_exchange_weak(most, now);) {
    }
    const std::lock_guard<std::mutex> lock(mutex);
    threads.insert(std::this_thread::get_id());
  }
};

// Slow returns its argument after 3 ms, and fails for negative ones; Fast does so at once.
class DatasetAheadTest : public ::testing::Test {
 protected:
  DatasetAheadTest() : ops_(&BuiltinOps()), kernels_(&BuiltinKernels()), g_(Registered()) {}

  const OpRegistry& Registered() {
    for (const auto& [op, pause] : {std::pair("Slow", 3), std::pair("Fast", 0)}) {
      ops_.Add(OpSpec(op).In("x: int64").Out("y: int64").InferShape(SameShape).Doc("For tests."));
      kernels_.Add(op, kCpu, [this, pause](const KernelInit&) -> absl::StatusOr<Kernel> {
        return Kernel([this, pause](KernelContext& c) { return Run(c, pause); });
      });
    }
    return ops_;
  }

  absl::Status Run(KernelContext& c, int pause) {
    calls_.Begin();
    const int64_t x = c.input(0).IntAt(0);
    const auto end = std::chrono::steady_clock::now() + milliseconds(pause);
    while (pause > 0 && (calls_.endless || std::chrono::steady_clock::now() < end)) {
      if (c.cancellation() != nullptr && c.cancellation()->cancelled()) break;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    --calls_.running;
    if (c.cancellation() != nullptr && c.cancellation()->cancelled())
      return c.cancellation()->status();
    if (x < 0) return InvalidArgument("negative: ", x);
    c.SetOutput(0, Tensor::Scalar(x));
    return absl::OkStatus();
  }

  Output Number(int64_t n) { return Const(g_, Tensor::Scalar(n)); }
  static Attrs Elements(DataType type = DT_INT64, const Shape& shape = Shape()) {
    return {{"output_types", DataTypes{type}}, {"output_shapes", std::vector<Shape>{shape}}};
  }
  Output Range(int64_t start, int64_t stop) {
    return AddOp("RangeDataset", {Number(start), Number(stop), Number(1)}, Elements());
  }
  FunctionRef Define(const std::string& name,
                     const std::function<Output(Graph&, const Output&)>& build) {
    Graph body(ops_);
    const Output x = Placeholder(body, DT_INT64, {});
    EXPECT_TRUE(DefineFunction(g_, name, body, {x}, {build(body, x)}).ok());
    return FunctionRef{name, nullptr};
  }
  FunctionRef OpFunction(const char* op) {
    return Define(std::string("f_") + op, [op](Graph&, const Output& x) { return AddOp(op, {x}); });
  }
  Output Map(const Output& set, const FunctionRef& f, int64_t calls, DataType type = DT_INT64) {
    Attrs attrs = Elements(type);
    attrs.emplace_back("f", f);
    return AddOp("ParallelMapDatasetV2", {set, Outputs(), Number(calls)}, attrs);
  }
  Output Prefetch(const Output& set, int64_t size) {
    return AddOp("PrefetchDataset", {set, Number(size)}, Elements());
  }
  // Creates a session in which next_ gets the elements of the set.
  Session Start(const Output& set, int threads, DataType type = DT_INT64,
                const Shape& shape = Shape()) {
    Attrs attrs = Elements(type, shape);
    attrs.emplace_back("shared_name", "");
    attrs.emplace_back("container", "");
    const Output iterator = AddNode(g_, "IteratorV2", {}, attrs)->output(0);
    const Operation start(AddNode("MakeIterator", {set, iterator}));
    next_ = AddOp("IteratorGetNext", {iterator}, Elements(type, shape));
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_, {.num_threads = threads, .kernels = &kernels_});
    const absl::Status started = session.Run(start);
    EXPECT_TRUE(started.ok()) << started;
    return session;
  }
  // Returns the elements until the end, -1000 for one that is an error.
  std::vector<int64_t> All(Session& session) {
    std::vector<int64_t> all;
    while (all.size() < 1000) {
      const auto got = session.Run({next_});
      if (got.status().code() == absl::StatusCode::kOutOfRange) break;
      all.push_back(got.ok() ? (*got)[0].IntAt(0) : -1000);
    }
    return all;
  }
  static std::vector<int64_t> NumbersOf(const Tensor& t) {
    const auto numbers = t.flat<int64_t>();
    return {numbers.begin(), numbers.end()};
  }
  static std::vector<int64_t> Counted(int64_t begin, int64_t end) {
    std::vector<int64_t> numbers;
    for (int64_t i = begin; i < end; ++i) numbers.push_back(i);
    return numbers;
  }

  OpRegistry ops_;
  KernelRegistry kernels_;
  Calls calls_;
  Graph g_;
  Output next_;
};

TEST_F(DatasetAheadTest, LongCallsRunOnAllThreadsTheConsumersToo) {
  const Output set = Prefetch(Map(Range(0, 40), OpFunction("Slow"), 2), 2);
  Session session = Start(set, /*threads=*/2);
  EXPECT_EQ(All(session), Counted(0, 40));
  EXPECT_EQ(calls_.most_running, 2);
  EXPECT_EQ(calls_.threads.size(), 2u);
  EXPECT_TRUE(calls_.threads.contains(std::this_thread::get_id()));
  EXPECT_EQ(calls_.begun, 40) << "no element is computed twice";
}

TEST_F(DatasetAheadTest, ShortCallsStayOnTheConsumersThread) {
  const Output set = Prefetch(Map(Range(0, 500), OpFunction("Fast"), 4), 8);
  Session session = Start(set, /*threads=*/2);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(session.Run({next_}).ok());
  EXPECT_EQ(calls_.begun, 3) << "nothing is read ahead";
  EXPECT_EQ(All(session), Counted(3, 500));
  EXPECT_EQ(calls_.begun, 500);
}

TEST_F(DatasetAheadTest, CallsAreBounded) {
  for (const int64_t calls : {1, 2, 3}) {
    calls_.begun = calls_.most_running = 0;
    Session session = Start(Map(Range(0, 1000), OpFunction("Slow"), calls), /*threads=*/4);
    constexpr int kTaken = 6;
    for (int i = 0; i < kTaken; ++i) ASSERT_TRUE(session.Run({next_}).ok());
    std::this_thread::sleep_for(milliseconds(60));
    EXPECT_LE(calls_.most_running, calls);
    EXPECT_LE(calls_.begun, kTaken + calls + 2) << calls;
    EXPECT_GT(calls_.begun, kTaken) << "some are ahead";
  }
}

TEST_F(DatasetAheadTest, AutomaticCallsAreBoundedToo) {
  Session session = Start(Prefetch(Map(Range(0, 1000), OpFunction("Slow"), -1), -1), 2);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(session.Run({next_}).ok());
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_LE(calls_.begun, 6 + 8);
}

TEST_F(DatasetAheadTest, AnErrorIsTheErrorOfItsElement) {
  for (const int threads : {1, 2, 4}) {
    Session session = Start(Map(Range(-12, 8), OpFunction("Slow"), 3), threads);
    std::vector<int64_t> expected(12, -1000);
    for (int64_t i = 0; i < 8; ++i) expected.push_back(i);
    EXPECT_EQ(All(session), expected) << threads;
  }
}

// As in TensorFlow: MapAndBatchDataset goes on with the next batch, BatchDataset with the next
// element.
TEST_F(DatasetAheadTest, AnErrorEndsItsBatch) {
  const auto batches = [&](const Output& set, int threads) {
    Session session = Start(set, threads, DT_INT64, Shape({Shape::kUnknown}));
    std::vector<std::vector<int64_t>> all;
    while (all.size() < 20) {
      const auto got = session.Run({next_});
      if (got.status().code() == absl::StatusCode::kOutOfRange) break;
      all.push_back(got.ok() ? NumbersOf(got->front()) : std::vector<int64_t>{-1000});
    }
    return all;
  };
  const FunctionRef checked = Define("checked", [&](Graph& body, const Output& x) {
    const Output seven = Const(body, Tensor::Scalar<int64_t>(7));
    const Output five = Const(body, Tensor::Scalar<int64_t>(5));
    const Output is_bad = Equal(AddOp("FloorMod", {x, seven}), five);
    return AddOp("Slow", {Select(is_bad, -x, x)});
  });
  const Output keep = Const(g_, Tensor::Scalar(false));
  Attrs attrs = Elements(DT_INT64, Shape({Shape::kUnknown}));
  const Output plain =
      AddOp("BatchDatasetV2", {Map(Range(0, 14), checked, 3), Number(4), keep}, attrs);
  attrs.emplace_back("f", checked);
  const Output fused =
      AddOp("MapAndBatchDataset", {Range(0, 14), Outputs(), Number(4), Number(3), keep}, attrs);
  using Batch = std::vector<int64_t>;
  const Batch error = {-1000};
  for (const int threads : {1, 2, 4}) {
    EXPECT_THAT(batches(plain, threads),
                ElementsAre(Batch{0, 1, 2, 3}, error, Batch{6, 7, 8, 9}, error, Batch{13}));
    EXPECT_THAT(batches(fused, threads),
                ElementsAre(Batch{0, 1, 2, 3}, error, Batch{8, 9, 10, 11}, error));
  }
}

TEST_F(DatasetAheadTest, OneThreadComputesNestedPipelines) {
  const FunctionRef slow = OpFunction("Slow");
  const FunctionRef sum = [&] {
    Graph body(ops_);
    const Outputs args = {Placeholder(body, DT_INT64, {}), Placeholder(body, DT_INT64, {})};
    EXPECT_TRUE(DefineFunction(g_, "sum", body, args, {args[0] + args[1]}).ok());
    return FunctionRef{"sum", nullptr};
  }();
  const FunctionRef total = Define("total", [&](Graph& body, const Output& x) {
    const auto number = [&](int64_t n) { return Const(body, Tensor::Scalar(n)); };
    const Output range = AddOp("RangeDataset", {number(0), x, number(1)}, Elements());
    Attrs of_map = Elements(), of_sum = Elements();
    of_map.emplace_back("f", slow);
    const Output mapped =
        AddOp("ParallelMapDatasetV2", {range, Outputs(), number(3)}, std::move(of_map));
    const Output ahead = AddOp("PrefetchDataset", {mapped, number(2)}, Elements());
    of_sum.emplace_back("f", sum);
    return AddOp("ReduceDataset", {ahead, Outputs{number(0)}, Outputs()}, std::move(of_sum));
  });
  for (const int threads : {1, 2, 4}) {
    Session session = Start(Prefetch(Map(Range(3, 9), total, 4), 2), threads);
    EXPECT_THAT(All(session), ElementsAre(3, 6, 10, 15, 21, 28)) << threads;
  }
}

TEST_F(DatasetAheadTest, ManyPipelinesShareTheThreads) {
  std::vector<Output> nexts;
  Outputs sets;
  const FunctionRef slow = OpFunction("Slow");
  for (int64_t i = 0; i < 3; ++i) sets.push_back(Prefetch(Map(Range(i, i + 20), slow, 2), 2));
  std::vector<std::unique_ptr<std::thread>> threads;
  std::vector<Operation> starts;
  for (const Output& set : sets) {
    Attrs attrs = Elements();
    attrs.emplace_back("shared_name", "");
    attrs.emplace_back("container", "");
    const Output iterator = AddNode(g_, "IteratorV2", {}, attrs)->output(0);
    starts.emplace_back(AddNode("MakeIterator", {set, iterator}));
    nexts.push_back(AddOp("IteratorGetNext", {iterator}, Elements()));
  }
  Session session = *Session::Create(g_, {.num_threads = 2, .kernels = &kernels_});
  for (const Operation& start : starts) ASSERT_TRUE(session.Run(start).ok());
  for (int64_t i = 0; i < 3; ++i) {
    threads.push_back(std::make_unique<std::thread>([&, i] {
      for (int64_t k = 0; k < 20; ++k) {
        const auto got = session.Run({nexts[i]});
        ASSERT_TRUE(got.ok()) << got.status();
        EXPECT_EQ((*got)[0].IntAt(0), i + k);
      }
    }));
  }
  for (const auto& thread : threads) thread->join();
}

TEST_F(DatasetAheadTest, InterleavedDataSetsReadOnAllThreads) {
  const FunctionRef slow = OpFunction("Slow");
  const FunctionRef three = Define("three", [&](Graph& body, const Output& x) {
    const auto number = [&](int64_t n) { return Const(body, Tensor::Scalar(n)); };
    const Output range = AddOp("RangeDataset", {x, x + number(6), number(1)}, Elements());
    Attrs attrs = Elements();
    attrs.emplace_back("f", slow);
    return AddOp("MapDataset", {range, Outputs()}, std::move(attrs));
  });
  Attrs attrs = Elements();
  attrs.emplace_back("f", three);
  const Output hundreds = AddOp("RangeDataset", {Number(0), Number(400), Number(100)}, Elements());
  const Output set =
      AddOp("ParallelInterleaveDatasetV4",
            {hundreds, Outputs(), Number(2), Number(1), Number(-1), Number(-1), Number(2)}, attrs);
  Session session = Start(set, /*threads=*/2);
  std::vector<int64_t> expected;
  for (int64_t pair = 0; pair < 4; pair += 2)
    for (int64_t i = 0; i < 6; ++i)
      for (int64_t k = 0; k < 2; ++k) expected.push_back((pair + k) * 100 + i);
  EXPECT_EQ(All(session), expected);
  EXPECT_EQ(calls_.most_running, 2);
}

TEST_F(DatasetAheadTest, ATimedOutStepLosesNoElement) {
  Session session = Start(Prefetch(Map(Range(0, 1000), OpFunction("Slow"), 2), 2), 2);
  for (int64_t i = 0; i < 6; ++i) ASSERT_TRUE(session.Run({next_}).ok());
  calls_.endless = true;
  const auto begin = std::chrono::steady_clock::now();
  absl::Status status;
  int64_t taken = 6;  // elements that were done
  for (; taken < 20; ++taken) {
    status = session.Run(Feeds{}, {next_}, {}, {.timeout = milliseconds(30)}).status();
    if (!status.ok()) break;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  calls_.endless = false;
  for (int64_t i = taken; i < taken + 10; ++i) {
    const auto got = session.Run({next_});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ((*got)[0].IntAt(0), i);
  }
}

// The elements of an unfinished batch stay for the next step, and so does that of an unfinished
// call.
TEST_F(DatasetAheadTest, ATimedOutStepLosesNoElementOfABatch) {
  Attrs of_map = Elements();
  of_map.emplace_back("f", OpFunction("Slow"));
  const Output mapped = AddOp("MapDataset", {Range(0, 100), Outputs()}, of_map);
  const Output batched =
      AddOp("BatchDatasetV2", {mapped, Number(4), Const(g_, Tensor::Scalar(true))},
            Elements(DT_INT64, Shape({4})));
  for (const int threads : {1, 2}) {
    Session session = Start(batched, threads, DT_INT64, Shape({4}));
    int timed_out = 0, lost = 0;
    for (int64_t next = 0; next < 40 && timed_out < 1000;) {
      const auto got = session.Run(Feeds{}, {next_}, {}, {.timeout = milliseconds(7)});
      if (!got.ok()) {
        ++timed_out;
        continue;
      }
      const std::vector<int64_t> batch = NumbersOf(got->front());
      for (; next < batch[0]; next += 4) ++lost;
      EXPECT_EQ(batch, Counted(next, next + 4)) << threads;
      next += 4;
    }
    EXPECT_GT(timed_out, 0);
    // The limit may pass between the node that returns a whole batch and the end of its step.
    EXPECT_LE(lost, 1);
  }
}

TEST_F(DatasetAheadTest, TheSessionEndsWithCallsInFlight) {
  auto session = std::make_unique<Session>(
      Start(Prefetch(Map(Range(0, 1000), OpFunction("Slow"), 4), 4), /*threads=*/4));
  for (int64_t i = 0; i < 6; ++i) ASSERT_TRUE(session->Run({next_}).ok());
  calls_.endless = true;
  std::this_thread::sleep_for(milliseconds(20));
  const auto begin = std::chrono::steady_clock::now();
  session.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  EXPECT_EQ(calls_.running, 0);
}

// As drawn by calls one after another.
TEST_F(DatasetAheadTest, RandomNumbersAreDrawnInOrder) {
  const FunctionRef noisy = Define("noisy", [](Graph& body, const Output& x) {
    const Output shape = Const(body, Tensor::Vector<int32_t>({}));
    const Output noise = AddOp("RandomUniform", {shape},
                               {{"seed", int64_t{3}}, {"seed2", int64_t{4}}, {"dtype", DT_FLOAT}});
    return Cast(AddOp("Slow", {x}), DT_FLOAT) + noise;
  });
  std::vector<std::vector<float>> drawn;
  const Output one = Map(Range(0, 30), noisy, 4, DT_FLOAT);
  for (const int threads : {1, 2, 4}) {
    Session session = Start(one, threads, DT_FLOAT);
    std::vector<float>& all = drawn.emplace_back();
    calls_.most_running = 0;
    for (int64_t i = 0; i < 30; ++i) {
      const auto got = session.Run({next_});
      ASSERT_TRUE(got.ok()) << got.status();
      all.push_back((*got)[0].scalar<float>());
    }
    EXPECT_EQ(calls_.most_running > 1, threads > 1);
    EXPECT_EQ(all, drawn[0]) << threads;
  }
}

// Calls that are made again after their step has ended draw what they drew before.
TEST_F(DatasetAheadTest, RandomNumbersOutliveATimedOutStep) {
  const FunctionRef noisy = Define("noisy", [](Graph& body, const Output& x) {
    const Output shape = Const(body, Tensor::Vector<int32_t>({}));
    Node* const noise = AddNode("RandomUniform", {shape},
                                {{"seed", int64_t{3}}, {"seed2", int64_t{4}}, {"dtype", DT_FLOAT}});
    Node* const slow = AddNode("Slow", {x});
    EXPECT_TRUE(body.AddControlInput(slow, noise).ok());
    return Cast(slow->output(0), DT_FLOAT) + noise->output(0);
  });
  const Output one = Map(Range(0, 40), noisy, 4, DT_FLOAT);
  std::vector<std::vector<float>> drawn;
  for (const int threads : {1, 2, 4}) {
    Session session = Start(one, threads, DT_FLOAT);
    std::vector<float>& all = drawn.emplace_back();
    int timed_out = 0;
    while (all.size() < 30) {
      const int wanted = all.size() < 5 ? 0 : all.size() < 18 ? 3 : 6;
      calls_.endless = threads > 1 && timed_out < wanted;
      RunOptions options;
      if (calls_.endless) options.timeout = milliseconds(15);
      const auto got = session.Run(Feeds{}, {next_}, {}, options);
      if (got.ok()) {
        all.push_back((*got)[0].scalar<float>());
      } else {
        ASSERT_EQ(got.status().code(), absl::StatusCode::kDeadlineExceeded) << got.status();
        ++timed_out;
      }
    }
    EXPECT_EQ(timed_out, threads > 1 ? 6 : 0);
    EXPECT_EQ(all, drawn[0]) << threads;
  }
}

// A counter in a variable counts in order.
TEST_F(DatasetAheadTest, FunctionsThatChangeStateRunOneAtATime) {
  const Attrs counter = {
      {"dtype", DT_INT64}, {"shape", Shape()}, {"shared_name", "count"}, {"container", ""}};
  const Output handle = AddNode(g_, "VarHandleOp", {}, counter)->output(0);
  const Operation init(AddNode("AssignVariableOp", {handle, Number(0)}));
  const FunctionRef counted = Define("counted", [&](Graph& body, const Output& x) {
    const Output count = AddNode(body, "VarHandleOp", {}, counter)->output(0);
    const Output slow = AddOp("Slow", {x});
    Node* const add = AddNode("AssignAddVariableOp", {count, slow});
    Node* const read = AddNode("ReadVariableOp", {count}, {{"dtype", DT_INT64}});
    EXPECT_TRUE(body.AddControlInput(read, add).ok());
    return read->output(0);
  });
  Session session = Start(Map(Range(0, 12), counted, 4), /*threads=*/4);
  ASSERT_TRUE(session.Run(init).ok());
  EXPECT_THAT(All(session), ElementsAre(0, 1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 66));
  EXPECT_EQ(calls_.most_running, 1);
}

}  // namespace
}  // namespace weir
