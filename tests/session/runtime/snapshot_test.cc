#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/tests/session/lib/late_device.h"

// A value read from a variable never changes, whatever op forwards it as a view of the variable's
// memory, and whatever writes the variable later in the step.
namespace weir {
namespace {

using ::testing::Each;

constexpr int64_t kRows = 4, kColumns = 6;

// Ops whose output may share their input's memory, entirely or in part.
struct ViewOp {
  const char* name;
  std::function<Output(const Output&)> make;
};

Output OfSwitch(const Output& x) {
  Graph& g = x.graph();
  const Output taken = Placeholder(g, DT_BOOL, {}, "taken");
  Node* branch = AddNode("Switch", {x, taken});
  return AddOp("Merge", {Outputs{branch->output(0), branch->output(1)}});
}

std::vector<ViewOp> Views() {
  const auto ints = [](const Output& x, std::initializer_list<int32_t> values) {
    return Const(x.graph(), Tensor::Vector<int32_t>(values));
  };
  return {
      {"Identity", [](const Output& x) { return AddOp("Identity", {x}); }},
      {"IdentityN",
       [](const Output& x) {
         return AddOp("IdentityN", {Outputs{x, x}});
       }},
      {"StopGradient", [](const Output& x) { return AddOp("StopGradient", {x}); }},
      {"Reshape",
       [=](const Output& x) {
         return AddOp("Reshape", {x, ints(x, {-1})});
       }},
      {"ExpandDims",
       [](const Output& x) {
         return AddOp("ExpandDims", {x, Const(x.graph(), 0)});
       }},
      {"Bitcast",
       [](const Output& x) {
         return AddOp("Bitcast", {x}, {{"type", DT_FLOAT}});
       }},
      {"Cast",
       [](const Output& x) {
         return AddOp("Cast", {x}, {{"DstT", DT_FLOAT}});
       }},
      {"AllOfStridedSlice",
       [=](const Output& x) {
         return AddOp("StridedSlice",
                      {x, ints(x, {0, 0}), ints(x, {kRows, kColumns}), ints(x, {1, 1})});
       }},
      {"RowsOfStridedSlice",
       [=](const Output& x) {
         return AddOp("StridedSlice", {x, ints(x, {1}), ints(x, {3}), ints(x, {1})});
       }},
      {"RowsOfSlice",
       [=](const Output& x) {
         return AddOp("Slice", {x, ints(x, {1, 0}), ints(x, {2, -1})});
       }},
      {"Split",
       [](const Output& x) {
         return AddOp("Split", {Const(x.graph(), 0), x}, {{"num_split", int64_t{2}}});
       }},
      {"SplitIntoOne",
       [](const Output& x) {
         return AddOp("Split", {Const(x.graph(), 1), x}, {{"num_split", int64_t{1}}});
       }},
      {"SplitV",
       [=](const Output& x) {
         return AddOp("SplitV", {x, ints(x, {3, 1}), Const(x.graph(), 0)},
                      {{"num_split", int64_t{2}}});
       }},
      {"Unpack",
       [](const Output& x) {
         return AddOp("Unpack", {x}, {{"num", kRows}, {"axis", int64_t{0}}});
       }},
      {"PadWithNothing",
       [](const Output& x) {
         return AddOp("Pad", {x, Const(x.graph(), Tensor::Zeros(DT_INT32, Shape({2, 2})))});
       }},
      {"TransposeOfNothing",
       [=](const Output& x) {
         return AddOp("Transpose", {x, ints(x, {0, 1})});
       }},
      {"ReverseOfNothing",
       [=](const Output& x) {
         return AddOp("ReverseV2", {x, Const(x.graph(), Tensor(DT_INT32, Shape({0})))});
       }},
      {"TileOnce",
       [=](const Output& x) {
         return AddOp("Tile", {x, ints(x, {1, 1})});
       }},
      {"BroadcastToItself",
       [=](const Output& x) {
         return AddOp("BroadcastTo", {x, ints(x, {kRows, kColumns})});
       }},
      {"SumOverNothing",
       [=](const Output& x) {
         return AddOp("Sum", {x, Const(x.graph(), Tensor(DT_INT32, Shape({0})))});
       }},
      {"ConcatOfTwo",
       [](const Output& x) {
         const Output none = Const(x.graph(), Tensor(DT_FLOAT, Shape({0, kColumns})));
         return AddOp("ConcatV2", {Outputs{x, none}, Const(x.graph(), 0)});
       }},
      {"AddNOfOne", [](const Output& x) { return AddOp("AddN", {Outputs{x}}); }},
      {"Select",
       [](const Output& x) {
         const Output yes = Const(x.graph(), Tensor::Scalar(true));
         return AddOp("SelectV2", {yes, x, Const(x.graph(), 0.f)});
       }},
      {"Merge", OfSwitch},
  };
}

// Ops that modify the variable, by adding 4 to ones.
using Writer = std::function<Output(const Variable&)>;
std::vector<Writer> Writers() {
  const auto fives = [](const Variable& v) {
    return Fill(Const(v.graph(), {kRows, kColumns}), Const(v.graph(), 5.f));
  };
  const auto rows = [](const Variable& v) { return Const(v.graph(), {0, 1, 2, 3}); };
  return {[=](const Variable& v) { return v.Assign(fives(v)); },
          [=](const Variable& v) { return v.AssignAdd(fives(v) - 1.f); },
          [=](const Variable& v) { return v.AssignSub(1.f - fives(v)); },
          [=](const Variable& v) {
            const bool ref = v.handle().is_ref();
            Node* n = AddNode(ref ? "ApplyGradientDescent" : "ResourceApplyGradientDescent",
                              {v.handle(), Const(v.graph(), 1.f), 1.f - fives(v)});
            return Output(n, 0);
          },
          [=](const Variable& v) {
            const bool ref = v.handle().is_ref();
            Node* n = AddNode(ref ? "ScatterUpdate" : "ResourceScatterUpdate",
                              {v.handle(), rows(v), fives(v)});
            return Output(n, 0);
          }};
}

struct SnapshotParams {
  bool resource, late;
};

class Snapshot : public ::testing::TestWithParam<SnapshotParams> {
 protected:
  // The view is created before the write, and used after it.
  static void Check(const ViewOp& view, const Writer& write, const std::set<std::string>& disable) {
    Graph g(GraphOptions{.use_resource = GetParam().resource});
    const Variable v = GetVariable(g, "v", {kRows, kColumns}, Ones());
    const Output seen = view.make(Identity(v.value()));
    Operation written;
    {
      ControlDependencies after(g, {Operation(seen)});
      written = Operation(write(v));
    }
    Output late;
    {
      ControlDependencies after(g, {written});
      late = Identity(seen) * 1.f;
    }
    ASSERT_TRUE(g.status().ok()) << g.status();
    SessionOptions options{.num_threads = 2, .disable = disable};
    if (GetParam().late) options = WithLateDevices(std::move(options));
    absl::StatusOr<Session> session = Session::Create(g, std::move(options));
    ASSERT_TRUE(session.ok()) << session.status();
    Feeds feeds;
    if (Node* taken = g.FindNode("taken")) feeds = {{taken->output(0), Tensor::Scalar(true)}};
    for (int step = 0; step < 3; ++step) {
      ASSERT_TRUE(session->Run(v.initializer()).ok());
      const auto out = session->Run(feeds, {late, seen}, {written});
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_THAT((*out)[0].flat<float>(), Each(1));
      EXPECT_THAT((*out)[1].flat<float>(), Each(1));
      const auto now = session->Run({v.value()});
      ASSERT_TRUE(now.ok()) << now.status();
      EXPECT_THAT((*now)[0].flat<float>(), Each(5));
      EXPECT_THAT((*out)[1].flat<float>(), Each(1));  // fetched values never change
    }
  }
};

TEST_P(Snapshot, DoesNotChangeThroughAnyView) {
  const std::vector<Writer> writers = Writers();
  for (const ViewOp& view : Views()) {
    for (size_t w = 0; w < writers.size(); ++w) {
      SCOPED_TRACE(absl::StrCat(view.name, ", writer ", w));
      Check(view, writers[w], {});
    }
  }
}

TEST_P(Snapshot, DependsOnNoOptimization) {
  const std::vector<Writer> writers = Writers();
  for (const char* optimization :
       {"constant_folding", "plan_memory", "in_place", "partition_tasks", "reduce_waits"}) {
    for (const ViewOp& view : Views()) {
      SCOPED_TRACE(absl::StrCat(view.name, " without ", optimization));
      Check(view, writers[1], {optimization});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfVariables, Snapshot,
                         ::testing::Values(SnapshotParams{true, false},
                                           SnapshotParams{false, false}, SnapshotParams{true, true},
                                           SnapshotParams{false, true}),
                         [](const auto& p) {
                           return absl::StrCat(p.param.resource ? "Resource" : "Reference",
                                               p.param.late ? "OnAnAccelerator" : "");
                         });

}  // namespace
}  // namespace weir
