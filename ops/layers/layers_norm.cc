#include "weir/ops/framework/cond.h"
#include "weir/ops/layers/layers_internal.h"
#include "weir/ops/nn/nn.h"

namespace weir::layers {

namespace {

// Longer vectors are built with Fill instead of a constant.
constexpr int64_t kMaxConstant = 1 << 20;

// Builds one batch normalization.
class BatchNorm {
 public:
  BatchNorm(Layer& layer, const Output& x, int axis, const BatchNormalizationOptions& o)
      : layer_(layer), g_(layer.graph()), x_(x), axis_(axis), channels_(x.dim(axis)), o_(o) {}

  Output Build() {
    if (!MakeVariables()) return {};
    return CanFuse() ? Fused() : Decomposed();
  }

 private:
  // Statistics of 16-bit inputs are computed and stored in float.
  bool is_16_bit() const { return x_.dtype() == DT_HALF || x_.dtype() == DT_BFLOAT16; }

  bool MakeVariables() {
    const DataType dtype = is_16_bit() ? DT_FLOAT : x_.dtype();
    const Shape shape({channels_});
    if (o_.scale) {
      gamma_ = layer_.AddWeight(
          "gamma", shape, dtype,
          {o_.gamma_initializer, o_.gamma_regularizer, o_.gamma_constraint, o_.trainable});
    }
    if (o_.center) {
      beta_ = layer_.AddWeight(
          "beta", shape, dtype,
          {o_.beta_initializer, o_.beta_regularizer, o_.beta_constraint, o_.trainable});
    }
    const auto moving = [&](const char* name, const Initializer& initializer) {
      return layer_.AddWeight(name, shape, dtype,
                              {.initializer = initializer,
                               .trainable = false,
                               .synchronization = VariableSynchronization::kOnRead,
                               .aggregation = VariableAggregation::kMean,
                               .whole = true});
    };
    moving_mean_ = moving("moving_mean", o_.moving_mean_initializer);
    moving_variance_ = moving("moving_variance", o_.moving_variance_initializer);
    return moving_mean_.valid() && moving_variance_.valid() && (gamma_.valid() || !o_.scale) &&
           (beta_.valid() || !o_.center);
  }

  bool CanFuse() const {
    const int rank = x_.shape().rank();
    return o_.fused && (x_.dtype() == DT_FLOAT || is_16_bit()) &&
           ((rank == 4 && (axis_ == 1 || axis_ == 3)) || (rank == 5 && (axis_ == 1 || axis_ == 4)));
  }

  // ---- fused op

  Output Fused() {
    Output beta, gamma;
    if (!beta_.valid()) beta = Constant(0);
    if (!gamma_.valid()) gamma = Constant(1);
    const auto normalize = [&](bool is_training) {
      return [this, beta, gamma, is_training] { return FusedOp(beta, gamma, is_training); };
    };
    const Outputs y = o_.training.is_tensor()
                          ? Cond(o_.training.tensor(), normalize(true), normalize(false))
                          : normalize(o_.training.value())();
    if (y.size() != 3) return {};
    if (!o_.training.is_tensor() && !o_.training.value()) return y[0];
    // In inference mode the momentum is 1, which leaves the moving averages unchanged.
    const auto constant = [this](double value) { return Const(g_, static_cast<float>(value)); };
    const Output momentum = o_.training.is_tensor()
                                ? Cond(
                                      o_.training.tensor(), [&] { return constant(o_.momentum); },
                                      [&] { return constant(1); })
                                : constant(o_.momentum);
    for (const auto& [moving, batch] :
         {std::pair(moving_mean_, y[1]), std::pair(moving_variance_, y[2])}) {
      const std::vector<Output> update = AddMovingAverageUpdate(moving, batch, momentum);
      if (update.empty()) return {};
      Collect(update[0]);
    }
    return y[0];
  }

  Output Constant(double value) {
    if (channels_ > kMaxConstant)
      return Fill(Shape({channels_}), Const(g_, static_cast<float>(value)));
    Tensor t(DT_FLOAT, Shape({channels_}));
    std::fill_n(t.data<float>(), channels_, static_cast<float>(value));
    return Const(g_, t);
  }

  // Returns y and the mean and variance that it was normalized by.
  Outputs FusedOp(const Output& beta, const Output& gamma, bool is_training) {
    const Output scale = gamma_.valid() ? gamma_.value() : gamma;
    const Output offset = beta_.valid() ? beta_.value() : beta;
    const NameScope scope(g_, "FusedBatchNormV3");
    FusedBatchNormOptions options{.epsilon = o_.epsilon, .is_training = is_training};
    options.mean = moving_mean_.value();
    options.variance = moving_variance_.value();
    const bool volumes = x_.shape().rank() == 5;
    options.data_format = axis_ == 1 ? (volumes ? "NCDHW" : "NCHW") : (volumes ? "NDHWC" : "NHWC");
    const FusedBatchNormResult r = FusedBatchNorm(x_, scale, offset, options, scope.name());
    if (!r.y.valid()) return {};
    return {r.y, r.batch_mean, r.batch_variance};
  }

  // ---- decomposed

  Output Decomposed() {
    const DataType dtype = x_.dtype();
    Output x = is_16_bit() ? Cast(x_, DT_FLOAT) : x_;
    if (!x.valid()) return {};
    // Parameters along any axis but the last are reshaped to broadcast.
    const Output scale = gamma_.valid() && !is_last() ? Broadcast(gamma_) : Output();
    const Output offset = beta_.valid() && !is_last() ? Broadcast(beta_) : Output();
    Output mean, variance;
    if (o_.training.is_tensor() || o_.training.value()) {
      std::vector<int64_t> axes;
      for (int i = 0; i < x.shape().rank(); ++i) {
        if (i != axis_) axes.push_back(i);
      }
      const MomentsResult batch = Moments(x, axes);
      mean = BatchOrMoving(batch.mean, moving_mean_);
      variance = BatchOrMoving(batch.variance, moving_variance_);
      if (!mean.valid() || !variance.valid()) return {};
      if (!Update(moving_mean_, mean) || !Update(moving_variance_, variance)) return {};
      if (!is_last()) {
        mean = Broadcast(mean);
        variance = Broadcast(variance);
      }
    } else if (!is_last()) {
      mean = Broadcast(moving_mean_);
      variance = Broadcast(moving_variance_);
    }
    const Output y = Normalize(x, mean, variance, scale, offset);
    return y.valid() && is_16_bit() ? Cast(y, dtype) : y;
  }

  bool is_last() const { return axis_ == x_.shape().rank() - 1; }

  Ints BroadcastDims() const {
    std::vector<int64_t> dims(x_.shape().rank(), 1);
    dims[axis_] = channels_;
    return dims;
  }
  Output Broadcast(const Output& v) const { return Reshape(v, BroadcastDims()); }
  Output Broadcast(const Variable& v) const {
    return InScope(g_, "Reshape", [&](const std::string& name) {
      return Reshape(v.value(), BroadcastDims(), name);
    });
  }

  Output BatchOrMoving(const Output& batch, const Variable& moving) const {
    if (!o_.training.is_tensor()) return batch;
    return Cond(
        o_.training.tensor(), [&] { return batch; }, [&] { return moving.value(); });
  }

  // Updates the moving average in training mode.
  bool Update(const Variable& moving, const Output& batch) {
    Operation update;
    if (o_.training.is_tensor()) {
      update = Cond(
          o_.training.tensor(),
          [&] {
            const std::vector<Output> write = AddMovingAverageUpdate(moving, batch, {});
            return write.empty() ? Output() : ValueAfterWrite(moving, write[0]);
          },
          [&] { return moving.value(); });
    } else {
      const std::vector<Output> write = AddMovingAverageUpdate(moving, batch, {});
      if (!write.empty()) update = write[0];
    }
    Collect(update);
    return update.valid();
  }

  // The updates of a layer that is not trainable are not collected; they run only if explicitly
  // requested.
  void Collect(const Operation& update) {
    if (update.valid() && o_.trainable) g_.AddToCollection(collections::kUpdateOps, update);
  }

  // Returns the value of the variable after the write.
  static Output ValueAfterWrite(const Variable& v, const Output& write) {
    if (!v.is_resource()) return write;
    const ControlDependencies after(v.graph(), {write});
    return v.value();
  }

  // Adds moving -= (moving - batch) * (1 - momentum). The momentum is `momentum` if it is valid,
  // otherwise the option. Returns the write, or an empty list on failure.
  std::vector<Output> AddMovingAverageUpdate(const Variable& moving, const Output& batch,
                                             const Output& momentum) {
    const NameScope scope(g_, "AssignMovingAvg");
    const ColocateWith place(g_, moving.handle().node);
    const Output rest =
        momentum.valid() ? 1.0 - momentum : ConstOf(g_, moving.dtype(), 1.0 - o_.momentum, "decay");
    const Output value = moving.value();
    if (!rest.valid() || !value.valid()) return {};
    const Output delta = (value - batch) * rest;
    WriteOptions options{.read_value = false};
    if (!moving.is_resource()) options.name = scope.name();
    const Output write = moving.AssignSub(delta, options);
    if (!write.valid()) return {};
    if (moving.is_resource()) {
      const ControlDependencies after(g_, {write});
      AddOp("ReadVariableOp", {moving.handle()}, {{"dtype", moving.dtype()}});
    }
    return {write};
  }

  // Computes x * inv + (offset - mean * inv), where inv = scale / sqrt(variance + epsilon).
  // Arguments that are not given are read from the variables, or omitted if there is no variable.
  Output Normalize(const Output& x, const Output& mean, const Output& variance, const Output& scale,
                   const Output& offset) {
    const NameScope scope(g_, "batchnorm");
    const Output v = variance.valid() ? variance : moving_variance_.value();
    if (!v.valid()) return {};
    Output inverse = Rsqrt(v + o_.epsilon);
    if (scale.valid()) {
      inverse = inverse * scale;
    } else if (gamma_.valid()) {
      inverse = InScope(g_, "mul", [&](const std::string& name) {
        return Multiply(inverse, gamma_.value(), name);
      });
    }
    if (!inverse.valid()) return {};
    const Output scaled = x * inverse;
    Output m = mean.valid() ? mean : moving_mean_.value();
    if (!beta_.valid()) m = -m;
    const Output shift = m * inverse;
    if (!beta_.valid()) return scaled + shift;
    const Output start = offset.valid() ? offset : beta_.value();
    const Output rest = start - shift;
    return scaled + rest;
  }

  Layer& layer_;
  Graph& g_;
  const Output x_;
  const int axis_;
  const int64_t channels_;
  const BatchNormalizationOptions& o_;
  Variable gamma_, beta_, moving_mean_, moving_variance_;
};

}  // namespace

Output BatchNormalization(Output inputs, const BatchNormalizationOptions& o) {
  if (!inputs.valid()) return {};
  Layer layer(inputs.graph(), o.name, "batch_normalization", o.reuse);
  const int rank = inputs.shape().rank();
  if (rank < 1 || o.axis < -rank || o.axis >= rank) {
    return layer.Fail(
        absl::StrCat("Invalid axis ", o.axis, " for inputs of shape ", inputs.shape().ToString()));
  }
  const int axis = static_cast<int>(o.axis < 0 ? o.axis + rank : o.axis);
  if (inputs.dim(axis) < 0) {
    return layer.Fail(absl::StrCat("Input has undefined `axis` dimension. Received input with ",
                                   "shape ", inputs.shape().ToString(), " and axis=", axis));
  }
  if (!IsFloating(inputs.dtype())) {
    return layer.Fail(
        absl::StrCat("needs floating-point inputs, and got ", DataTypeName(inputs.dtype())));
  }
  return BatchNorm(layer, inputs, axis, o).Build();
}

}  // namespace weir::layers
