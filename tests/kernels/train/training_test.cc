// Every update rule, in all its variants (dense and sparse, for references and resources) and
// types, against its formula in double.

#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "weir/core/graph/graph.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/train/training.h"
#include "weir/tests/evaluate.h"

namespace weir {
namespace {

double SignOf(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

// The proximal map of l1 |x| + l2/2 x^2 with step size `rate`.
double Prox(double x, double rate, double l1, double l2) {
  const double shrunk = std::max(std::abs(x) - rate * l1, 0.0);
  return SignOf(x) * shrunk / (1 + l2 * rate);
}

// Updates one element: p are the rule's scalars in the order of the op's arguments, s its slots in
// the order of the op's.
using Reference = void (*)(const std::vector<double>& p, double g, double& x,
                           std::vector<double>& s);

struct RuleCase {
  const char* rule;
  std::vector<double> scalars;
  Reference reference;
  Attrs attrs = {};
  std::string label = {};
};

void FtrlReference(double shrinkage, double power, double lr, double l1, double l2, double g,
                   double& x, std::vector<double>& s) {
  const double old_root = std::pow(s[0], -power), accum = s[0] + g * g,
               root = std::pow(accum, -power);
  s[1] += g + 2 * shrinkage * x - (root - old_root) / lr * x;
  s[0] = accum;
  x = std::abs(s[1]) > l1 ? (SignOf(s[1]) * l1 - s[1]) / (root / lr + 2 * l2) : 0;
}

std::vector<RuleCase> RuleCases() {
  using P = const std::vector<double>&;
  using S = std::vector<double>&;
  return {
      {"GradientDescent", {0.1}, [](P p, double g, double& x, S) { x -= p[0] * g; }},
      {"ProximalGradientDescent",
       {0.1, 0.5, 0.3},
       [](P p, double g, double& x, S) { x = Prox(x - p[0] * g, p[0], p[1], p[2]); }},
      {"ProximalGradientDescent",
       {0.1, 0, 0.3},
       [](P p, double g, double& x, S) { x = (x - p[0] * g) / (1 + p[2] * p[0]); },
       {},
       "WithoutL1"},
      {"Adadelta",
       {0.5, 0.9, 0.01},
       [](P p, double g, double& x, S s) {
         s[0] = p[1] * s[0] + (1 - p[1]) * g * g;
         const double update = std::sqrt(s[1] + p[2]) / std::sqrt(s[0] + p[2]) * g;
         x -= p[0] * update;
         s[1] = p[1] * s[1] + (1 - p[1]) * update * update;
       }},
      {"Adagrad",
       {0.1},
       [](P p, double g, double& x, S s) { s[0] += g * g, x -= p[0] * g / std::sqrt(s[0]); }},
      {"Adagrad",
       {0.1},
       [](P p, double g, double& x, S s) { x -= p[0] * g / std::sqrt(s[0]); },
       {{"update_slots", false}},
       "FixedSlots"},
      {"AdagradV2",
       {0.1, 0.01},
       [](P p, double g, double& x, S s) {
         s[0] += g * g, x -= p[0] * g / (std::sqrt(s[0]) + p[1]);
       }},
      {"AdagradDA",
       {0.1, 0.05, 0.2, 3},
       [](P p, double g, double& x, S s) {
         s[0] += g;
         s[1] += g * g;
         const double sum = SignOf(s[0]) * std::max(std::abs(s[0]) - p[1] * p[3], 0.0);
         x = -p[0] * sum / (p[2] * p[3] * p[0] + std::sqrt(s[1]));
       }},
      {"ProximalAdagrad",
       {0.1, 0.5, 0.3},
       [](P p, double g, double& x, S s) {
         s[0] += g * g;
         const double rate = p[0] / std::sqrt(s[0]);
         x = Prox(x - rate * g, rate, p[1], p[2]);
       }},
      {"Ftrl",
       {0.1, 0.2, 0.3, -0.5},
       [](P p, double g, double& x, S s) { FtrlReference(0, p[3], p[0], p[1], p[2], g, x, s); }},
      {"Ftrl",
       {0.1, 0.2, 0.3, -0.8},
       [](P p, double g, double& x, S s) { FtrlReference(0, p[3], p[0], p[1], p[2], g, x, s); },
       {},
       "OtherPower"},
      {"Ftrl",
       {0.1, 0.2, 0.3, -0.5},
       [](P p, double g, double& x, S s) {
         s[1] *= 1 / p[0];  // the linear term is stored times lr
         FtrlReference(0, p[3], p[0], p[1], p[2], g, x, s);
         s[1] *= p[0];
       },
       {{"multiply_linear_by_lr", true}},
       "MultiplyByLr"},
      {"FtrlV2",
       {0.1, 0.2, 0.3, 0.4, -0.5},
       [](P p, double g, double& x, S s) { FtrlReference(p[3], p[4], p[0], p[1], p[2], g, x, s); }},
      {"FtrlV2",
       {0.1, 0.2, 0.3, 0.4, -0.7},
       [](P p, double g, double& x, S s) { FtrlReference(p[3], p[4], p[0], p[1], p[2], g, x, s); },
       {},
       "OtherPower"},
      {"Momentum",
       {0.1, 0.9},
       [](P p, double g, double& x, S s) { s[0] = p[1] * s[0] + g, x -= p[0] * s[0]; }},
      {"Momentum",
       {0.1, 0.9},
       [](P p, double g, double& x, S s) { s[0] = p[1] * s[0] + g, x -= p[0] * (g + p[1] * s[0]); },
       {{"use_nesterov", true}},
       "Nesterov"},
      {"KerasMomentum",
       {0.1, 0.9},
       [](P p, double g, double& x, S s) { s[0] = p[1] * s[0] - p[0] * g, x += s[0]; }},
      {"KerasMomentum",
       {0.1, 0.9},
       [](P p, double g, double& x, S s) {
         s[0] = p[1] * s[0] - p[0] * g, x += p[1] * s[0] - p[0] * g;
       },
       {{"use_nesterov", true}},
       "Nesterov"},
      {"Adam",
       {0.5, 0.7, 0.1, 0.9, 0.99, 0.01},
       [](P p, double g, double& x, S s) {
         s[0] = p[3] * s[0] + (1 - p[3]) * g;
         s[1] = p[4] * s[1] + (1 - p[4]) * g * g;
         x -= p[2] * std::sqrt(1 - p[1]) / (1 - p[0]) * s[0] / (std::sqrt(s[1]) + p[5]);
       }},
      {"Adam",
       {0.5, 0.7, 0.1, 0.9, 0.99, 0.01},
       [](P p, double g, double& x, S s) {
         s[0] = p[3] * s[0] + (1 - p[3]) * g;
         s[1] = p[4] * s[1] + (1 - p[4]) * g * g;
         const double ahead = p[3] * s[0] + (1 - p[3]) * g;
         x -= p[2] * std::sqrt(1 - p[1]) / (1 - p[0]) * ahead / (std::sqrt(s[1]) + p[5]);
       },
       {{"use_nesterov", true}},
       "Nesterov"},
      {"AdamWithAmsgrad",
       {0.5, 0.7, 0.1, 0.9, 0.99, 0.01},
       [](P p, double g, double& x, S s) {
         s[0] = p[3] * s[0] + (1 - p[3]) * g;
         s[1] = p[4] * s[1] + (1 - p[4]) * g * g;
         s[2] = std::max(s[2], s[1]);
         x -= p[2] * std::sqrt(1 - p[1]) / (1 - p[0]) * s[0] / (std::sqrt(s[2]) + p[5]);
       }},
      {"AdaMax",
       {0.5, 0.1, 0.9, 0.99, 0.01},
       [](P p, double g, double& x, S s) {
         s[0] = p[2] * s[0] + (1 - p[2]) * g;
         s[1] = std::max(p[3] * s[1], std::abs(g));
         x -= p[1] / (1 - p[0]) * s[0] / (s[1] + p[4]);
       }},
      {"RMSProp",
       {0.1, 0.9, 0.5, 0.01},
       [](P p, double g, double& x, S s) {
         s[0] = p[1] * s[0] + (1 - p[1]) * g * g;
         s[1] = p[2] * s[1] + p[0] * g / std::sqrt(s[0] + p[3]);
         x -= s[1];
       }},
      {"CenteredRMSProp",
       {0.1, 0.9, 0.5, 5},
       [](P p, double g, double& x, S s) {
         s[0] = p[1] * s[0] + (1 - p[1]) * g;
         s[1] = p[1] * s[1] + (1 - p[1]) * g * g;
         s[2] = p[2] * s[2] + p[0] * g / std::sqrt(s[1] - s[0] * s[0] + p[3]);
         x -= s[2];
       }},
      {"AddSign",
       {0.1, 1.5, 0.7, 0.9},
       [](P p, double g, double& x, S s) {
         s[0] = p[3] * s[0] + (1 - p[3]) * g;
         x -= p[0] * (p[1] + p[2] * SignOf(g) * SignOf(s[0])) * g;
       }},
      {"PowerSign",
       {0.1, 1.2, 0.7, 0.9},
       [](P p, double g, double& x, S s) {
         s[0] = p[3] * s[0] + (1 - p[3]) * g;
         x -= p[0] * std::exp(p[1] * p[2] * SignOf(g) * SignOf(s[0])) * g;
       }},
  };
}

const UpdateRule& Rule(absl::string_view name) {
  for (const UpdateRule& rule : UpdateRules()) {
    if (rule.name == name) return rule;
  }
  ADD_FAILURE() << name;
  return UpdateRules()[0];
}

double Tolerance(DataType type) {
  return type == DT_DOUBLE ? 1e-11 : type == DT_FLOAT ? 2e-5 : type == DT_HALF ? 5e-3 : 4e-2;
}

std::vector<double> Widened(const Tensor& t) {
  std::vector<double> out;
  DispatchType(t.dtype(), weir::Floats{}, [&]<class T>() {
    for (const T& x : t.flat<T>()) {
      if constexpr (std::is_same_v<T, double>) {
        out.push_back(x);
      } else {
        out.push_back(static_cast<float>(x));
      }
    }
  });
  return out;
}

Tensor Narrowed(DataType type, const Shape& shape, const std::vector<double>& values) {
  Tensor t(type, shape);
  DispatchType(type, weir::Floats{}, [&]<class T>() {
    for (size_t i = 0; i < values.size(); ++i) t.data<T>()[i] = T(static_cast<double>(values[i]));
  });
  return t;
}

// One run of an op on random values, compared with the reference element by element.
class UpdateRun {
 public:
  UpdateRun(const RuleCase& c, DataType type, bool resource, bool sparse, int64_t rows,
            int64_t width)
      : case_(c),
        type_(type),
        resource_(resource),
        sparse_(sparse),
        shape_({rows, width}),
        random_(rows * 31 + width) {}

  void Check() {
    const UpdateRule& rule = Rule(case_.rule);
    const size_t num_variables = 1 + rule.slots.size();
    std::vector<Operation> inits;
    for (size_t i = 0; i < num_variables; ++i) {
      // Slots that are square roots must be positive; this is valid for all other slots.
      start_.push_back(
          Narrowed(type_, shape_, Random(shape_.num_elements(), i == 0 ? -2 : 0.5, 2)));
      const std::string name = absl::StrCat("v", i);
      variables_.push_back(resource_
                               ? VarHandleOp(g_, type_, shape_, {.shared_name = name, .name = name})
                               : VariableV2(g_, type_, shape_, {.name = name}));
      inits.push_back(AddNode(resource_ ? "AssignVariableOp" : "Assign",
                              {variables_[i], Const(g_, start_[i])}));
    }
    MakeGradient();
    const Operation update = MakeNode(rule);
    ASSERT_TRUE(g_.status().ok()) << g_.status();
    ResourceMap resources;
    ASSERT_TRUE(EvaluateTargets(g_, inits, &resources).ok());
    const absl::Status ran = EvaluateTargets(g_, {update}, &resources);
    ASSERT_TRUE(ran.ok()) << ran;
    Outputs reads;
    for (const Output& v : variables_) {
      reads.push_back(resource_ ? ReadVariableOp(v, type_) : AddOp("Identity", {v}));
    }
    const auto results = Evaluate(g_, reads, &resources);
    ASSERT_TRUE(results.ok()) << results.status();
    Compare(*results);
  }

 private:
  std::vector<double> Random(int64_t n, double low, double high) {
    std::uniform_real_distribution<double> uniform(low, high);
    std::vector<double> values(static_cast<size_t>(n));
    for (double& v : values) v = uniform(random_);
    return values;
  }

  void MakeGradient() {
    if (sparse_ && shape_.dim(0) == 700) {
      // Increasing, which narrow rows need to be updated together.
      for (int64_t i = 0; i < shape_.dim(0); i += 1 + i % 3) indices_.push_back(i);
    } else if (sparse_) {
      // Unsorted, with a repeated row.
      for (int64_t i = 0; i < shape_.dim(0); i += 2) indices_.push_back(shape_.dim(0) - 1 - i);
      if (!indices_.empty()) indices_.push_back(indices_[0]);
    }
    Shape shape = shape_;
    if (sparse_) shape.set_dim(0, static_cast<int64_t>(indices_.size()));
    std::vector<double> values = Random(shape.num_elements(), -1, 1);
    for (size_t i = 0; i < values.size(); i += 5) values[i] = 0;
    grad_ = Narrowed(type_, shape, values);
  }

  Operation MakeNode(const UpdateRule& rule) {
    NodeBuilder builder(
        g_, absl::StrCat(resource_ ? "Resource" : "", sparse_ ? "Sparse" : "", "Apply", rule.name));
    for (const Output& v : variables_) builder.Input(v);
    size_t next = 0;
    for (const absl::string_view input : rule.inputs) {
      if (IsGradientArg(input)) {
        builder.Input(Const(g_, grad_));
        if (sparse_) builder.Input(Const(g_, Tensor::Vector<int64_t>(indices_)));
      } else if (input == "global_step") {
        builder.Input(Const(g_, static_cast<int64_t>(case_.scalars[next++])));
      } else {
        const Tensor scalar = Narrowed(type_, {}, {case_.scalars[next++]});
        scalars_.push_back(Widened(scalar)[0]);
        builder.Input(Const(g_, scalar));
        continue;
      }
      if (input == "global_step") scalars_.push_back(case_.scalars[next - 1]);
    }
    for (const auto& [name, value] : case_.attrs) builder.Attr(name, value);
    return builder.Build();
  }

  void Compare(const Tensors& results) {
    std::vector<std::vector<double>> state;
    for (const Tensor& t : start_) state.push_back(Widened(t));
    const std::vector<double> grad = Widened(grad_);
    const int64_t width = shape_.dim(1);
    for (int64_t i = 0; i < static_cast<int64_t>(grad.size()); ++i) {
      const int64_t at = sparse_ ? indices_[i / width] * width + i % width : i;
      std::vector<double> slots;
      for (size_t k = 1; k < state.size(); ++k) slots.push_back(state[k][at]);
      case_.reference(scalars_, grad[i], state[0][at], slots);
      for (size_t k = 1; k < state.size(); ++k) state[k][at] = slots[k - 1];
    }
    for (size_t k = 0; k < state.size(); ++k) {
      const std::vector<double> got = Widened(results[k]);
      ASSERT_EQ(got.size(), state[k].size());
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], state[k][i], Tolerance(type_) * std::max(1.0, std::abs(state[k][i])))
            << DataTypeName(type_) << (resource_ ? " resource" : " ref")
            << (sparse_ ? " sparse" : " dense") << ", variable " << k << ", element " << i;
      }
    }
  }

  const RuleCase& case_;
  const DataType type_;
  const bool resource_, sparse_;
  const Shape shape_;
  std::mt19937 random_;
  Graph g_;
  Outputs variables_;
  Tensors start_;
  Tensor grad_;
  std::vector<int64_t> indices_;
  std::vector<double> scalars_;
};

class UpdateRuleTest : public testing::TestWithParam<RuleCase> {};
void PrintTo(const RuleCase& c, std::ostream* out) { *out << c.rule << c.label; }

TEST_P(UpdateRuleTest, MatchesItsFormulaInEveryVariantAndType) {
  const UpdateRule& rule = Rule(GetParam().rule);
  const std::pair<int64_t, int64_t> shapes[] = {{0, 3},     {1, 1},   {5, 7},  {9, 19},
                                                {300, 130}, {700, 1}, {700, 3}};
  for (const DataType type : DataTypesOf(Floats())) {
    for (const bool resource : {false, true}) {
      if (!resource && !rule.has_ref) continue;
      for (const bool sparse : {false, true}) {
        if (sparse && !rule.has_sparse) continue;
        for (const auto& [rows, width] : shapes) {
          if (rows > 100 && (type == DT_HALF || type == DT_BFLOAT16)) continue;
          UpdateRun(GetParam(), type, resource, sparse, rows, width).Check();
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, UpdateRuleTest, testing::ValuesIn(RuleCases()),
                         [](const auto& info) {
                           return absl::StrCat(info.param.rule, info.param.label);
                         });

TEST(UpdateRules, AllHaveACase) {
  for (const UpdateRule& rule : UpdateRules()) {
    const auto cases = RuleCases();
    const bool has = std::any_of(cases.begin(), cases.end(),
                                 [&](const RuleCase& c) { return c.rule == rule.name; });
    EXPECT_TRUE(has) << rule.name;
  }
}

// ---- errors

class BadUpdate : public testing::Test {
 protected:
  absl::Status Apply(absl::string_view op, const Shape& slot, const Outputs& inputs) {
    const Output var = VarHandleOp(g_, DT_FLOAT, Shape::UnknownRank(), {.name = "var"});
    const Output m = VarHandleOp(g_, DT_FLOAT, Shape::UnknownRank(), {.name = "m"});
    const std::vector<Operation> inits = {AssignVariableOp(var, Zeros(g_, {2, 2})),
                                          AssignVariableOp(m, Zeros(g_, slot))};
    NodeBuilder builder(g_, op);
    builder.Input(var).Input(m);
    for (const Output& in : inputs) builder.Input(in);
    const Operation update = builder.Build();
    if (!g_.status().ok()) return g_.TakeStatus();
    ResourceMap resources;
    EXPECT_TRUE(EvaluateTargets(g_, inits, &resources).ok());
    const absl::Status status = EvaluateTargets(g_, {update}, &resources);
    const auto value = Evaluate(g_, {ReadVariableOp(var, DT_FLOAT)}, &resources);
    EXPECT_TRUE(value.ok() && IdenticalTensors((*value)[0], Tensor::Zeros(DT_FLOAT, {2, 2})))
        << "var changed";
    return status;
  }
  // A tensor whose shape is unknown before the step.
  Output Hidden(Tensor t) {
    return PlaceholderWithDefault(Const(g_, std::move(t)), Shape::UnknownRank());
  }
  Graph g_;
};

// TensorFlow 2.21's results for gradients and options that are not finite.
TEST(TrainingOps, PropagatesNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  struct Row {
    const char* op;
    std::vector<float> scalars;
    float gradient, result;
    bool has_slot;
  };
  for (const Row& row : std::vector<Row>{
           {"ApplyProximalGradientDescent", {0.5f, 0.5f, 0.5f}, nan, nan, false},
           {"ApplyProximalGradientDescent", {inf, 0.5f, 0.5f}, 0.25f, nan, false},
           {"ApplyProximalAdagrad", {0.5f, 0.5f, 0.5f}, nan, nan, true},
           {"ApplyAddSign", {0.5f, 0.5f, 0.5f, -inf}, 0.25f, nan, true},
           {"ApplyPowerSign", {0.5f, -inf, 0.5f, 0.5f}, 0.25f, 1, true},
       }) {
    Graph g;
    const std::vector<float> ones(9, 1), gradient(9, row.gradient);
    std::vector<Output> variables;
    std::vector<Operation> inits;
    for (const char* name : {"v", "s"}) {
      variables.push_back(VariableV2(g, DT_FLOAT, Shape({9}), {.name = name}));
      inits.push_back(AddNode("Assign", {variables.back(), Const(g, Tensor::Vector<float>(ones))}));
    }
    NodeBuilder builder(g, row.op);
    builder.Input(variables[0]);
    if (row.has_slot) builder.Input(variables[1]);
    for (const float scalar : row.scalars) builder.Input(Const(g, scalar));
    builder.Input(Const(g, Tensor::Vector<float>(gradient)));
    const Operation update = builder.Build();
    ASSERT_TRUE(g.status().ok()) << g.status();
    ResourceMap resources;
    ASSERT_TRUE(EvaluateTargets(g, inits, &resources).ok());
    ASSERT_TRUE(EvaluateTargets(g, {update}, &resources).ok());
    const auto value = Evaluate(g, {AddOp("Identity", {variables[0]})}, &resources);
    ASSERT_TRUE(value.ok()) << value.status();
    for (const float x : (*value)[0].flat<float>()) {
      EXPECT_TRUE(x == row.result || (std::isnan(x) && std::isnan(row.result)))
          << row.op << ": " << x;
    }
  }
}

TEST_F(BadUpdate, NamesTheInvalidArgument) {
  const Output lr = Const(g_, 0.1f);
  const Output good = Const(g_, Tensor::Zeros(DT_FLOAT, {2, 2}));
  absl::Status s =
      Apply("ResourceApplyAdagrad", {2, 2}, {lr, Hidden(Tensor::Zeros(DT_FLOAT, {3}))});
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(s.message(), "var and grad do not have the same shape")) << s;
  s = Apply("ResourceApplyAdagrad", {4}, {lr, good});
  EXPECT_TRUE(absl::StrContains(s.message(), "var and accum do not have the same shape")) << s;
  s = Apply("ResourceApplyAdagrad", {2, 2}, {Hidden(Tensor::Vector<float>({1, 2})), good});
  EXPECT_TRUE(absl::StrContains(s.message(), "lr is not a scalar")) << s;
  s = Apply("ResourceApplyAdagrad", {2, 2}, {Hidden(Tensor::Vector<float>({1})), good});
  EXPECT_TRUE(absl::StrContains(s.message(), "lr is not a scalar: [1]")) << s;
}

// As in TensorFlow, the proximal rules check signs, and the others accept any number. (On the CPU:
// values in a GPU's memory are not read back for it.)
TEST_F(BadUpdate, ProximalRulesCheckSigns) {
  const EvaluateOnCpu on_cpu;
  const Output good = Const(g_, Tensor::Zeros(DT_FLOAT, {2, 2}));
  const Output one = Const(g_, 1.0f), zero = Const(g_, 0.0f), minus = Const(g_, -1.0f);
  absl::Status s = Apply("ResourceApplyProximalAdagrad", {2, 2}, {zero, one, one, good});
  EXPECT_TRUE(absl::StrContains(s.message(), "lr is not a positive scalar")) << s;
  s = Apply("ResourceApplyProximalAdagrad", {2, 2}, {one, minus, one, good});
  EXPECT_TRUE(
      absl::StrContains(s.message(), "l1 regularization strength is not a non-negative scalar"))
      << s;
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(BadUpdate, RejectsSparseIndicesOutOfRange) {
  const absl::Status s = Apply(
      "ResourceSparseApplyAdagrad", {2, 2},
      {Const(g_, 0.1f), Const(g_, Tensor::Zeros(DT_FLOAT, {2, 2})), Const<int32_t>(g_, {0, 2})});
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(s.message(), "Index 2 at offset 1 in indices is out of range"))
      << s;
}

}  // namespace
}  // namespace weir
