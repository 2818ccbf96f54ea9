#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/ops/train/optimizers.h"
#include "weir/tests/session/lib/random_models.h"
#include "weir/tests/session/lib/random_values.h"

namespace weir {

namespace {

enum class Weights { kConstants, kVariables, kTrained };

class RandomConvNet {
 public:
  RandomConvNet(Graph& g, uint32_t seed) : g_(g), random_(seed) {
    const int64_t sizes[] = {5, 9, 16, 30}, channels[] = {1, 3, 8, 16};
    size_ = sizes[Draw(4)];
    channels_ = channels[Draw(4)];
    kind_ = static_cast<Weights>(Draw(3));
    layers_ = {Placeholder(g, DT_FLOAT, {-1, size_, size_, channels_}, "x")};
  }

  TestModel Make(int length, uint32_t noise) {
    for (int i = 0; i < length; ++i) layers_.push_back(Layer(Any()));
    const Output pooled = ReduceMean(layers_.back(), {1, 2}, Draw(2) != 0);
    const Output flat = Reshape(pooled, {-1, Channels(layers_.back())});
    const Output logits = MatMul(flat, Weight({Channels(layers_.back()), 5}, 1));
    Outputs fetches = {Draw(2) ? Softmax(logits) : logits};
    if (Draw(2) && length > 1) fetches.push_back(layers_[1 + Draw(length)]);
    TestModel model;
    if (kind_ == Weights::kTrained) {
      const Output loss = ReduceMean(Square(logits)) + ReduceMean(Square(Any())) * 0.1f;
      fetches.push_back(loss);
      model.targets = {GradientDescent(0.02).Minimize(loss).name()};
    }
    for (const Output& fetch : fetches) model.fetches.push_back(fetch.name());
    if (kind_ != Weights::kConstants) {
      model.init = GlobalVariablesInitializer(g_).name();
      for (const Variable& v : GlobalVariables(g_)) model.state.push_back(v.read_value().name());
    }
    model.feeds = [size = size_, channels = channels_, noise](int step, int64_t batch) {
      std::mt19937 random(noise * 1000003u + static_cast<uint32_t>(step));
      return NamedTensors{{"x", UniformFloats({batch, size, size, channels}, random)}};
    };
    return model;
  }

 private:
  uint32_t Draw(uint32_t limit) { return static_cast<uint32_t>(random_()) % limit; }
  const Output& Any() {
    const uint32_t n = static_cast<uint32_t>(layers_.size());
    return layers_[Draw(4) ? n - 1 : Draw(n)];
  }
  static int64_t Channels(const Output& x) { return x.dim(3); }
  static int64_t Extent(const Output& x) { return std::min(x.dim(1), x.dim(2)); }

  Output Weight(const Shape& shape, double scale, double middle = 0) {
    if (!shape.IsFullyDefined()) return {};  // the graph has an error
    int64_t fan = 1;
    for (int i = 0; i + 1 < shape.rank(); ++i) fan *= shape.dim(i);
    Tensor t = UniformFloats(shape, random_);
    for (float& w : t.flat<float>())
      w = static_cast<float>(middle + scale * w * 1.7 / std::sqrt(static_cast<double>(fan)));
    if (kind_ == Weights::kConstants) return Const(g_, t);
    const Initializer initial = [this, t](const InitializerArgs&) { return Const(g_, t); };
    return GetVariable(g_, absl::StrCat("w", num_weights_++), shape,
                       {.initializer = initial, .trainable = kind_ == Weights::kTrained})
        .value();
  }
  Output PerChannel(const Output& x, double scale, double middle) {
    return Weight({Channels(x)}, scale, middle);
  }

  Output Layer(const Output& x) {
    switch (Draw(16)) {
      case 0:
        return Pool(x);
      case 1:
        return Depthwise(x);
      case 2: {
        const Output middle = Activate(Normalize(Depthwise(x)));
        return Normalize(Conv(middle, 1));
      }
      case 3:
        return SqueezeExcite(x);
      case 4:
        return JoinWithEarlier(x);
      case 5:
        return Rearrange(x);
      case 6:  // a residual block
        return Activate(Normalize(SameConv(Activate(Normalize(SameConv(x))))) + x);
      case 7:
        return Activate(x + SameConv(x) * 0.5f);
      case 8:  // two branches
        return Concat({Activate(SameConv(x)), Activate(SameConv(Relu(x)))}, 3);
      default: {
        const int64_t filters[] = {1, 3, 3, 5};
        return Activate(Normalize(Conv(x, filters[Draw(4)])));
      }
    }
  }

  Output Conv(Output x, int64_t size) {
    if (Draw(6) == 0) x = Pad(x, {{0, 0}, {1, 1}, {1, 1}, {0, 0}});
    ConvOptions options;
    const bool strided = Draw(4) == 0 && Extent(x) >= 4;
    if (strided) options.strides = {1, 2, 2, 1};
    if (!strided && size > 1 && Draw(8) == 0) options.dilations = {1, 2, 2, 1};
    const int64_t reach = (size - 1) * options.dilations[1] + 1;
    if (Extent(x) > reach && Draw(3) == 0) options.padding = "VALID";
    if (size > 1 && Draw(10) == 0) {
      options.padding = "EXPLICIT";
      options.explicit_paddings = {0, 0, reach / 2, reach - 1 - reach / 2, 1, reach - 1, 0, 0};
    }
    const int64_t widths[] = {4, 8, 16, 19, 32};
    int64_t in = Channels(x), out = widths[Draw(5)];
    if (in % 4 == 0 && out % 4 == 0 && Draw(10) == 0) in /= 4;  // groups
    return Conv2D(x, Weight({size, size, in, out}, 1), options);
  }
  Output SameConv(const Output& x) {
    const int64_t size = Draw(3) ? 3 : 1;
    return Conv2D(x, Weight({size, size, Channels(x), Channels(x)}, 1));
  }
  Output Depthwise(const Output& x) {
    ConvOptions options;
    if (Draw(3) == 0 && Extent(x) >= 4) options.strides = {1, 2, 2, 1};
    const int64_t size = Draw(3) ? 3 : 5;
    return DepthwiseConv2dNative(x, Weight({size, size, Channels(x), 1 + (Draw(6) == 0)}, 3),
                                 options);
  }

  Output Normalize(const Output& x) {
    switch (Draw(7)) {
      case 0:
        return BiasAdd(x, PerChannel(x, 0.5, 0));
      case 1:
        return x + PerChannel(x, 0.5, 0);
      case 2: {
        FusedBatchNormOptions options;
        options.is_training = false;
        options.mean = PerChannel(x, 0.5, 0);
        options.variance = PerChannel(x, 0.3, 1);
        return FusedBatchNorm(x, PerChannel(x, 0.3, 1), PerChannel(x, 0.3, 0), options).y;
      }
      case 3: {  // the same, decomposed
        const Output factor = PerChannel(x, 0.3, 1) * Rsqrt(PerChannel(x, 0.3, 1) + 1e-3f);
        return x * factor + (PerChannel(x, 0.3, 0) - PerChannel(x, 0.3, 0) * factor);
      }
      case 4: {
        const auto norm =
            FusedBatchNorm(x, PerChannel(x, 0.3, 1), PerChannel(x, 0.3, 0), {.epsilon = 0.05});
        return norm.y;
      }
      case 5:
        return x * PerChannel(x, 0.3, 1);
      default:
        return x;
    }
  }

  Output Activate(const Output& x) {
    switch (Draw(11)) {
      case 0:
        return Relu6(x);
      case 1:
        return Elu(x);
      case 2:
        return LeakyRelu(x, 0.1f);
      case 3:
        return x * Sigmoid(x);
      case 4:
        return x * Relu6(x + 3.f) * (1.f / 6);
      case 5:
        return Tanh(x);
      case 6:
        return x;
      case 7:
        return Maximum(x * 0.2f, x);
      default:
        return Relu(x);
    }
  }

  Output Pool(const Output& x) {
    PoolOptions options;
    const int64_t size = 2 + Draw(2), stride = 1 + Draw(2);
    options.ksize = {1, size, size, 1};
    options.strides = {1, stride, stride, 1};
    if (Extent(x) > size && Draw(2)) options.padding = "VALID";
    return Draw(2) ? MaxPool(x, options) : AvgPool(x, options);
  }

  // Channels weighted by a function of the whole image.
  Output SqueezeExcite(const Output& x) {
    const Output means = ReduceMean(x, {1, 2}, Draw(2) != 0);
    const Output flat = Reshape(means, {-1, Channels(x)});
    const Output hidden = Activate(MatMul(flat, Weight({Channels(x), 4}, 1)));
    const Output gate = Sigmoid(MatMul(hidden, Weight({4, Channels(x)}, 1)));
    return x * Reshape(gate, {-1, 1, 1, Channels(x)});
  }

  // Combined with an earlier layer of the same spatial size.
  Output JoinWithEarlier(const Output& x) {
    const uint32_t first = Draw(static_cast<uint32_t>(layers_.size()));
    for (size_t i = 0; i < layers_.size(); ++i) {
      const Output& y = layers_[(first + i) % layers_.size()];
      if (y == x || y.dim(1) != x.dim(1) || y.dim(2) != x.dim(2)) continue;
      if (Channels(x) == Channels(y)) return Draw(2) ? x + y : Relu(x - y * 0.5f);
      return Concat({x, y}, 3);
    }
    return Concat({x, Relu(x)}, 3);
  }

  Output Rearrange(const Output& x) {
    switch (Draw(5)) {
      case 0:
        return Transpose(Tanh(Transpose(x, {0, 3, 1, 2})), {0, 2, 3, 1});
      case 1:
        if (Extent(x) < 3) return Relu(x);
        return Slice(x, {0, 1, 0, 0}, {-1, x.dim(1) - 1, -1, -1});
      case 2: {
        if (Channels(x) % 2 != 0) return Negative(x);
        const Outputs halves = Split(x, 2, 3);
        return Concat({halves[1], SameConv(halves[0])}, 3);
      }
      case 3: {  // channels of two groups, shuffled
        if (Channels(x) % 2 != 0) return Abs(x);
        const int64_t h = x.dim(1), w = x.dim(2), c = Channels(x);
        return Reshape(Transpose(Reshape(x, {-1, h, w, 2, c / 2}), {0, 1, 2, 4, 3}), {-1, h, w, c});
      }
      default:
        return Pad(x, {{0, 0}, {0, 1}, {1, 0}, {0, 0}});
    }
  }

  Graph& g_;
  std::mt19937 random_;
  int64_t size_, channels_;
  Weights kind_;
  int num_weights_ = 0;
  Outputs layers_;
};

}  // namespace

TestModel AddRandomConvNet(Graph& g, uint32_t seed, int length, uint32_t noise) {
  return RandomConvNet(g, seed).Make(length, noise);
}

}  // namespace weir
