#include "weir/core/tensor/cancellation.h"

#include <ctime>

#include <cmath>
#include <complex>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/containers/data_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

// Kernels whose step is cancelled: they leave their loops soon, whatever kind of loop it is.
namespace weir {
namespace {

using std::chrono::milliseconds;

// Processor seconds, on a machine that is shared with others; a loop that is not left takes several
// seconds.
constexpr double kMaxSeconds = 1;

// Returns the processor time of all threads of this process; other processes are not counted.
double ProcessorSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class T, class F>
Tensor Filled(const Shape& shape, F value) {
  Tensor out = Tensor::Allocate(HostAllocator(), DataTypeOf<T>::value, shape).value();
  uint64_t state = 1;
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    out.data<T>()[i] = static_cast<T>(value(i, state >> 33));
  }
  return out;
}

Tensor Floats(const Shape& shape) {
  return Filled<float>(
      shape, [](int64_t, uint64_t r) { return static_cast<float>(r % 65536) / 65536.0f; });
}
template <class T>
Tensor Ints(const Shape& shape, uint64_t limit) {
  return Filled<T>(shape, [limit](int64_t, uint64_t r) { return r % limit; });
}
template <class T>
Tensor Rising(const Shape& shape, int64_t each = 1) {
  return Filled<T>(shape, [each](int64_t i, uint64_t) { return i / each; });
}
Tensor Texts(int64_t count, const std::string& text) {
  Tensor out = Tensor::Allocate(HostAllocator(), DT_STRING, Shape({count})).value();
  for (int64_t i = 0; i < count; ++i) out.data<std::string>()[i] = text;
  return out;
}
Tensor IntVector(std::initializer_list<int32_t> values) { return Tensor::Vector<int32_t>(values); }
Tensor LongVector(std::initializer_list<int64_t> values) { return Tensor::Vector<int64_t>(values); }

// A node that takes seconds.
struct LongOp {
  std::string op;
  std::function<Tensors()> inputs;
  Attrs attrs = {};
  size_t list = 0;  // the first `list` inputs are a list
};

std::string NameOf(const testing::TestParamInfo<LongOp>& info) {
  return info.param.op + std::to_string(info.index);
}

class LongOpTest : public testing::TestWithParam<LongOp> {
 protected:
  // Shapes and values of the inputs are not known when the step is prepared.
  Output Build(const Tensors& inputs) {
    NodeBuilder builder(graph_, GetParam().op);
    builder.Name("late");
    Outputs fed;
    for (const Tensor& input : inputs) {
      fed.push_back(Placeholder(graph_, input.dtype()));
      feeds_.emplace_back(fed.back(), input);
    }
    const size_t list = GetParam().list;
    if (list > 0) builder.InputList(absl::MakeSpan(fed).first(list));
    for (size_t i = list; i < fed.size(); ++i) builder.Input(fed[i]);
    for (const auto& [name, value] : GetParam().attrs) builder.Attr(name, value);
    return builder.BuildOutput();
  }

  Graph graph_;
  Feeds feeds_;
};

// The node has an error that names it, and nothing keeps running in the background: the step takes
// little processor time in all, including its prompt end and that of the session.
TEST_P(LongOpTest, EndsSoonAfterItsTimeLimit) {
  for (const int threads : {1, 2}) {
    feeds_.clear();
    const Output y = Build(GetParam().inputs());
    ASSERT_TRUE(graph_.status().ok()) << graph_.status();
    [[maybe_unused]] double before = 0;
    {
      Session session = Session::Create(graph_, {.num_threads = threads}).value();
      ASSERT_TRUE(session.Prepare({}, {Const(graph_, 1)}).ok());
      absl::Status status;
      // On a busy machine the limit may pass before the step is prepared; the next one finds it so.
      for (int i = 0; i < 5; ++i) {
        before = ProcessorSeconds();
        status = session.Run(feeds_, {y}, {}, {.timeout = milliseconds(50)}).status();
        if (!absl::StrContains(status.message(), "while it was being prepared")) break;
      }
      EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
#ifndef WEIR_SANITIZED  // sanitized steps may not have reached the node in that time
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr("(node late"));
#endif
    }
#ifndef WEIR_SANITIZED
    EXPECT_LT(ProcessorSeconds() - before, kMaxSeconds) << threads << " threads";
#endif
  }
}

constexpr int64_t kMillion = 1'000'000;

INSTANTIATE_TEST_SUITE_P(
    Elements, LongOpTest,
    testing::Values(LongOp{"StatelessSampleDistortedBoundingBox",
                           [] {
                             return Tensors{IntVector({40, 50, 3}), Floats(Shape({1, 1, 4})),
                                            Tensor::Scalar(1e30f), IntVector({1, 9})};
                           },
                           {{"max_attempts", int64_t{2147483647}}}},
                    LongOp{"Betainc", [] { return Tensors(3, Floats(Shape({4 * kMillion}))); }},
                    LongOp{"Cumsum",
                           [] {
                             return Tensors{Floats(Shape({8000, 8000})), Tensor::Scalar(0)};
                           }},
                    LongOp{"Cumsum",
                           [] {
                             return Tensors{Floats(Shape({80 * kMillion})), Tensor::Scalar(0)};
                           }},
                    LongOp{"RandomStandardNormal",
                           [] {
                             return Tensors{IntVector({20'000, 10'000})};
                           },
                           {{"dtype", DT_FLOAT}}},
                    LongOp{"StatelessTruncatedNormal",
                           [] {
                             return Tensors{IntVector({20'000, 10'000}), LongVector({1, 2})};
                           },
                           {{"dtype", DT_FLOAT}}},
                    LongOp{"Multinomial",
                           [] {
                             return Tensors{Floats(Shape({10, 1000})), Tensor::Scalar(3'000'000)};
                           }}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Products, LongOpTest,
    testing::Values(
        LongOp{"MatMul",
               [] {
                 return Tensors(2, Floats(Shape({5000, 5000})));
               }},
        LongOp{"MatMul",
               [] {
                 const Tensor x = Filled<std::complex<float>>(
                     Shape({1500, 1500}), [](int64_t i, uint64_t) { return i % 7; });
                 return Tensors{x, x};
               }},
        LongOp{"BatchMatMulV2",
               [] {
                 return Tensors(2, Floats(Shape({3, 3000, 3000})));
               }},
        LongOp{"Einsum",
               [] {
                 return Tensors(2, Floats(Shape({3000, 3000})));
               },
               {{"equation", "ij,jk->ik"}},
               2},
        LongOp{"SparseTensorDenseMatMul",
               [] {
                 const int64_t n = 400'000;
                 return Tensors{Ints<int64_t>(Shape({n, 2}), 1000), Floats(Shape({n})),
                                LongVector({1000, 1000}), Floats(Shape({1000, 5000}))};
               }},
        LongOp{"Conv2D",
               [] {
                 return Tensors{
                     Filled<double>(Shape({8, 128, 128, 64}),
                                    [](int64_t, uint64_t r) { return r; }),
                     Filled<double>(Shape({3, 3, 64, 64}), [](int64_t, uint64_t r) { return r; })};
               },
               {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "SAME"}}},
        LongOp{"Dilation2D",
               [] {
                 return Tensors{Floats(Shape({8, 256, 256, 32})), Floats(Shape({9, 9, 32}))};
               },
               {{"strides", std::vector<int64_t>{1, 1, 1, 1}},
                {"rates", std::vector<int64_t>{1, 1, 1, 1}},
                {"padding", "SAME"}}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Searches, LongOpTest,
    testing::Values(
        LongOp{"Unique", [] { return Tensors{Ints<int64_t>(Shape({20 * kMillion}), 1u << 30)}; }},
        LongOp{"ListDiff",
               [] {
                 return Tensors{Ints<int64_t>(Shape({10 * kMillion}), 1u << 30),
                                Ints<int64_t>(Shape({10 * kMillion}), 1u << 20)};
               }},
        LongOp{"TopKV2",
               [] {
                 return Tensors{Floats(Shape({16 * kMillion})), Tensor::Scalar(4'000'000)};
               }},
        LongOp{"NthElement",
               [] {
                 return Tensors{Ints<int32_t>(Shape({40 * kMillion}), 1u << 30),
                                Tensor::Scalar(20'000'000)};
               }},
        LongOp{"SparseReorder",
               [] {
                 const int64_t n = 3 * kMillion;
                 return Tensors{Ints<int64_t>(Shape({n, 2}), 1u << 30), Floats(Shape({n})),
                                LongVector({1 << 30, 1 << 30})};
               }},
        LongOp{"DenseToDenseSetOperation",
               [] {
                 const Tensor x = Ints<int64_t>(Shape({100, 20'000}), 1u << 30);
                 return Tensors{x, x};
               },
               {{"set_operation", "union"}}},
        LongOp{"RandomShuffle", [] { return Tensors{Ints<int64_t>(Shape({40 * kMillion}), 10)}; }},
        LongOp{"LogUniformCandidateSampler",
               [] {
                 return Tensors{Ints<int64_t>(Shape({1, 1}), 1)};
               },
               {{"num_true", 1},
                {"num_sampled", 2'000'000},
                {"unique", true},
                {"range_max", 2'100'000}}},
        LongOp{"NonMaxSuppressionV3",
               [] {
                 const int64_t n = 60'000;
                 const Tensor boxes = Filled<float>(Shape({n, 4}), [](int64_t i, uint64_t) {
                   return static_cast<float>(i / 4) + (i % 4 < 2 ? 0.0f : 1.0f);
                 });
                 return Tensors{boxes, Floats(Shape({n})), Tensor::Scalar(static_cast<int>(n)),
                                Tensor::Scalar(0.5f), Tensor::Scalar(-1.0f)};
               }},
        LongOp{"EditDistance",
               [] {
                 const int64_t n = 50'000;
                 const Tensor at = Filled<int64_t>(
                     Shape({n, 2}), [](int64_t i, uint64_t) { return i % 2 * (i / 2); });
                 const Tensor size = LongVector({1, n});
                 return Tensors{at, Ints<int64_t>(Shape({n}), 5), size,
                                at, Ints<int64_t>(Shape({n}), 7), size};
               }},
        LongOp{"CTCBeamSearchDecoder",
               [] {
                 return Tensors{Floats(Shape({20'000, 1, 200})), IntVector({20'000})};
               },
               {{"beam_width", 100}, {"top_paths", 1}}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    TextsAndImages, LongOpTest,
    testing::Values(LongOp{"StringSplit",
                           [] {
                             return Tensors{Texts(100'000, std::string(300, ' ') + "a b c d e f"),
                                            Tensor::Scalar(std::string(" "))};
                           },
                           {{"skip_empty", false}}},
                    LongOp{"RegexReplace",
                           [] {
                             return Tensors{Texts(3 * kMillion, "a text with some words in it"),
                                            Tensor::Scalar(std::string("[aeiou]+")),
                                            Tensor::Scalar(std::string("_"))};
                           }},
                    LongOp{"UnicodeDecode",
                           [] { return Tensors{Texts(kMillion, "a text with some words in it")}; },
                           {{"input_encoding", "UTF-8"}}},
                    LongOp{"EncodePng",
                           [] {
                             return Tensors{Ints<uint8_t>(Shape({4000, 6000, 3}), 256)};
                           }},
                    LongOp{"EncodeJpeg",
                           [] {
                             return Tensors{Ints<uint8_t>(Shape({8000, 8000, 3}), 256)};
                           }},
                    LongOp{"FractionalMaxPool",
                           [] {
                             return Tensors{Floats(Shape({4, 1000, 1000, 32}))};
                           },
                           {{"pooling_ratio", std::vector<float>{1, 1.5, 1.5, 1}}}},
                    LongOp{"FFT2D",
                           [] {
                             return Tensors{Filled<std::complex<float>>(
                                 Shape({3000, 4000}), [](int64_t i, uint64_t) { return i % 7; })};
                           }},
                    LongOp{"MatrixSquareRoot",
                           [] {
                             return Tensors{
                                 Filled<double>(Shape({400, 400}), [](int64_t i, uint64_t r) {
                                   return i % 401 == 0 ? 100 : static_cast<double>(r % 100) / 100;
                                 })};
                           }}),
    NameOf);

// Inside one call of LAPACK, which ends at its next call of BLAS.
Tensors DiagonallyDominant(int64_t n) {
  return {Filled<float>(Shape({n, n}), [n](int64_t i, uint64_t r) {
    return static_cast<float>(r % 100) / 100.0f + (i % (n + 1) == 0 ? static_cast<float>(n) : 0.0f);
  })};
}
Tensors SelfAdjoint(int64_t n) {
  return {Filled<float>(Shape({n, n}), [n](int64_t i, uint64_t) {
    const int64_t row = i / n, column = i % n;
    return static_cast<float>((row + column) % 17) + (row == column ? static_cast<float>(n) : 0.0f);
  })};
}
INSTANTIATE_TEST_SUITE_P(
    Decompositions, LongOpTest,
    testing::Values(LongOp{"Cholesky", [] { return SelfAdjoint(7000); }},
                    LongOp{"Lu", [] { return DiagonallyDominant(5000); }},
                    LongOp{"MatrixInverse", [] { return DiagonallyDominant(4000); }},
                    LongOp{"Qr", [] { return DiagonallyDominant(3000); }},
                    LongOp{"Svd",
                           [] {
                             return Tensors{Floats(Shape({2000, 2000}))};
                           }},
                    LongOp{"Svd",
                           [] {
                             return Tensors{Floats(Shape({2500, 2500}))};
                           },
                           {{"compute_uv", false}}},
                    LongOp{"SelfAdjointEigV2", [] { return SelfAdjoint(3000); }},
                    LongOp{"Eig",
                           [] {
                             return Tensors{Floats(Shape({1200, 1200}))};
                           },
                           {{"Tout", DT_COMPLEX64}}},
                    LongOp{"MatrixSolveLs",
                           [] {
                             return Tensors{Floats(Shape({3000, 3000})), Floats(Shape({3000, 10})),
                                            Tensor::Scalar(0.0)};
                           },
                           {{"fast", false}}}),
    NameOf);

class CancelledStepTest : public testing::Test {
 protected:
  Graph graph_;
  const Output x_ = Placeholder(graph_, DT_FLOAT);
  const Tensor large_ = Floats(Shape({5000, 5000}));
};

// Closing a session does not wait for the matrix products of its steps.
TEST_F(CancelledStepTest, CloseEndsRunningSteps) {
  const Output y = MatMul(x_, x_);
  Session session = Session::Create(graph_, {.num_threads = 2}).value();
  absl::Status status;
  std::thread caller([&] { status = session.Run({{x_, large_}}, {y}).status(); });
  std::this_thread::sleep_for(milliseconds(100));
  [[maybe_unused]] const double before = ProcessorSeconds();
  session.Close();
  caller.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
#ifndef WEIR_SANITIZED
  EXPECT_LT(ProcessorSeconds() - before, kMaxSeconds);
#endif
}

// The same for a caller that cancels a step; the session remains usable.
TEST_F(CancelledStepTest, TheSessionRemainsUsable) {
  const Output y = MatMul(x_, x_);
  Session session = Session::Create(graph_, {.num_threads = 2}).value();
  Cancellation cancellation;
  std::thread canceller([&] {
    std::this_thread::sleep_for(milliseconds(100));
    cancellation.Cancel(absl::CancelledError("enough"));
  });
  const absl::Status status =
      session.Run({{x_, large_}}, {y}, {}, {.cancellation = &cancellation}).status();
  canceller.join();
  EXPECT_EQ(status, absl::CancelledError("enough"));
  const Tensor small = Tensor::Of<float>(Shape({1, 1}), {2});
  EXPECT_EQ(session.Run({{x_, small}}, {y}).value()[0].data<float>()[0], 4);
}

// A kernel that writes a variable is not interrupted: the variable has the old value or the new
// one.
TEST_F(CancelledStepTest, NoVariableIsPartiallyWritten) {
  const int64_t n = 40 * kMillion;
  const Tensor ones = Filled<float>(Shape({n}), [](int64_t, uint64_t) { return 1; });
  const Variable v = MakeVariable(graph_, Fill({n}, Const(graph_, 1.0f)), {.name = "v"});
  const Output added = v.AssignAdd(x_);
  const Output low = ReduceMin(v.value()), high = ReduceMax(v.value());
  Session session = Session::Create(graph_, {.num_threads = 2}).value();
  ASSERT_TRUE(session.Run(Feeds{}, {}, {GlobalVariablesInitializer(graph_)}).ok());
  for (int delay = 0; delay < 40; delay += 4) {
    Cancellation cancellation;
    std::thread canceller([&] {
      std::this_thread::sleep_for(milliseconds(delay));
      cancellation.Cancel(absl::CancelledError("enough"));
    });
    session.Run({{x_, ones}}, {}, {Operation(added)}, {.cancellation = &cancellation})
        .status()
        .IgnoreError();
    canceller.join();
    const Tensors range = session.Run(Feeds{}, {low, high}).value();
    EXPECT_EQ(range[0].data<float>()[0], range[1].data<float>()[0]) << delay;
  }
}

// Elements are skipped one by one.
TEST_F(CancelledStepTest, DataSetsEnd) {
  const Attrs elements = {{"output_types", DataTypes{DT_INT64}},
                          {"output_shapes", std::vector<Shape>{Shape()}}};
  const auto number = [this](int64_t n) { return Const(graph_, Tensor::Scalar(n)); };
  const Output range =
      AddOp("RangeDataset", {number(0), number(int64_t{1} << 60), number(1)}, elements);
  const Output late = AddOp("SkipDataset", {range, number(int64_t{1} << 59)}, elements);
  for (const bool ahead : {false, true}) {
    const Output set = ahead ? AddOp("PrefetchDataset", {late, number(2)}, elements) : late;
    const Output iterator = NodeBuilder(graph_, "IteratorV2")
                                .Attr("shared_name", "")
                                .Attr("container", "")
                                .Attr("output_types", DataTypes{DT_INT64})
                                .Attr("output_shapes", std::vector<Shape>{Shape()})
                                .BuildOutput();
    const Operation start(NodeBuilder(graph_, "MakeIterator").Input(set).Input(iterator).Build());
    const Output next = AddOp("IteratorGetNext", {iterator}, elements);
    Session session = Session::Create(graph_, {.num_threads = 2}).value();
    ASSERT_TRUE(session.Run(Feeds{}, {}, {start}).ok());
    const absl::Status status =
        session.Run(Feeds{}, {next}, {}, {.timeout = milliseconds(50)}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("(node IteratorGetNext"));
  }
}

// Constant folding while a step is prepared is cancelled too, and the plan that it leaves is valid.
TEST_F(CancelledStepTest, PreparingEnds) {
  const int64_t n = 50'000;
  const Output at = Const(
      graph_, Filled<int64_t>(Shape({n, 2}), [](int64_t i, uint64_t) { return i % 2 * (i / 2); }));
  const Output size = Const(graph_, LongVector({1, n}));
  const Output values = Const(graph_, Ints<int64_t>(Shape({n}), 5));
  const Output y = AddOp("EditDistance", {at, values, size, at, values, size});
  [[maybe_unused]] const double before = ProcessorSeconds();
  {
    Session session = Session::Create(graph_, {.num_threads = 2}).value();
    const absl::Status status =
        session.Run(Feeds{}, {y}, {}, {.timeout = milliseconds(50)}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  }  // waits for a preparation that goes on
#ifndef WEIR_SANITIZED
  EXPECT_LT(ProcessorSeconds() - before, kMaxSeconds);
#endif
}

}  // namespace
}  // namespace weir
