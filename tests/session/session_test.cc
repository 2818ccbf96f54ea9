#include "weir/session/session.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/random/random.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Session Start(const Graph& graph, SessionOptions options = {}) {
  absl::StatusOr<Session> session = Session::Create(graph, std::move(options));
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

std::vector<float> Floats(const Tensor& t) {
  return {t.flat<float>().begin(), t.flat<float>().end()};
}

TEST(Session, ComputesFetches) {
  Graph g;
  const Output x = Const(g, {1.f, 2.f, 3.f});
  const Output y = x * 2.f + 1.f;
  Session session = Start(g);
  const auto out = session.Run({y});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Floats((*out)[0]), ElementsAre(3, 5, 7));
}

TEST(Session, FeedReplacesAnyTensor) {
  Graph g;
  const Output x = Const(g, {1.f, 2.f});
  const Output middle = Square(x);
  const Output y = middle + 1.f;
  Session session = Start(g);
  const auto out = session.Run({{middle, Tensor::Vector<float>({10, 20})}}, {y});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(Floats((*out)[0]), ElementsAre(11, 21));
}

TEST(Session, ConnectionFeedsComputedValues) {
  Graph g;
  const Output a = Placeholder(g, DT_FLOAT, {}, "a"), b = Placeholder(g, DT_FLOAT, {}, "b");
  const Output square = Square(a);
  const Output sum = b + 1.f;
  Session session = Start(g);
  const auto step = session.Prepare({a}, {sum}, {}, {{square, b}});
  ASSERT_TRUE(step.ok()) << step.status();
  Tensors out;
  ASSERT_TRUE(step->Run({Tensor::Scalar(3.f)}, &out).ok());
  EXPECT_EQ(out[0].scalar<float>(), 10);
  EXPECT_FALSE(session.Run({{a, Tensor::Scalar(3.f)}}, {sum}).ok()) << "of that step alone";

  const auto code = [&](const Outputs& feeds, const Output& fetch, const Connections& connections) {
    return session.Prepare(feeds, {fetch}, {}, connections).status().code();
  };
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code({a, b}, sum, {{square, b}}), kInvalid) << "fed besides";
  EXPECT_EQ(code({a}, b, {{square, b}}), kInvalid) << "fetched besides";
  EXPECT_EQ(code({a}, sum, {{square, b}, {a, b}}), kInvalid) << "connected twice";
  EXPECT_EQ(code({}, sum, {{sum, b}}), kInvalid) << "on a cycle";
  EXPECT_EQ(code({}, sum, {{Const(g, int32_t{1}), b}}), kInvalid) << "of another type";
  EXPECT_EQ(code({}, sum, {{Const(g, {1.f, 2.f}), b}}), kInvalid) << "of another shape";
  EXPECT_EQ(code({}, sum, {{Output(), b}}), kInvalid);
}

TEST(Session, FetchOfAFeedIsAnInvalidArgument) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape({-1}));
  Session session = Start(g);
  const auto out = session.Run({{x, Tensor::Vector<float>({4, 5})}}, {x, x});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(out.status().message()), HasSubstr("both fed and fetched"));
}

TEST(Session, ControlSuccessorsOfAFedPlaceholderDoNotRunIt) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape({}), "x");
  Output y;
  Operation z;
  {
    ControlDependencies after(g, {Operation(x)});
    y = Identity(Const(g, 2.f));
    z = NoOp(g);
  }
  Session session = Start(g);
  const Feeds feeds = {{x, Tensor::Scalar(1.f)}};
  const auto out = session.Run(feeds, {y}, {z});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<float>(), 2);
  // As in TensorFlow: if it is not fed, or is a target, it does run.
  for (const absl::Status& s :
       {session.Run({y}).status(), session.Run(feeds, {}, {Operation(x)}).status()}) {
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
    EXPECT_THAT(std::string(s.message()), HasSubstr("You must feed a value"));
  }
}

TEST(Session, RunsAgainWithOtherFeedShapes) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape({-1}));
  const Output y = ReduceSum(x * 2.f);
  Session session = Start(g);
  for (int n = 0; n < 40; ++n) {  // more shapes than the session keeps plans for
    Tensor value(DT_FLOAT, Shape({n}));
    for (int i = 0; i < n; ++i) value.data<float>()[i] = 1;
    const auto out = session.Run({{x, value}}, {y});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), 2.f * static_cast<float>(n));
  }
}

// Each is a view of a value in the step's arena, whose memory must not be reused in the meantime.
TEST(Session, AnyNumberOfValuesPassesThroughOneNode) {
  Graph g;
  Outputs in, out;
  const Output x = Placeholder(g, DT_FLOAT, Shape({4}));
  for (int i = 0; i < 300; ++i) in.push_back(x + static_cast<float>(i));
  Node* const pass = AddNode("IdentityN", {in});
  ASSERT_NE(pass, nullptr) << g.status();
  for (int i = 0; i < 300; ++i) out.push_back(pass->output(i) * 2.f);
  const Output all = Concat(out, 0);
  Session session = Start(g);
  const auto y = session.Run({{x, Tensor::Vector<float>({1, 2, 3, 4})}}, {all});
  ASSERT_TRUE(y.ok()) << y.status();
  for (int i = 0; i < 300; ++i) {
    for (int k = 0; k < 4; ++k) EXPECT_EQ(Floats((*y)[0])[4 * i + k], 2.f * (i + k + 1));
  }
}

TEST(Session, BadFeedsAreInvalidArguments) {
  Graph g;
  Graph other;
  const Output x = Placeholder(g, DT_FLOAT, Shape({2}), "x");
  const Output y = x + 1.f;
  const Output foreign = Placeholder(other, DT_FLOAT, Shape({2}), "x");
  Session session = Start(g);
  const Tensor good = Tensor::Vector<float>({1, 2});
  const auto expect_invalid = [&](const Feeds& feeds, const std::string& words) {
    const absl::Status s = session.Run(feeds, {y}).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
    EXPECT_THAT(std::string(s.message()), HasSubstr(words));
  };
  expect_invalid({{x, Tensor::Vector<float>({1, 2, 3})}},
                 "Cannot feed value of shape [3] for Tensor 'x:0'");
  expect_invalid({{x, Tensor::Vector<int32_t>({1, 2})}}, "x:0");
  expect_invalid({{x, good}, {x, good}}, "fed more than once");
  expect_invalid({{foreign, good}}, "not an element of this graph");
  expect_invalid({}, "x");  // a placeholder that is not fed
  EXPECT_TRUE(session.Run({{x, good}}, {y}).ok());
}

TEST(Session, UnknownNamesAreNotFound) {
  Graph g;
  Const(g, 1.f, "c");
  Session session = Start(g);
  EXPECT_EQ(session.Run({}, {"nope:0"}, {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(session.Run({}, {"c:1"}, {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(session.Run({}, {}, {"nope"}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(session.Run({}, {"c:0", "c"}, {"c"}).ok());
}

TEST(Session, CreateReturnsTheGraphError) {
  Graph g;
  MatMul(Const(g, Tensor::Zeros(DT_FLOAT, Shape({2, 3}))),
         Const(g, Tensor::Zeros(DT_FLOAT, Shape({2, 3}))));
  const absl::StatusOr<Session> session = Session::Create(g);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(session.status().message()), HasSubstr("MatMul"));
}

TEST(Session, KernelErrorsNameTheNode) {
  Graph g;
  const Output x = Placeholder(g, DT_INT32, Shape({-1}));
  const Output y = FloorDiv(x, Const(g, {0}), "ratio");
  Session session = Start(g);
  const absl::Status s = session.Run({{x, Tensor::Vector<int32_t>({1})}}, {y}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(s.message()), HasSubstr("ratio"));
}

TEST(Session, ExceptionsOfKernelsAreErrorsOfTheirNodes) {
  OpRegistry ops(&BuiltinOps());
  KernelRegistry kernels(&BuiltinKernels());
  for (const char* op : {"Throw", "ThrowLater"}) {
    ops.Add(
        OpSpec(op).In("x: float").Out("y: float").Stateful().InferShape(SameShape).Doc("Fails."));
  }
  kernels.Add("Throw", kCpu, [](const KernelInit&) -> absl::StatusOr<Kernel> {
    return Kernel([](KernelContext&) -> absl::Status { throw std::runtime_error("no way"); });
  });
  kernels.Add("ThrowLater", kCpu, [](const KernelInit&) -> absl::StatusOr<Kernel> {
    return Kernel([](KernelContext&, const Kernel::Done&) { throw std::length_error("too long"); });
  });
  Graph g(ops);
  const Output x = Placeholder(g, DT_FLOAT, {2});
  const Output now = AddOp("Throw", {x}), later = AddOp("ThrowLater", {x});
  for (const int threads : {1, 2}) {
    Session session = Start(g, {.num_threads = threads, .kernels = &kernels});
    const Feeds feeds = {{x, Tensor::Vector<float>({1, 2})}};
    for (int i = 0; i < 2; ++i) {
      const absl::Status thrown = session.Run(feeds, {now}).status();
      EXPECT_EQ(thrown.code(), absl::StatusCode::kInternal) << thrown;
      EXPECT_THAT(std::string(thrown.message()), HasSubstr("Throw (node Throw)"));
      EXPECT_THAT(std::string(thrown.message()), HasSubstr("no way"));
      const absl::Status late = session.Run(feeds, {later}).status();
      EXPECT_EQ(late.code(), absl::StatusCode::kResourceExhausted) << late;
      EXPECT_THAT(std::string(late.message()), HasSubstr("ThrowLater (node ThrowLater)"));
    }
  }
}

TEST(Session, DestructionNamesTheKernelThatDoesNotEnd) {
  OpRegistry ops(&BuiltinOps());
  KernelRegistry kernels(&BuiltinKernels());
  ops.Add(
      OpSpec("Forgets").In("x: float").Out("y: float").Stateful().InferShape(SameShape).Doc("."));
  std::atomic<KernelContext*> context{nullptr};
  Kernel::Done forgotten;
  kernels.Add("Forgets", kCpu, [&](const KernelInit&) -> absl::StatusOr<Kernel> {
    return Kernel([&](KernelContext& c, Kernel::Done done) {
      forgotten = std::move(done);
      context = &c;
    });
  });
  Graph g(ops);
  const Output y = AddOp("Forgets", {Const(g, 1.0f)}, {}, "slow");
  auto session = std::make_unique<Session>(Start(g, {.kernels = &kernels}));
  const auto limit = std::chrono::milliseconds(50);
  const absl::Status late = session->Run(Feeds{}, {y}, {}, {.timeout = limit}).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << late;
  ASSERT_NE(context.load(), nullptr);
  std::thread remembers([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(3500));
    forgotten(absl::CancelledError("at last"));
  });
  testing::internal::CaptureStderr();
  session.reset();
  const std::string printed = testing::internal::GetCapturedStderr();
  remembers.join();
  EXPECT_THAT(printed, HasSubstr("waits for a kernel"));
  EXPECT_THAT(printed, HasSubstr("Forgets (node slow)"));
}

TEST(Session, AUsersKernelMustSetItsOutputsToTheirTypes) {
  OpRegistry ops(&BuiltinOps());
  KernelRegistry kernels(&BuiltinKernels());
  for (const char* op : {"SetsNone", "SetsNoneLater", "SetsIntegers"}) {
    ops.Add(
        OpSpec(op).In("x: float").Out("y: float").Stateful().InferShape(SameShape).Doc("Fails."));
  }
  kernels.Add("SetsNone", kCpu, [](const KernelInit&) -> absl::StatusOr<Kernel> {
    return Kernel([](KernelContext&) { return absl::OkStatus(); });
  });
  kernels.Add("SetsNoneLater", kCpu, [](const KernelInit&) -> absl::StatusOr<Kernel> {
    return Kernel([](KernelContext&, const Kernel::Done& done) { done(absl::OkStatus()); });
  });
  kernels.Add("SetsIntegers", kCpu, [](const KernelInit&) -> absl::StatusOr<Kernel> {
    return Kernel([](KernelContext& c) {
      c.SetOutput(0, Tensor::Vector<int32_t>({1, 2}));
      return absl::OkStatus();
    });
  });
  Graph g(ops);
  const Output x = Placeholder(g, DT_FLOAT, {2});
  for (const char* op : {"SetsNone", "SetsNoneLater", "SetsIntegers"}) {
    const Output y = AddOp(op, {x});
    Session session = Start(g, {.kernels = &kernels});
    for (const Output& fetch : {y, y + 1.0f}) {
      const absl::Status s =
          session.Run(Feeds{{x, Tensor::Vector<float>({1, 2})}}, {fetch}).status();
      EXPECT_EQ(s.code(), absl::StatusCode::kInternal) << s;
      EXPECT_THAT(std::string(s.message()), HasSubstr(absl::StrCat("(node ", op, ")")));
    }
  }
}

TEST(Session, RejectsImplausibleNumbersOfThreads) {
  Graph g;
  for (const int threads : {-1, 1025, 1000000, std::numeric_limits<int>::max()}) {
    const absl::Status s = Session::Create(g, {.num_threads = threads}).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << threads;
    EXPECT_THAT(std::string(s.message()), HasSubstr(absl::StrCat(threads)));
  }
}

TEST(Session, ATimeLimitBeyondTheClockIsNone) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {});
  Session session = Start(g);
  for (const auto limit : {std::chrono::milliseconds::max(),
                           std::chrono::milliseconds(std::chrono::hours(24 * 365 * 300))}) {
    const auto got =
        session.Run(Feeds{{x, Tensor::Scalar(1.0f)}}, {x + 1.0f}, {}, {.timeout = limit});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ((*got)[0].scalar<float>(), 2);
  }
}

// The thrown object need not be a std::exception, and may come from a thread of the pool.
TEST(Session, ExceptionsOfCustomFunctionsAreErrorsOfTheirNodes) {
  OpRegistry ops(&BuiltinOps());
  KernelRegistry kernels(&BuiltinKernels());
  for (const char* op : {"ThrowInt", "ThrowInLoop", "ThrowLaterInt", "ThrowWhenMade"}) {
    ops.Add(
        OpSpec(op).In("x: float").Out("y: float").Stateful().InferShape(SameShape).Doc("Fails."));
  }
  kernels.Add("ThrowInt", kCpu, [](const KernelInit&) -> absl::StatusOr<Kernel> {
    return Kernel([](KernelContext&) -> absl::Status { throw 42; });
  });
  kernels.Add("ThrowInLoop", kCpu, [](const KernelInit&) -> absl::StatusOr<Kernel> {
    return Kernel([](KernelContext& c) -> absl::Status {
      c.pool().ParallelFor(1000, 1e5, [](int64_t begin, int64_t) {
        if (begin > 0) throw "text";
      });
      return absl::OkStatus();
    });
  });
  kernels.Add("ThrowLaterInt", kCpu, [](const KernelInit&) -> absl::StatusOr<Kernel> {
    return Kernel([](KernelContext&, const Kernel::Done&) { throw 42; });
  });
  kernels.Add("ThrowWhenMade", kCpu,
              [](const KernelInit&) -> absl::StatusOr<Kernel> { throw std::bad_alloc(); });
  Graph g(ops);
  const Output x = Placeholder(g, DT_FLOAT, {2});
  const Feeds feeds = {{x, Tensor::Vector<float>({1, 2})}};
  for (const int threads : {2, 4}) {
    Session session = Start(g, {.num_threads = threads, .kernels = &kernels});
    for (const std::string op : {"ThrowInt", "ThrowInLoop", "ThrowLaterInt", "ThrowWhenMade"}) {
      for (int i = 0; i < 2; ++i) {
        const absl::Status thrown = session.Run(feeds, {AddOp(op, {x})}).status();
        EXPECT_EQ(thrown.code(), op == "ThrowWhenMade" ? absl::StatusCode::kResourceExhausted
                                                       : absl::StatusCode::kInternal)
            << thrown;
        EXPECT_THAT(std::string(thrown.message()), HasSubstr(op));
      }
    }
    EXPECT_TRUE(session.Run(feeds, {x * 2.f}).ok());
  }
}

TEST(Session, ExceptionsOfShapeAndGradientFunctionsAreGraphErrors) {
  OpRegistry ops(&BuiltinOps());
  ops.Add(OpSpec("ThrowShape")
              .In("x: float")
              .Out("y: float")
              .Doc("Fails.")
              .InferShape([](ShapeContext&) -> absl::Status { throw 42; }));
  ops.Add(OpSpec("ThrowGradient")
              .In("x: float")
              .Out("y: float")
              .InferShape(SameShape)
              .Doc("Has no derivative.")
              .Gradient([](GradContext&) -> std::vector<Grad> { throw std::runtime_error("no"); }));
  Graph g(ops);
  const Output x = Placeholder(g, DT_FLOAT, {2});
  EXPECT_FALSE(AddOp("ThrowShape", {x}).valid());
  const absl::Status shape = g.TakeStatus();
  EXPECT_EQ(shape.code(), absl::StatusCode::kInternal) << shape;
  EXPECT_THAT(std::string(shape.message()), HasSubstr("shape function threw an exception"));
  EXPECT_THAT(std::string(shape.message()), HasSubstr("ThrowShape"));
  const Outputs dx = DenseGradients({AddOp("ThrowGradient", {x})}, {x});
  EXPECT_FALSE(dx[0].valid());
  const absl::Status gradient = g.TakeStatus();
  EXPECT_EQ(gradient.code(), absl::StatusCode::kInternal) << gradient;
  EXPECT_THAT(std::string(gradient.message()), HasSubstr("gradient function threw an exception"));
  EXPECT_THAT(std::string(gradient.message()), HasSubstr("ThrowGradient"));
  EXPECT_TRUE((x * 2.f).valid());
}

// The builder calls the bodies of loops and branches: their exceptions reach the caller, and the
// graph stays usable.
TEST(Session, ExceptionsOfBodiesLeaveTheGraphUsable) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape());
  const auto fail = []() -> Outputs { throw 42; };
  EXPECT_THROW(Cond(Const(g, true), fail, [&] { return Outputs{x}; }), int);
  EXPECT_THROW(WhileLoop([](const Outputs& v) { return v[0] < 3.f; },
                         [](const Outputs&) -> Outputs { throw 42; }, {x}),
               int);
  const Output y = Multiply(x, 2.f, "after");
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_EQ(y.node->name(), "after");
  EXPECT_TRUE(y.node->control_inputs().empty());
  Session session = Start(g);
  EXPECT_EQ(session.Run({{x, Tensor::Scalar(2.f)}}, {y}).value()[0].scalar<float>(), 4);
}

TEST(Session, GraphErrorsFailOnlyStepsThatNeedTheNode) {
  Graph g;
  const Variable v = MakeVariable(g, 1.f, {.name = "v"});
  const Output grown = v.AssignAdd(1.f);
  const Operation init = GlobalVariablesInitializer(g);
  g.Finalize();
  Session session = Start(g);
  ASSERT_TRUE(session.Run(init).ok());
  const Output refused = Const(g, 1.f);  // no more nodes
  ASSERT_FALSE(g.status().ok());
  const auto out = session.Run({grown});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<float>(), 2);
  EXPECT_EQ(session.Run({grown, refused}).status(), g.status());
  EXPECT_EQ(session.Run(Feeds{}, {grown}, {Operation(refused)}).status(), g.status());
}

TEST(Session, FetchingAVariableAddsNoNodeAndWorksInAFinalizedGraph) {
  Graph g;
  const Variable v = MakeVariable(g, 3.f, {.name = "v"});
  Session session = Start(g);
  ASSERT_TRUE(session.Run(v.initializer()).ok());
  const int nodes = g.num_nodes();
  for (int i = 0; i < 3; ++i) {
    const auto out = session.Run({v});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), 3);
    ASSERT_TRUE(session.Prepare(Outputs{}, {v}).ok());
  }
  EXPECT_EQ(g.num_nodes(), nodes);
  g.Finalize();
  EXPECT_EQ((*session.Run({v}))[0].scalar<float>(), 3);
  const Outputs converted = {v};  // as functions with tensor parameters do
  EXPECT_EQ((*session.Run(converted))[0].scalar<float>(), 3);
  EXPECT_TRUE(g.status().ok()) << g.status();
  EXPECT_EQ(g.num_nodes(), nodes);
}

TEST(Session, FetchesOfAPartitionedVariableShareOneRead) {
  Graph g;
  const Variable v =
      GetVariable(g, "v", {4}, {.initializer = Ones(), .partitioner = FixedSizePartitioner(2)});
  Session session = Start(g);
  ASSERT_TRUE(session.Run(v.initializer()).ok());
  {
    const ControlDependencies after(g, {v.Assign({2.f, 2.f, 3.f, 3.f})});
    EXPECT_THAT((*session.Run({v}))[0].flat<float>(), testing::Each(1)) << "no part of the scope's";
  }
  const int nodes = g.num_nodes();
  g.Finalize();
  for (int i = 0; i < 3; ++i) EXPECT_THAT((*session.Run({v}))[0].flat<float>(), testing::Each(1));
  EXPECT_EQ(g.num_nodes(), nodes);
  EXPECT_TRUE(g.status().ok()) << g.status();
}

// More steps than a session caches. A step that a caller holds, or that is running, stays valid; so
// does the state.
TEST(Session, CachesABoundedNumberOfSteps) {
  Graph g;
  const Variable v = MakeVariable(g, 0.f, {.name = "v"});
  const Output grown = v.AssignAdd(1.f);
  const Output drawn = RandomUniform(g, {1}, {.seed = 7});
  Outputs many;
  for (int i = 0; i < 1500; ++i) many.push_back(Const(g, static_cast<float>(i)));
  Session session = Start(g, {.num_threads = 1});
  ASSERT_TRUE(session.Run(v.initializer()).ok());
  const auto held = session.Prepare(Outputs{}, {grown});
  ASSERT_TRUE(held.ok());
  const float first = (*session.Run({drawn}))[0].data<float>()[0];
  Tensors out;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 1500; ++i) EXPECT_EQ((*session.Run({many[i]}))[0].scalar<float>(), i);
    ASSERT_TRUE(held->Run({}, &out).ok());
    EXPECT_EQ(out[0].scalar<float>(), round + 1);
  }
  EXPECT_NE((*session.Run({drawn}))[0].data<float>()[0], first) << "the stream began anew";
  session.Close();
  EXPECT_EQ(held->Run({}, &out).code(), absl::StatusCode::kCancelled);
}

TEST(Session, TypeWithoutAKernelIsAnInvalidArgument) {
  Graph g;
  const Output x = Placeholder(g, DT_BFLOAT16, Shape({}));
  const Output y = AddOp("Rint", {x}, {}, "y");  // TensorFlow has kernels for float and double
  Session session = Start(g);
  const absl::Status s = session.Run({{x, Tensor::Scalar(bfloat16(1.5f))}}, {y}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
  EXPECT_THAT(std::string(s.message()),
              HasSubstr("No OpKernel was registered to support Op 'Rint' used by node y"));
}

TEST(Session, FetchOfUninitializedVariableNamesIt) {
  for (const bool resource : {true, false}) {
    Graph g(GraphOptions{.use_resource = resource});
    const Variable v = GetVariable(g, "weights", Shape({2}), Zeros());
    Session session = Start(g);
    const absl::Status s = session.Run({v.value()}).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << s;
    EXPECT_THAT(std::string(s.message()), HasSubstr("weights"));
  }
}

TEST(Session, FetchedValuesNeverChange) {
  for (const bool resource : {true, false}) {
    Graph g(GraphOptions{.use_resource = resource});
    const Variable v = GetVariable(g, "v", Shape({3}), Zeros());
    const Operation init = GlobalVariablesInitializer(g);
    const Output value = v.value();
    const Operation add = Operation(v.AssignAdd(Const(g, {1.f, 1.f, 1.f})));
    Session session = Start(g);
    ASSERT_TRUE(session.Run(init).ok());
    const auto before = session.Run({value});
    ASSERT_TRUE(before.ok()) << before.status();
    ASSERT_TRUE(session.Run(add).ok());
    ASSERT_TRUE(session.Run(add).ok());
    EXPECT_THAT(Floats((*before)[0]), ElementsAre(0, 0, 0));
    EXPECT_THAT(Floats((*session.Run({value}))[0]), ElementsAre(2, 2, 2));
  }
}

TEST(Session, UnorderedReadComesBeforeTheWrite) {
  for (const bool resource : {true, false}) {
    Graph g(GraphOptions{.use_resource = resource});
    const Variable v = GetVariable(g, "v", Shape({}), Zeros());
    const Operation init = GlobalVariablesInitializer(g);
    const Operation add = Operation(v.AssignAdd(Const(g, 1.f)));  // created before the reader
    const Output doubled = v.value() * 2.f;
    Session session = Start(g);
    ASSERT_TRUE(session.Run(init).ok());
    for (int i = 0; i < 5; ++i) {
      const auto out = session.Run({}, {doubled}, {add});
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ((*out)[0].scalar<float>(), 2.f * static_cast<float>(i));
    }
  }
}

TEST(Session, ReadAfterAssignSeesTheUpdate) {
  for (const bool resource : {true, false}) {
    Graph g(GraphOptions{.use_resource = resource});
    const Variable v = GetVariable(g, "v", Shape({}), Zeros());
    const Operation init = GlobalVariablesInitializer(g);
    const Output updated = v.AssignAdd(Const(g, 1.f));
    Output after;
    {
      ControlDependencies wait(g, {Operation(updated)});
      after = v.read_value();
    }
    Session session = Start(g);
    ASSERT_TRUE(session.Run(init).ok());
    EXPECT_EQ((*session.Run({after}))[0].scalar<float>(), 1);
    EXPECT_EQ((*session.Run({after}))[0].scalar<float>(), 2);
  }
}

TEST(Session, MergeOfAReferenceReadsItAfterItsControlInputs) {
  Graph g(GraphOptions{.use_resource = false});
  const Variable v = GetVariable(g, "v", Shape({}), Zeros());
  const Operation init = GlobalVariablesInitializer(g);
  const Output updated = v.AssignAdd(Const(g, 1.f));
  const SwitchResult sides = Switch(Const(g, 1.f), Placeholder(g, DT_BOOL, {}, "taken"));
  Node* merged = nullptr;
  {
    // One that always runs, and one in a branch that may not be taken.
    const ControlDependencies wait(g, {Operation(updated), Operation(Negative(sides.on_true))});
    merged = AddNode("Merge", {Outputs{v.handle()}});
  }
  ASSERT_NE(merged, nullptr) << g.status();
  Session session = Start(g);
  ASSERT_TRUE(session.Run(init).ok());
  const Output taken = *g.FindOutput("taken");
  for (const bool value : {true, false}) {
    const auto out = session.Run({{taken, Tensor::Scalar(value)}}, {merged->output(0)});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), value ? 1 : 2);
  }
}

// In whatever order the initializers were created, and whether the read is guarded or not, an
// initial value that depends on another variable uses the value that the same step assigns to it.
TEST(Session, InitializersRunInDependencyOrder) {
  for (const bool resource : {true, false}) {
    for (const bool guarded : {true, false}) {
      Graph g(GraphOptions{.use_resource = resource});
      const Variable a = GetVariable(g, "a", Shape({4}), RandomUniformInitializer());
      const Variable b =
          MakeVariable(g, guarded ? a.initialized_value() : a.value(), {.name = "b"});
      const Variable c =
          MakeVariable(g, guarded ? b.initialized_value() : b.value(), {.name = "c"});
      const Output va = a.value(), vb = b.value(), vc = c.value();
      const Operation init = GlobalVariablesInitializer(g);
      ASSERT_TRUE(g.status().ok()) << g.status();
      Session session = Start(g);
      for (int round = 0; round < 2;
           ++round) {  // in the second round all have values already, and get new ones
        const absl::Status s = session.Run(init);
        ASSERT_TRUE(s.ok()) << s;
        const auto out = session.Run({va, vb, vc});
        ASSERT_TRUE(out.ok()) << out.status();
        EXPECT_TRUE(IdenticalTensors((*out)[0], (*out)[1]));
        EXPECT_TRUE(IdenticalTensors((*out)[0], (*out)[2]));
      }
    }
  }
}

TEST(Session, InitializerCycleNamesItsMembers) {
  Graph g;
  const Variable a = MakeVariable(g, Const(g, 1.f), {.name = "alpha"});
  const Variable b = MakeVariable(g, a.value() + 1.f, {.name = "beta"});
  // Closes the cycle as an imported graph could: the initial value of alpha becomes a function of
  // beta.
  ASSERT_TRUE(g.SetInput(a.initializer().node, 1, b.value() * 2.f).ok());
  const Operation init = GlobalVariablesInitializer(g);
  Session session = Start(g);
  const absl::Status s = session.Run(init);
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << s;
  EXPECT_THAT(std::string(s.message()), HasSubstr("alpha"));
  EXPECT_THAT(std::string(s.message()), HasSubstr("beta"));
}

TEST(Session, LoopWithoutEnterIsInvalid) {
  Graph g;
  const Output x = Const(g, 1.f);
  const Output merge = AddOp("Merge", {Outputs{x, x}}, {}, "merge");
  const Output body = AddOp("Identity", {merge}, {}, "body");
  const Output next = AddOp("NextIteration", {body}, {}, "next");
  ASSERT_TRUE(g.SetInput(merge.node, 1, next).ok());
  for (const Output& fetch : {merge, body, next}) {
    Session session = Start(g);
    const absl::Status s = session.Run({fetch}).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
    EXPECT_THAT(std::string(s.message()), HasSubstr("Node next (NextIteration)"));
  }
}

TEST(Session, SwitchRunsOneBranchOnly) {
  Graph g;
  const Output pred = Placeholder(g, DT_BOOL, Shape());
  const Output x = Const(g, 3);
  const SwitchResult branch = Switch(x, pred);
  // The branch not taken would divide by zero.
  const Output bad = FloorDiv(branch.on_true, Const(g, 0));
  const Output good = branch.on_false + 1;
  const Output merged = Merge({good, bad}).output;
  Session session = Start(g);
  const auto out = session.Run({{pred, Tensor::Scalar(false)}}, {merged});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<int32_t>(), 4);
  EXPECT_FALSE(session.Run({{pred, Tensor::Scalar(true)}}, {merged}).ok());
  EXPECT_EQ(session.Run({{pred, Tensor::Scalar(false)}}, {bad}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Session, PreparedStepRunsFromManyThreads) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape({-1}));
  const Output y = ReduceSum(Square(x) + x);
  Session session = Start(g);
  const auto step = session.Prepare({x}, {y});
  ASSERT_TRUE(step.ok()) << step.status();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      Tensors out;
      for (int i = 0; i < 200; ++i) {
        const Tensor in = Tensor::Vector<float>({static_cast<float>(t), static_cast<float>(i)});
        const float want = static_cast<float>(t * t + t + i * i + i);
        if (!step->Run({in}, &out).ok() || out[0].scalar<float>() != want) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Session, FeedsAndFetchesExist) {
  Graph g;
  const Output x = Const(g, 1.f), none(x.node, 1);
  Session session = Start(g);
  for (const absl::Status& status :
       {session.Run({none}).status(), session.Run({{none, Tensor::Scalar(1.f)}}, {x}).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("does not have output 1"));
  }
}

TEST(Session, ClosedSessionIsCancelled) {
  Graph g;
  const Output x = Const(g, 1.f);
  Session session = Start(g);
  ASSERT_TRUE(session.Run({x}).ok());
  session.Close();
  EXPECT_EQ(session.Run({x}).status().code(), absl::StatusCode::kCancelled);
}

TEST(Session, StepMayOutliveIt) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape({64, 64}));
  const Output y = AddN(Outputs{MatMul(x, x), MatMul(Square(x), x), MatMul(x, Square(x))});
  const Tensors feeds = {Tensor::Zeros(DT_FLOAT, Shape({64, 64}))};
  for (int round = 0; round < 20; ++round) {
    Step kept, other;
    {
      Session session = Start(g, {.num_threads = 3});  // its own pool
      const absl::StatusOr<Step> step = session.Prepare({x}, {y});
      ASSERT_TRUE(step.ok()) << step.status();
      Tensors out;
      ASSERT_TRUE(step->Run(feeds, &out).ok());
      kept = *step;
      Session second = Start(g, {.num_threads = 2});
      other = *second.Prepare({x}, {y});
      ASSERT_TRUE(other.Run(feeds, &out).ok());
    }
    Tensors out;
    EXPECT_EQ(kept.Run(feeds, &out).code(), absl::StatusCode::kCancelled);
    other = kept;  // closes the second session
    EXPECT_EQ(other.Run(feeds, &out).code(), absl::StatusCode::kCancelled);
  }
}

TEST(Session, EmptyStepIsAnError) {
  EXPECT_EQ(Step().Run({}, nullptr).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Session, FetchedHandleMayOutliveIt) {
  Graph g(GraphOptions{.use_resource = true});
  const Variable v = GetVariable(g, "v", {3}, Ones());
  const Output fed = Placeholder(g, DT_RESOURCE, {});
  const Output read = AddOp("ReadVariableOp", {fed}, {{"dtype", DT_FLOAT}});
  Tensor handle;
  {
    Session session = Start(g, {.num_threads = 2});
    ASSERT_TRUE(session.Run(v.initializer()).ok());
    handle = (*session.Run({v.handle()}))[0];
    ASSERT_TRUE(session.Run({{fed, handle}}, {read}).ok());
  }
  Session another = Start(g);
  EXPECT_EQ(another.Run({{fed, handle}}, {read}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// ---- Reset

Output HandleOf(Graph& g, DataType dtype, const Shape& shape) {
  return Output(
      AddNode(g, "VarHandleOp", {}, {{"dtype", dtype}, {"shape", shape}, {"shared_name", "v"}}), 0);
}

TEST(Session, ResetForgetsValuesTypesAndShapes) {
  Graph g;
  const Output first = HandleOf(g, DT_FLOAT, {2}), second = HandleOf(g, DT_INT32, {3});
  const Operation set_first(AddNode("AssignVariableOp", {first, Const(g, {1.f, 2.f})}));
  const Operation set_second(AddNode("AssignVariableOp", {second, Const(g, {1, 2, 3})}));
  const Output read = AddOp("ReadVariableOp", {first}, {{"dtype", DT_FLOAT}});
  ASSERT_TRUE(g.status().ok()) << g.status();
  Session session = Start(g);
  const absl::StatusOr<Step> reader = session.Prepare({}, {read});
  ASSERT_TRUE(reader.ok()) << reader.status();
  Tensors out;
  ASSERT_TRUE(session.Run(set_first).ok());
  ASSERT_TRUE(reader->Run({}, &out).ok());
  EXPECT_EQ(session.Run(set_second).code(), absl::StatusCode::kInvalidArgument);
  session.Reset();
  EXPECT_EQ(reader->Run({}, &out).code(), absl::StatusCode::kFailedPrecondition);
  session.Reset();
  EXPECT_TRUE(session.Run(set_second).ok());
  session.Reset();
  EXPECT_TRUE(session.Run(set_first).ok());
  ASSERT_TRUE(reader->Run({}, &out).ok());  // the variable that the other step has set
  EXPECT_THAT(Floats(out[0]), ElementsAre(1, 2));
}

TEST(Session, ResetWhileStepsRunIsSafe) {
  Graph g(GraphOptions{.use_resource = true});
  const Variable v = GetVariable(g, "v", {3}, Ones());
  const Output value = v.value();
  Session session = Start(g, {.num_threads = 2});
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        EXPECT_TRUE(session.Run(v.initializer()).ok());
        const absl::Status s = session.Run({value}).status();
        EXPECT_TRUE(s.ok() || absl::IsFailedPrecondition(s)) << s;
      }
    });
  }
  for (int i = 0; i < 50; ++i) session.Reset();
  stop = true;
  for (std::thread& t : threads) t.join();
}

TEST(Session, NodesAddedLaterCanBeRun) {
  Graph g;
  const Output x = Const(g, 2.f);
  Session session = Start(g);
  ASSERT_TRUE(session.Run({x}).ok());
  const Output y = x * 4.f;
  EXPECT_EQ((*session.Run({y}))[0].scalar<float>(), 8);
}

TEST(Session, ANodeThatHasRunMayNotChange) {
  Graph g;
  const Output x = Const(g, 2.f, "x"), y = Const(g, 3.f);
  const Output twice = AddOp("Mul", {x, x}, {}, "twice"), never_run = Identity(x, "never_run");
  Session session = Start(g), other = Start(g);
  const Step step = *session.Prepare({}, {twice});
  ASSERT_TRUE(session.Run({twice}).ok());
  ASSERT_TRUE(g.SetInput(never_run.node, 0, y).ok());
  EXPECT_EQ((*session.Run({twice}))[0].scalar<float>(), 4) << "what has not run may change";
  EXPECT_EQ((*session.Run({never_run}))[0].scalar<float>(), 3);

  ASSERT_TRUE(g.SetInput(twice.node, 0, y).ok());
  Tensors out;
  for (const absl::Status& status :
       {session.Run({twice}).status(), step.Run({}, &out), session.Run({y}).status()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("Operation 'twice' was changed by updating input tensor after it was run "
                          "by a session. Either don't modify nodes after running them or create a "
                          "new session."));
  }
  EXPECT_EQ((*other.Run({twice}))[0].scalar<float>(), 6) << "had not run it";
  EXPECT_EQ((*Start(g).Run({twice}))[0].scalar<float>(), 6);
}

TEST(Session, RejectsElementsOfADestroyedGraph) {
  Output x;
  {
    Graph gone;
    x = Const(gone, 1.f);
  }
  Graph g;
  const Output y = Const(g, 2.f);
  Session session = Start(g);
  for (const absl::Status& status :
       {session.Run({x}).status(), session.Run({{x, Tensor::Scalar(1.f)}}, {y}).status(),
        session.Run(Operation(x))}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  }
  EXPECT_TRUE(session.Run({y}).ok());
}

// A custom op whose kernel waits until the test releases it.
struct Gate {
  std::mutex mutex;
  std::vector<Kernel::Done> waiting;
  std::atomic<int> started{0};

  void Open(const absl::Status& s = absl::OkStatus()) {
    std::vector<Kernel::Done> done;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      done.swap(waiting);
    }
    for (auto& d : done) d(s);
  }
};

class WaitingOps : public ::testing::Test {
 protected:
  WaitingOps() : ops_(&BuiltinOps()), kernels_(&BuiltinKernels()) {
    ops_.Add(
        OpSpec("Wait").In("x: T").Out("y: T").Attr("T: type").Stateful().InferShape(SameShape).Doc(
            "Waits."));
    kernels_.Add("Wait", kCpu, [this](const KernelInit&) -> absl::StatusOr<Kernel> {
      return Kernel([this](KernelContext& c, Kernel::Done done) {
        c.SetOutput(0, c.input(0));
        // A cancelled waiter completes with the reason; the flag ensures that only one of the two
        // calls `done`.
        auto once = std::make_shared<std::atomic<bool>>(false);
        auto finish = [done, once](const absl::Status& s) {
          if (!once->exchange(true)) done(s);
        };
        int64_t token = 0;
        Cancellation* cancellation = c.cancellation();
        {
          const std::lock_guard<std::mutex> lock(gate_.mutex);
          gate_.waiting.push_back(finish);
        }
        ++gate_.started;
        if (!cancellation->OnCancel(
                [finish, cancellation] { finish(absl::CancelledError("gave up waiting")); },
                &token)) {
          finish(absl::CancelledError("gave up waiting"));
        }
      });
    });
  }
  Output Wait(Output x) { return AddOp("Wait", {x}); }

  Gate gate_;
  OpRegistry ops_;
  KernelRegistry kernels_;
};

TEST_F(WaitingOps, WaitingHoldsNoThread) {
  Graph g(ops_);
  Outputs waits;
  for (int i = 0; i < 8; ++i) waits.push_back(Wait(Const(g, static_cast<float>(i))) + 1.f);
  const Output sum = AddN(waits);
  Session session = Start(g, {.num_threads = 2, .kernels = &kernels_});
  std::thread opener([&] {
    while (gate_.started < 8) std::this_thread::yield();  // all eight wait at once, on two threads
    gate_.Open();
  });
  const auto out = session.Run({sum});
  opener.join();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<float>(), 28 + 8);
}

TEST_F(WaitingOps, TimeoutEndsTheStepAndLeavesTheSessionUsable) {
  Graph g(ops_);
  const Output x = Const(g, 1.f);
  const Output y = Wait(x);
  Session session = Start(g, {.kernels = &kernels_});
  const absl::Status s =
      session.Run(Feeds{}, {y}, {}, RunOptions{.timeout = std::chrono::milliseconds(50)}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kDeadlineExceeded) << s;
  EXPECT_TRUE(session.Run({x}).ok());
}

// A kernel that does not check for cancellation while it computes, as LAPACK.
TEST(TimeLimit, OverrunInsideAKernelIsDeadlineExceededAndNamesTheNode) {
  OpRegistry ops(&BuiltinOps());
  KernelRegistry kernels(&BuiltinKernels());
  ops.Add(OpSpec("Sleep")
              .In("ms: int32")
              .Out("y: int32")
              .Stateful()
              .InferShape(SameShape)
              .Doc("Sleeps."));
  kernels.Add("Sleep", kCpu, [](const KernelInit&) -> absl::StatusOr<Kernel> {
    return Kernel([](KernelContext& c) -> absl::Status {
      std::this_thread::sleep_for(std::chrono::milliseconds(c.input_data<int32_t>(0)[0]));
      c.SetOutput(0, c.input(0));
      return absl::OkStatus();
    });
  });
  Graph g(ops);
  const Output ms = Placeholder(g, DT_INT32, Shape({}));
  const Output y = AddOp("Sleep", {ms}, {}, "sleeper"), two = y + AddOp("Sleep", {ms});
  using Clock = std::chrono::steady_clock;
  for (const int threads : {1, 3}) {
    Session session = Start(g, {.num_threads = threads, .kernels = &kernels});
    for (const Output& fetch : {y, two}) {
      const RunOptions limit{.timeout = std::chrono::milliseconds(100)};
      for (const int sleep : {200, 4000}) {
        const auto start = Clock::now();
        const Feeds feeds = {{ms, Tensor::Scalar<int32_t>(sleep)}};
        const absl::Status late = session.Run(feeds, {fetch}, {}, limit).status();
        EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
        EXPECT_THAT(std::string(late.message()), HasSubstr("Sleep (node "));
        EXPECT_EQ(FailedNode(late).substr(0, 1), fetch == y ? "s" : FailedNode(late).substr(0, 1));
        EXPECT_LT(Clock::now() - start, std::chrono::seconds(2)) << sleep;
      }
      // The abandoned step does no harm.
      const auto out = session.Run({{ms, Tensor::Scalar<int32_t>(1)}}, {fetch});
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ((*out)[0].scalar<int32_t>(), fetch == y ? 1 : 2);
    }
  }
}

TEST(TimeLimit, TimeoutNamesTheResourceWaitedFor) {
  Graph g;
  const Attrs types = {{"component_types", std::vector<DataType>{DT_FLOAT}}};
  const Output queue(AddNode(g, "FIFOQueueV2", {}, types, "files"));
  const Output y = AddOp("QueueDequeueV2", {queue}, types, "dequeue");
  Session session = Start(g);
  const RunOptions limit{.timeout = std::chrono::milliseconds(50)};
  const absl::Status late = session.Run(Feeds{}, {y}, {}, limit).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(std::string(late.message()),
              AllOf(HasSubstr("QueueDequeueV2 (node dequeue)"),
                    HasSubstr("time limit of 50 ms while it waited for files (FIFOQueueV2)")));
  EXPECT_EQ(FailedNode(late), "dequeue");
}

TEST_F(WaitingOps, CloseEndsRunningSteps) {
  Graph g(ops_);
  const Output y = Wait(Const(g, 1.f));
  Session session = Start(g, {.kernels = &kernels_});
  absl::Status s;
  std::thread runner([&] { s = session.Run({y}).status(); });
  while (gate_.started < 1) std::this_thread::yield();
  session.Close();
  runner.join();
  EXPECT_EQ(s.code(), absl::StatusCode::kCancelled) << s;
}

TEST_F(WaitingOps, ErrorOfAWaitingKernelNamesTheNode) {
  Graph g(ops_);
  const Output y = AddOp("Wait", {Const(g, 1.f)}, {}, "slow");
  Session session = Start(g, {.kernels = &kernels_});
  std::thread opener([&] {
    while (gate_.started < 1) std::this_thread::yield();
    gate_.Open(absl::InternalError("broken"));
  });
  const absl::Status s = session.Run({y}).status();
  opener.join();
  EXPECT_EQ(s.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(s.message()), HasSubstr("slow"));
}

TEST(Placement, MissingDeviceFallsBackOrIsAnError) {
  Graph g;
  Output y;
  {
    DeviceScope gpu(g, "/device:GPU:7");
    y = Square(Const(g, 3.f), "far");
  }
  Session soft = Start(g);
  EXPECT_EQ((*soft.Run({y}))[0].scalar<float>(), 9);
  Session hard = Start(g, {.allow_soft_placement = false});
  const absl::Status s = hard.Run({y}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
  EXPECT_THAT(std::string(s.message()), HasSubstr("GPU:7"));
}

TEST(Placement, LogNamesEveryNode) {
  Graph g;
  const Output y = Square(Const(g, 3.f, "three"), "nine");
  Session session = Start(g, {.log_device_placement = true});
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(session.Run({y}).ok());
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("nine: (Square): /job:localhost/replica:0/task:0/device:CPU:0"));
  EXPECT_THAT(log, HasSubstr("three: (Const): /job:localhost"));
}

TEST(Placement, DevicesHaveTheNameOfTheTask) {
  Graph g;
  Output y;
  {
    const DeviceScope there(g, "/job:worker/task:1");
    y = Square(Const(g, 3.f), "there");
  }
  SessionOptions options{.allow_soft_placement = false, .log_device_placement = true};
  EXPECT_EQ(Start(g, options).Run({y}).status().code(), absl::StatusCode::kInvalidArgument);
  options.task = "/job:worker/task:1";
  Session session = Start(g, options);
  ::testing::internal::CaptureStderr();
  const absl::StatusOr<Tensors> got = session.Run({y});
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].scalar<float>(), 9);
  EXPECT_THAT(log, HasSubstr("there: (Square): /job:worker/replica:0/task:1/device:CPU:0"));
}

TEST(Placement, ATaskIsNoDevice) {
  const Graph g;
  for (const char* const task : {"/job:worker/task:1/device:CPU:0", "worker"}) {
    const absl::Status s = Session::Create(g, {.task = task}).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
    EXPECT_THAT(std::string(s.message()), HasSubstr(task));
  }
}

// The graph infers a shape from the constant; it does not hold in a step that feeds another value.
TEST(Session, AFedConstantIsNotTakenForItsOldValue) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape({9}));
  const Output shape = Const(g, {1, 9});
  const Output rows = Reshape(x, shape);
  const Output e = Exp(rows - ReduceMax(rows, {1}, true));
  const Output softmax = e / ReduceSum(e, {1}, true);
  Session session = Start(g);
  const Tensor ones = Tensor::Of<float>({9}, {1, 1, 1, 1, 1, 1, 1, 1, 1});
  const Feeds feeds = {{x, ones}, {shape, Tensor::Vector<int32_t>({3, 3})}};
  const auto out = session.Run(feeds, {AddOp("Shape", {rows}), softmax, softmax * 3.f});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<int32_t>(), ElementsAre(3, 3));
  EXPECT_NEAR((*out)[1].data<float>()[0], 1.0 / 3, 1e-6);
  EXPECT_EQ((*out)[1].shape(), Shape({3, 3}));
}

TEST(Session, TraceHasARecordForEachNode) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, Shape({-1}));
  const Output y = Exp(Square(x, "square"), "exp");
  Session session = Start(g);
  std::vector<NodeTrace> trace;
  ASSERT_TRUE(
      session.Run({{x, Tensor::Vector<float>({1, 2})}}, {y}, {}, RunOptions{.trace = &trace}).ok());
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_EQ(trace[0].node, "square");
  EXPECT_EQ(trace[1].op, "Exp");
  EXPECT_LE(trace[0].start_ns, trace[0].end_ns);
  ASSERT_EQ(trace[1].inputs.size(), 1u);
  EXPECT_EQ(trace[1].inputs[0].data, trace[0].outputs[0].data);
  ASSERT_EQ(trace[1].outputs.size(), 1u);
  EXPECT_EQ(trace[1].outputs[0].dtype, DT_FLOAT);
  EXPECT_EQ(trace[1].outputs[0].shape, Shape({2}));
}

}  // namespace
}  // namespace weir
