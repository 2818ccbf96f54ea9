// TensorFlow's exceptions as statuses: the code, and the key words that people search for. The
// words are those of TensorFlow 2.21's tf.compat.v1 for the same mistake, unless a row says
// otherwise.

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/train/optimizers.h"
#include "weir/proto/graph.pb.h"
#include "weir/proto/variable.pb.h"
#include "weir/session/train/monitored_session.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

struct Mistake {
  const char* name;
  Code code;
  std::vector<std::string> words;
  // Makes the mistake. If it returns OK, the graph's first error counts.
  std::function<absl::Status(Graph&)> make;
  // Set if the mistake concerns only one kind of variables: 'v' (reference) or 'r' (resource).
  char kind = 0;
};

absl::Status Done() { return absl::OkStatus(); }

Variable Pair(Graph& g, const char* name = "w") {
  return MakeVariable(g, {1.f, 2.f}, {.name = name});
}

// Runs a step after the initializers.
absl::Status RunFed(Graph& g, const Feeds& feeds, const Output& fetch, bool initialize = true) {
  const Operation init = GlobalVariablesInitializer(g);
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g));
  if (initialize) WEIR_RETURN_IF_ERROR(session.Run(init));
  return session.Run(feeds, {fetch}).status();
}
absl::Status Run(Graph& g, const Output& fetch) { return RunFed(g, {}, fetch); }
absl::Status RunUninitialized(Graph& g, const Output& fetch) { return RunFed(g, {}, fetch, false); }

std::vector<Mistake> Creation() {
  return {
      {"NoInitialValue",
       Code::kInvalidArgument,
       {"initial_value must be specified"},
       [](Graph& g) { return MakeVariable(g, Initializer()), Done(); }},
      {"InitialValueOfAnotherType",
       Code::kInvalidArgument,
       {"Tensor conversion requested dtype int32 for Tensor with dtype float", "Const:0"},
       [](Graph& g) { return MakeVariable(g, Const(g, 1.f), {.dtype = DT_INT32}), Done(); }},
      {"LiteralThatDoesNotConvert",
       Code::kInvalidArgument,
       {"Expected int32, but got", "1.5", "of type 'float'"},
       [](Graph& g) { return MakeVariable(g, {1.5}, {.dtype = DT_INT32}), Done(); }},
      {"ShapeThatDoesNotFit",
       Code::kInvalidArgument,
       {"the initial value's shape",
        "is not compatible with the explicitly supplied `shape` "
        "argument"},
       [](Graph& g) {
         return MakeVariable(g, {1.f, 2.f}, {.shape = Shape({3})}), Done();
       }},
      {"InitialValueOfUnknownShape",
       Code::kInvalidArgument,
       {"initial_value must have a shape specified", "Placeholder:0"},
       [](Graph& g) { return MakeVariable(Placeholder(g, DT_FLOAT)), Done(); },
       'v'},
      {"SynchronizationMode",
       Code::kInvalidArgument,
       {"Invalid variable synchronization mode: 7", "'a'"},
       [](Graph& g) {
         MakeVariable(g, 1.f,
                      {.name = "a", .synchronization = static_cast<VariableSynchronization>(7)});
         return Done();
       }},
      {"AggregationMode",
       Code::kInvalidArgument,
       {"Invalid variable aggregation mode: 7", "'a'"},
       [](Graph& g) {
         MakeVariable(g, 1.f, {.name = "a", .aggregation = static_cast<VariableAggregation>(7)});
         return Done();
       }},
      {"NameScope",
       Code::kInvalidArgument,
       {"'a b' is not a valid root scope name. A root scope name has to match the following "
        "pattern: ^[A-Za-z0-9.][A-Za-z0-9_.\\\\/>-]*$"},
       [](Graph& g) {
         const NameScope scope(g, "a b");
         return Done();
       }},
      {"Device",
       Code::kInvalidArgument,
       {"Unknown attribute 'foo=0' is encountered while parsing the device spec: '/foo=0'."},
       [](Graph& g) {
         const DeviceScope scope(g, "/foo=0");
         return Done();
       }},
      {"GlobalStepTwice",
       Code::kAlreadyExists,
       {"\"global_step\" already exists."},
       [](Graph& g) { return CreateGlobalStep(g), CreateGlobalStep(g), Done(); }},
      {"StaticShapeThatContradicts",
       Code::kInvalidArgument,
       {"[2]", "[3]"},
       [](Graph& g) { return Pair(g).set_shape({3}), Done(); }},
      {"ProtoOfWhatIsNotThere",
       Code::kNotFound,
       {"The name 'x:0' refers to a Tensor which does not exist. The operation, 'x', does not "
        "exist "
        "in the graph."},
       [](Graph& g) {
         proto::VariableDef def;
         def.set_variable_name("x:0");
         return Variable::FromProto(g, def).status();
       }},
  };
}

std::vector<Mistake> GetVariables() {
  const auto again = [](Graph& g, const Shape& shape, DataType dtype = DT_INVALID) {
    GetVariable(g, "a", {2});
    const VariableScope scope(g, "", {.reuse = Reuse::kReuse});
    GetVariable(g, "a", shape, {.dtype = dtype});
    return Done();
  };
  return {
      {"WithoutShapeOrInitializer",
       Code::kInvalidArgument,
       {"Variable a did not get an initializer, so its `shape` argument must be specified."},
       [](Graph& g) { return GetVariable(g, "a", VariableOptions{}), Done(); }},
      // The words are TensorFlow 1.15's.
      {"OfPartlyKnownShape",
       Code::kInvalidArgument,
       {"Shape of a new variable (a) must be fully defined, but instead was"},
       [](Graph& g) {
         return GetVariable(g, "a", {-1, 2}, Zeros()), Done();
       }},
      {"ConstantInitializerAndShape",
       Code::kInvalidArgument,
       {"If initializer is a constant, do not specify shape"},
       [](Graph& g) {
         return GetVariable(g, "a", {2}, Const(g, {1.f, 2.f})), Done();
       }},
      {"InitializerOfAnotherType",
       Code::kInvalidArgument,
       {"Initializer type 'float' and explicit dtype 'int32' don't match"},
       [](Graph& g) {
         GetVariable(g, "a", {.initializer = Const(g, 1.f), .dtype = DT_INT32});
         return Done();
       }},
      {"NoDefaultInitializer",
       Code::kInvalidArgument,
       {"An initializer for variable a of ", "complex64", " is required"},
       [](Graph& g) { return GetVariable(g, "a", {2}, {.dtype = DT_COMPLEX64}), Done(); }},
      {"VariableName",
       Code::kInvalidArgument,
       {"'/a' is not a valid root scope name",
        "A root scope name has to match the following pattern: "
        "^[A-Za-z0-9.][A-Za-z0-9_.\\\\/>-]*$"},
       [](Graph& g) { return GetVariable(g, "/a", {2}), Done(); }},
      {"ExistsAlready",
       Code::kAlreadyExists,
       {"Variable a already exists, disallowed. Did you mean to set"},
       [](Graph& g) { return GetVariable(g, "a", {2}), GetVariable(g, "a", {2}), Done(); }},
      {"DoesNotExist",
       Code::kNotFound,
       {"Variable a does not exist, or was not created with", "Did you mean to set", "AUTO_REUSE"},
       [](Graph& g) {
         const VariableScope scope(g, "", {.reuse = Reuse::kReuse});
         return GetVariable(g, "a", {2}), Done();
       }},
      {"SharedWithAnotherShape",
       Code::kInvalidArgument,
       {"Trying to share variable a, but specified shape [3] and found shape [2]."},
       [again](Graph& g) { return again(g, {3}); }},
      {"SharedWithAnotherType",
       Code::kInvalidArgument,
       {"Trying to share variable a, but specified dtype int32 and found dtype float"},
       [again](Graph& g) { return again(g, {2}, DT_INT32); }},
      {"ScopeWithoutName",
       Code::kInvalidArgument,
       {"If default_name is None then name_or_scope is required"},
       [](Graph& g) {
         const VariableScope scope(g, VariableScopeOptions{});
         return Done();
       }},
      {"DefaultNameWithReuse",
       Code::kInvalidArgument,
       {"reuse=True cannot be used without a name_or_scope"},
       [](Graph& g) {
         const VariableScope scope(g, {.reuse = Reuse::kReuse, .default_name = "d"});
         return Done();
       }},
      {"ConstantOfAnotherShape",
       Code::kInvalidArgument,
       {"Expected Tensor's shape: [2], but got [3]."},
       [](Graph& g) {
         return GetVariable(g, "a", {2}, Constant({1.f, 2.f, 3.f}, true)), Done();
       }},
      {"ConstantWithTooManyValues",
       Code::kInvalidArgument,
       {"Too many elements provided. Takes at most 2, but got 3."},
       [](Graph& g) {
         return GetVariable(g, "a", {2}, Constant({1.f, 2.f, 3.f})), Done();
       }},
  };
}

std::vector<Mistake> Writes() {
  return {
      // The words are the guide's; newer versions word it differently.
      {"AssignOfAnotherShape",
       Code::kInvalidArgument,
       {"Cannot assign to variable Variable:0 due to variable shape (2,) and value shape (3,) are "
        "incompatible"},
       [](Graph& g) {
         return MakeVariable(g, {1.f, 2.f}).Assign({1.f, 2.f, 3.f}), Done();
       }},
      {"AssignOfALiteralThatDoesNotConvert",
       Code::kInvalidArgument,
       {"Expected int32, but got", "1.5"},
       [](Graph& g) {
         return MakeVariable(g, {1, 2}).Assign({1.5, 2.0}), Done();
       }},
      {"AssignOfAnotherType",
       Code::kInvalidArgument,
       {"requested dtype int32 for Tensor with dtype float"},
       [](Graph& g) {
         return MakeVariable(g, {1, 2}).Assign(Const(g, {1.f, 2.f})), Done();
       }},
      {"AssignFedAnotherShape",
       Code::kInvalidArgument,
       {"Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= [3]"},
       [](Graph& g) {
         const Output p = Placeholder(g, DT_FLOAT);
         return RunFed(g, {{p, Tensor::Vector<float>({1, 2, 3})}}, Pair(g).Assign(p));
       },
       'v'},
      {"AssignFedAnotherShapeToAResource",
       Code::kInvalidArgument,
       {"Trying to assign to variable with tensor with wrong shape. Expected [2] got [3]"},
       [](Graph& g) {
         const Output p = Placeholder(g, DT_FLOAT);
         return RunFed(g, {{p, Tensor::Vector<float>({1, 2, 3})}}, Pair(g).Assign(p));
       },
       'r'},
      // TensorFlow's reference variables say less: "must be the same size".
      {"AddFedAnotherShape",
       Code::kInvalidArgument,
       {"Cannot update variable with shape [2] using a Tensor with shape [3], shapes must be "
        "equal."},
       [](Graph& g) {
         const Output p = Placeholder(g, DT_FLOAT);
         return RunFed(g, {{p, Tensor::Vector<float>({1, 2, 3})}}, Pair(g).AssignAdd(p));
       }},
      {"ScatterOutOfRange",
       Code::kInvalidArgument,
       {"indices[0] = 5 is not in [0, 2)"},
       [](Graph& g) {
         const Output at = PlaceholderWithDefault(Const(g, {5}), {1});
         return Run(g, Pair(g).ScatterAdd({Const(g, {1.f}), at}));
       }},
      {"GatherOutOfRange",
       Code::kInvalidArgument,
       {"indices[0] = 5 is not in [0, 2)"},
       [](Graph& g) {
         return Run(g, Pair(g).SparseRead(PlaceholderWithDefault(Const(g, {5}), {1})));
       }},
      {"GatherNdOutOfRange",
       Code::kInvalidArgument,
       {"indices[0] = [5] does not index into", "shape [2]"},
       [](Graph& g) {
         const Output at = PlaceholderWithDefault(Const(g, Shape({1, 1}), {5}), {1, 1});
         return Run(g, Pair(g).GatherNd(at));
       }},
      {"ScatterOfAnotherShape",
       Code::kInvalidArgument,
       {"Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2] and [3]."},
       [](Graph& g) {
         Pair(g).ScatterAdd({Const(g, {1.f, 2.f, 3.f}), Const(g, {0, 1})});
         return Done();
       }},
      {"SliceOfAnotherShape",
       Code::kInvalidArgument,
       {"[3]", "[2]"},
       [](Graph& g) {
         const Variable v = MakeVariable(g, {1.f, 2.f, 3.f});
         return Run(g, v.Slice({Index::Range(0, 2)}).Assign({1.f, 2.f, 3.f}));
       }},
      {"CountBeyondTheLimit",
       Code::kOutOfRange,
       {"Reached limit of 0"},
       [](Graph& g) { return Run(g, MakeVariable(g, 0, {.name = "c"}).CountUpTo(0)); }},
      {"CountOfFloats",
       Code::kInvalidArgument,
       {"has DataType float32 not in list of allowed values: int32, int64"},
       [](Graph& g) { return MakeVariable(g, 0.f).CountUpTo(3), Done(); },
       'v'},
      {"CountOfFloatsInAResource",
       Code::kInvalidArgument,
       {"not in the list of allowed values: int32, int64"},
       [](Graph& g) { return MakeVariable(g, 0.f).CountUpTo(3), Done(); },
       'r'},
      {"ReadWithoutAValue",
       Code::kFailedPrecondition,
       {"Attempting to use uninitialized value w", "w/read"},
       [](Graph& g) { return RunUninitialized(g, Pair(g) + 1.f); },
       'v'},
      // The words are TensorFlow 1.15's.
      {"ResourceReadWithoutAValue",
       Code::kFailedPrecondition,
       {"Error while reading resource variable w from Container: localhost. This could mean that "
        "the variable was uninitialized."},
       [](Graph& g) { return RunUninitialized(g, Pair(g) + 1.f); },
       'r'},
      {"UpdateWithoutAValue",
       Code::kFailedPrecondition,
       {"uninitialized", "w (its initializer is w/Assign)"},
       [](Graph& g) {
         return RunUninitialized(g, Pair(g).AssignAdd({1.f, 1.f}));
       }},
  };
}

std::vector<Mistake> Graphs() {
  return {
      {"MixedTypes",
       Code::kInvalidArgument,
       {"Input 'y' of 'AddV2' Op has type int32 that does not match type float32 of argument 'x'."},
       [](Graph& g) { return MakeVariable(g, 1.f) + Const(g, 1), Done(); }},
      {"MatMulDimensions",
       Code::kInvalidArgument,
       {"Dimensions must be equal, but are 3 and 2 for"},
       [](Graph& g) {
         const Output x = Placeholder(g, DT_FLOAT, {2, 3});
         return MatMul(x, x), Done();
       }},
      {"ConcatDimensions",
       Code::kInvalidArgument,
       {"must be equal, but are 3 and 4"},
       [](Graph& g) {
         Concat({Placeholder(g, DT_FLOAT, {2, 3}), Placeholder(g, DT_FLOAT, {3, 4})}, 0);
         return Done();
       }},
      {"ReshapeElements",
       Code::kInvalidArgument,
       {"Cannot reshape a tensor with 3 elements to shape [2] (2 elements)"},
       [](Graph& g) { return Reshape(Placeholder(g, DT_FLOAT, {3}), {2}), Done(); }},
      {"AnotherGraph",
       Code::kInvalidArgument,
       {"must be from the same graph"},
       [](Graph& g) {
         Graph other;
         const Output far = Const(other, 1.f);
         AddOp("AddV2", {Const(g, 1.f), far});
         return g.status().ok() ? other.TakeStatus() : Done();
       }},
      {"FinalizedGraph",
       Code::kFailedPrecondition,
       {"Graph is finalized and cannot be modified."},
       [](Graph& g) { return g.Finalize(), Const(g, 1.f), Done(); }},
      {"ImportOfATakenName",
       Code::kAlreadyExists,
       {"'x' already exists in the Graph"},
       [](Graph& g) {
         Const(g, 1.f, "x");
         proto::GraphDef def;
         ExportGraphDef(g, &def);
         return ImportGraphDef(g, def).status();
       }},
      {"NothingToOptimize",
       Code::kInvalidArgument,
       {"No variables to optimize"},
       [](Graph& g) { return GradientDescent(1.f).Minimize(Const(g, 1.f)), Done(); }},
      {"NoGradients",
       Code::kInvalidArgument,
       {"No gradients provided for any variable, check your graph for ops that do not support "
        "gradients, between variables [",
        "<tf.Variable 'w:0' shape=(2,) dtype=float32", "loss:0"},
       [](Graph& g) {
         Pair(g);
         return GradientDescent(1.f).Minimize(Const(g, 1.f, "loss")), Done();
       }},
      {"LossOfIntegers",
       Code::kInvalidArgument,
       {"Invalid type", "int32 for loss:0, expected:"},
       [](Graph& g) {
         Pair(g);
         return GradientDescent(1.f).Minimize(Const(g, 1, "loss")), Done();
       }},
  };
}

std::vector<Mistake> Sessions() {
  return {
      {"FeedOfAnotherShape",
       Code::kInvalidArgument,
       {"Cannot feed value of shape [3] for Tensor", "p:0", "which has shape"},
       [](Graph& g) {
         const Output p = Placeholder(g, DT_FLOAT, {2}, "p");
         return RunFed(g, {{p, Tensor::Vector<float>({1, 2, 3})}}, Identity(p));
       }},
      {"NothingFed",
       Code::kInvalidArgument,
       {"You must feed a value for placeholder tensor 'p' with dtype float and shape [2]"},
       [](Graph& g) { return Run(g, Identity(Placeholder(g, DT_FLOAT, {2}, "p"))); }},
      {"NothingFedForAnyShape",
       Code::kInvalidArgument,
       {"You must feed a value for placeholder tensor 'p' with dtype float"},
       [](Graph& g) { return Run(g, Identity(Placeholder(g, DT_FLOAT, {}, "p"))); }},
      {"FetchOfNothing",
       Code::kNotFound,
       {"The name 'nope:0' refers to a Tensor which does not exist. The operation, 'nope', does "
        "not "
        "exist in the graph."},
       [](Graph& g) { return Session::Create(g)->Run({}, {"nope:0"}, {}).status(); }},
      {"FetchOfAnOutputThatIsNotThere",
       Code::kNotFound,
       {"The name 'c:1' refers to a Tensor which does not exist. The operation, 'c', exists but "
        "only "
        "has 1 outputs."},
       [](Graph& g) {
         Const(g, 1.f, "c");
         return Session::Create(g)->Run({}, {"c:1"}, {}).status();
       }},
      {"TargetThatIsNotThere",
       Code::kNotFound,
       {"The name 'nope' refers to an Operation not in the graph."},
       [](Graph& g) { return Session::Create(g)->Run({}, {}, {"nope"}).status(); }},
      {"FetchFromAnotherGraph",
       Code::kInvalidArgument,
       {"is not an element of this graph"},
       [](Graph& g) {
         Graph other;
         return Run(g, Const(other, 1.f));
       }},
      {"ClosedSession",
       Code::kCancelled,
       {"Attempted to use a closed Session."},
       [](Graph& g) {
         const Output x = Const(g, 1.f);
         Session session = *Session::Create(g);
         session.Close();
         return session.Run({x}).status();
       }},
      {"NothingToSave",
       Code::kInvalidArgument,
       {"No variables to save"},
       [](Graph& g) { return Saver::Create(g).status(); }},
      {"SavedTwice",
       Code::kInvalidArgument,
       {"At least two variables have the same name: a"},
       [](Graph& g) {
         const Variable a = Pair(g, "a");
         return Saver::Create(g, {.variables = Variables{a, a}}).status();
       }},
      {"SavedUnderTwoNames",
       Code::kInvalidArgument,
       {"will be restored with two names: y"},
       [](Graph& g) {
         const Variable a = Pair(g, "a");
         return Saver::Create(g, {.named = {{"x", a}, {"y", a}}}).status();
       }},
      {"SaveWithoutADirectory",
       Code::kNotFound,
       {"Parent directory of /nowhere/x doesn't exist, can't save."},
       [](Graph& g) {
         Pair(g);
         Saver saver = *Saver::Create(g);
         Session session = *Session::Create(g);
         return saver.Save(session, "/nowhere/x").status();
       }},
      {"RestoreFromNothing",
       Code::kNotFound,
       {"The passed save_path is not a valid checkpoint: /nowhere/x"},
       [](Graph& g) {
         Pair(g);
         const Saver saver = *Saver::Create(g);
         Session session = *Session::Create(g);
         return saver.Restore(session, "/nowhere/x");
       }},
      {"TwoPlacesToRestoreFrom",
       Code::kInvalidArgument,
       {"Can not provide both checkpoint_dir and checkpoint_"},
       [](Graph& g) {
         return MonitoredSession::Create(g, {.checkpoint_dir = "x", .checkpoint_path = "y"})
             .status();
       }},
      {"ModelThatIsNotReady",
       Code::kFailedPrecondition,
       {"Init operations did not make model ready for local_init.  Init op: w/Assign, init fn: ",
        "error: Variables not initialized: u"},
       [](Graph& g) {
         const Variable w = Pair(g);
         Pair(g, "u");
         return MonitoredSession::Create(g, {.scaffold = {.init_op = w.initializer()}}).status();
       }},
  };
}

// Restores a checkpoint of `saved` into `wanted`.
absl::Status RestoreInto(const Tensor& saved, const char* wanted_name, const Tensor& wanted,
                         bool resource) {
  const std::string path = testing::MakeTempDirectory("words") + "/m";
  for (const bool restores : {false, true}) {
    Graph g({.use_resource = resource});
    MakeVariable(g, restores ? wanted : saved, {.name = restores ? wanted_name : "a"});
    Saver saver = *Saver::Create(g);
    const Operation init = GlobalVariablesInitializer(g);
    Session session = *Session::Create(g);
    if (restores) return saver.Restore(session, path);
    WEIR_RETURN_IF_ERROR(session.Run(init));
    WEIR_RETURN_IF_ERROR(saver.Save(session, path).status());
  }
  return Done();
}

void Expect(const absl::Status& got, const Mistake& mistake) {
  EXPECT_EQ(got.code(), mistake.code) << mistake.name << ": " << got;
  for (const std::string& words : mistake.words)
    EXPECT_THAT(std::string(got.message()), HasSubstr(words)) << mistake.name;
}

class ErrorWords : public ::testing::TestWithParam<bool> {
 protected:
  void ExpectAll(const std::vector<Mistake>& mistakes) const {
    for (const Mistake& mistake : mistakes) {
      if (mistake.kind == (GetParam() ? 'v' : 'r')) continue;
      Graph g({.use_resource = GetParam()});
      const absl::Status status = mistake.make(g);
      Expect(status.ok() ? g.TakeStatus() : status, mistake);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, ErrorWords, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Resource" : "Reference");
});

TEST_P(ErrorWords, OfCreation) { ExpectAll(Creation()); }
TEST_P(ErrorWords, OfGetVariable) { ExpectAll(GetVariables()); }
TEST_P(ErrorWords, OfReadsAndWrites) { ExpectAll(Writes()); }
TEST_P(ErrorWords, OfGraphsAndTraining) { ExpectAll(Graphs()); }
TEST_P(ErrorWords, OfSessionsAndSavers) { ExpectAll(Sessions()); }

TEST_P(ErrorWords, OfRestoring) {
  const Tensor two = Tensor::Vector<float>({1, 2}), three = Tensor::Vector<float>({1, 2, 3});
  Expect(RestoreInto(two, "b", two, GetParam()),
         {"MissingKey", Code::kNotFound, {"Key b not found in checkpoint"}, nullptr});
  Expect(RestoreInto(two, "a", three, GetParam()),
         {"AnotherShape",
          Code::kInvalidArgument,
          {"Assign requires shapes of both tensors to match. lhs shape= [3] rhs shape= [2]"},
          nullptr});
  Expect(RestoreInto(two, "a", Tensor::Vector<int32_t>({1, 2}), GetParam()),
         {"AnotherType",
          Code::kInvalidArgument,
          {"tensor_name = a; expected dtype int32 does not equal original dtype float"},
          nullptr});
}

}  // namespace
}  // namespace weir
