#include "weir/ops/layers/layers.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "weir/ops/framework/flow_context.h"
#include "weir/ops/layers/layers_internal.h"
#include "weir/ops/nn/nn.h"

namespace weir::layers {

namespace {

VariableScopeRef Capture(Graph& g, const std::string& name, absl::string_view default_name,
                         std::optional<Reuse> reuse) {
  const bool by_name = !name.empty() || reuse.value_or(Reuse::kCreate) != Reuse::kCreate;
  if (!by_name) {
    return VariableScope(g, VariableScopeOptions{.default_name = std::string(default_name)})
        .scope();
  }
  return VariableScope(g, name.empty() ? default_name : absl::string_view(name)).scope();
}

// Returns the sum of the norms with a nonzero factor. Variables are read in the scope of each
// norm's node.
Output SumOfNorms(Graph& g, DataType dtype, const std::function<Output()>& x, double l1, double l2,
                  bool from_zero) {
  Output sum;
  if (from_zero) sum = ConstOf(g, dtype, 0, "Const");
  const auto add = [&sum](const Output& term) { sum = sum.valid() ? sum + term : term; };
  if (l1 != 0) {
    const Output magnitudes =
        InScope(g, "Abs", [&](const std::string& name) { return Abs(x(), name); });
    if (!magnitudes.valid()) return {};
    add(l1 * ReduceSum(magnitudes));
  }
  if (l2 != 0) {
    const Output half =
        InScope(g, "L2Loss", [&](const std::string& name) { return L2Loss(x(), name); });
    if (!half.valid()) return {};
    add((2 * l2) * half);
  }
  return sum;
}

}  // namespace

Layer::Layer(Graph& graph, const std::string& name, absl::string_view default_name,
             std::optional<Reuse> reuse)
    : graph_(graph), captured_(Capture(graph, name, default_name, reuse)) {
  scope_.emplace(graph, captured_,
                 VariableScopeOptions{.reuse = reuse, .auxiliary_name_scope = false});
  names_.emplace(graph, captured_->original_name_scope);
}

Variable Layer::AddWeight(absl::string_view name, const Shape& shape, DataType dtype,
                          const WeightOptions& options) {
  const int before = graph_.num_nodes();
  Partitioner held_back;
  Partitioner& partitioner = CurrentVariableScope(graph_)->partitioner;
  if (options.whole) std::swap(partitioner, held_back);
  const Variable v = GetVariable(graph_, name, shape,
                                 VariableOptions{.initializer = options.initializer,
                                                 .dtype = dtype,
                                                 .trainable = options.trainable,
                                                 .constraint = options.constraint,
                                                 .synchronization = options.synchronization,
                                                 .aggregation = options.aggregation});
  if (options.whole) std::swap(partitioner, held_back);
  if (!v.valid() || !options.regularizer) return v;
  const Variables stored = v.is_partitioned() ? v.parts() : Variables{v};
  if (stored[0].handle().node->id() < before) return v;  // shared
  for (const Variable& part : stored) {
    const OutsideFlow outside(graph_);
    const NameScope scope(graph_, absl::StrCat(name, "/Regularizer"));
    const Output loss = options.regularizer(part);
    if (loss.valid()) graph_.AddToCollection(collections::kRegularizationLosses, loss);
  }
  return v;
}

Output Layer::Fail(absl::string_view why) const {
  graph_.Fail(InvalidArgument("Layer ", captured_->name, ": ", why));
  return {};
}

Output Layer::AddBias(const Output& outputs, const Variable& bias, absl::string_view format) const {
  if (!outputs.valid() || !bias.valid()) return {};
  return InScope(graph_, "BiasAdd", [&](const std::string& name) {
    return BiasAdd(outputs, bias.value(), format, name);
  });
}

Output Layer::Finish(Output outputs, const Activation& activation,
                     const ActivityRegularizer& regularizer) const {
  if (!outputs.valid()) return {};
  if (activation) outputs = activation(outputs);
  if (!outputs.valid() || !regularizer) return outputs;
  const NameScope scope(graph_, "ActivityRegularizer");
  const Output loss = regularizer(outputs);
  if (!loss.valid()) return {};
  const Output batch = Cast(StridedSlice(ShapeTensor(outputs), {0}), loss.dtype());
  if (!batch.valid()) return {};
  graph_.AddToCollection(collections::kRegularizationLosses, loss / batch);
  return outputs;
}

std::optional<Layout> ParseLayout(const Layer& layer, const Output& inputs,
                                  absl::string_view data_format, int num_spatial) {
  const bool first = data_format == "channels_first";
  if (!first && data_format != "channels_last") {
    layer.Fail(absl::StrCat("The `data_format` argument must be one of \"channels_first\", ",
                            "\"channels_last\". Received: ", data_format));
    return std::nullopt;
  }
  const int rank = num_spatial + 2;
  if (inputs.shape().rank() != rank) {
    layer.Fail(absl::StrCat("expected ndim=", rank, ", found shape ", inputs.shape().ToString(),
                            " of input ", inputs.name()));
    return std::nullopt;
  }
  Layout layout;
  layout.rank = rank;
  layout.channel = first ? 1 : rank - 1;
  layout.spatial = first ? 2 : 1;
  layout.format = rank == 5 ? (first ? "NCDHW" : "NDHWC") : (first ? "NCHW" : "NHWC");
  return layout;
}

std::optional<std::string> ParsePadding(const Layer& layer, const std::string& padding) {
  const std::string upper = absl::AsciiStrToUpper(padding);
  if (upper == "VALID" || upper == "SAME") return upper;
  layer.Fail(absl::StrCat("The `padding` argument must be one of \"valid\", \"same\". Received: ",
                          padding));
  return std::nullopt;
}

std::optional<std::vector<int64_t>> ParseExtents(const Layer& layer, const Ints& extents,
                                                 int num_spatial, absl::string_view name) {
  std::vector<int64_t> values = extents.values();
  if (values.size() == 1) values.resize(num_spatial, values[0]);
  bool ok = !extents.is_tensor() && static_cast<int>(values.size()) == num_spatial;
  for (const int64_t v : values) ok = ok && v > 0 && v <= std::numeric_limits<int32_t>::max();
  if (ok) return values;
  layer.Fail(absl::StrCat(
      "The `", name, "` argument must be a positive number, or ", num_spatial,
      " of them. Received: ",
      extents.is_tensor() ? std::string("a tensor") : absl::StrJoin(extents.values(), ", ")));
  return std::nullopt;
}

std::vector<int64_t> WithOnes(const Layout& layout, const std::vector<int64_t>& extents) {
  std::vector<int64_t> all(layout.rank, 1);
  for (int i = 0; i < layout.num_spatial(); ++i) all[layout.spatial + i] = extents[i];
  return all;
}

// ---- regularizers

Output NormRegularizer::operator()(const Variable& w) const {
  if (!w.valid()) return {};
  return SumOfNorms(
      w.graph(), w.dtype(), [&w] { return w.value(); }, l1_, l2_, from_zero_);
}

Output NormRegularizer::operator()(const Output& x) const {
  if (!x.valid()) return {};
  return SumOfNorms(
      x.graph(), x.dtype(), [&x] { return x; }, l1_, l2_, from_zero_);
}

}  // namespace weir::layers
