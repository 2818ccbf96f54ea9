#include "weir/ops/lib/op_costs.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_split.h"
#include "weir/core/graph/graph.h"
#include "weir/core/graph/op.h"

namespace weir {

namespace {

using Value = OpCall::Value;

double Quotient(double a, double b) { return b > 0 ? a / b : 0; }

// The operations of an epilogue of elementwise ops.
double EpilogueFlops(const OpCall& call) {
  return static_cast<double>(call.fused_ops.size()) * call.output(0).elements();
}

// Each element of the result (or of its gradient) is multiplied with all elements that the filter
// has for its channel.
double ConvolutionFlops(const Value& result, const Value& filter, bool depthwise) {
  const Shape& shape = filter.shape;
  if (shape.rank() < 2) return 0;
  const double channels =
      static_cast<double>(shape.dim(-1)) * (depthwise ? static_cast<double>(shape.dim(-2)) : 1.);
  return 2 * result.elements() * Quotient(filter.elements(), channels);
}

// Elements of the broadcast of all inputs.
double BroadcastElements(const OpCall& call) {
  Shape all;
  for (const Value& input : call.inputs) {
    absl::StatusOr<Shape> both = BroadcastShapes(all, input.shape);
    if (!both.ok()) return 0;
    all = *std::move(both);
  }
  return std::max<double>(0, all.num_elements());
}

}  // namespace

double MatMulFlops(const OpCall& call) {
  const Shape &a = call.input(0).shape, &product = call.output(0).shape;
  if (a.rank() < 2 || product.rank() < 2) return 0;
  const double rows = static_cast<double>(product.dim(-2));
  const double k = Quotient(static_cast<double>(a.dim(-1)) * a.dim(-2), rows);
  const double operations = IsComplex(call.input(0).dtype) ? 8 : 2;
  return operations * call.output(0).elements() * k + EpilogueFlops(call);
}

double ConvFlops(const OpCall& call) {
  return ConvolutionFlops(call.output(0), call.input(1), false) + EpilogueFlops(call);
}
double ConvBackpropInputFlops(const OpCall& call) {
  return ConvolutionFlops(call.input(2), call.input(1), false);
}
double ConvBackpropFilterFlops(const OpCall& call) {
  return ConvolutionFlops(call.input(2), call.output(0), false);
}
double DepthwiseConvFlops(const OpCall& call) {
  return ConvolutionFlops(call.output(0), call.input(1), true) + EpilogueFlops(call);
}
double DepthwiseConvBackpropInputFlops(const OpCall& call) {
  return ConvolutionFlops(call.input(2), call.input(1), true);
}
double DepthwiseConvBackpropFilterFlops(const OpCall& call) {
  return ConvolutionFlops(call.input(2), call.output(0), true);
}

double EinsumFlops(const OpCall& call) {
  if (call.node == nullptr) return -1;
  const std::string equation = call.node->attr_or<std::string>("equation", "");
  const std::pair<std::string, std::string> sides =
      absl::StrSplit(equation, absl::MaxSplits("->", 1));
  const std::vector<std::string> terms = absl::StrSplit(sides.first, ',');
  std::map<char, double> extents;
  for (size_t i = 0; i < terms.size(); ++i) {
    std::string labels = terms[i];
    labels.erase(std::remove(labels.begin(), labels.end(), ' '), labels.end());
    const Shape& shape = call.input(i).shape;
    if (static_cast<int>(labels.size()) != shape.rank()) return -1;
    for (size_t k = 0; k < labels.size(); ++k) {
      if (std::isalpha(static_cast<unsigned char>(labels[k])) == 0) return -1;
      extents[labels[k]] =
          std::max(extents[labels[k]], static_cast<double>(shape.dim(static_cast<int>(k))));
    }
  }
  double flops = 2;
  for (const auto& [label, extent] : extents) flops *= extent;
  return flops;
}

double PoolFlops(const OpCall& call) {
  if (call.node == nullptr) return -1;
  double window = 1;
  for (const int64_t extent : call.node->attr_or("ksize", std::vector<int64_t>()))
    window *= static_cast<double>(extent);
  return window * call.output(0).elements();
}

double ElementwiseFlops(const OpCall& call) { return call.output(0).elements(); }

double AddNFlops(const OpCall& call) {
  return std::max<double>(0, static_cast<double>(call.inputs.size()) - 1) *
         call.output(0).elements();
}

double SoftmaxFlops(const OpCall& call) { return 4 * call.input(0).elements(); }

double FusedElementwiseFlops(const OpCall& call) { return EpilogueFlops(call); }

double FusedUpdateFlops(const OpCall& call) {
  return static_cast<double>(call.fused_ops.size()) * call.largest_input().elements();
}

// The ops up to the reduction work on the broadcast of the arguments, those behind it on the
// result.
double FusedReductionFlops(const OpCall& call) {
  const auto is_reduction = [](const std::string& name) {
    return BuiltinOps().TraitsOf(name).reduction;
  };
  const auto reduction = absl::c_find_if(call.fused_ops, is_reduction);
  const auto after = call.fused_ops.end() - std::min(reduction + 1, call.fused_ops.end());
  const double before = static_cast<double>(call.fused_ops.size()) - static_cast<double>(after);
  return before * BroadcastElements(call) + static_cast<double>(after) * call.output(0).elements();
}

// Filters with a bias behind each. With an expansion (three filters), the first filter is applied
// to the pixels of the image and the others to those of the result.
double FusedSeparableConvFlops(const OpCall& call) {
  const auto pixels = [](const Value& image) {
    return Quotient(image.elements(), static_cast<double>(image.shape.dim(-1)));
  };
  const bool expands = call.inputs.size() >= 7;
  if (call.output(0).shape.rank() != 4 || call.input(0).shape.rank() != 4) return 0;
  double flops = 0;
  for (int i = 1; i <= (expands ? 5 : 3); i += 2) {
    const Value& image = expands && i == 1 ? call.input(0) : call.output(0);
    flops += 2 * pixels(image) * call.input(i).elements();
  }
  return flops;
}

// Two sums and squares, then scale and offset.
double FusedAttentionFlops(const OpCall& call) {
  const Shape &query = call.input(0).shape, &key = call.input(1).shape;
  if (call.node == nullptr || query.rank() < 2 || key.rank() < 2) return -1;
  const bool transposed = call.node->attr_or("transpose_key", false) && key.rank() > 2;
  const double keys = static_cast<double>(key.dim(transposed ? -3 : -2));
  const double sizes = call.input(0).elements() + call.output(0).elements();
  return 2 * sizes * keys +
         6 * call.input(0).elements() / static_cast<double>(query.dim(-1)) * keys;
}

double FusedLayerNormFlops(const OpCall& call) { return 8 * call.input(0).elements(); }

// Of the rows that it collects, whenever they are multiplied.
double DeferMatMulFlops(const OpCall& call) {
  const Shape& y = call.input(5).shape;
  return y.rank() < 1 ? 0 : 2 * call.input(4).elements() * static_cast<double>(y.dim(-1));
}
// It forwards what it has collected.
double DeferMatMulBytes(const OpCall& call) {
  return 2 * (call.input(4).bytes() + call.input(5).bytes());
}

}  // namespace weir
