#include "weir/tests/session/lib/random_models.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/ops/train/optimizers.h"
#include "weir/tests/session/lib/random_values.h"

namespace weir {

namespace {

constexpr int64_t kWords = 12;

// All values stay of the order of one, and divisors and arguments of roots away from zero, so that
// rounding errors stay small.
class RandomTraining {
 public:
  RandomTraining(Graph& g, uint32_t seed) : g_(g), random_(seed) {
    const int64_t widths[] = {3, 8, 17, 64, 250};
    width_ = widths[Draw(5)];
    type_ = Draw(5) ? DT_FLOAT : DT_DOUBLE;
    x_ = Cast(Placeholder(g, DT_FLOAT, {-1, width_}, "x"), type_);
    labels_ = Softmax(Cast(Placeholder(g, DT_FLOAT, {-1, width_}, "labels"), type_));
    const uint32_t matrices = Draw(2), rows = 1 + Draw(2), scalars = Draw(2);
    for (uint32_t i = 0; i < matrices; ++i) AddVariable({width_, width_});
    for (uint32_t i = 0; i < rows; ++i) AddVariable({width_});
    for (uint32_t i = 0; i < scalars; ++i) AddVariable({});
    matrices_ = {x_ * 1.5f, labels_};
    columns_ = {ReduceMean(x_, {1}, true)};
    scalars_ = {Number(0.375f)};
    for (const Variable& v : variables_) {
      Outputs& list = v.shape().rank() == 2 ? weights_ : v.shape().rank() == 1 ? rows_ : scalars_;
      list.push_back(reads_.emplace_back(v.value()));
    }
    if (Draw(3) == 0) {
      table_ = GetVariable(g, "table", {kWords, width_},
                           {.initializer = Noise({kWords, width_}), .dtype = type_});
      // The fed values determine which words are frequent.
      const Output ids = Cast(Floor(Abs(Slice(x_, {0, 0}, {-1, 1})) * 10.f), DT_INT32);
      matrices_.push_back(Reshape(EmbeddingLookup(table_, ids), {-1, width_}));
    }
  }

  int64_t width() const { return width_; }
  // The name of a second feed, with the shape of x; empty if there is none.
  const std::string& fed() const { return fed_; }

  TestModel Make(int length) {
    for (int i = 0; i < length; ++i) AddValue();
    const Output loss = Loss();
    Outputs fetches = {loss};
    const Outputs& sources = reads_;
    const Outputs gradients = DenseGradients({loss}, sources);
    for (const Outputs* values : {&matrices_, &columns_, &rows_, &scalars_})
      if (Draw(2)) fetches.push_back(Any(*values));
    for (size_t i = 0; i < gradients.size(); ++i)
      if (gradients[i].valid() && Draw(3) == 0) fetches.push_back(gradients[i]);

    if (type_ == DT_FLOAT && Draw(4) == 0) fed_ = Any(matrices_).name();
    TestModel model;
    std::vector<Operation> updates;
    std::vector<Operation> before;
    for (size_t i = 0; i < variables_.size(); ++i) {
      const Output gradient = gradients[i].valid() ? gradients[i] : ZerosLike(sources[i]);
      const ControlDependencies after(g_, Draw(2) ? before : std::vector<Operation>());
      if (Draw(3) == 0) fetches.push_back(variables_[i].read_value());
      for (const Operation& update : Update(variables_[i], sources[i], gradient, i))
        updates.push_back(update);
      before.emplace_back(Draw(2) ? updates.back() : Operation(loss));
    }
    if (table_.valid()) {
      const Grad gradient = Gradients({loss}, {table_})[0];
      if (!gradient.none()) updates.push_back(Minimize(gradient, table_, variables_.size()));
    }
    {
      const ControlDependencies after(g_, updates);
      for (const Variable& v : variables_)
        if (Draw(3) == 0) fetches.push_back(AfterUpdates(v.read_value()));
    }
    model.targets = {Group(g_, updates, "train").name()};
    for (const Output& fetch : fetches)
      if (fetch.name() != fed_) model.fetches.push_back(fetch.name());
    model.init = GlobalVariablesInitializer(g_).name();
    for (const Variable& v : GlobalVariables(g_)) model.state.push_back(v.read_value().name());
    return model;
  }

 private:
  uint32_t Draw(uint32_t limit) { return static_cast<uint32_t>(random_()) % limit; }
  Output Number(float value) { return Cast(Const(g_, value), type_); }
  const Output& Any(const Outputs& values) {
    // Recent values more often than early ones, so that chains grow long.
    const uint32_t n = static_cast<uint32_t>(values.size());
    return values[Draw(3) ? n - 1 - Draw(std::min(n, 4u)) : Draw(n)];
  }
  Initializer Noise(const Shape& shape) {
    const Tensor first = UniformFloats(shape, random_);
    return [this, first](const InitializerArgs&) { return Cast(Const(g_, first), type_); };
  }
  Variable AddVariable(const Shape& shape, const std::string& name = "", bool trainable = true) {
    const std::string own = name.empty() ? absl::StrCat("v", variables_.size()) : name;
    const Variable v = GetVariable(g_, own, shape,
                                   {.initializer = trainable ? Noise(shape) : Zeros(),
                                    .dtype = type_,
                                    .trainable = trainable});
    if (trainable) variables_.push_back(v);
    return v;
  }

  Output AfterUpdates(const Output& x) {
    switch (Draw(3)) {
      case 0:
        return x * 2.f;
      case 1:
        return RepeatedBody(g_, Const(g_, 3),
                            [&](const Outputs& v) { return Outputs{v[0] * 0.5f + x}; }, {x})[0];
      default: {
        const SwitchResult s = Switch(x, Any(scalars_) > 0.1f);
        return Merge({s.on_false * 3.f, Identity(s.on_true)}).output;
      }
    }
  }

  void AddValue() {
    switch (Draw(12)) {
      case 0:
        return columns_.push_back(Column(Any(matrices_)));
      case 1:
        return rows_.push_back(Row(Any(matrices_)));
      case 2:
        return scalars_.push_back(Scalar());
      case 3:
        return matrices_.push_back(Normalize(Any(matrices_)));
      case 4:
        return matrices_.push_back(Repeated());
      case 5:
        return matrices_.push_back(NonFusableOp(Any(matrices_)));
      case 6:
        return columns_.push_back(Binary(Any(columns_), OfColumns()));
      case 7:
        return rows_.push_back(Binary(Any(rows_), Draw(2) ? Any(rows_) : Any(scalars_)));
      default: {
        const Output x = Any(matrices_), y = AnyOf();
        return matrices_.push_back(Draw(3) == 0 ? Unary(x) : Binary(x, y));
      }
    }
  }

  const Output& OfColumns() { return Draw(2) ? Any(columns_) : Any(scalars_); }
  const Output& AnyOf() {
    switch (Draw(6)) {
      case 0:
        return Any(columns_);
      case 1:
        return Any(rows_);
      case 2:
        return Any(scalars_);
      default:
        return Any(matrices_);
    }
  }

  Output Unary(const Output& x) {
    switch (Draw(16)) {
      case 0:
        return Tanh(x);
      case 1:
        return Sigmoid(x);
      case 2:
        return Sin(x);
      case 3:
        return Relu(x) + 0.01f;
      case 4:
        return Abs(x);
      case 5:
        return Exp(Tanh(x)) * 0.5f;
      case 6:
        return Log(Abs(x) + 1.f);
      case 7:
        return Rsqrt(Square(x) + 1.f);
      case 8:
        return Reciprocal(Square(x) + 1.f);
      case 9:
        return Sqrt(x * x + 0.5f);
      case 10:
        return Negative(x);
      case 11:
        return ClipByValue(x, -0.5f, 0.5f);
      case 12:
        return StopGradient(x) * 0.5f;
      case 13:
        return Elu(x);
      case 14:
        return Cast(Cast(x, type_ == DT_FLOAT ? DT_DOUBLE : DT_FLOAT) * 0.75f, type_);
      default:
        return Softplus(x) * 0.5f;
    }
  }

  // Returns a value of x's shape.
  Output Binary(const Output& x, const Output& y) {
    switch (Draw(14)) {
      case 0:
        return Tanh(x + y);
      case 1:
        return Maximum(x, y) * 0.5f;
      case 2:
        return Sin(x * y);
      case 3:
        return Minimum(x, y) - 0.25f;
      case 4:
        return x / (Square(y) + 1.f);
      case 5:
        return SquaredDifference(Tanh(x), y) * 0.25f;
      case 6:  // a mask, continuous where it changes
        return (x - y) * Cast(Greater(x, y), type_) * 0.5f;
      case 7:
        return SelectV2(Less(x, y), Tanh(x - y), 0.f);
      case 8: {
        const Output d = Tanh(x) - y, inside = Less(d, 0.5f) & GreaterEqual(d, -0.5f);
        return SelectV2(inside, Square(d), Abs(d) - 0.25f) * 0.5f;
      }
      case 9:
        return SelectV2(LogicalNot(LessEqual(y, 0.f)), x * y, ZerosLike(x));
      case 10:
        return AddN({Tanh(x), x * 0.5f, Tanh(x + y)}) * 0.3f;
      case 11:
        return x * 0.9f + y * 0.1f;
      case 12:
        return Tanh(x - 2.f * y) * Sigmoid(y);
      default:
        return DivNoNan(x, Abs(y) + 1.f);
    }
  }

  // Returns a value of shape [batch, 1].
  Output Column(const Output& x) {
    switch (Draw(6)) {
      case 0:
        return ReduceMean(x, {1}, true);
      case 1:
        return ReduceMax(x, {1}, true);
      case 2:
        return Tanh(ReduceSum(x, {-1}, true) * 0.1f);
      case 3:
        return ExpandDims(ReduceMin(x, {1}), 1);
      case 4:
        return Log(ReduceSum(Exp(x - ReduceMax(x, {1}, true)), {1}, true)) * 0.2f;
      default:
        return Reshape(ReduceMean(Square(Tanh(x)), {1}), {-1, 1});
    }
  }

  // Returns a value of shape [width].
  Output Row(const Output& x) {
    switch (Draw(4)) {
      case 0:
        return ReduceMean(x, {0});
      case 1:
        return Squeeze(ReduceMean(x, {0}, true), {0});
      case 2:
        return Tanh(ReduceSum(x, {0}) * 0.1f);
      default:
        return ReduceMax(x, {0}) * 0.5f;
    }
  }

  Output Scalar() {
    switch (Draw(4)) {
      case 0:
        return ReduceMean(Any(matrices_));
      case 1:
        return Tanh(ReduceMean(Any(rows_)) + ReduceMean(Any(columns_)));
      case 2:
        return ReduceMax(Tanh(Any(matrices_))) * 0.5f;
      default:
        return Unary(Any(scalars_));
    }
  }

  Output Centered(const Output& x) { return x - ReduceMean(x, {1}, true); }

  // Decomposed softmaxes and layer norms.
  Output Normalize(const Output& x) {
    switch (Draw(10)) {
      case 0: {
        const Output e = Exp(x - ReduceMax(x, {1}, true));
        return e / ReduceSum(e, {1}, true);
      }
      case 1: {
        const Output e = Exp(x - StopGradient(ReduceMax(x, {-1}, true)));
        return e * Reciprocal(ReduceSum(e, {-1}, true)) * 2.f;
      }
      case 2: {
        const Output d = x - ReduceMax(x, {1}, true);
        return (d - Log(ReduceSum(Exp(d), {1}, true))) * 0.1f;
      }
      case 3: {
        const Output e = Exp(Tanh(x));
        columns_.push_back(ReduceSum(e, {1}, true) * (0.3f / static_cast<float>(width_)));
        return e / ReduceSum(e, {1}, true);
      }
      case 4: {
        const Output centered = Centered(x), variance = ReduceMean(Square(centered), {1}, true);
        return Tanh(centered * Rsqrt(variance + 0.1f) * Any(rows_) + Any(rows_));
      }
      case 5: {
        const Output mean = ReduceMean(x, {1}, true);
        const Output variance = ReduceMean(SquaredDifference(x, StopGradient(mean)), {1}, true);
        columns_.push_back(mean);
        return Tanh((x - mean) / Sqrt(variance + 0.1f));
      }
      case 6: {
        const Output mean = ReduceMean(x, {1}, true);
        const Output scale = Rsqrt(ReduceMean(Square(x - mean), {1}, true) + 0.1f) * Any(rows_);
        return Tanh(x * scale + (Any(rows_) - mean * scale));
      }
      case 7:
        return x * Rsqrt(ReduceMean(Square(x), {1}, true) + 0.1f) * 0.5f;
      case 8:
        return Softmax(x) + LogSoftmax(x) * 0.1f;
      default:
        return Centered(x);
    }
  }

  // Returns a [batch, width] value made of smaller ones.
  Output Repeated() {
    const Output& x = Any(matrices_);
    switch (Draw(5)) {
      case 0:
        return Tile(Any(columns_), {1, width_}) * x;
      case 1:
        return BroadcastTo(Any(rows_), ShapeTensor(x)) - x * 0.5f;
      case 2:
        return Fill(ShapeTensor(x), Any(scalars_)) + x * 0.5f;
      case 3:
        return Tanh(OnesLike(x) * Any(columns_) + x);
      default:
        return Any(columns_) * Any(rows_);
    }
  }

  // Ops that are not fused, at least not entirely.
  Output NonFusableOp(const Output& x) {
    switch (Draw(weights_.empty() ? 7 : 12)) {
      case 0:
        return Transpose(Tanh(Transpose(x)));
      case 1:
        return Concat({Slice(x, {0, 1}, {-1, -1}), Slice(x, {0, 0}, {-1, 1})}, 1);
      case 2:
        return Reshape(Sin(Reshape(x, {-1})), ShapeTensor(x));
      case 3:
        return Identity(x) * 0.5f + Reverse(x, {1}) * 0.25f;
      case 4: {
        const SwitchResult s = Switch(x, Any(scalars_) > 0.1f);
        return Merge({Unary(s.on_false), Binary(s.on_true, Number(0.7f))}).output;
      }
      case 5: {
        const Output row = Any(rows_), column = Any(columns_);
        return RepeatedBody(g_, Const(g_, static_cast<int32_t>(Draw(4))),
                            [&](const Outputs& v) {
                              return Outputs{Tanh(v[0] + row) * 0.9f, v[1] * 0.5f + v[0] * column};
                            },
                            {x, Any(matrices_)})[Draw(2)];
      }
      case 6: {
        if (type_ != DT_FLOAT) return Softsign(x);
        const auto norm = FusedBatchNorm(Reshape(x, {-1, 1, 1, width_}), Any(rows_), Any(rows_),
                                         {.epsilon = 0.1});
        return Tanh(Reshape(norm.y, {-1, width_}));
      }
      case 7:
        return Tanh(BiasAdd(MatMul(x, Any(weights_)), Any(rows_)));
      case 8:
        return Relu(MatMul(x, Any(weights_)) * 0.2f + Any(rows_)) * 0.5f;
      case 9: {
        const Output filter = Reshape(Any(weights_), {1, 1, width_, width_});
        return Tanh(Reshape(Conv2D(Reshape(x, {-1, 1, 1, width_}), filter), {-1, width_}));
      }
      case 10:
        return x * Tanh(ReduceSum(Gather(Any(weights_), {0, 1, 1}), {0}));
      default:
        return Tanh(MatMul(x, Any(weights_)) + x);
    }
  }

  Output Loss() {
    Output loss = ReduceMean(ReduceSum(Square(matrices_.back()), {1}));
    const Output logits = Any(matrices_) * 3.f;
    switch (Draw(6)) {
      case 0: {
        const Output d = logits - ReduceMax(logits, {1}, true);
        const Output log_p = d - Log(ReduceSum(Exp(d), {1}, true));
        loss = loss - ReduceMean(ReduceSum(labels_ * log_p, {1}));
        break;
      }
      case 1: {
        const Output p = ClipByValue(Softmax(logits), 1e-4f, 1.f);
        loss = loss - ReduceMean(ReduceSum(labels_ * Log(p), {-1}));
        break;
      }
      case 2: {
        const Output e = Exp(logits - StopGradient(ReduceMax(logits, {1}, true)));
        const Output p = e / ReduceSum(e, {1}, true);
        loss = loss - ReduceSum(labels_ * Log(p + 1e-3f)) * 0.05f;
        break;
      }
      case 3: {
        const Output z = Log(ReduceSum(Exp(Tanh(logits)), {1}));
        loss = loss + ReduceMean(z - ReduceSum(labels_ * Tanh(logits), {1}));
        break;
      }
      case 4:
        loss = loss + ReduceMean(SoftmaxCrossEntropy(logits, labels_));
        break;
      default:
        break;
    }
    if (Draw(2)) loss = loss + ReduceMean(Any(columns_)) + ReduceSum(Square(Any(rows_))) * 0.1f;
    for (const Variable& v : variables_)
      if (Draw(4) == 0) loss = loss + L2Loss(v) * 1e-2f;
    return loss;
  }

  Operation Minimize(const Grad& gradient, const Variable& v, size_t i) {
    const std::string name = absl::StrCat("optimizer", i);
    switch (Draw(4)) {
      case 0:
        return Momentum(0.1, 0.9, {.name = name}).ApplyGradients({{gradient, v}});
      case 1:
        return Adam(0.05, {.epsilon = 0.1, .name = name}).ApplyGradients({{gradient, v}});
      case 2:
        return Adagrad(0.05, {.name = name}).ApplyGradients({{gradient, v}});
      default:
        return GradientDescent(0.1, {.name = name}).ApplyGradients({{gradient, v}});
    }
  }

  // `value` is a read of `v`.
  std::vector<Operation> Update(const Variable& v, const Output& value, Output gradient, size_t i) {
    const auto slot = [&](const char* name) {
      return AddVariable(v.shape(), absl::StrCat(name, i), false);
    };
    const WriteOptions plain{.read_value = Draw(2) != 0};
    // The step is bounded, so that rounding errors do not grow from one step to the next.
    gradient = Draw(2) ? ClipByValue(gradient, -0.3f, 0.3f)
                       : gradient * Rsqrt(ReduceSum(Square(gradient)) + 0.1f);
    if (Draw(4) == 0) gradient = gradient + value * 0.01f;
    const Output another = Draw(2) ? v.value() : value;
    switch (Draw(9)) {
      case 0:
        return {Operation(v.AssignSub(gradient * 0.3f, plain))};
      case 1:
        return {Operation(v.Assign(another - gradient * 0.3f, plain))};
      case 2: {
        const Variable m = slot("m");
        const Output next = m.Assign(m.value() * 0.9f + gradient);
        return {Operation(v.AssignSub(next * 0.1f, plain))};
      }
      case 3: {
        const Variable m = slot("m");
        const Output next = m.value() * 0.9f + gradient;
        return {Operation(v.Assign(another - next * 0.1f, plain)), Operation(m.Assign(next))};
      }
      case 4: {
        const Variable m = slot("m"), s = slot("s");
        const Output new_m = m.value() * 0.9f + gradient * 0.1f;
        const Output new_s = s.value() * 0.99f + Square(gradient) * 0.01f;
        const Output step = new_m / (Sqrt(new_s) + 0.1f) + value * 0.01f;
        return {Operation(s.Assign(new_s)), Operation(v.Assign(another - step * 0.1f, plain)),
                Operation(m.Assign(new_m))};
      }
      case 5: {  // an average of the written value
        const Variable average = slot("average");
        const Output written = v.Assign(value - gradient * 0.2f);
        return {Operation(average.Assign(average.value() * 0.5f + written * 0.5f))};
      }
      case 6: {  // an average of the old value, and a second write
        const Variable average = slot("average");
        const Operation kept(average.AssignSub((average.value() - value) * 0.5f, plain));
        const Operation first(v.AssignSub(gradient * 0.2f, {.read_value = false}));
        const ControlDependencies later(g_, {kept, first});
        return {kept, Operation(v.Assign(v.read_value() * 0.99f + average.value() * 0.001f))};
      }
      case 7: {
        const Variable m = slot("m");
        const Operation first(m.Assign(m.value() * 0.5f + gradient * 0.5f));
        const ControlDependencies later(g_, {first});
        return {Operation(v.Assign(another - m.read_value() * 0.2f, plain))};
      }
      default:
        return {Minimize(gradient, v, i)};
    }
  }

  Graph& g_;
  std::mt19937 random_;
  int64_t width_;
  DataType type_;
  std::string fed_;
  Output x_, labels_;
  Variables variables_;
  Outputs reads_;  // one read of each variable
  Variable table_;
  Outputs matrices_, columns_, rows_, scalars_, weights_;
};

}  // namespace

TestModel AddRandomTraining(Graph& g, uint32_t seed, int length, uint32_t noise) {
  RandomTraining training(g, seed);
  TestModel model = training.Make(length);
  model.feeds = [width = training.width(), fed = training.fed(), noise](int step, int64_t batch) {
    std::mt19937 random(noise * 1000003u + static_cast<uint32_t>(step));
    Tensor x = UniformFloats({batch, width}, random),
           labels = UniformFloats({batch, width}, random);
    NamedTensors feeds = {{"x", std::move(x)}, {"labels", std::move(labels)}};
    if (!fed.empty()) feeds.emplace_back(fed, UniformFloats({batch, width}, random));
    return feeds;
  };
  return model;
}

}  // namespace weir
