// Rows of the guides that need only a graph: creating, sharing, collections, devices.

#include <algorithm>
#include <cmath>

#include "guide_rows.h"

namespace weir::guide {

namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kExists = absl::StatusCode::kAlreadyExists;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

Output Layer(Graph& g, const Output& x, int64_t units) {
  const Variable weights = GetVariable(g, "weights", {x.shape().dim(-1), units});
  const Variable biases = GetVariable(g, "biases", {units}, Zeros());
  return Relu(MatMul(x, weights) + biases);
}

std::vector<std::string> Names(const Variables& variables) {
  std::vector<std::string> names;
  for (const Variable& v : variables) names.push_back(v.name());
  return names;
}

using Strings = std::vector<std::string>;

class Dense : public Module {
 public:
  Dense(Graph& g, int64_t in, int64_t out) : Module(g) {
    const NameScope scope(g, name_scope());
    w = Track("w", MakeVariable(g,
                                [&g, in, out] {
                                  return RandomUniform(g, {in, out});
                                },
                                {.name = "w"}));
    b = Track("b", MakeVariable(g, Const(g, 0.f), {.name = "b", .trainable = false}));
  }
  Variable w, b;
};

class Mlp : public Module {
 public:
  explicit Mlp(Graph& g) : Module(g), first(g, 2, 3), second(g, 3, 1) {
    Track("layers", std::vector<Module*>{&first, &second});
    Track("again", first);
  }
  Dense first, second;
};

}  // namespace

Rows CreationRows() {
  return {
      {"a variable is created from an initial value, which determines its type and shape",
       [](Graph& g) {
         const Variable v = MakeVariable(g, {1.0, 2.0, 3.0});
         return v.dtype() == DT_FLOAT && v.shape() == Shape({3});
       }},
      {"an integer literal is int32, a floating-point literal float32, true is bool",
       [](Graph& g) {
         return MakeVariable(g, 1).dtype() == DT_INT32 &&
                MakeVariable(g, 1.5).dtype() == DT_FLOAT &&
                MakeVariable(g, true).dtype() == DT_BOOL;
       }},
      {"an integer literal that does not fit into int32 is int64",
       [](Graph& g) { return MakeVariable(g, int64_t{1} << 40).dtype() == DT_INT64; }},
      {"a string literal makes a string variable",
       [](Graph& g) { return MakeVariable(g, "text").dtype() == DT_STRING; }},
      {"dtype converts a literal",
       [](Graph& g) { return MakeVariable(g, 1, {.dtype = DT_DOUBLE}).dtype() == DT_DOUBLE; }},
      {"a tensor of another dtype is rejected",
       [](Graph& g) {
         MakeVariable(g, Const(g, 1.f), {.dtype = DT_DOUBLE});
         return Fails(g, kInvalid, {"float", "double"});
       }},
      {"the default name is Variable, then Variable_1",
       [](Graph& g) {
         const Variable a = MakeVariable(g, 1.0), b = MakeVariable(g, 1.0);
         return a.name() == "Variable:0" && b.name() == "Variable_1:0";
       }},
      {"a name that is in use is made unique",
       [](Graph& g) {
         MakeVariable(g, 1.0, {.name = "w"});
         return MakeVariable(g, 1.0, {.name = "w"}).name() == "w_1:0";
       }},
      {"tf.Variable is created in the current name scope",
       [](Graph& g) {
         const NameScope scope(g, "a");
         return MakeVariable(g, 1.0, {.name = "w"}).name() == "a/w:0";
       }},
      {"a callable can create the initial value",
       [](Graph& g) {
         const Variable v = MakeVariable(g, [&] { return RandomNormal(g, {2, 3}); });
         return v.shape() == Shape({2, 3});
       }},
      {"a random tensor can be the initial value",
       [](Graph& g) {
         return MakeVariable(g, RandomNormal(g, {784, 200})).shape() == Shape({784, 200});
       }},
      {"trainable is true by default",
       [](Graph& g) {
         return MakeVariable(g, 1.0).trainable() &&
                !MakeVariable(g, 1.0, {.trainable = false}).trainable();
       }},
      {"initial_value is the tensor that the initializer assigns",
       [](Graph& g) { return Values(g, MakeVariable(g, 5.0).initial_value()) == Floats{5}; }},
      {"validate_shape=false creates a variable of unknown shape",
       [](Graph& g) {
         const Output x = Placeholder(g, DT_FLOAT);
         return !MakeVariable(g, x, {.validate_shape = false}).shape().IsFullyDefined();
       }},
      {"op, graph, device and name are properties",
       [](Graph& g) {
         const DeviceScope device(g, "/cpu:0");
         const Variable v = MakeVariable(g, 1.0, {.name = "w"});
         return v.op_name() == "w" && &v.graph() == &g && v.device() == "/device:CPU:0";
       }},
      {"the text format is TensorFlow's",
       [](Graph& g) {
         const Variable v = MakeVariable(g, {1.0, 2.0}, {.name = "w"});
         return v.ToString() == std::string("<tf.Variable 'w:0' shape=(2,) dtype=float32") +
                                    (v.is_resource() ? "" : "_ref") + ">";
       }},
      {"set_shape refines the static shape, and cannot change it",
       [](Graph& g) {
         Variable v = MakeVariable(g, {1.0, 2.0});
         v.set_shape({2});
         v.set_shape({3});
         return Fails(g, kInvalid);
       }},
      {"synchronization and aggregation are stored; ON_READ is not trainable",
       [](Graph& g) {
         const Variable v = MakeVariable(g, 1.0,
                                         {.synchronization = VariableSynchronization::kOnRead,
                                          .aggregation = VariableAggregation::kSum});
         return !v.trainable() && v.aggregation() == VariableAggregation::kSum;
       }},
      {"a trainable ON_READ variable is rejected",
       [](Graph& g) {
         MakeVariable(g, 1.0,
                      {.trainable = true, .synchronization = VariableSynchronization::kOnRead});
         return Fails(g, kInvalid);
       }},
      {"handles are compared by identity",
       [](Graph& g) {
         const Variable a = MakeVariable(g, 1.0), b = MakeVariable(g, 1.0), c = a;
         return a == c && a != b;
       }},
      {"a handle can safely outlive its graph",
       [](Graph&) {
         Variable v;
         {
           Graph inner;
           v = MakeVariable(inner, 1.0);
         }
         return (v + 1.f).node == nullptr;
       }},
      {"get_variable takes a name and a shape, float32 by default",
       [](Graph& g) {
         const Variable v = GetVariable(g, "my_variable", {1, 2, 3});
         return v.name() == "my_variable:0" && v.dtype() == DT_FLOAT &&
                v.shape() == Shape({1, 2, 3});
       }},
      {"get_variable takes dtype and initializer",
       [](Graph& g) {
         const Variable v =
             GetVariable(g, "v", {1, 2, 3}, {.initializer = Zeros(), .dtype = DT_INT32});
         return v.dtype() == DT_INT32 && Values(g, v) == Floats(6, 0);
       }},
      {"a tensor as initializer determines the shape",
       [](Graph& g) {
         return Values(g, GetVariable(g, "v", {.initializer = Const(g, {23, 42})})) ==
                Floats{23, 42};
       }},
      {"a tensor as initializer together with a shape is rejected",
       [](Graph& g) {
         GetVariable(g, "v", {2}, {.initializer = Const(g, {23, 42})});
         return Fails(g, kInvalid);
       }},
      {"a call without shape and initializer is rejected",
       [](Graph& g) {
         GetVariable(g, "v", VariableOptions{});
         return Fails(g, kInvalid, {"v"});
       }},
      {"the default initializer is glorot uniform, zeros for integers",
       [](Graph& g) {
         g.set_seed(3);
         const Variable v = GetVariable(g, "v", {4, 6});
         const Variable n = GetVariable(g, "n", {2}, {.dtype = DT_INT32});
         float most = 0;
         for (const float x : Values(g, v)) most = std::max(most, std::abs(x));
         return most > 0 && most <= 0.7745967f && Values(g, n) == Floats{0, 0};
       }},
      {"names with characters that are invalid in node names are rejected",
       [](Graph& g) {
         GetVariable(g, "a b", {2});
         return Fails(g, kInvalid, {"a b"});
       }},
      {"a module lists its variables and those of its submodules, each once",
       [](Graph& g) {
         Mlp mlp(g);
         return mlp.variables().size() == 4 && mlp.trainable_variables().size() == 2;
       }},
      {"a module lists its submodules", [](Graph& g) { return Mlp(g).submodules().size() == 2; }},
      {"a module is named after its class, and has its own name scope",
       [](Graph& g) {
         Dense first(g, 1, 1), second(g, 1, 1);
         return first.name() == "dense" && first.w.name() == "dense/w:0" &&
                second.w.name() == "dense_1/w:0";
       }},
  };
}

Rows SharingRows() {
  return {
      {"a second call in one scope fails, and reports where the first one was",
       [](Graph& g) {
         const Output x = Placeholder(g, DT_FLOAT, {1, 4});
         Layer(g, x, 4);
         Layer(g, x, 4);
         return Fails(g, kExists, {"weights", ".cc"});
       }},
      {"scopes separate the variables of layers",
       [](Graph& g) {
         Output x = Placeholder(g, DT_FLOAT, {1, 4});
         for (const char* name : {"conv1", "conv2"}) {
           const VariableScope scope(g, name);
           x = Layer(g, x, 4);
         }
         return Names(GlobalVariables(g)) ==
                Strings{"conv1/weights:0", "conv1/biases:0", "conv2/weights:0", "conv2/biases:0"};
       }},
      {"reuse=True shares all",
       [](Graph& g) {
         const Output x = Placeholder(g, DT_FLOAT, {1, 4});
         for (const Reuse reuse : {Reuse::kCreate, Reuse::kReuse}) {
           const VariableScope scope(g, "model", reuse);
           Layer(g, x, 4);
         }
         return GlobalVariables(g).size() == 2;
       }},
      {"scope.reuse_variables() shares from that point on",
       [](Graph& g) {
         const Output x = Placeholder(g, DT_FLOAT, {1, 4});
         VariableScope scope(g, "model");
         Layer(g, x, 4);
         scope.reuse_variables();
         Layer(g, x, 4);
         return GlobalVariables(g).size() == 2;
       }},
      {"a captured scope can be reopened and shares",
       [](Graph& g) {
         VariableScopeRef model;
         Variable first;
         {
           const VariableScope scope(g, "model");
           model = scope.scope();
           first = GetVariable(g, "v", {2});
         }
         const VariableScope scope(g, model, Reuse::kReuse);
         return GetVariable(g, "v", {2}) == first;
       }},
      {"AUTO_REUSE first creates and then shares",
       [](Graph& g) {
         const VariableScope scope(g, "a", Reuse::kAuto);
         const Variable v = GetVariable(g, "v", {2});
         return GetVariable(g, "v", {2}) == v;
       }},
      {"reusing a missing variable fails, and the error names AUTO_REUSE",
       [](Graph& g) {
         const VariableScope scope(g, "a", Reuse::kReuse);
         GetVariable(g, "v", {2});
         return Fails(g, kNotFound, {"a/v"});
       }},
      {"sharing with another shape is rejected, naming both",
       [](Graph& g) {
         const VariableScope scope(g, "a", Reuse::kAuto);
         GetVariable(g, "v", {2});
         GetVariable(g, "v", {3});
         return Fails(g, kInvalid, {"a/v", "2", "3"});
       }},
      {"sharing with another dtype is rejected, naming both",
       [](Graph& g) {
         const VariableScope scope(g, "a", Reuse::kAuto);
         GetVariable(g, "v", {2});
         GetVariable(g, "v", {2}, {.dtype = DT_DOUBLE});
         return Fails(g, kInvalid, {"float", "double"});
       }},
      {"reuse is inherited, and cannot be switched off inside",
       [](Graph& g) {
         const VariableScope scope(g, "root", Reuse::kReuse);
         const VariableScope inner(g, "foo", Reuse::kCreate);
         return inner.scope()->reuse == Reuse::kReuse;
       }},
      {"reuse ends with its scope",
       [](Graph& g) {
         { const VariableScope scope(g, "a", Reuse::kReuse); }
         return CurrentVariableScope(g)->reuse == Reuse::kCreate;
       }},
      {"scopes nest: foo/bar/v",
       [](Graph& g) {
         const VariableScope foo(g, "foo");
         const VariableScope bar(g, "bar");
         return GetVariable(g, "v", {1}).name() == "foo/bar/v:0";
       }},
      {"a scope opened by object leaves all other scopes",
       [](Graph& g) {
         VariableScopeRef foo;
         {
           const VariableScope scope(g, "foo");
           foo = scope.scope();
         }
         const VariableScope bar(g, "bar");
         const VariableScope baz(g, "baz");
         const VariableScope again(g, foo);
         return GetVariable(g, "v", {1}).name() == "foo/v:0";
       }},
      {"a variable scope opens a name scope for ops, made unique",
       [](Graph& g) {
         Strings names;
         for (int i = 0; i < 2; ++i) {
           const VariableScope scope(g, "foo");
           names.push_back(Identity(Const(g, 1.f)).name());
         }
         return names == Strings{"foo/Identity:0", "foo_1/Identity:0"};
       }},
      {"name scopes do not affect get_variable's names",
       [](Graph& g) {
         const VariableScope foo(g, "foo");
         const NameScope bar(g, "bar");
         return GetVariable(g, "v", {1}).name() == "foo/v:0" &&
                (Const(g, 1.f) + 1.f).name() == "foo/bar/add:0";
       }},
      {"auxiliary_name_scope=False opens none",
       [](Graph& g) {
         const VariableScope scope(g, "foo", {.auxiliary_name_scope = false});
         return Const(g, 1.f).name() == "Const:0" && GetVariable(g, "v", {1}).name() == "foo/v:0";
       }},
      {"original_name_scope is reopened for ops",
       [](Graph& g) {
         std::string original;
         {
           const VariableScope scope(g, "foo");
           original = scope.original_name_scope();
         }
         const NameScope again(g, original);
         return original == "foo/" && Const(g, 1.f).name() == "foo/Const:0";
       }},
      {"default_name makes scope names unique",
       [](Graph& g) {
         Strings names;
         for (int i = 0; i < 2; ++i) {
           const VariableScope scope(g, {.default_name = "layer"});
           names.push_back(GetVariable(g, "w", {1}).name());
         }
         return names == Strings{"layer/w:0", "layer_1/w:0"};
       }},
      {"a scope passes its initializer on; a call and an inner scope override it",
       [](Graph& g) {
         const VariableScope foo(g, "foo", {.initializer = Constant(0.4)});
         const Variable v = GetVariable(g, "v", {1}), w = GetVariable(g, "w", {1}, Constant(0.3));
         Variable x;
         {
           const VariableScope baz(g, "baz", {.initializer = Constant(0.2)});
           x = GetVariable(g, "x", {1});
         }
         return Values(g, v) == Floats{0.4f} && Values(g, w) == Floats{0.3f} &&
                Values(g, x) == Floats{0.2f};
       }},
      {"a scope passes its dtype on",
       [](Graph& g) {
         const VariableScope scope(g, "foo", {.dtype = DT_DOUBLE});
         return GetVariable(g, "v", {1}).dtype() == DT_DOUBLE;
       }},
      {"a scope selects the kind of variable",
       [](Graph& g) {
         const VariableScope one(g, "one", {.use_resource = true});
         const bool resource = GetVariable(g, "v", {1}).is_resource();
         const VariableScope two(g, "two", {.use_resource = false});
         return resource && !GetVariable(g, "v", {1}).is_resource();
       }},
      {"a regularizer is called at creation, and its loss is collected",
       [](Graph& g) {
         const VariableScope scope(g, "a",
                                   {.reuse = Reuse::kAuto, .regularizer = [](const Variable& v) {
                                      return ReduceSum(v * v);
                                    }});
         GetVariable(g, "v", {2}, Ones());
         GetVariable(g, "v", {2}, Ones());
         const Outputs losses = g.collection_as<Output>(collections::kRegularizationLosses);
         return losses.size() == 1 && Values(g, losses[0]) == Floats{2};
       }},
      {"a custom getter may change the created variable",
       [](Graph& g) {
         const CustomGetter getter = [](const VariableGetter& next, Graph& graph,
                                        absl::string_view name, VariableOptions options) {
           options.trainable = false;
           return next(graph, std::string(name) + "_mine", options);
         };
         const VariableScope scope(g, "a", {.custom_getter = getter});
         const Variable v = GetVariable(g, "v", {2});
         return v.name() == "a/v_mine:0" && !v.trainable();
       }},
      {"tf.Variable is invisible to get_variable",
       [](Graph& g) {
         MakeVariable(g, 1.0, {.name = "v"});
         return GetVariable(g, "v", {2}).name() == "v_1:0";
       }},
      {"get_local_variable is local and not trainable",
       [](Graph& g) {
         const Variable v = GetLocalVariable(g, "v", {2});
         return !v.trainable() && LocalVariables(g) == Variables{v} && GlobalVariables(g).empty();
       }},
      {"a partitioner splits a variable into parts that differ by at most one row",
       [](Graph& g) {
         const Variable v = GetVariable(g, "v", {7, 4}, {.partitioner = FixedSizePartitioner(3)});
         return v.shape() == Shape({7, 4}) && v.parts().size() == 3 &&
                v.parts()[0].name() == "v/part_0:0" && v.parts()[0].shape() == Shape({3, 4}) &&
                v.parts()[2].shape() == Shape({2, 4});
       }},
      {"readers see a partitioned variable as one tensor",
       [](Graph& g) {
         const Variable v = GetVariable(
             g, "v", {5}, {.initializer = Ones(), .partitioner = FixedSizePartitioner(2)});
         return Values(g, v * 2.f) == Floats(5, 2);
       }},
      {"fixed, variable-axis-size and min-max partitioners count as TensorFlow's",
       [](Graph&) {
         const Shape shape({8, 4});
         return *FixedSizePartitioner(2, 1)(shape, DT_FLOAT) == std::vector<int64_t>{1, 2} &&
                *VariableAxisSizePartitioner(16)(shape, DT_FLOAT) == std::vector<int64_t>{8, 1} &&
                *MinMaxVariablePartitioner(4, 0, 16)(shape, DT_FLOAT) == std::vector<int64_t>{4, 1};
       }},
  };
}

Rows CollectionRows() {
  return {
      {"a new variable is in variables, a trainable one in trainable_variables as well",
       [](Graph& g) {
         const Variable a = MakeVariable(g, 1.0);
         const Variable b = MakeVariable(g, 1.0, {.trainable = false});
         return GlobalVariables(g) == Variables{a, b} && TrainableVariables(g) == Variables{a};
       }},
      {"collections=[LOCAL_VARIABLES] keeps it out of the others",
       [](Graph& g) {
         const Variable v =
             GetVariable(g, "my_local", {},
                         {.trainable = false, .collections = {{collections::kLocalVariables}}});
         return LocalVariables(g) == Variables{v} && GlobalVariables(g).empty() &&
                TrainableVariables(g).empty();
       }},
      {"any string names a collection",
       [](Graph& g) {
         g.AddToCollection("my_collection", int64_t{3});
         return g.collection("my_collection").size() == 1;
       }},
      {"a collection can contain numbers, strings, tensors and ops, and keeps duplicates",
       [](Graph& g) {
         const Output x = Const(g, 1.f);
         for (int i = 0; i < 2; ++i) g.AddToCollection("c", x);
         g.AddToCollection("c", std::string("text"));
         g.AddToCollection("c", NoOp(g));
         return g.collection("c").size() == 4 && g.collection_as<Output>("c").size() == 2;
       }},
      {"an unknown collection is empty", [](Graph& g) { return g.collection("none").empty(); }},
      {"a repeated name counts once in add_to_collections",
       [](Graph& g) {
         g.AddToCollections({"a", "b", "a"}, int64_t{1});
         return g.collection("a").size() == 1 && g.collection("b").size() == 1;
       }},
      {"get_collection filters by scope, a regular expression matched from the start",
       [](Graph& g) {
         for (const char* name : {"hidden1", "hidden2", "out"}) {
           const VariableScope scope(g, name);
           GetVariable(g, "w", {1});
         }
         return Names(GlobalVariables(g, "hidden[2]")) == Strings{"hidden2/w:0"} &&
                GlobalVariables(g, "hidden").size() == 2 && GlobalVariables(g, "idden").empty();
       }},
      {"get_collection returns a copy",
       [](Graph& g) {
         g.AddToCollection("c", int64_t{1});
         auto copy = g.collection("c");
         copy.clear();
         return g.collection("c").size() == 1;
       }},
      {"get_collection_ref returns the list itself, and creates it",
       [](Graph& g) {
         auto& live = g.LiveCollection("c");
         live.push_back(int64_t{1});
         g.AddToCollection("c", int64_t{2});
         return g.collection("c").size() == 2 && live.size() == 2;
       }},
      {"add_to_collection(name, variable) stores the variable",
       [](Graph& g) {
         const Variable v = MakeVariable(g, 1.0);
         g.AddToCollection("mine", v);
         return g.collection_as<Variable>("mine") == Variables{v} &&
                g.collection_as<Output>("mine").empty();
       }},
      {"clear_collection empties a collection; all keys are listed",
       [](Graph& g) {
         g.AddToCollection("a", int64_t{1});
         g.AddToCollection("b", int64_t{1});
         g.ClearCollection("a");
         return g.collection("a").empty() && g.CollectionKeys() == Strings{"b"};
       }},
      {"model, metric and moving-average variables have separate lists",
       [](Graph& g) {
         const Variable v = MakeVariable(g, 1.0, {.collections = {{collections::kModelVariables}}});
         metrics::Mean(v);
         ExponentialMovingAverage(0.9).Apply({v});
         return ModelVariables(g) == Variables{v} && MetricVariables(g).size() == 2 &&
                MovingAverageVariables(g) == Variables{v};
       }},
      {"the global step is one per graph",
       [](Graph& g) {
         const Variable step = GetOrCreateGlobalStep(g);
         const bool same = GetGlobalStep(g) == step && step.dtype() == DT_INT64;
         CreateGlobalStep(g);
         return same && Fails(g, kExists, {"global_step"});
       }},
  };
}

Rows DeviceRows() {
  return {
      {"the scope around its creation places a variable",
       [](Graph& g) {
         const DeviceScope device(g, "/device:GPU:1");
         return GetVariable(g, "v", {1}).device() == "/device:GPU:1";
       }},
      {"the initializer of a variable is colocated with it",
       [](Graph& g) {
         const DeviceScope outer(g, "/job:worker");
         Variable v;
         {
           const DeviceScope device(g, "/job:ps/task:1");
           v = MakeVariable(g, 1.0);
         }
         return v.initializer().node->device() == "/job:ps/task:1";
       }},
      {"device scopes merge, the inner one wins",
       [](Graph& g) {
         const DeviceScope outer(g, "/job:a/device:CPU:0");
         const DeviceScope inner(g, "/device:GPU:1");
         return NoOp(g).node->device() == "/job:a/device:GPU:1";
       }},
      {"replica_device_setter distributes variables over ps tasks and places ops on workers",
       [](Graph& g) {
         const DeviceScope setter(
             g, ReplicaDeviceSetter(
                    {.cluster = ClusterSpec{{"ps", {"a:1", "b:1"}}, {"worker", {"c:1"}}}}));
         const Variable v1 = GetVariable(g, "v1", {2}), v2 = GetVariable(g, "v2", {2});
         const Variable v3 = GetVariable(g, "v3", {2});
         return v1.device() == "/job:ps/task:0" && v2.device() == "/job:ps/task:1" &&
                v3.device() == "/job:ps/task:0" && NoOp(g).node->device() == "/job:worker";
       }},
      {"caching_device creates one shared read on that device",
       [](Graph& g) {
         const Variable v = MakeVariable(g, 1.0, {.caching_device = "/device:CPU:1"});
         const Output read = v.value();
         return read.node->device() == "/device:CPU:1" && v.value() == read;
       }},
      {"an invalid device name is rejected, naming it",
       [](Graph& g) {
         const DeviceScope device(g, "/device:CPU:x");
         NoOp(g);
         return Fails(g, kInvalid, {"/device:CPU:x"});
       }},
      {"a mirrored variable has a copy on each device",
       [](Graph& g) {
         const Variable v = MakeMirroredVariable(g, {1.0, 2.0}, {"/cpu:0", "/cpu:0"});
         return v.replicas().size() == 2 && Values(g, v) == Floats{1, 2};
       }},
  };
}

}  // namespace weir::guide
