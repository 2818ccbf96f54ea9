// Rows of the guides that need only a graph: creating, sharing, collections, devices.

#include <algorithm>
#include <cmath>

#include "guide_rows.h"

namespace guide {

namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kExists = absl::StatusCode::kAlreadyExists;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

weir::Output Layer(weir::Graph& g, const weir::Output& x, int64_t units) {
  const weir::Variable weights = weir::GetVariable(g, "weights", {x.shape().dim(-1), units});
  const weir::Variable biases = weir::GetVariable(g, "biases", {units}, weir::Zeros());
  return weir::Relu(weir::MatMul(x, weights) + biases);
}

std::vector<std::string> Names(const weir::Variables& variables) {
  std::vector<std::string> names;
  for (const weir::Variable& v : variables) names.push_back(v.name());
  return names;
}

using Strings = std::vector<std::string>;

class Dense : public weir::Module {
 public:
  Dense(weir::Graph& g, int64_t in, int64_t out) : weir::Module(g) {
    const weir::NameScope scope(g, name_scope());
    w = Track("w", weir::MakeVariable(g,
                                      [&g, in, out] {
                                        return weir::RandomUniform(g, {in, out});
                                      },
                                      {.name = "w"}));
    b = Track("b", weir::MakeVariable(g, weir::Const(g, 0.f), {.name = "b", .trainable = false}));
  }
  weir::Variable w, b;
};

class Mlp : public weir::Module {
 public:
  explicit Mlp(weir::Graph& g) : weir::Module(g), first(g, 2, 3), second(g, 3, 1) {
    Track("layers", std::vector<weir::Module*>{&first, &second});
    Track("again", first);
  }
  Dense first, second;
};

}  // namespace

Rows CreationRows() {
  return {
      {"a variable is created from an initial value, which determines its type and shape",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0, 3.0});
         return v.dtype() == weir::DT_FLOAT && v.shape() == weir::Shape({3});
       }},
      {"an integer literal is int32, a floating-point literal float32, true is bool",
       [](weir::Graph& g) {
         return weir::MakeVariable(g, 1).dtype() == weir::DT_INT32 &&
                weir::MakeVariable(g, 1.5).dtype() == weir::DT_FLOAT &&
                weir::MakeVariable(g, true).dtype() == weir::DT_BOOL;
       }},
      {"an integer literal that does not fit into int32 is int64",
       [](weir::Graph& g) {
         return weir::MakeVariable(g, int64_t{1} << 40).dtype() == weir::DT_INT64;
       }},
      {"a string literal makes a string variable",
       [](weir::Graph& g) { return weir::MakeVariable(g, "text").dtype() == weir::DT_STRING; }},
      {"dtype converts a literal",
       [](weir::Graph& g) {
         return weir::MakeVariable(g, 1, {.dtype = weir::DT_DOUBLE}).dtype() == weir::DT_DOUBLE;
       }},
      {"a tensor of another dtype is rejected",
       [](weir::Graph& g) {
         weir::MakeVariable(g, weir::Const(g, 1.f), {.dtype = weir::DT_DOUBLE});
         return Fails(g, kInvalid, {"float", "double"});
       }},
      {"the default name is Variable, then Variable_1",
       [](weir::Graph& g) {
         const weir::Variable a = weir::MakeVariable(g, 1.0), b = weir::MakeVariable(g, 1.0);
         return a.name() == "Variable:0" && b.name() == "Variable_1:0";
       }},
      {"a name that is in use is made unique",
       [](weir::Graph& g) {
         weir::MakeVariable(g, 1.0, {.name = "w"});
         return weir::MakeVariable(g, 1.0, {.name = "w"}).name() == "w_1:0";
       }},
      {"tf.Variable is created in the current name scope",
       [](weir::Graph& g) {
         const weir::NameScope scope(g, "a");
         return weir::MakeVariable(g, 1.0, {.name = "w"}).name() == "a/w:0";
       }},
      {"a callable can create the initial value",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, [&] {
           return weir::RandomNormal(g, {2, 3});
         });
         return v.shape() == weir::Shape({2, 3});
       }},
      {"a random tensor can be the initial value",
       [](weir::Graph& g) {
         return weir::MakeVariable(g, weir::RandomNormal(g, {784, 200})).shape() ==
                weir::Shape({784, 200});
       }},
      {"trainable is true by default",
       [](weir::Graph& g) {
         return weir::MakeVariable(g, 1.0).trainable() &&
                !weir::MakeVariable(g, 1.0, {.trainable = false}).trainable();
       }},
      {"initial_value is the tensor that the initializer assigns",
       [](weir::Graph& g) {
         return Values(g, weir::MakeVariable(g, 5.0).initial_value()) == Floats{5};
       }},
      {"validate_shape=false creates a variable of unknown shape",
       [](weir::Graph& g) {
         const weir::Output x = weir::Placeholder(g, weir::DT_FLOAT);
         return !weir::MakeVariable(g, x, {.validate_shape = false}).shape().IsFullyDefined();
       }},
      {"op, graph, device and name are properties",
       [](weir::Graph& g) {
         const weir::DeviceScope device(g, "/cpu:0");
         const weir::Variable v = weir::MakeVariable(g, 1.0, {.name = "w"});
         return v.op_name() == "w" && &v.graph() == &g && v.device() == "/device:CPU:0";
       }},
      {"the text format is TensorFlow's",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0}, {.name = "w"});
         return v.ToString() == std::string("<tf.Variable 'w:0' shape=(2,) dtype=float32") +
                                    (v.is_resource() ? "" : "_ref") + ">";
       }},
      {"set_shape refines the static shape, and cannot change it",
       [](weir::Graph& g) {
         weir::Variable v = weir::MakeVariable(g, {1.0, 2.0});
         v.set_shape({2});
         v.set_shape({3});
         return Fails(g, kInvalid);
       }},
      {"synchronization and aggregation are stored; ON_READ is not trainable",
       [](weir::Graph& g) {
         const weir::Variable v =
             weir::MakeVariable(g, 1.0,
                                {.synchronization = weir::VariableSynchronization::kOnRead,
                                 .aggregation = weir::VariableAggregation::kSum});
         return !v.trainable() && v.aggregation() == weir::VariableAggregation::kSum;
       }},
      {"a trainable ON_READ variable is rejected",
       [](weir::Graph& g) {
         weir::MakeVariable(
             g, 1.0,
             {.trainable = true, .synchronization = weir::VariableSynchronization::kOnRead});
         return Fails(g, kInvalid);
       }},
      {"handles are compared by identity",
       [](weir::Graph& g) {
         const weir::Variable a = weir::MakeVariable(g, 1.0), b = weir::MakeVariable(g, 1.0), c = a;
         return a == c && a != b;
       }},
      {"a handle can safely outlive its graph",
       [](weir::Graph&) {
         weir::Variable v;
         {
           weir::Graph inner;
           v = weir::MakeVariable(inner, 1.0);
         }
         return (v + 1.f).node == nullptr;
       }},
      {"get_variable takes a name and a shape, float32 by default",
       [](weir::Graph& g) {
         const weir::Variable v = weir::GetVariable(g, "my_variable", {1, 2, 3});
         return v.name() == "my_variable:0" && v.dtype() == weir::DT_FLOAT &&
                v.shape() == weir::Shape({1, 2, 3});
       }},
      {"get_variable takes dtype and initializer",
       [](weir::Graph& g) {
         const weir::Variable v = weir::GetVariable(
             g, "v", {1, 2, 3}, {.initializer = weir::Zeros(), .dtype = weir::DT_INT32});
         return v.dtype() == weir::DT_INT32 && Values(g, v) == Floats(6, 0);
       }},
      {"a tensor as initializer determines the shape",
       [](weir::Graph& g) {
         return Values(g, weir::GetVariable(g, "v", {.initializer = weir::Const(g, {23, 42})})) ==
                Floats{23, 42};
       }},
      {"a tensor as initializer together with a shape is rejected",
       [](weir::Graph& g) {
         weir::GetVariable(g, "v", {2}, {.initializer = weir::Const(g, {23, 42})});
         return Fails(g, kInvalid);
       }},
      {"a call without shape and initializer is rejected",
       [](weir::Graph& g) {
         weir::GetVariable(g, "v", weir::VariableOptions{});
         return Fails(g, kInvalid, {"v"});
       }},
      {"the default initializer is glorot uniform, zeros for integers",
       [](weir::Graph& g) {
         g.set_seed(3);
         const weir::Variable v = weir::GetVariable(g, "v", {4, 6});
         const weir::Variable n = weir::GetVariable(g, "n", {2}, {.dtype = weir::DT_INT32});
         float most = 0;
         for (const float x : Values(g, v)) most = std::max(most, std::abs(x));
         return most > 0 && most <= 0.7745967f && Values(g, n) == Floats{0, 0};
       }},
      {"names with characters that are invalid in node names are rejected",
       [](weir::Graph& g) {
         weir::GetVariable(g, "a b", {2});
         return Fails(g, kInvalid, {"a b"});
       }},
      {"a module lists its variables and those of its submodules, each once",
       [](weir::Graph& g) {
         Mlp mlp(g);
         return mlp.variables().size() == 4 && mlp.trainable_variables().size() == 2;
       }},
      {"a module lists its submodules",
       [](weir::Graph& g) { return Mlp(g).submodules().size() == 2; }},
      {"a module is named after its class, and has its own name scope",
       [](weir::Graph& g) {
         Dense first(g, 1, 1), second(g, 1, 1);
         return first.name() == "dense" && first.w.name() == "dense/w:0" &&
                second.w.name() == "dense_1/w:0";
       }},
  };
}

Rows SharingRows() {
  return {
      {"a second call in one scope fails, and reports where the first one was",
       [](weir::Graph& g) {
         const weir::Output x = weir::Placeholder(g, weir::DT_FLOAT, {1, 4});
         Layer(g, x, 4);
         Layer(g, x, 4);
         return Fails(g, kExists, {"weights", ".cc"});
       }},
      {"scopes separate the variables of layers",
       [](weir::Graph& g) {
         weir::Output x = weir::Placeholder(g, weir::DT_FLOAT, {1, 4});
         for (const char* name : {"conv1", "conv2"}) {
           const weir::VariableScope scope(g, name);
           x = Layer(g, x, 4);
         }
         return Names(weir::GlobalVariables(g)) ==
                Strings{"conv1/weights:0", "conv1/biases:0", "conv2/weights:0", "conv2/biases:0"};
       }},
      {"reuse=True shares all",
       [](weir::Graph& g) {
         const weir::Output x = weir::Placeholder(g, weir::DT_FLOAT, {1, 4});
         for (const weir::Reuse reuse : {weir::Reuse::kCreate, weir::Reuse::kReuse}) {
           const weir::VariableScope scope(g, "model", reuse);
           Layer(g, x, 4);
         }
         return weir::GlobalVariables(g).size() == 2;
       }},
      {"scope.reuse_variables() shares from that point on",
       [](weir::Graph& g) {
         const weir::Output x = weir::Placeholder(g, weir::DT_FLOAT, {1, 4});
         weir::VariableScope scope(g, "model");
         Layer(g, x, 4);
         scope.reuse_variables();
         Layer(g, x, 4);
         return weir::GlobalVariables(g).size() == 2;
       }},
      {"a captured scope can be reopened and shares",
       [](weir::Graph& g) {
         weir::VariableScopeRef model;
         weir::Variable first;
         {
           const weir::VariableScope scope(g, "model");
           model = scope.scope();
           first = weir::GetVariable(g, "v", {2});
         }
         const weir::VariableScope scope(g, model, weir::Reuse::kReuse);
         return weir::GetVariable(g, "v", {2}) == first;
       }},
      {"AUTO_REUSE first creates and then shares",
       [](weir::Graph& g) {
         const weir::VariableScope scope(g, "a", weir::Reuse::kAuto);
         const weir::Variable v = weir::GetVariable(g, "v", {2});
         return weir::GetVariable(g, "v", {2}) == v;
       }},
      {"reusing a missing variable fails, and the error names AUTO_REUSE",
       [](weir::Graph& g) {
         const weir::VariableScope scope(g, "a", weir::Reuse::kReuse);
         weir::GetVariable(g, "v", {2});
         return Fails(g, kNotFound, {"a/v"});
       }},
      {"sharing with another shape is rejected, naming both",
       [](weir::Graph& g) {
         const weir::VariableScope scope(g, "a", weir::Reuse::kAuto);
         weir::GetVariable(g, "v", {2});
         weir::GetVariable(g, "v", {3});
         return Fails(g, kInvalid, {"a/v", "2", "3"});
       }},
      {"sharing with another dtype is rejected, naming both",
       [](weir::Graph& g) {
         const weir::VariableScope scope(g, "a", weir::Reuse::kAuto);
         weir::GetVariable(g, "v", {2});
         weir::GetVariable(g, "v", {2}, {.dtype = weir::DT_DOUBLE});
         return Fails(g, kInvalid, {"float", "double"});
       }},
      {"reuse is inherited, and cannot be switched off inside",
       [](weir::Graph& g) {
         const weir::VariableScope scope(g, "root", weir::Reuse::kReuse);
         const weir::VariableScope inner(g, "foo", weir::Reuse::kCreate);
         return inner.scope()->reuse == weir::Reuse::kReuse;
       }},
      {"reuse ends with its scope",
       [](weir::Graph& g) {
         { const weir::VariableScope scope(g, "a", weir::Reuse::kReuse); }
         return weir::CurrentVariableScope(g)->reuse == weir::Reuse::kCreate;
       }},
      {"scopes nest: foo/bar/v",
       [](weir::Graph& g) {
         const weir::VariableScope foo(g, "foo");
         const weir::VariableScope bar(g, "bar");
         return weir::GetVariable(g, "v", {1}).name() == "foo/bar/v:0";
       }},
      {"a scope opened by object leaves all other scopes",
       [](weir::Graph& g) {
         weir::VariableScopeRef foo;
         {
           const weir::VariableScope scope(g, "foo");
           foo = scope.scope();
         }
         const weir::VariableScope bar(g, "bar");
         const weir::VariableScope baz(g, "baz");
         const weir::VariableScope again(g, foo);
         return weir::GetVariable(g, "v", {1}).name() == "foo/v:0";
       }},
      {"a variable scope opens a name scope for ops, made unique",
       [](weir::Graph& g) {
         Strings names;
         for (int i = 0; i < 2; ++i) {
           const weir::VariableScope scope(g, "foo");
           names.push_back(weir::Identity(weir::Const(g, 1.f)).name());
         }
         return names == Strings{"foo/Identity:0", "foo_1/Identity:0"};
       }},
      {"name scopes do not affect get_variable's names",
       [](weir::Graph& g) {
         const weir::VariableScope foo(g, "foo");
         const weir::NameScope bar(g, "bar");
         return weir::GetVariable(g, "v", {1}).name() == "foo/v:0" &&
                (weir::Const(g, 1.f) + 1.f).name() == "foo/bar/add:0";
       }},
      {"auxiliary_name_scope=False opens none",
       [](weir::Graph& g) {
         const weir::VariableScope scope(g, "foo", {.auxiliary_name_scope = false});
         return weir::Const(g, 1.f).name() == "Const:0" &&
                weir::GetVariable(g, "v", {1}).name() == "foo/v:0";
       }},
      {"original_name_scope is reopened for ops",
       [](weir::Graph& g) {
         std::string original;
         {
           const weir::VariableScope scope(g, "foo");
           original = scope.original_name_scope();
         }
         const weir::NameScope again(g, original);
         return original == "foo/" && weir::Const(g, 1.f).name() == "foo/Const:0";
       }},
      {"default_name makes scope names unique",
       [](weir::Graph& g) {
         Strings names;
         for (int i = 0; i < 2; ++i) {
           const weir::VariableScope scope(g, {.default_name = "layer"});
           names.push_back(weir::GetVariable(g, "w", {1}).name());
         }
         return names == Strings{"layer/w:0", "layer_1/w:0"};
       }},
      {"a scope passes its initializer on; a call and an inner scope override it",
       [](weir::Graph& g) {
         const weir::VariableScope foo(g, "foo", {.initializer = weir::Constant(0.4)});
         const weir::Variable v = weir::GetVariable(g, "v", {1}),
                              w = weir::GetVariable(g, "w", {1}, weir::Constant(0.3));
         weir::Variable x;
         {
           const weir::VariableScope baz(g, "baz", {.initializer = weir::Constant(0.2)});
           x = weir::GetVariable(g, "x", {1});
         }
         return Values(g, v) == Floats{0.4f} && Values(g, w) == Floats{0.3f} &&
                Values(g, x) == Floats{0.2f};
       }},
      {"a scope passes its dtype on",
       [](weir::Graph& g) {
         const weir::VariableScope scope(g, "foo", {.dtype = weir::DT_DOUBLE});
         return weir::GetVariable(g, "v", {1}).dtype() == weir::DT_DOUBLE;
       }},
      {"a scope selects the kind of variable",
       [](weir::Graph& g) {
         const weir::VariableScope one(g, "one", {.use_resource = true});
         const bool resource = weir::GetVariable(g, "v", {1}).is_resource();
         const weir::VariableScope two(g, "two", {.use_resource = false});
         return resource && !weir::GetVariable(g, "v", {1}).is_resource();
       }},
      {"a regularizer is called at creation, and its loss is collected",
       [](weir::Graph& g) {
         const weir::VariableScope scope(
             g, "a", {.reuse = weir::Reuse::kAuto, .regularizer = [](const weir::Variable& v) {
                        return weir::ReduceSum(v * v);
                      }});
         weir::GetVariable(g, "v", {2}, weir::Ones());
         weir::GetVariable(g, "v", {2}, weir::Ones());
         const weir::Outputs losses =
             g.collection_as<weir::Output>(weir::collections::kRegularizationLosses);
         return losses.size() == 1 && Values(g, losses[0]) == Floats{2};
       }},
      {"a custom getter may change the created variable",
       [](weir::Graph& g) {
         const weir::CustomGetter getter = [](const weir::VariableGetter& next, weir::Graph& graph,
                                              absl::string_view name,
                                              weir::VariableOptions options) {
           options.trainable = false;
           return next(graph, std::string(name) + "_mine", options);
         };
         const weir::VariableScope scope(g, "a", {.custom_getter = getter});
         const weir::Variable v = weir::GetVariable(g, "v", {2});
         return v.name() == "a/v_mine:0" && !v.trainable();
       }},
      {"tf.Variable is invisible to get_variable",
       [](weir::Graph& g) {
         weir::MakeVariable(g, 1.0, {.name = "v"});
         return weir::GetVariable(g, "v", {2}).name() == "v_1:0";
       }},
      {"get_local_variable is local and not trainable",
       [](weir::Graph& g) {
         const weir::Variable v = weir::GetLocalVariable(g, "v", {2});
         return !v.trainable() && weir::LocalVariables(g) == weir::Variables{v} &&
                weir::GlobalVariables(g).empty();
       }},
      {"a partitioner splits a variable into parts that differ by at most one row",
       [](weir::Graph& g) {
         const weir::Variable v =
             weir::GetVariable(g, "v", {7, 4}, {.partitioner = weir::FixedSizePartitioner(3)});
         return v.shape() == weir::Shape({7, 4}) && v.parts().size() == 3 &&
                v.parts()[0].name() == "v/part_0:0" &&
                v.parts()[0].shape() == weir::Shape({3, 4}) &&
                v.parts()[2].shape() == weir::Shape({2, 4});
       }},
      {"readers see a partitioned variable as one tensor",
       [](weir::Graph& g) {
         const weir::Variable v = weir::GetVariable(
             g, "v", {5},
             {.initializer = weir::Ones(), .partitioner = weir::FixedSizePartitioner(2)});
         return Values(g, v * 2.f) == Floats(5, 2);
       }},
      {"fixed, variable-axis-size and min-max partitioners count as TensorFlow's",
       [](weir::Graph&) {
         const weir::Shape shape({8, 4});
         return *weir::FixedSizePartitioner(2, 1)(shape, weir::DT_FLOAT) ==
                    std::vector<int64_t>{1, 2} &&
                *weir::VariableAxisSizePartitioner(16)(shape, weir::DT_FLOAT) ==
                    std::vector<int64_t>{8, 1} &&
                *weir::MinMaxVariablePartitioner(4, 0, 16)(shape, weir::DT_FLOAT) ==
                    std::vector<int64_t>{4, 1};
       }},
  };
}

Rows CollectionRows() {
  return {
      {"a new variable is in variables, a trainable one in trainable_variables as well",
       [](weir::Graph& g) {
         const weir::Variable a = weir::MakeVariable(g, 1.0);
         const weir::Variable b = weir::MakeVariable(g, 1.0, {.trainable = false});
         return weir::GlobalVariables(g) == weir::Variables{a, b} &&
                weir::TrainableVariables(g) == weir::Variables{a};
       }},
      {"collections=[LOCAL_VARIABLES] keeps it out of the others",
       [](weir::Graph& g) {
         const weir::Variable v = weir::GetVariable(
             g, "my_local", {},
             {.trainable = false, .collections = {{weir::collections::kLocalVariables}}});
         return weir::LocalVariables(g) == weir::Variables{v} && weir::GlobalVariables(g).empty() &&
                weir::TrainableVariables(g).empty();
       }},
      {"any string names a collection",
       [](weir::Graph& g) {
         g.AddToCollection("my_collection", int64_t{3});
         return g.collection("my_collection").size() == 1;
       }},
      {"a collection can contain numbers, strings, tensors and ops, and keeps duplicates",
       [](weir::Graph& g) {
         const weir::Output x = weir::Const(g, 1.f);
         for (int i = 0; i < 2; ++i) g.AddToCollection("c", x);
         g.AddToCollection("c", std::string("text"));
         g.AddToCollection("c", weir::NoOp(g));
         return g.collection("c").size() == 4 && g.collection_as<weir::Output>("c").size() == 2;
       }},
      {"an unknown collection is empty",
       [](weir::Graph& g) { return g.collection("none").empty(); }},
      {"a repeated name counts once in add_to_collections",
       [](weir::Graph& g) {
         g.AddToCollections({"a", "b", "a"}, int64_t{1});
         return g.collection("a").size() == 1 && g.collection("b").size() == 1;
       }},
      {"get_collection filters by scope, a regular expression matched from the start",
       [](weir::Graph& g) {
         for (const char* name : {"hidden1", "hidden2", "out"}) {
           const weir::VariableScope scope(g, name);
           weir::GetVariable(g, "w", {1});
         }
         return Names(weir::GlobalVariables(g, "hidden[2]")) == Strings{"hidden2/w:0"} &&
                weir::GlobalVariables(g, "hidden").size() == 2 &&
                weir::GlobalVariables(g, "idden").empty();
       }},
      {"get_collection returns a copy",
       [](weir::Graph& g) {
         g.AddToCollection("c", int64_t{1});
         auto copy = g.collection("c");
         copy.clear();
         return g.collection("c").size() == 1;
       }},
      {"get_collection_ref returns the list itself, and creates it",
       [](weir::Graph& g) {
         auto& live = g.LiveCollection("c");
         live.push_back(int64_t{1});
         g.AddToCollection("c", int64_t{2});
         return g.collection("c").size() == 2 && live.size() == 2;
       }},
      {"add_to_collection(name, variable) stores the variable",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 1.0);
         g.AddToCollection("mine", v);
         return g.collection_as<weir::Variable>("mine") == weir::Variables{v} &&
                g.collection_as<weir::Output>("mine").empty();
       }},
      {"clear_collection empties a collection; all keys are listed",
       [](weir::Graph& g) {
         g.AddToCollection("a", int64_t{1});
         g.AddToCollection("b", int64_t{1});
         g.ClearCollection("a");
         return g.collection("a").empty() && g.CollectionKeys() == Strings{"b"};
       }},
      {"model, metric and moving-average variables have separate lists",
       [](weir::Graph& g) {
         const weir::Variable v =
             weir::MakeVariable(g, 1.0, {.collections = {{weir::collections::kModelVariables}}});
         weir::metrics::Mean(v);
         weir::ExponentialMovingAverage(0.9).Apply({v});
         return weir::ModelVariables(g) == weir::Variables{v} &&
                weir::MetricVariables(g).size() == 2 &&
                weir::MovingAverageVariables(g) == weir::Variables{v};
       }},
      {"the global step is one per graph",
       [](weir::Graph& g) {
         const weir::Variable step = weir::GetOrCreateGlobalStep(g);
         const bool same = weir::GetGlobalStep(g) == step && step.dtype() == weir::DT_INT64;
         weir::CreateGlobalStep(g);
         return same && Fails(g, kExists, {"global_step"});
       }},
  };
}

Rows DeviceRows() {
  return {
      {"the scope around its creation places a variable",
       [](weir::Graph& g) {
         const weir::DeviceScope device(g, "/device:GPU:1");
         return weir::GetVariable(g, "v", {1}).device() == "/device:GPU:1";
       }},
      {"the initializer of a variable is colocated with it",
       [](weir::Graph& g) {
         const weir::DeviceScope outer(g, "/job:worker");
         weir::Variable v;
         {
           const weir::DeviceScope device(g, "/job:ps/task:1");
           v = weir::MakeVariable(g, 1.0);
         }
         return v.initializer().node->device() == "/job:ps/task:1";
       }},
      {"device scopes merge, the inner one wins",
       [](weir::Graph& g) {
         const weir::DeviceScope outer(g, "/job:a/device:CPU:0");
         const weir::DeviceScope inner(g, "/device:GPU:1");
         return weir::NoOp(g).node->device() == "/job:a/device:GPU:1";
       }},
      {"replica_device_setter distributes variables over ps tasks and places ops on workers",
       [](weir::Graph& g) {
         const weir::DeviceScope setter(
             g, weir::ReplicaDeviceSetter(
                    {.cluster = weir::ClusterSpec{{"ps", {"a:1", "b:1"}}, {"worker", {"c:1"}}}}));
         const weir::Variable v1 = weir::GetVariable(g, "v1", {2}),
                              v2 = weir::GetVariable(g, "v2", {2});
         const weir::Variable v3 = weir::GetVariable(g, "v3", {2});
         return v1.device() == "/job:ps/task:0" && v2.device() == "/job:ps/task:1" &&
                v3.device() == "/job:ps/task:0" && weir::NoOp(g).node->device() == "/job:worker";
       }},
      {"caching_device creates one shared read on that device",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 1.0, {.caching_device = "/device:CPU:1"});
         const weir::Output read = v.value();
         return read.node->device() == "/device:CPU:1" && v.value() == read;
       }},
      {"an invalid device name is rejected, naming it",
       [](weir::Graph& g) {
         const weir::DeviceScope device(g, "/device:CPU:x");
         weir::NoOp(g);
         return Fails(g, kInvalid, {"/device:CPU:x"});
       }},
      {"a mirrored variable has a copy on each device",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeMirroredVariable(g, {1.0, 2.0}, {"/cpu:0", "/cpu:0"});
         return v.replicas().size() == 2 && Values(g, v) == Floats{1, 2};
       }},
  };
}

}  // namespace guide
