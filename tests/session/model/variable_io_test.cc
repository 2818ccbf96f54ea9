// Values from outside the graph: loaded directly, or restored.

#include "weir/session/model/variable_io.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/mirrored_variable.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class VariableIo : public ::testing::TestWithParam<bool> {
 protected:
  VariableIo() : g({.use_resource = GetParam()}) {}
  ~VariableIo() override { EXPECT_TRUE(g.status().ok()) << g.status(); }
  Graph g;
};
INSTANTIATE_TEST_SUITE_P(Kinds, VariableIo, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Reference"; });

void Expect(const absl::Status& status, absl::StatusCode code,
            const std::vector<std::string>& parts) {
  EXPECT_EQ(status.code(), code) << status;
  for (const std::string& part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

TEST_P(VariableIo, LoadedValuesAreThoseThatAreEvaluated) {
  const Variable v = MakeVariable(g, {1.0, 2.0}, {.name = "v"});
  const Variable w = MakeVariable(g, [&] { return v.value() * 2.f; }, {.name = "w"});
  const Output sum = v + w;
  Session session = *Session::Create(g);
  const int nodes = g.num_nodes();
  for (const Variable& loaded : {v, w}) {  // neither has a value before
    ASSERT_TRUE(Load(loaded, Tensor::Vector<float>({3, 4}), &session).ok());
  }
  EXPECT_EQ(g.num_nodes(), nodes);
  EXPECT_THAT(Eval(v, &session)->flat<float>(), ElementsAre(3, 4));
  EXPECT_EQ(g.num_nodes(), nodes) << "the read made with the variable serves all fetches";
  EXPECT_THAT(Eval(sum, &session)->flat<float>(), ElementsAre(6, 8));
  ASSERT_TRUE(session.Run(v.initializer()).ok());
  EXPECT_THAT(Eval(v, &session)->flat<float>(), ElementsAre(1, 2)) << "its own initial value";
}

TEST_P(VariableIo, LoadReportsMismatches) {
  const Variable v = MakeVariable(g, {1.0, 2.0}, {.name = "v"});
  const Output value = v.value();
  Session session = *Session::Create(g);
  ASSERT_TRUE(session.Run(v.initializer()).ok());
  Expect(Load(v, Tensor::Vector<float>({1, 2, 3}), &session), absl::StatusCode::kInvalidArgument,
         {"v:0", "[2]", "[3]"});
  Expect(Load(v, Tensor::Vector<double>({1, 2}), &session), absl::StatusCode::kInvalidArgument,
         {"v:0", "float", "double"});
  EXPECT_THAT(Eval(value, &session)->flat<float>(), ElementsAre(1, 2));
  Expect(Load(Variable(), Tensor::Scalar(1.f), &session), absl::StatusCode::kInvalidArgument, {});
  Expect(Load(v, Tensor::Vector<float>({1, 2}), nullptr), absl::StatusCode::kFailedPrecondition,
         {"v:0", "session"});
  Expect(Eval(value, nullptr).status(), absl::StatusCode::kFailedPrecondition,
         {value.name(), "session"});
}

TEST_P(VariableIo, PartitionedAndMirroredVariablesAreLoadedByPart) {
  const Variable w =
      GetVariable(g, "w", {3}, {.initializer = Zeros(), .partitioner = FixedSizePartitioner(2)});
  const Variable m = MakeMirroredVariable(g, {1.0}, {"/cpu:0", "/cpu:1"}, {.name = "m"});
  const Output whole = w.value();
  Session session = *Session::Create(g);
  Expect(Load(w, Tensor::Vector<float>({1, 2, 3}), &session), absl::StatusCode::kInvalidArgument,
         {"w", "parts()"});
  Expect(Load(m, Tensor::Vector<float>({1}), &session), absl::StatusCode::kInvalidArgument,
         {"m:0", "replicas()"});
  ASSERT_TRUE(Load(w.parts()[0], Tensor::Vector<float>({1, 2}), &session).ok());
  ASSERT_TRUE(Load(w.parts()[1], Tensor::Vector<float>({3}), &session).ok());
  EXPECT_THAT(Eval(whole, &session)->flat<float>(), ElementsAre(1, 2, 3));
}

TEST_P(VariableIo, RejectsVariablesOfADestroyedGraph) {
  Variable v;
  {
    Graph gone({.use_resource = GetParam()});
    v = MakeVariable(gone, {1.0, 2.0}, {.name = "v"});
  }
  Session session = *Session::Create(g);
  Expect(Eval(v, &session).status(), absl::StatusCode::kFailedPrecondition, {"destroyed"});
  Expect(Load(v, Tensor::Vector<float>({1, 2}), &session), absl::StatusCode::kFailedPrecondition,
         {"v:0", "destroyed"});
}

TEST_P(VariableIo, RestoringInitializesWithoutTheInitialValue) {
  const std::string path = testing::MakeTempDirectory("variable_io") + "/m";
  {
    Graph saved({.use_resource = GetParam()});
    MakeVariable(saved, {1.0, 2.0}, {.name = "v"});
    Saver saver = *Saver::Create(saved);
    const Operation init = GlobalVariablesInitializer(saved);
    Session session = *Session::Create(saved);
    ASSERT_TRUE(session.Run(init).ok());
    ASSERT_TRUE(saver.Save(session, path).ok());
  }
  // An initial value that cannot be computed: its placeholder is not fed.
  const Variable v = MakeVariable(g, Placeholder(g, DT_FLOAT, {2}), {.name = "v"});
  const Output value = v.value(), report = ReportUninitializedVariables(g);
  const Saver saver = *Saver::Create(g);
  Session session = *Session::Create(g);
  EXPECT_TRUE(absl::IsInvalidArgument(session.Run(v.initializer())));
  EXPECT_EQ(Eval(report, &session)->num_elements(), 1);
  ASSERT_TRUE(saver.Restore(session, path).ok());
  EXPECT_EQ(Eval(report, &session)->num_elements(), 0);
  EXPECT_THAT(Eval(value, &session)->flat<float>(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace weir
