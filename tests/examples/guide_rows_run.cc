// Rows of the guides that need a session: initializing, using, training, saving.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "guide_rows.h"

namespace guide {

namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kUnset = absl::StatusCode::kFailedPrecondition;

// Returns a session without initialized variables.
weir::Session Bare(weir::Graph& g) { return *weir::Session::Create(g); }

std::string Prefix(weir::Graph& g, const char* name) {
  const std::string folder =
      Folder() + "/" + name + (g.options().use_resource ? "_resource" : "_reference");
  std::filesystem::create_directories(folder);
  return folder + "/model";
}

// Returns v after `op` has run.
Floats After(weir::Graph& g, const weir::Variable& v, const weir::Operation& op) {
  absl::StatusOr<weir::Session> session = Started(g);
  if (!session.ok() || !session->Run(op).ok()) return {};
  return Values(*session, v);
}

bool Near(const Floats& a, const Floats& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= 1e-5f * std::max(1.f, std::abs(b[i])))) return false;
  }
  return true;
}

// Returns v, of shape [4], after a step of this optimizer on sum(v * v).
Floats Step1(weir::Graph& g, weir::Optimizer&& optimizer) {
  const weir::Variable v = weir::MakeVariable(g, {1.0, -2.0}, {.name = "v"});
  return After(g, v, optimizer.Minimize(weir::ReduceSum(v * v)));
}

}  // namespace

Rows InitializationRows() {
  return {
      {"reading an uninitialized variable fails, naming it",
       [](weir::Graph& g) {
         const weir::Output read = weir::GetVariable(g, "v", {2}) + 1.f;
         weir::Session session = Bare(g);
         return Fails(session.Run({read}).status(), kUnset, {"v"});
       }},
      {"global_variables_initializer initializes all",
       [](weir::Graph& g) {
         const weir::Variable a = weir::MakeVariable(g, 1.0), b = weir::MakeVariable(g, 2.0);
         const weir::Output sum = a + b;
         const weir::Operation init = weir::GlobalVariablesInitializer(g);
         weir::Session session = Bare(g);
         return init.name() == "init" && session.Run(init).ok() &&
                Values(session, sum) == Floats{3};
       }},
      {"the initializer of one variable initializes only that variable",
       [](weir::Graph& g) {
         const weir::Variable a = weir::MakeVariable(g, 1.0),
                              b = weir::MakeVariable(g, 2.0, {.name = "b"});
         const weir::Output reads[] = {a.value(), b.value()};
         weir::Session session = Bare(g);
         return session.Run(a.initializer()).ok() && Values(session, reads[0]) == Floats{1} &&
                Fails(session.Run({reads[1]}).status(), kUnset, {"b"});
       }},
      {"running the initializer again resets the variable",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 1.0);
         const weir::Output add = v.AssignAdd(1.0), read = v.read_value();
         weir::Session session = *Started(g);
         return Values(session, add) == Floats{2} && session.Run(v.initializer()).ok() &&
                Values(session, read) == Floats{1};
       }},
      {"report_uninitialized_variables returns the uninitialized variables, in order",
       [](weir::Graph& g) {
         const weir::Variable a = weir::MakeVariable(g, 1.0, {.name = "a"});
         weir::MakeVariable(g, 1.0, {.name = "b"});
         weir::GetLocalVariable(g, "c", {1});
         const weir::Output report = weir::ReportUninitializedVariables(g);
         weir::Session session = Bare(g);
         if (!session.Run(a.initializer()).ok()) return false;
         const weir::Tensor left = (*session.Run({report}))[0];
         return left.num_elements() == 2 && left.data<std::string>()[0] == "b" &&
                left.data<std::string>()[1] == "c";
       }},
      {"is_variable_initialized reports whether a variable is initialized",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 1.0);
         const weir::Output is = weir::IsVariableInitialized(v);
         weir::Session session = Bare(g);
         return Values(session, is) == Floats{0} && session.Run(v.initializer()).ok() &&
                Values(session, is) == Floats{1};
       }},
      {"initialized_value initializes one variable from another",
       [](weir::Graph& g) {
         const weir::Variable v =
             weir::MakeVariable(g, [&] { return weir::RandomNormal(g, {3}); }, {.name = "v"});
         const weir::Variable w = weir::MakeVariable(g, v.initialized_value() * 2.f);
         return Values(g, w - 2.f * v) == Floats{0, 0, 0};
       }},
      {"a variable read in another's initial value is initialized first, in one step",
       [](weir::Graph& g) {
         weir::Variable v;
         const weir::Variable w = weir::MakeVariable(
             g, [&] { return (v = weir::MakeVariable(g, 3.0, {.name = "v"})) + 1.f; },
             {.name = "w"});
         return Values(g, w) == Floats{4};
       }},
      {"local variables have a separate initializer",
       [](weir::Graph& g) {
         const weir::Variable v =
             weir::GetLocalVariable(g, "v", {1}, {.initializer = weir::Ones()});
         const weir::Output read = v.value();
         const weir::Operation init = weir::LocalVariablesInitializer(g);
         weir::Session session = Bare(g);
         return session.Run(init).ok() && Values(session, read) == Floats{1};
       }},
      {"variables_initializer takes a list",
       [](weir::Graph& g) {
         const weir::Variable a = weir::MakeVariable(g, 1.0), b = weir::MakeVariable(g, 2.0);
         const weir::Output report = weir::ReportUninitializedVariables(g);
         const weir::Operation init = weir::VariablesInitializer(g, {a});
         weir::Session session = Bare(g);
         return session.Run(init).ok() && (*session.Run({report}))[0].num_elements() == 1;
       }},
      {"an assignment initializes a variable",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0});
         const weir::Output assign = v.Assign({3.0, 4.0}), read = v.value();
         weir::Session session = Bare(g);
         return Values(session, assign) == Floats{3, 4} && Values(session, read) == Floats{3, 4};
       }},
      {"load writes a value from the host",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0});
         const weir::Output read = v.value();
         weir::Session session = Bare(g);
         return weir::Load(v, weir::Tensor::Vector<float>({5, 6}), &session).ok() &&
                Values(session, read) == Floats{5, 6} &&
                Fails(weir::Load(v, weir::Tensor::Vector<float>({5}), &session), kInvalid);
       }},
      {"a new session starts with uninitialized variables",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 1.0);
         const weir::Output read = v.value();
         const bool first = Values(g, read) == Floats{1};
         weir::Session session = Bare(g);
         return first && Fails(session.Run({read}).status(), kUnset);
       }},
      {"zeros, ones, constant, identity and orthogonal produce the values that they name",
       [](weir::Graph& g) {
         const auto v = [&](const char* name, const weir::Initializer& from) {
           return weir::GetVariable(g, name, {2, 2}, weir::VariableOptions{.initializer = from});
         };
         const weir::Variable o = v("o", weir::Orthogonal());
         return Values(g, v("z", weir::Zeros())) == Floats(4, 0) &&
                Values(g, v("p", weir::Ones())) == Floats(4, 1) &&
                Values(g, v("c", weir::Constant({1, 2}))) == Floats{1, 2, 2, 2} &&
                Values(g, v("i", weir::Identity())) == Floats{1, 0, 0, 1} &&
                Near(Values(g, weir::MatMul(o, weir::Transpose(o)) + 1.f), {2, 1, 1, 2});
       }},
      {"a seed gives the same numbers in each session",
       [](weir::Graph& g) {
         g.set_seed(42);
         const weir::Variable v = weir::GetVariable(g, "v", {3});
         const weir::Output read = v.value();
         const Floats first = Values(g, read);
         return first.size() == 3 && first == Values(g, read);
       }},
  };
}

Rows UseRows() {
  return {
      {"a variable can be used wherever a tensor can",
       [](weir::Graph& g) {
         const weir::Variable v = weir::GetVariable(g, "v", {}, weir::Zeros());
         return Values(g, v + 1.f) == Floats{1};
       }},
      {"operators build ops: + - * / and comparisons, from both sides",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {4.0, 9.0});
         return Values(g, v - 1.f) == Floats{3, 8} && Values(g, 1.f - v) == Floats{-3, -8} &&
                Values(g, v * v) == Floats{16, 81} && Values(g, v / 2.f) == Floats{2, 4.5f} &&
                Values(g, -v) == Floats{-4, -9} && Values(g, v > 5.f) == Floats{0, 1};
       }},
      {"integers: // rounds down, % has the divisor's sign, / is float64",
       [](weir::Graph& g) {
         const weir::Variable n = weir::MakeVariable(g, {-7, 7});
         return Values(g, weir::FloorDiv(n, weir::Const(g, 2))) == Floats{-4, 3} &&
                Values(g, n % weir::Const(g, 4)) == Floats{1, 3} &&
                (n / weir::Const(g, 2)).dtype() == weir::DT_DOUBLE;
       }},
      {"different types are rejected, naming both",
       [](weir::Graph& g) {
         weir::Add(weir::MakeVariable(g, 1.0), weir::Const(g, 1));
         return Fails(g, kInvalid, {"float", "int32"});
       }},
      {"assign returns the value after the write",
       [](weir::Graph& g) {
         return Values(g, weir::MakeVariable(g, 1.0).Assign(7.0)) == Floats{7};
       }},
      {"assign_add and assign_sub",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 5.0), w = weir::MakeVariable(g, 5.0);
         return Values(g, v.AssignAdd(1.0)) == Floats{6} &&
                Values(g, w.AssignSub(1.0)) == Floats{4};
       }},
      {"read_value after a write sees it",
       [](weir::Graph& g) {
         const weir::Variable v = weir::GetVariable(g, "v", {}, weir::Zeros());
         const weir::Output assign = v.AssignAdd(1.0);
         weir::Output read;
         {
           const weir::ControlDependencies after(g, {assign});
           read = v.read_value();
         }
         return Values(g, read) == Floats{1};
       }},
      {"a fetched value does not change",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0});
         const weir::Output read = v.value(), add = v.AssignAdd({1.0});
         weir::Session session = *Started(g);
         const weir::Tensor before = (*session.Run({read}))[0];
         return Values(session, add) == Floats{2} && before.flat<float>()[0] == 1;
       }},
      {"state persists from step to step",
       [](weir::Graph& g) {
         const weir::Output add = weir::MakeVariable(g, 0.0).AssignAdd(1.0);
         weir::Session session = *Started(g);
         for (int i = 0; i < 3; ++i) Values(session, add);
         return Values(session, add) == Floats{4};
       }},
      {"a value of another shape is rejected when the graph is built, naming both",
       [](weir::Graph& g) {
         weir::MakeVariable(g, {1.0, 2.0}, {.name = "v"}).Assign({1.0, 2.0, 3.0});
         return Fails(g, kInvalid, {"2", "3"});
       }},
      {"a value of another type is rejected",
       [](weir::Graph& g) {
         weir::MakeVariable(g, {1, 2}).Assign(weir::Const(g, {1.f, 2.f}));
         return Fails(g, kInvalid, {"int32", "float"});
       }},
      {"a shape that is unknown before the step is checked in the step, and nothing is written",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0});
         const weir::Output x = weir::Placeholder(g, weir::DT_FLOAT), assign = v.Assign(x),
                            read = v.value();
         weir::Session session = *Started(g);
         const auto run = session.Run({{x, weir::Tensor::Vector<float>({1, 2, 3})}}, {assign});
         return Fails(run.status(), kInvalid) && Values(session, read) == Floats{1, 2};
       }},
      {"scatter_update, _add, _sub and the others change rows",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0, 3.0});
         const auto rows = [&](float x) {
           return weir::IndexedSlices{
               .values = weir::Const(g, {x}), .indices = weir::Const(g, {1}), .dense_shape = {}};
         };
         return Values(g, v.ScatterUpdate(rows(9))) == Floats{1, 9, 3} &&
                Values(g, v.ScatterAdd(rows(9))) == Floats{1, 11, 3} &&
                Values(g, v.ScatterSub(rows(9))) == Floats{1, -7, 3} &&
                Values(g, v.ScatterMul(rows(9))) == Floats{1, 18, 3} &&
                Values(g, v.ScatterDiv(rows(4))) == Floats{1, 0.5f, 3} &&
                Values(g, v.ScatterMin(rows(1))) == Floats{1, 1, 3} &&
                Values(g, v.ScatterMax(rows(9))) == Floats{1, 9, 3};
       }},
      {"repeated rows are all applied",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0});
         return Values(g, v.ScatterAdd({.values = weir::Const(g, {1.f, 1.f}),
                                        .indices = weir::Const(g, {0, 0}),
                                        .dense_shape = {}})) == Floats{3, 2};
       }},
      {"a row out of range is rejected, and nothing is written",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0});
         const weir::Output read = v.value();
         const weir::Output add = v.ScatterAdd(
             {.values = weir::Const(g, {1.f}), .indices = weir::Const(g, {5}), .dense_shape = {}});
         weir::Session session = *Started(g);
         return Fails(session.Run({add}).status(), kInvalid, {"5", "[0, 2)"}) &&
                Values(session, read) == Floats{1, 2};
       }},
      {"scatter_nd addresses elements",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0, 3.0});
         const weir::Output at = weir::Const<int32_t>(g, weir::Shape({1, 1}), {2});
         return Values(g, v.ScatterNdUpdate(at, weir::Const(g, {7.f}))) == Floats{1, 2, 7};
       }},
      {"v[0:2].assign writes a part",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0, 3.0});
         return Values(g, v.Slice({weir::Index::Range(0, 2)}).Assign({7.0, 8.0})) ==
                Floats{7, 8, 3};
       }},
      {"v[1] reads a part",
       [](weir::Graph& g) {
         return Values(g, weir::MakeVariable(g, {1.0, 2.0}).Slice({1})) == Floats{2};
       }},
      {"sparse_read and gather_nd read rows",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0, 3.0});
         return Values(g, v.SparseRead(weir::Const(g, {2, 0}))) == Floats{3, 1} &&
                Values(g, v.GatherNd(weir::Const<int32_t>(g, weir::Shape({1, 1}), {1}))) ==
                    Floats{2};
       }},
      {"count_up_to counts, and ends with OUT_OF_RANGE",
       [](weir::Graph& g) {
         const weir::Output count = weir::MakeVariable(g, 0).CountUpTo(2);
         weir::Session session = *Started(g);
         return Values(session, count) == Floats{0} && Values(session, count) == Floats{1} &&
                Fails(session.Run({count}).status(), absl::StatusCode::kOutOfRange,
                      {"Reached limit of 2"});
       }},
      {"eval takes a session",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0});
         weir::Session session = *Started(g);
         return weir::Eval(v, &session)->flat<float>()[1] == 2 &&
                Fails(weir::Eval(v, nullptr).status(), kUnset);
       }},
      {"a predicate that its branch writes is read only once",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, true);
         const weir::Output flipped = weir::Cond(
             v, [&] { return v.Assign(false); }, [&] { return v.Assign(true); });
         return Values(g, flipped) == Floats{0};
       }},
      {"a callable creates a variable inside a loop, and the variable is outside the loop",
       [](weir::Graph& g) {
         const weir::Outputs r = weir::WhileLoop(
             [](const weir::Outputs& x) { return x[0] < 3.f; },
             [&](const weir::Outputs& x) {
               const weir::VariableScope scope(g, "in", weir::Reuse::kAuto);
               return weir::Outputs{x[0] + weir::GetVariable(g, "v", {}, weir::Ones())};
             },
             {weir::Const(g, 0.f)});
         return Values(g, r[0]) == Floats{3};
       }},
      {"a tensor created inside a loop is rejected as an initial value there, and the error names "
       "it in full",
       [](weir::Graph& g) {
         weir::WhileLoop([](const weir::Outputs& x) { return x[0] < 3.f; },
                         [&](const weir::Outputs& x) {
                           weir::MakeVariable(g, x[0] + 1.f, {.name = "q"});
                           return weir::Outputs{x[0] + 1.f};
                         },
                         {weir::Const(g, 0.f)});
         return Fails(g, kInvalid, {"while/q"});
       }},
      {"fetching a variable adds no node",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0});
         weir::Session session = *Started(g);
         const int nodes = g.num_nodes();
         return Values(session, v.value()) == Floats{1, 2} && session.Run({v}).ok() &&
                session.Run({v}).ok() && g.num_nodes() <= nodes + 1;
       }},
      {"std::cout prints a variable in the guide's form, tensors, shapes, types and values",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0}, {.name = "w"});
         std::ostringstream variable, output, value;
         variable << v;
         output << weir::Const(g, {1.f, 2.f}, "c");
         value << weir::Tensor::Vector<int32_t>({1, 2}) << weir::Shape({-1, 3}) << weir::DT_INT64;
         return variable.str() == v.ToString() &&
                output.str() == "Tensor(\"c:0\", shape=[2], dtype=float)" &&
                value.str() == "[1 2][?,3]int64";
       }},
      {"two handles of one shared name are one variable",
       [](weir::Graph& g) {
         const weir::VariableOpOptions shared = {.shared_name = "s"};
         const weir::Output a = weir::VarHandleOp(g, weir::DT_FLOAT, {}, shared),
                            b = weir::VarHandleOp(g, weir::DT_FLOAT, {}, shared);
         const weir::Operation write = weir::AssignVariableOp(a, weir::Const(g, 3.f));
         const weir::Output read = weir::ReadVariableOp(b, weir::DT_FLOAT);
         weir::Session session = Bare(g);
         return session.Run(write).ok() && Values(session, read) == Floats{3};
       }},
      {"feeding a variable's value overrides it",
       [](weir::Graph& g) {
         const weir::Output read = weir::MakeVariable(g, 1.0).value(), twice = read * 2.f;
         weir::Session session = *Started(g);
         const auto out = session.Run({{read, weir::Tensor::Scalar(5.f)}}, {twice});
         return out.ok() && (*out)[0].scalar<float>() == 10;
       }},
      {"a finalized graph accepts no new variable",
       [](weir::Graph& g) {
         g.Finalize();
         weir::MakeVariable(g, 1.0);
         return Fails(g, kUnset);
       }},
  };
}

Rows TrainingRows() {
  return {
      {"gradients flow through a variable's read",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0});
         return Values(g, weir::Gradients({v * v}, {v})[0].dense()) == Floats{2, 4};
       }},
      {"a variable that does not affect the loss has no gradient",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 1.0), w = weir::MakeVariable(g, 1.0);
         return weir::Gradients({v * v}, {w})[0].none();
       }},
      {"minimize trains the trainable variables only",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 1.0),
                              w = weir::MakeVariable(g, 1.0, {.trainable = false});
         const weir::Operation train = weir::GradientDescent(0.25).Minimize((v + w) * (v + w));
         weir::Session session = *Started(g);
         return session.Run(train).ok() && Values(session, v) == Floats{0} &&
                Values(session, w) == Floats{1};
       }},
      {"var_list selects the trained variables",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 1.0), w = weir::MakeVariable(g, 1.0);
         const weir::Operation train =
             weir::GradientDescent(0.25).Minimize(v * v + w * w, {.var_list = weir::Variables{w}});
         weir::Session session = *Started(g);
         return session.Run(train).ok() && Values(session, v) == Floats{1} &&
                Values(session, w) == Floats{0.5f};
       }},
      {"training without variables is rejected",
       [](weir::Graph& g) {
         weir::GradientDescent(0.1).Minimize(weir::Const(g, 1.f));
         return Fails(g, kInvalid, {"No variables"});
       }},
      {"global_step counts the steps",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 1.0), step = weir::GetOrCreateGlobalStep(g);
         const weir::Operation train =
             weir::GradientDescent(0.1).Minimize(v * v, {.global_step = step});
         return After(g, step, train) == Floats{1};
       }},
      {"gradient descent, momentum, Adagrad and Adam compute TensorFlow's first step",
       [](weir::Graph& g) {
         const Floats descent = Step1(g, weir::GradientDescent(0.1)),
                      momentum = Step1(g, weir::Momentum(0.1, 0.9));
         const Floats adagrad = Step1(g, weir::Adagrad(0.1)), adam = Step1(g, weir::Adam(0.1));
         return Near(descent, {0.8f, -1.6f}) && Near(momentum, {0.8f, -1.6f}) &&
                Near(adagrad, {0.9012270f, -1.9003110f}) && Near(adam, {0.9f, -1.9f});
       }},
      {"slots are variables: saved, not trained, named after their variables",
       [](weir::Graph& g) {
         const weir::Variable w = weir::MakeVariable(g, 1.0, {.name = "w"});
         weir::Adam adam(0.1);
         adam.Minimize(w * w);
         const weir::Variable m = adam.GetSlot(w, "m");
         return m.name() == "w/Adam:0" && !m.trainable() && weir::GlobalVariables(g).size() == 5;
       }},
      {"gradients may be changed between their computation and application",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 1.0);
         weir::GradientDescent descent(1);
         weir::GradsAndVariables list = descent.ComputeGradients(v * v);
         for (weir::GradAndVariable& x : list) x.grad = weir::ClipByNorm(x.grad, 0.5);
         return After(g, v, descent.ApplyGradients(list)) == Floats{0.5f};
       }},
      {"a constraint is satisfied after each step",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(
             g, 1.0, {.constraint = [](weir::Output x) { return weir::Maximum(x, 0.9f); }});
         return After(g, v, weir::GradientDescent(1).Minimize(v * v)) == Floats{0.9f};
       }},
      {"moving averages shadow variables, and provide names for a restore",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 2.0, {.name = "v"});
         weir::ExponentialMovingAverage ema(0.5);
         const weir::Output more = v.AssignAdd(2.0);
         weir::Operation average;
         {
           const weir::ControlDependencies after(g, {more});
           average = ema.Apply({v});
         }
         const weir::Variable shadow = ema.Average(v);
         return shadow.name() == "v/ExponentialMovingAverage:0" &&
                After(g, shadow, average) == Floats{3} &&
                ema.VariablesToRestore(g).count("v/ExponentialMovingAverage") == 1;
       }},
  };
}

Rows SavingRows() {
  return {
      {"a saver saves and restores all variables, and a restore initializes",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0}, {.name = "v"});
         const weir::Output read = v.value();
         weir::Saver saver = *weir::Saver::Create(g);
         weir::Session session = *Started(g), later = Bare(g);
         const auto path = saver.Save(session, Prefix(g, "all"));
         return path.ok() && saver.Restore(later, *path).ok() &&
                Values(later, read) == Floats{1, 2};
       }},
      {"a saver of a list saves only its variables",
       [](weir::Graph& g) {
         const weir::Variable a = weir::MakeVariable(g, 1.0, {.name = "a"});
         const weir::Variable b = weir::MakeVariable(g, 2.0, {.name = "b"});
         const weir::Output read = b.value();
         weir::Saver saver = *weir::Saver::Create(g, {.variables = weir::Variables{a}});
         weir::Session session = *Started(g), later = Bare(g);
         const auto path = saver.Save(session, Prefix(g, "list"));
         return path.ok() && saver.Restore(later, *path).ok() &&
                Fails(later.Run({read}).status(), kUnset, {"b"});
       }},
      {"variables can be saved under other names",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 3.0, {.name = "v"});
         weir::Saver saver = *weir::Saver::Create(g, {.named = {{"other", v}}});
         weir::Session session = *Started(g);
         const auto path = saver.Save(session, Prefix(g, "named"));
         weir::Graph h;
         const weir::Variable other = weir::MakeVariable(h, 0.0, {.name = "other"});
         const weir::Output read = other.value();
         weir::Saver reader = *weir::Saver::Create(h);
         weir::Session later = Bare(h);
         return reader.Restore(later, *path).ok() && Values(later, read) == Floats{3};
       }},
      {"names contain the step, and latest_checkpoint finds the newest",
       [](weir::Graph& g) {
         weir::MakeVariable(g, 1.0);
         weir::Saver saver = *weir::Saver::Create(g);
         weir::Session session = *Started(g);
         const std::string prefix = Prefix(g, "steps");
         for (const int64_t step : {1, 2}) {
           if (!saver.Save(session, prefix, {.global_step = step}).ok()) return false;
         }
         const std::string folder = std::filesystem::path(prefix).parent_path();
         return *weir::LatestCheckpoint(folder) == prefix + "-2";
       }},
      {"max_to_keep removes older checkpoints",
       [](weir::Graph& g) {
         weir::MakeVariable(g, 1.0);
         weir::Saver saver = *weir::Saver::Create(g, {.max_to_keep = 2});
         weir::Session session = *Started(g);
         const std::string prefix = Prefix(g, "keep");
         for (const int64_t step : {1, 2, 3}) {
           if (!saver.Save(session, prefix, {.global_step = step}).ok()) return false;
         }
         return !std::filesystem::exists(prefix + "-1.index") &&
                std::filesystem::exists(prefix + "-2.index") &&
                saver.last_checkpoints().size() == 2;
       }},
      {"a name missing from the file is NOT_FOUND, and nothing is restored",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 1.0, {.name = "v"});
         weir::Saver saver = *weir::Saver::Create(g);
         weir::Session session = *Started(g);
         const auto path = saver.Save(session, Prefix(g, "lacks"));
         weir::Graph h;
         const weir::Output read = weir::MakeVariable(h, 5.0, {.name = "v"}).value();
         weir::MakeVariable(h, 5.0, {.name = "more"});
         weir::Saver reader = *weir::Saver::Create(h);
         weir::Session later = *Started(h);
         return Fails(reader.Restore(later, *path), kNotFound, {"more"}) &&
                Values(later, read) == Floats{5};
       }},
      {"another shape is rejected, naming the variable and both shapes",
       [](weir::Graph& g) {
         weir::MakeVariable(g, {1.0, 2.0}, {.name = "v"});
         weir::Saver saver = *weir::Saver::Create(g);
         weir::Session session = *Started(g);
         const auto path = saver.Save(session, Prefix(g, "shape"));
         weir::Graph h;
         weir::MakeVariable(h, {1.0, 2.0, 3.0}, {.name = "v"});
         weir::Saver reader = *weir::Saver::Create(h);
         weir::Session later = Bare(h);
         return Fails(reader.Restore(later, *path), kInvalid, {"v", "2", "3"});
       }},
      {"damage is detected, and does not end the program",
       [](weir::Graph& g) {
         weir::MakeVariable(g, {1.0, 2.0}, {.name = "v"});
         weir::Saver saver = *weir::Saver::Create(g);
         weir::Session session = *Started(g);
         const std::string path = *saver.Save(session, Prefix(g, "damage"));
         std::fstream(path + ".data-00000-of-00001",
                      std::ios::in | std::ios::out | std::ios::binary)
             << "x";
         weir::Session later = Bare(g);
         return Fails(saver.Restore(later, path), absl::StatusCode::kDataLoss);
       }},
      {"two variables under one name are rejected",
       [](weir::Graph& g) {
         const weir::Variable a = weir::MakeVariable(g, 1.0), b = weir::MakeVariable(g, 2.0);
         const absl::Status status =
             weir::Saver::Create(g, {.named = {{"v", a}, {"v", b}}}).status();
         return Fails(g.status().ok() ? status : g.TakeStatus(), kInvalid, {"v"});
       }},
      {"saving an uninitialized variable fails, naming it",
       [](weir::Graph& g) {
         weir::MakeVariable(g, 1.0, {.name = "v"});
         weir::Saver saver = *weir::Saver::Create(g);
         weir::Session session = Bare(g);
         return Fails(saver.Save(session, Prefix(g, "unset")).status(), kUnset, {"v"});
       }},
      {"a partitioned variable can be restored into an unpartitioned one",
       [](weir::Graph& g) {
         weir::GetVariable(
             g, "v",
             {.initializer = {1.0, 2.0, 3.0}, .partitioner = weir::FixedSizePartitioner(2)});
         weir::Saver saver = *weir::Saver::Create(g);
         weir::Session session = *Started(g);
         const auto path = saver.Save(session, Prefix(g, "parts"));
         weir::Graph h;
         const weir::Output read = weir::GetVariable(h, "v", {3}).value();
         weir::Saver reader = *weir::Saver::Create(h);
         weir::Session later = Bare(h);
         return path.ok() && reader.Restore(later, *path).ok() &&
                Values(later, read) == Floats{1, 2, 3};
       }},
      {"the meta graph next to a checkpoint restores the model",
       [](weir::Graph& g) {
         weir::MakeVariable(g, {1.0, 2.0}, {.name = "v"});
         weir::Saver saver = *weir::Saver::Create(g);
         weir::Session session = *Started(g);
         const std::string path = *saver.Save(session, Prefix(g, "meta"));
         weir::Graph h;
         const auto meta = weir::ImportMetaGraphFile(h, path + ".meta");
         if (!meta.ok() || !meta->saver) return false;
         const weir::Variables all = weir::GlobalVariables(h);
         const weir::Output read = all[0].value();
         weir::Session later = Bare(h);
         return all.size() == 1 && weir::Saver::FromDef(*meta->saver).Restore(later, path).ok() &&
                Values(later, read) == Floats{1, 2};
       }},
      {"to_proto and from_proto, as bytes, return the same variable and add no node",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, {1.0, 2.0}, {.name = "v"});
         const int nodes = g.num_nodes();
         return *weir::Variable::FromBytes(g, *v.ToBytes()) == v && g.num_nodes() == nodes;
       }},
      {"a graph and a meta graph can be serialized and imported",
       [](weir::Graph& g) {
         weir::MakeVariable(g, 1.0, {.name = "v"});
         weir::Graph h, k;
         return weir::ImportGraph(h, weir::SerializeGraph(g)).ok() &&
                h.num_nodes() == g.num_nodes() &&
                weir::ImportMetaGraph(k, weir::SerializeMetaGraph(g)).ok() &&
                weir::GlobalVariables(k).size() == 1;
       }},
      {"a SavedModel can be written and loaded",
       [](weir::Graph& g) {
         const weir::Output x = weir::Placeholder(g, weir::DT_FLOAT, {2}, "x");
         const weir::Output y = x * weir::MakeVariable(g, {1.0, 2.0});
         weir::Session session = *Started(g);
         const std::string folder = Prefix(g, "saved");
         if (!weir::WriteSavedModel(
                  session, g, folder,
                  {{"serving_default", weir::PredictSignature({{"x", x}}, {{"y", y}})}})
                  .ok()) {
           return false;
         }
         const auto model = weir::LoadSavedModel(folder, {"serve"});
         return model.ok() && weir::GlobalVariables(*model->graph).size() == 1;
       }},
      {"MonitoredSession initializes, saves at the end, and continues from there",
       [](weir::Graph& g) {
         const weir::Variable v = weir::MakeVariable(g, 1.0), step = weir::GetOrCreateGlobalStep(g);
         const weir::Operation train =
             weir::GradientDescent(0.1).Minimize(v * v, {.global_step = step});
         const weir::Output read = step.value();
         const std::string folder = std::filesystem::path(Prefix(g, "monitored")).parent_path();
         for (const int64_t last : {2, 5}) {
           auto session =
               weir::MonitoredTrainingSession(g, {.checkpoint_dir = folder,
                                                  .hooks = {weir::StopAtStep({.last_step = last})},
                                                  .log_step_count_steps = 0});
           if (!session.ok()) return false;
           while (!session->ShouldStop()) {
             if (!session->Run({}, {}, {train}).ok()) return false;
           }
           if (!session->Close().ok()) return false;
         }
         return *weir::LatestCheckpoint(folder) == folder + "/model.ckpt-5" && read.node != nullptr;
       }},
  };
}

}  // namespace guide
