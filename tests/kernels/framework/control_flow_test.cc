#include "weir/ops/framework/control_flow.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/resource_handle.h"
#include "weir/kernels/containers/accumulator.h"
#include "weir/kernels/lib/summarize.h"
#include "weir/ops/containers/data_flow.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"

namespace weir {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Runs one node's kernel on given inputs, some of which may be dead.
struct KernelRun {
  std::vector<Tensor> slots;
  std::vector<uint8_t> dead;
  absl::Status status;
};

KernelRun RunNode(const Node& node, const Tensors& inputs, const std::vector<uint8_t>& dead) {
  KernelRun run;
  run.slots = inputs;
  run.slots.resize(inputs.size() + static_cast<size_t>(node.num_outputs()));
  run.dead = dead;
  run.dead.resize(run.slots.size());
  std::vector<int32_t> positions(run.slots.size());
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int32_t>(i);
  const std::unique_ptr<Device> device = NewCpuDevice();
  ResourceMap resources;
  ThreadPool pool(1);
  const StepInfo step{.pool = &pool, .resources = &resources};
  const KernelDef* def = BuiltinKernels().Find(node, kCpu);
  if (def == nullptr) {
    run.status = BuiltinKernels().NoKernel(node, kCpu);
    return run;
  }
  const absl::StatusOr<Kernel> kernel = def->make({node, *device, resources, {}});
  const int32_t n = static_cast<int32_t>(inputs.size());
  KernelContext c(node, *device, step,
                  {.slots = run.slots.data(),
                   .dead = run.dead.data(),
                   .inputs = positions.data(),
                   .outputs = positions.data() + n,
                   .num_inputs = n,
                   .num_outputs = node.num_outputs()});
  run.status = kernel.ok() ? kernel->run()(c) : kernel.status();
  return run;
}

}  // namespace

TEST(ControlFlow, SwitchPassesToOneSideAndMarksTheOtherDead) {
  Graph g;
  const SwitchResult sides = Switch(Const(g, 3.f), Const(g, true));
  for (const bool pred : {false, true}) {
    const KernelRun run =
        RunNode(*sides.on_true.node, {Tensor::Scalar(3.f), Tensor::Scalar(pred)}, {0, 0});
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_EQ(run.dead[2], pred ? 1 : 0);
    EXPECT_EQ(run.dead[3], pred ? 0 : 1);
    EXPECT_EQ(run.slots[pred ? 3 : 2].scalar<float>(), 3.f);
  }
}

TEST(ControlFlow, MergeForwardsTheLiveInput) {
  Graph g;
  const MergeResult merged = Merge({Const(g, 1.f), Const(g, 2.f)});
  const KernelRun run =
      RunNode(*merged.output.node, {Tensor::Scalar(1.f), Tensor::Scalar(2.f)}, {1, 0});
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.slots[2].scalar<float>(), 2.f);
  EXPECT_EQ(run.slots[3].scalar<int32_t>(), 1);
  const KernelRun none = RunNode(*merged.output.node, {Tensor(), Tensor()}, {1, 1});
  EXPECT_TRUE(none.dead[2] && none.dead[3]);
}

TEST(ControlFlow, MergeInfersTheCommonShape) {
  Graph g;
  const Output a = Placeholder(g, DT_FLOAT, {2, 3}), b = Placeholder(g, DT_FLOAT, {2, 4});
  EXPECT_EQ(Merge({a, b}).output.shape().ToString(), "[2,?]");
  EXPECT_EQ(Merge({a, Placeholder(g, DT_FLOAT, {2})}).output.shape().ToString(), "<unknown>");
}

TEST(ControlFlow, AFailedAssertPrintsItsData) {
  Graph g;
  const Operation check =
      Assert(Const(g, false), {Const<int32_t>(g, {2, 2}, {1, 2, 3, 4}), Const(g, "x is bad")});
  const absl::Status status = EvaluateTargets(g, {check}, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("assertion failed: [[1 2][3...]...] [x is bad]"));
}

TEST(ControlFlow, SummarizedTensorsEqualTensorFlows) {
  EXPECT_EQ(Summarize(Tensor::Scalar(1.5f), 3), "1.5");
  EXPECT_EQ(Summarize(Tensor::Vector<int32_t>({1, 2, 3, 4}), 3), "1 2 3...");
  EXPECT_EQ(Summarize(Tensor::Vector<float>({0.1f, 1e10f}), -1), "0.1 1e+10");
  EXPECT_EQ(Summarize(Tensor::Of<int32_t>({2, 2}, {1, 2, 3, 4}), 2), "[1 2]...");
  EXPECT_EQ(Summarize(Tensor::Vector<bool>({true, false}), 3), "1 0");
  EXPECT_EQ(Summarize(Tensor(DT_FLOAT, {0}), 3), "");
}

TEST(ControlFlow, PrintPassesItsInputAndWritesToStderr) {
  Graph g;
  const Output y =
      Print(Const(g, {1.f, 2.f}), {Const(g, {7, 8, 9, 10})}, {.message = "loss ", .first_n = 1});
  testing::internal::CaptureStderr();
  const absl::StatusOr<Tensors> got = Evaluate(g, {y});
  const std::string written = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT((*got)[0].flat<float>(), ElementsAre(1, 2));
  EXPECT_EQ(written, "loss [7 8 9...]\n");
}

TEST(ControlFlow, PrintV2RejectsUnknownStreams) {
  Graph g;
  const absl::Status status = EvaluateTargets(g, {PrintV2(Const(g, "text"), "printer")}, nullptr);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Unknown output stream: printer"));
}

TEST(ControlFlow, RefSelectChecksItsIndex) {
  Graph g;
  const Output ref =
      Output(AddNode(g, "VariableV2", {}, {{"shape", Shape({2})}, {"dtype", DT_FLOAT}}));
  const Output chosen = AddOp("RefSelect", {Const(g, 5), Outputs{ref, ref}});
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_TRUE(chosen.is_ref());
  const KernelRun run =
      RunNode(*chosen.node, {Tensor::Scalar<int32_t>(5), Tensor(), Tensor()}, {0, 0, 0});
  EXPECT_THAT(std::string(run.status.message()),
              HasSubstr("must be in the range [0, 2) but got 5"));
}

TEST(ControlFlow, ReferencesAreForwarded) {
  Graph g;
  const Output ref =
      Output(AddNode(g, "VariableV2", {}, {{"shape", Shape({2})}, {"dtype", DT_FLOAT}}));
  const Output same = AddOp("RefIdentity", {ref});
  Node* sides = AddNode("RefSwitch", {ref, Const(g, true)});
  Node* merged = AddNode("RefMerge", {Outputs{sides->output(0), sides->output(1)}});
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_TRUE(same.is_ref() && sides->output(0).is_ref() && merged->output(0).is_ref());
  ResourceHandle handle;
  handle.name = "v";
  const Tensor value = Tensor::Scalar(handle);
  EXPECT_EQ(RunNode(*same.node, {value}, {0}).slots[1].scalar<ResourceHandle>().name, "v");
  const KernelRun chosen = RunNode(*sides, {value, Tensor::Scalar(true)}, {0, 0});
  EXPECT_TRUE(chosen.dead[2] && !chosen.dead[3]);
  EXPECT_EQ(RunNode(*merged, {Tensor(), value}, {1, 0}).slots[2].scalar<ResourceHandle>().name,
            "v");
}

TEST(ControlFlow, LoopOpsForwardTheirValueAndInferItsShape) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {2});
  const Output constant = Enter(x, "loop", {.is_constant = true}), variable = Enter(x, "loop");
  EXPECT_EQ(constant.shape().ToString(), "[2]");
  EXPECT_EQ(variable.shape().ToString(), "<unknown>");
  const Output next = NextIteration(constant), left = Exit(next);
  const Output go = LoopCond(Placeholder(g, DT_BOOL, {}));
  ASSERT_TRUE(g.status().ok()) << g.status();
  for (const Output& o : {constant, next, left}) {
    const KernelRun run = RunNode(*o.node, {Tensor::Vector<float>({1, 2})}, {0});
    EXPECT_THAT(run.slots[1].flat<float>(), ElementsAre(1, 2)) << o.name();
  }
  EXPECT_TRUE(RunNode(*go.node, {Tensor::Scalar(true)}, {0}).slots[1].scalar<bool>());
  const Output ref =
      Output(AddNode(g, "VariableV2", {}, {{"shape", Shape({2})}, {"dtype", DT_FLOAT}}));
  Output r = AddOp("RefEnter", {ref}, {{"frame_name", "loop"}});
  for (const char* op : {"RefNextIteration", "RefExit"}) {
    r = AddOp(op, {r});
    ASSERT_TRUE(g.status().ok()) << g.status();
    EXPECT_TRUE(RunNode(*r.node, {Tensor::Scalar(ResourceHandle())}, {0}).status.ok());
  }
}

TEST(ControlFlow, NodesWithoutOutputsOnlyOrder) {
  Graph g;
  const Operation first = NoOp(g), second = ControlTrigger(g);
  EXPECT_TRUE(EvaluateTargets(g, {first, second}, nullptr).ok());
}

TEST(ControlFlow, GroupAndTupleNameTheirNodesAsPythonDoes) {
  Graph g;
  const Output a = Const(g, 1.f, "a"), b = Const(g, 2.f, "b");
  const Operation group = Group(g, {a, b});
  EXPECT_EQ(group.name(), "group_deps");
  EXPECT_THAT(group.node->control_inputs(), ElementsAre(a.node, b.node));
  const Outputs gated = Tuple(g, {a, b});
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_EQ(gated[1].node->name(), "tuple/control_dependency_1");
  EXPECT_EQ(g.FindNode("tuple/group_deps")->op_name(), "NoOp");
}

// ---- accumulators

TEST(Accumulator, TheRefFormSumsWithoutDividing) {
  Graph g;
  ResourceMap resources;
  ConditionalAccumulator sum(
      g, DT_DOUBLE,
      {.reduction = ConditionalAccumulatorOptions::Reduction::kSum, .use_resource = false});
  const Output zero = Const(g, int64_t{0});
  const Operation first = sum.ApplyGradient(Const<double>(g, {1.0, 2.0}), zero);
  const Operation second = sum.ApplyGradient(Const<double>(g, {10.0, 20.0}), zero);
  const Operation jump = sum.SetGlobalStep(Const(g, int64_t{7}));
  const Output total = sum.TakeGradient(Const(g, 2)), count = sum.NumAccumulated();
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_TRUE(sum.handle().is_ref());
  ASSERT_TRUE(EvaluateTargets(g, {first, second}, &resources).ok());
  const absl::StatusOr<Tensors> got = Evaluate(g, {total}, &resources);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT((*got)[0].flat<double>(), ElementsAre(11, 22));
  ASSERT_TRUE(EvaluateTargets(g, {jump}, &resources).ok());
  ASSERT_TRUE(EvaluateTargets(g, {first}, &resources).ok());
  const absl::StatusOr<Tensors> left = Evaluate(g, {count}, &resources);
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_EQ((*left)[0].scalar<int32_t>(), 0);
}

TEST(Accumulator, AveragesFreshGradientsAndResets) {
  Graph g;
  ResourceMap resources;
  ConditionalAccumulator sum(g, DT_FLOAT, {.shape = {2}});
  const Output x = Placeholder(g, DT_FLOAT, {2}), step = Placeholder(g, DT_INT64, {});
  const Operation apply = sum.ApplyGradient(x, step);
  const Output count = sum.NumAccumulated(), mean = sum.TakeGradient(Const(g, 2));
  ASSERT_TRUE(g.status().ok()) << g.status();
  const auto add = [&](float a, float b, int64_t at) {
    const Output done = WithDependencies({apply}, step);
    return Evaluate(g, {{x, Tensor::Vector<float>({a, b})}, {step, Tensor::Scalar(at)}}, {done},
                    &resources)
        .status();
  };
  EXPECT_TRUE(add(1, 2, 0).ok());
  EXPECT_TRUE(add(3, 6, 0).ok());
  absl::StatusOr<Tensors> got = Evaluate(g, {count}, &resources);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].scalar<int32_t>(), 2);
  got = Evaluate(g, {mean}, &resources);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT((*got)[0].flat<float>(), ElementsAre(2, 4));
  EXPECT_TRUE(add(1, 1, 0).ok()) << "a stale gradient is dropped without an error";
  got = Evaluate(g, {count}, &resources);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].scalar<int32_t>(), 0);
}

TEST(Accumulator, RejectsAGradientOfADifferentShape) {
  Graph g;
  ConditionalAccumulator sum(g, DT_FLOAT, {.shape = {2}});
  const Operation apply = sum.ApplyGradient(Const(g, {1.f, 2.f, 3.f}), Const(g, int64_t{0}));
  const absl::Status status = EvaluateTargets(g, {apply}, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Shape mismatch"));
}

TEST(Accumulator, WaiterBehindACancelledOneIsServed) {
  DenseAccumulator sum("sum", DT_FLOAT, Shape({1}), /*mean=*/false);
  Cancellation impatient, patient;
  absl::Status first;
  std::optional<Tensor> second;
  sum.Take(5, &impatient, [&](absl::StatusOr<Tensors> t) { first = t.status(); });
  sum.Take(1, &patient, [&](absl::StatusOr<Tensors> t) { second = (*t)[0]; });
  ASSERT_TRUE(sum.Apply(0, {Tensor::Vector<float>({3})}).ok());
  EXPECT_FALSE(second.has_value());  // not its turn yet
  impatient.Cancel(absl::DeadlineExceededError("over"));
  EXPECT_EQ(first.code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(second.has_value());
  EXPECT_THAT(second->flat<float>(), ElementsAre(3));
}

TEST(TemporaryVariable, LivesWithinAStep) {
  Graph g;
  const Output ref = TemporaryVariable(g, {2}, DT_FLOAT, "t");
  const Output assigned = AddOp("Assign", {ref, Const(g, {1.f, 2.f})});
  const Output added = AddOp("AssignAdd", {assigned, Const(g, {10.f, 10.f})});
  const Output last = DestroyTemporaryVariable(added, "t");
  ASSERT_TRUE(g.status().ok()) << g.status();
  const absl::StatusOr<Tensors> got = Evaluate(g, {last});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT((*got)[0].flat<float>(), ElementsAre(11, 12));
}

}  // namespace weir
