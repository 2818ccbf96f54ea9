#include <cmath>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "weir/session/session.h"
#include "weir/tests/tools/lib/tools_testing.h"
#include "weir/tools/run/machine_limits.h"
#include "weir/tools/run/node_cost.h"
#include "weir/tools/run/profile_report.h"
#include "weir/tools/run/step_profile.h"
#include "weir/tools/run/thread_waits.h"

namespace weir::tools {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Returns an address for tests, 1 MB from the next.
const void* Place(int i) { return reinterpret_cast<const void*>((int64_t{1} + i) << 20); }

NodeTrace::Value Floats(const Shape& shape, int place, DataType dtype = DT_FLOAT) {
  return {dtype, shape, Place(place)};
}

NodeTrace Ran(const char* op, std::vector<NodeTrace::Value> inputs,
              std::vector<NodeTrace::Value> outputs) {
  return {.node = op,
          .op = op,
          .device = "/device:CPU:0",
          .inputs = std::move(inputs),
          .outputs = std::move(outputs)};
}

// ---- cost of a node

TEST(NodeCost, MatMulCountsTheInnerDimensionHoweverItIsTransposed) {
  const NodeTrace::Value product = Floats({2, 5}, 9);
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{
           {{2, 3}, {3, 5}}, {{3, 2}, {3, 5}}, {{2, 3}, {5, 3}}, {{3, 2}, {5, 3}}}) {
    const NodeCost cost = CostOf(Ran("MatMul", {Floats(a, 0), Floats(b, 1)}, {product}), nullptr);
    EXPECT_EQ(cost.flops, 2 * 2 * 3 * 5);
    EXPECT_EQ(cost.bytes, 4 * (2 * 3 + 3 * 5 + 2 * 5));
    EXPECT_TRUE(cost.knows_flops);
    EXPECT_FALSE(cost.estimated);
  }
}

TEST(NodeCost, BatchMatMulBroadcastsAndFusedOpsCountAnElementEach) {
  const NodeTrace batch = Ran("BatchMatMulV2", {Floats({7, 1, 2, 3}, 0), Floats({4, 3, 5}, 1)},
                              {Floats({7, 4, 2, 5}, 2)});
  EXPECT_EQ(CostOf(batch, nullptr).flops, 7 * 4 * 2 * (2 * 3 * 5));
  NodeTrace fused = Ran("_FusedMatMul", {Floats({2, 3}, 0), Floats({3, 5}, 1), Floats({5}, 3)},
                        {Floats({2, 5}, 2)});
  fused.fused_ops = {"BiasAdd", "Relu"};
  EXPECT_EQ(CostOf(fused, nullptr).flops, 2 * 2 * 3 * 5 + 2 * 10);
}

TEST(NodeCost, DeferredMatMulsCountTheIncomingRows) {
  const NodeTrace::Value sum = Floats({30, 50}, 0), left = Floats({64, 30}, 1),
                         right = Floats({64, 50}, 2), rows = Floats({}, 3, DT_INT64),
                         x = Floats({2, 30}, 4), y = Floats({2, 50}, 5);
  const NodeCost cost = CostOf(
      Ran("_DeferMatMul", {sum, left, right, rows, x, y}, {sum, left, right, rows}), nullptr);
  EXPECT_EQ(cost.flops, 2 * 2 * 30 * 50);
  EXPECT_EQ(cost.bytes, 2 * 4 * (2 * 30 + 2 * 50));
}

TEST(NodeCost, ComplexProductsAndDoublesAreWider) {
  const NodeTrace product =
      Ran("MatMul", {Floats({2, 3}, 0, DT_COMPLEX64), Floats({3, 5}, 1, DT_COMPLEX64)},
          {Floats({2, 5}, 2, DT_COMPLEX64)});
  EXPECT_EQ(CostOf(product, nullptr).flops, 8 * 2 * 3 * 5);
  const NodeTrace sum = Ran("AddV2", {Floats({6}, 0, DT_DOUBLE), Floats({6}, 1, DT_DOUBLE)},
                            {Floats({6}, 2, DT_DOUBLE)});
  EXPECT_EQ(CostOf(sum, nullptr).element_bytes, 8);
  EXPECT_EQ(CostOf(sum, nullptr).bytes, 3 * 6 * 8);
}

TEST(NodeCost, ConvolutionsCountTheFilterElementsPerChannel) {
  // 8x8 images of 6 channels, stride 2, two groups of 3 channels, 10 output channels.
  const auto filter = Floats({3, 5, 3, 10}, 1), out = Floats({2, 4, 4, 10}, 2);
  const double want = 2. * (2 * 4 * 4 * 10) * (3 * 5 * 3);
  EXPECT_EQ(CostOf(Ran("Conv2D", {Floats({2, 8, 8, 6}, 0), filter}, {out}), nullptr).flops, want);
  // Channels-first images: the filter is the same.
  EXPECT_EQ(
      CostOf(Ran("Conv2D", {Floats({2, 6, 8, 8}, 0), filter}, {Floats({2, 10, 4, 4}, 2)}), nullptr)
          .flops,
      want);
  const auto sizes = Floats({4}, 3, DT_INT32);
  EXPECT_EQ(
      CostOf(Ran("Conv2DBackpropInput", {sizes, filter, out}, {Floats({2, 8, 8, 6}, 4)}), nullptr)
          .flops,
      want);
  EXPECT_EQ(CostOf(Ran("Conv2DBackpropFilter", {Floats({2, 8, 8, 6}, 0), sizes, out},
                       {Floats({3, 5, 3, 10}, 4)}),
                   nullptr)
                .flops,
            want);
  const NodeTrace depthwise =
      Ran("DepthwiseConv2dNative", {Floats({2, 8, 8, 6}, 0), Floats({3, 3, 6, 2}, 1)},
          {Floats({2, 8, 8, 12}, 2)});
  EXPECT_EQ(CostOf(depthwise, nullptr).flops, 2 * (2 * 8 * 8 * 12) * (3 * 3));
}

// 8x8 images of 4 channels, widened to 24, filtered with stride 2 and narrowed to 6.
TEST(NodeCost, SeparableConvolutionsCountEachOfTheirProducts) {
  const auto x = Floats({2, 8, 8, 4}, 0), expand = Floats({1, 1, 4, 24}, 1), wide = Floats({24}, 2),
             filter = Floats({3, 3, 24, 1}, 3), narrow = Floats({1, 1, 24, 6}, 4),
             bias = Floats({6}, 5), y = Floats({2, 4, 4, 6}, 6);
  const char* const op = "_FusedDepthwiseSeparableConv2D";
  const double filtered = 2. * (2 * 4 * 4) * (24 * 9 + 24 * 6);
  EXPECT_EQ(CostOf(Ran(op, {x, expand, wide, filter, wide, narrow, bias, y}, {y}), nullptr).flops,
            filtered + 2. * (2 * 8 * 8) * (4 * 24));
  EXPECT_EQ(CostOf(Ran(op, {Floats({2, 8, 8, 24}, 0), filter, wide, narrow, bias, y}, {y}), nullptr)
                .flops,
            filtered);
}

TEST(NodeCost, EinsumAndPoolsUseAttributes) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {2, 3, 4}, "x");
  const Node* e = NodeBuilder(g, "Einsum")
                      .Name("Einsum")
                      .InputList({x, x})
                      .Attr("equation", "bij,bkj->bik")
                      .Build();
  const Output images = Placeholder(g, DT_FLOAT, {1, 4, 4, 2}, "images");
  AddOp("MaxPool", {images},
        {{"ksize", std::vector<int64_t>{1, 2, 2, 1}},
         {"strides", std::vector<int64_t>{1, 2, 2, 1}},
         {"padding", "VALID"}},
        "MaxPool");
  ASSERT_TRUE(g.status().ok()) << g.status();
  const NodeTrace einsum =
      Ran("Einsum", {Floats({2, 3, 4}, 0), Floats({2, 5, 4}, 1)}, {Floats({2, 3, 5}, 2)});
  EXPECT_EQ(CostOf(einsum, e).flops, 2 * 2 * 3 * 5 * 4);
  EXPECT_FALSE(CostOf(einsum, nullptr).knows_flops);
  EXPECT_FALSE(CostOf(Ran("Einsum", {Floats({2}, 0)}, {Floats({2}, 1)}), e).knows_flops);
  const NodeTrace pool = Ran("MaxPool", {Floats({1, 4, 4, 2}, 0)}, {Floats({1, 2, 2, 2}, 1)});
  EXPECT_EQ(CostOf(pool, g.FindNode("MaxPool")).flops, 8 * 4);
}

TEST(NodeCost, ElementwiseReductionsAndUnknownOps) {
  const NodeCost square =
      CostOf(Ran("Mul", {Floats({8}, 0), Floats({8}, 0)}, {Floats({8}, 1)}), nullptr);
  EXPECT_EQ(square.flops, 8);
  EXPECT_EQ(square.bytes, 2 * 8 * 4);  // a tensor that is used twice is read once
  EXPECT_EQ(CostOf(Ran("Exp", {Floats({8}, 0)}, {Floats({8}, 1)}), nullptr).flops, 8);
  EXPECT_EQ(CostOf(Ran("Sum", {Floats({8, 9}, 0)}, {Floats({}, 1)}), nullptr).flops, 72);
  NodeTrace fused = Ran("_FusedElementwise", {Floats({8}, 0), Floats({1}, 1)}, {Floats({8}, 2)});
  fused.fused_ops = {"Mul", "AddV2", "Tanh"};
  EXPECT_EQ(CostOf(fused, nullptr).flops, 24);
  NodeTrace mean = Ran("_FusedReduction", {Floats({8, 9}, 0), Floats({9}, 1)}, {Floats({}, 2)});
  mean.fused_ops = {"Sub", "Square", "Mean"};
  EXPECT_EQ(CostOf(mean, nullptr).flops, 3 * 72);
  NodeTrace root = Ran("_FusedReduction", {Floats({8, 9}, 0), Floats({}, 1)}, {Floats({8, 1}, 2)});
  root.fused_ops = {"Square", "Mean", "AddV2", "Sqrt"};
  EXPECT_EQ(CostOf(root, nullptr).flops, 2 * 72 + 2 * 8);
  const NodeCost unknown = CostOf(Ran("Mystery", {Floats({8}, 0)}, {Floats({2}, 1)}), nullptr);
  EXPECT_FALSE(unknown.knows_flops);
  EXPECT_EQ(unknown.bytes, 40);
}

TEST(NodeCost, DeadValuesHandlesAndStringsHaveNoBytes) {
  EXPECT_EQ(CostOf(Ran("Mul", {{}, Floats({8}, 0)}, {{}}), nullptr).bytes, 0);
  EXPECT_TRUE(IsDead(Ran("Mul", {{}, Floats({8}, 0)}, {{}})));
  EXPECT_FALSE(IsDead(Ran("Merge", {{}, Floats({8}, 0)}, {Floats({8}, 0)})));
  EXPECT_FALSE(IsDead(Ran("NoOp", {}, {})));
  const NodeTrace read = Ran("ReadVariableOp", {Floats({}, 0, DT_RESOURCE)}, {Floats({8}, 1)});
  EXPECT_EQ(CostOf(read, nullptr).bytes, 0);
  EXPECT_EQ(
      CostOf(Ran("StringLength", {Floats({8}, 0, DT_STRING)}, {Floats({8}, 1, DT_INT32)}), nullptr)
          .bytes,
      32);
}

TEST(NodeCost, UpdatesGuessTheSizeOfTheVariable) {
  const auto handle = Floats({}, 0, DT_RESOURCE), rate = Floats({}, 1);
  const NodeCost descent =
      CostOf(Ran("ResourceApplyGradientDescent", {handle, rate, Floats({8}, 2)}, {}), nullptr);
  EXPECT_TRUE(descent.estimated);
  EXPECT_EQ(descent.bytes, 4 + 32 + 2 * 32);  // rate, gradient, variable read and written
  EXPECT_EQ(descent.flops, 2 * 8);
  EXPECT_EQ(CostOf(Ran("AssignVariableOp", {handle, Floats({8}, 2)}, {}), nullptr).bytes, 64);
}

TEST(NodeCost, ShapesThatDoNotFitCountNothing) {
  for (const char* op : {"MatMul", "Conv2D", "Conv2DBackpropFilter", "DepthwiseConv2dNative",
                         "_FusedDepthwiseSeparableConv2D", "Einsum", "Softmax", "AddN", "Mul",
                         "MaxPool", "Assign", "Transpose"}) {
    for (const Shape& shape : {Shape(), Shape({0}), Shape({0, 0}), Shape::UnknownRank()}) {
      const NodeTrace run =
          Ran(op, {Floats(shape, 0), Floats(shape, 1)}, {Floats(shape, 2), Floats(shape, 3)});
      const NodeCost cost = CostOf(run, nullptr);
      EXPECT_TRUE(std::isfinite(cost.flops) && cost.flops >= 0) << op << shape.ToString();
      EXPECT_TRUE(cost.bytes >= 0 && cost.bytes <= 64) << op << shape.ToString();
    }
    EXPECT_EQ(CostOf(Ran(op, {}, {}), nullptr).bytes, 0) << op;
  }
}

TEST(Copies, DifferFromForwardedValues) {
  const auto x = Floats({8, 2}, 0), same = Floats({16}, 0), elsewhere = Floats({16}, 1);
  EXPECT_EQ(CopyReason(Ran("Reshape", {x}, {same})), "");
  EXPECT_EQ(CostOf(Ran("Reshape", {x}, {same}), nullptr).bytes, 0);
  EXPECT_EQ(CopyReason(Ran("Reshape", {x}, {elsewhere})), "could have shared its input's memory");
  EXPECT_EQ(CostOf(Ran("Reshape", {x}, {elsewhere}), nullptr).bytes, 128);
  EXPECT_EQ(CopyReason(Ran("Transpose", {x}, {elsewhere})), "rearranged");
  EXPECT_EQ(CopyReason(Ran("_Copy", {x}, {elsewhere})), "between devices");
  EXPECT_EQ(CopyReason(Ran("Mul", {x}, {elsewhere})), "");
  EXPECT_EQ(CopyReason(Ran("Identity", {{}}, {{}})), "");
  // Rows in the middle of a tensor share its memory.
  const NodeTrace::Value rows{DT_FLOAT, {2, 2}, static_cast<const char*>(x.data) + 8};
  EXPECT_EQ(CopyReason(Ran("Slice", {x}, {rows})), "");
  EXPECT_EQ(
      CostOf(Ran("Gather", {x, Floats({1}, 2, DT_INT32)}, {Floats({1, 2}, 3)}), nullptr).bytes,
      4 + 2 * 8);
  // Merge forwards its input and returns the index of that input.
  EXPECT_EQ(CopyReason(Ran("Merge", {x, {}}, {x, Floats({}, 5, DT_INT32)})), "");
}

// ---- waits

NodeTrace Timed(const char* name, int thread, int64_t start_ns, int64_t end_ns,
                std::vector<int> inputs, int output) {
  NodeTrace run = Ran("Mul", {}, {Floats({4}, output)});
  run.node = name;
  run.thread = thread;
  run.start_ns = start_ns;
  run.end_ns = end_ns;
  for (const int input : inputs) run.inputs.push_back(Floats({4}, input));
  return run;
}

// Thread 7 runs a, c; thread 3 runs b, which needs a, and d, which needs b and c.
std::vector<NodeTrace> TwoThreads() {
  return {Timed("a", 7, 110, 200, {}, 1), Timed("b", 3, 230, 400, {1}, 2),
          Timed("c", 7, 210, 600, {1}, 3), Timed("d", 3, 650, 700, {2, 3}, 4)};
}

TEST(Waits, EndWithTheLastInputOfTheNextNode) {
  const std::vector<NodeTrace> trace = TwoThreads();
  const std::vector<Wait> waits = FindWaits(trace, Graph(), 100, 720);
  ASSERT_EQ(waits.size(), 6u);
  const auto check = [&](int i, int thread, int64_t start, int64_t end, int next, int cause,
                         int64_t waited) {
    EXPECT_EQ(waits[i].thread, thread) << i;
    EXPECT_EQ(waits[i].start_ns, start) << i;
    EXPECT_EQ(waits[i].end_ns, end) << i;
    EXPECT_EQ(waits[i].next, next) << i;
    EXPECT_EQ(waits[i].cause, cause) << i;
    EXPECT_EQ(waits[i].waited_ns, waited) << i;
  };
  check(0, 7, 100, 110, 0, -1, 0);   // a needs nothing
  check(1, 7, 200, 210, 2, -1, 0);   // the inputs of c were ready
  check(2, 7, 600, 720, -1, -1, 0);  // the end of the step
  check(3, 3, 100, 230, 1, 0, 100);  // for a, and 30 for the hand-over
  check(4, 3, 400, 650, 3, 2, 200);  // for c, not for b
  check(5, 3, 700, 720, -1, -1, 0);
}

TEST(Waits, AddUpToTheStep) {
  const std::vector<NodeTrace> trace = TwoThreads();
  const std::vector<Wait> waits = FindWaits(trace, Graph(), 100, 720);
  const std::vector<ThreadTime> threads = SumThreads(trace, waits, 100, 720);
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_EQ(threads[0].thread, 7);
  EXPECT_EQ(threads[0].busy_ns, 90 + 390);
  EXPECT_EQ(threads[0].between_ns, 20);
  EXPECT_EQ(threads[0].over_ns, 120);
  EXPECT_EQ(threads[1].busy_ns, 170 + 50);
  EXPECT_EQ(threads[1].waited_ns, 300);
  EXPECT_EQ(threads[1].between_ns, 80);
  for (const ThreadTime& t : threads)
    EXPECT_EQ(t.busy_ns + t.waited_ns + t.between_ns + t.over_ns, 620);
}

TEST(Waits, FollowControlEdgesOfTheGraph) {
  Graph g;
  Node* first = NodeBuilder(g, "NoOp").Name("first").Build();
  Node* second = NodeBuilder(g, "NoOp").Name("second").Control(first).Build();
  ASSERT_TRUE(g.status().ok() && second != nullptr) << g.status();
  std::vector<NodeTrace> trace = {Timed("first", 1, 0, 50, {}, 1),
                                  Timed("second", 2, 60, 70, {}, 2)};
  for (NodeTrace& run : trace) run.op = "NoOp";
  const std::vector<Wait> waits = FindWaits(trace, g, 0, 70);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[1].next, 1);
  EXPECT_EQ(waits[1].cause, 0);
  EXPECT_EQ(waits[1].waited_ns, 50);
}

TEST(Waits, AreAttributedToTheNodeThatDidTheWork) {
  std::vector<NodeTrace> trace = {Timed("worker", 1, 0, 50, {}, 1),
                                  Timed("name", 1, 52, 54, {1}, 1),
                                  Timed("next", 2, 60, 70, {1}, 2)};
  trace[1].op = "Identity";
  const std::vector<Wait> waits = FindWaits(trace, Graph(), 0, 70);
  ASSERT_EQ(waits.size(), 3u);
  EXPECT_EQ(waits[2].next, 2);
  EXPECT_EQ(waits[2].cause, 0);
  EXPECT_EQ(waits[2].waited_ns, 54);  // until the value was ready
}

TEST(Waits, NodesThatOverlapOnAThreadLeaveNoGap) {
  const std::vector<NodeTrace> trace = {Timed("outer", 1, 0, 100, {}, 1),
                                        Timed("inner", 1, 20, 40, {}, 2)};
  EXPECT_TRUE(FindWaits(trace, Graph(), 0, 100).empty());
  EXPECT_EQ(SumThreads(trace, {}, 0, 100)[0].busy_ns, 100);
  EXPECT_TRUE(FindWaits({}, Graph(), 0, 100).empty());
}

// ---- a step

constexpr MachineLimits kLimits{.bytes_per_second = 1e9, .flops_per_second = 1e9, .num_threads = 2};

TEST(StepProfile, TakesMediansAndComparesThemWithLimits) {
  Graph g;
  StepProfiler profiler(g, kLimits);
  for (const int64_t time : {9000, 4000, 5000}) {
    NodeTrace large =
        Ran("MatMul", {Floats({10, 100}, 0), Floats({100, 10}, 1)}, {Floats({10, 10}, 2)});
    large.start_ns = 100;
    large.end_ns = 100 + 10 * time;
    NodeTrace small = Ran("Neg", {Floats({2}, 3)}, {Floats({2}, 4)});
    small.start_ns = large.end_ns;
    small.end_ns = large.end_ns + 70;
    profiler.AddTraced({large, small, small}, 0, 100 + 10 * time + 140);
  }
  const StepProfile p = profiler.Profile();
  EXPECT_EQ(p.num_steps, 3);
  EXPECT_EQ(p.fastest_ns, 40240);
  EXPECT_EQ(p.traced_ns, 50240);
  ASSERT_EQ(p.nodes.size(), 2u);
  EXPECT_EQ(p.nodes[0].op, "MatMul");
  EXPECT_EQ(p.nodes[0].time_ns, 50000);
  EXPECT_EQ(p.nodes[0].limit_ns, 20000);  // 2 * 10 * 100 * 10 operations, 8400 bytes
  EXPECT_EQ(p.nodes[0].bound, Bound::kArithmetic);
  EXPECT_EQ(p.nodes[1].runs, 2);
  EXPECT_EQ(p.nodes[1].time_ns, 140);
  EXPECT_EQ(p.nodes[1].bound, Bound::kOverhead);
  EXPECT_EQ(p.nodes[1].output, "float[2]");
  ASSERT_EQ(p.ops.size(), 2u);
  EXPECT_NEAR(p.idle_share(), 1 - 40070. / (2 * 40240), 1e-9);
}

TEST(StepProfile, OfNothingPrints) {
  Graph g;
  StepProfiler empty(g, MachineLimits());
  std::ostringstream out, err;
  Console console{out, err};
  PrintProfile(empty.Profile(), 20, console);
  EXPECT_THAT(out.str(), HasSubstr("0, 0 node runs per step"));
  StepProfiler zero(g, MachineLimits());
  NodeTrace run = Ran("Neg", {Floats(Shape::UnknownRank(), 0)}, {Floats({0}, 1)});
  zero.AddUntraced(0);
  zero.AddTraced({run}, 0, 0);
  PrintProfile(zero.Profile(), 20, console);
  EXPECT_THAT(out.str(), HasSubstr("Neg"));
  EXPECT_EQ(json::parse(ProfileJson(zero.Profile()))["nodes"][0]["limit_us"], 0);
}

TEST(StepProfile, FitsTheTerminal) {
  Graph g;
  StepProfiler profiler(g, MachineLimits());
  NodeTrace run = Ran("Neg", {Floats({1}, 0)}, {Floats({1}, 1)});
  run.node = absl::StrCat("StatefulPartitionedCall/", std::string(40, 'a'), "/while/lstm_cell/Neg");
  profiler.AddUntraced(10);
  profiler.AddTraced({run}, 0, 10);
  const auto printed = [&](bool fits, bool unicode) {
    std::ostringstream out, err;
    Console console{.out = out, .err = err, .fits = fits, .unicode = unicode};
    PrintProfile(profiler.Profile(), 20, console);
    return out.str();
  };
  EXPECT_THAT(printed(false, true), HasSubstr(" " + run.node + " "));
  const std::string narrow = printed(true, false);
  EXPECT_THAT(narrow, ContainsRegex("Stat.*[.][.][.].*/Neg  Neg"));
  EXPECT_THAT(narrow, HasSubstr("to fit 80 columns"));
  std::istringstream lines(narrow);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    for (const char c : line) EXPECT_TRUE(c >= ' ' && c <= '~') << line;  // ASCII
  }
  EXPECT_EQ(json::parse(ProfileJson(profiler.Profile()))["nodes"][0]["name"], run.node);
}

TEST(StepProfile, APageShowsBarsAndThreads) {
  Graph g;
  StepProfiler profiler(g, MachineLimits());
  NodeTrace run = Ran("Neg", {Floats({1}, 0)}, {Floats({1}, 1)});
  run.node = "a<b>";
  profiler.AddUntraced(10);
  profiler.AddTraced({run}, 0, 10);
  const std::string page = ProfilePage(profiler.Profile(), 20, "Profile of m&m");
  EXPECT_THAT(page, HasSubstr("<title>Profile of m&amp;m</title>"));
  EXPECT_THAT(page, HasSubstr("a&lt;b&gt;"));
  EXPECT_THAT(page, HasSubstr("<svg class=\"bar\""));
  EXPECT_THAT(page, HasSubstr("thread 0</text>"));
  for (const char* const outside : {"http", "<script", "<link", "src=", "url("})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
}

TEST(MachineLimits, ArePositiveAndFinite) {
  ThreadPool pool(2);
  const auto limits = MeasureMachineLimits(pool);
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->num_threads, 2);
  EXPECT_GT(limits->bytes_per_second, 1e7);
  EXPECT_LT(limits->bytes_per_second, 1e13);
  EXPECT_GT(limits->flops_per_second, 1e7);
  EXPECT_LT(limits->flops_per_second, 1e14);
}

// ---- the command

// y = transpose(relu(x * w + 1)) / 3 with x fed.
std::string WriteLayer(const std::string& folder) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, 64}, "x");
  const Output w = AddOp("Fill", {Const(g, Tensor::Vector<int32_t>({64, 32})), Const(g, 0.5f)});
  const Output product = AddOp("MatMul", {x, w}, {}, "product");
  const Output bias = Const(g, Tensor::Zeros(DT_FLOAT, {32}));
  const Output sum = AddOp("BiasAdd", {product, bias}, {}, "sum");
  const Output active = AddOp("Relu", {sum}, {}, "active");
  const Output turned =
      AddOp("Transpose", {active, Const(g, Tensor::Vector<int32_t>({1, 0}))}, {}, "turned");
  AddOp("RealDiv", {turned, Const(g, 3.f)}, {}, "y");
  EXPECT_TRUE(g.status().ok()) << g.status();
  const std::string path = folder + "/layer.pb";
  EXPECT_TRUE(WriteFileAtomically(path, SerializeGraph(g)).ok());
  return path;
}

std::string Rows(int n) {
  std::string row = "[0.5";
  for (int i = 1; i < 64; ++i) row += ",0.5";
  std::string rows = "x=[" + row + "]";
  for (int i = 1; i < n; ++i) rows += "," + row + "]";
  return rows + "]";
}

TEST(WeirProfile, ReportsNodesFusedOpsAndCopies) {
  const std::string graph = WriteLayer(TestFolder());
  const CommandResult profile = Weir(
      {"profile", graph, "--feed", Rows(40), "--fetch", "y", "--steps", "3", "--threads", "2"});
  EXPECT_EQ(profile.status, kOk) << profile.err;
  EXPECT_THAT(profile.out, ContainsRegex("machine +[0-9.]+ GB/s"));
  EXPECT_THAT(profile.out, ContainsRegex("_FusedMatMul\\(BiasAdd Relu\\) +float\\[40,32\\]"));
  EXPECT_THAT(profile.out, ContainsRegex("rearranged +turned +Transpose +float\\[32,40\\]"));
  EXPECT_THAT(profile.out, HasSubstr("RealDiv"));
  EXPECT_THAT(profile.out, HasSubstr("Threads, in the fastest step"));
  EXPECT_THAT(profile.out, Not(HasSubstr("nan")));
}

TEST(WeirProfile, JsonHasTheSame) {
  const std::string graph = WriteLayer(TestFolder());
  const CommandResult profile = Weir({"profile", graph, "--feed", Rows(40), "--fetch", "y",
                                      "--steps", "2", "--threads", "1", "--json"});
  ASSERT_EQ(profile.status, kOk) << profile.err;
  const json parsed = json::parse(profile.out);
  EXPECT_EQ(parsed["steps"], 2);
  EXPECT_EQ(parsed["limits"]["threads"], 1);
  EXPECT_GT(parsed["step_us"], 0);
  bool found = false;
  for (const json& node : parsed["nodes"]) {
    EXPECT_EQ(node["runs"], 1);
    if (node["op"] != "_FusedMatMul") continue;
    found = true;
    EXPECT_EQ(node["fused_ops"], (json{"BiasAdd", "Relu"}));
    EXPECT_EQ(node["flops"], 2 * 40 * 64 * 32 + 2 * 40 * 32);
    EXPECT_EQ(node["bytes"], 4 * (40 * 64 + 64 * 32 + 32 + 40 * 32));
  }
  EXPECT_TRUE(found) << profile.out;
  ASSERT_EQ(parsed["copies"].size(), 1u);
  EXPECT_EQ(parsed["copies"][0]["name"], "turned");
  EXPECT_EQ(parsed["threads"].size(), 1u);
}

TEST(WeirProfile, TrainsVariables) {
  const std::string graph = WriteLine(TestFolder());
  const CommandResult profile =
      Weir({"profile", graph, "--init", "init", "--target", "double_w", "--steps", "2"});
  EXPECT_EQ(profile.status, kOk) << profile.err;
  EXPECT_THAT(profile.out, ContainsRegex("~24 B .*double_w +AssignAdd"));
}

TEST(WeirProfile, ErrorsNameTheCause) {
  const std::string graph = WriteLine(TestFolder());
  EXPECT_EQ(Weir({"profile"}).status, kUsage);
  EXPECT_EQ(Weir({"profile", graph, "--steps", "0"}).status, kUsage);
  EXPECT_EQ(Weir({"profile", graph, "--top", "-1"}).status, kUsage);
  const auto error = [](const std::vector<std::string>& args) {
    const CommandResult result = Weir(args);
    EXPECT_EQ(result.status, kFailure);
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  EXPECT_THAT(error({"profile", "missing.pb"}), HasSubstr("missing.pb"));
  EXPECT_THAT(error({"profile", graph}), HasSubstr("pass --fetch or --target"));
  EXPECT_THAT(error({"profile", graph, "--fetch", "nowhere"}), HasSubstr("nowhere"));
  EXPECT_THAT(error({"profile", graph, "--fetch", "y=y.npy"}), HasSubstr("writes no values"));
}

}  // namespace
}  // namespace weir::tools
