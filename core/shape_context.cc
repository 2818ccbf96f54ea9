#include "weir/core/shape_context.h"

#include <algorithm>
#include <optional>

namespace weir {

ShapeContext::ShapeContext(const Node& node, absl::Span<const Shape> inputs,
                           absl::Span<const HandleData* const> handles, Values& values)
    : node_(node),
      inputs_(inputs),
      handles_(handles),
      values_(values),
      outputs_(node.num_outputs(), Shape::UnknownRank()),
      output_handles_(node.num_outputs()) {}

absl::StatusOr<Shape> ShapeContext::InputAsShape(int i, bool minus_one_is_unknown) {
  const Shape& vector = input(i);
  const DataType type = BaseType(node_.input_type(i));
  if (type != DT_INT32 && type != DT_INT64)
    return InvalidArgument("Input tensor must be int32 or int64, but was ", DataTypeName(type));
  WEIR_RETURN_IF_ERROR(WithRank(i, 1).status());
  if (vector.has_rank() && vector.dim(0) > Shape::kMaxRank) {
    return InvalidArgument("Shape has rank ", vector.dim(0), "; at most ", Shape::kMaxRank,
                           " is supported");
  }
  const Shape shape = values_.value_as_shape(node_, i);
  if (const Tensor* value = values_.value(node_, i)) {
    for (int64_t k = 0; k < value->num_elements(); ++k) {
      const int64_t d = value->IntAt(k);
      if (d < -1 || (d == -1 && !minus_one_is_unknown)) {
        return InvalidArgument("Dimension ", d, " must be >= 0");
      }
    }
    WEIR_RETURN_IF_ERROR(Shape::Make(shape.dims()).status());
  }
  return shape;
}

void ShapeContext::set_all_outputs(const Shape& shape) {
  std::fill(outputs_.begin(), outputs_.end(), shape);
}

absl::StatusOr<Shape> ShapeContext::WithRank(int i, int rank) const {
  const Shape& s = inputs_[i];
  if (!s.has_rank()) return Shape(std::vector<int64_t>(rank, Shape::kUnknown));
  if (s.rank() == rank) return s;
  return InvalidArgument("Shape must be rank ", rank, " but is rank ", s.rank());
}

absl::StatusOr<Shape> ShapeContext::WithRankAtLeast(int i, int rank) const {
  const Shape& s = inputs_[i];
  if (!s.has_rank() || s.rank() >= rank) return s;
  return InvalidArgument("Shape must be at least rank ", rank, " but is rank ", s.rank());
}

absl::StatusOr<Shape> ShapeContext::WithRankAtMost(int i, int rank) const {
  const Shape& s = inputs_[i];
  if (!s.has_rank() || s.rank() <= rank) return s;
  return InvalidArgument("Shape must be at most rank ", rank, " but is rank ", s.rank());
}

absl::StatusOr<int64_t> MergeDims(int64_t a, int64_t b) {
  if (a < 0) return b;
  if (b < 0 || a == b) return a;
  return InvalidArgument("Dimensions must be equal, but are ", a, " and ", b);
}

absl::StatusOr<int64_t> AddDims(int64_t a, int64_t b) {
  if (a < 0 || b < 0) return Shape::kUnknown;
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    return InvalidArgument("Dimension size overflow from adding ", a, " and ", b);
  return sum;
}

absl::StatusOr<int64_t> MulDims(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a < 0 || b < 0) return Shape::kUnknown;
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    return InvalidArgument("Dimension size overflow from multiplying ", a, " and ", b);
  return product;
}

absl::Status SameShape(ShapeContext& c) {
  c.set_all_outputs(c.input(0));
  return absl::OkStatus();
}

absl::Status ScalarShape(ShapeContext& c) {
  c.set_all_outputs(Shape());
  return absl::OkStatus();
}

absl::Status UnknownShape(ShapeContext&) { return absl::OkStatus(); }
absl::Status NoOutputs(ShapeContext&) { return absl::OkStatus(); }

absl::Status BroadcastShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(c.input(0), c.input(1)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status MergedShape(ShapeContext& c) {
  Shape shape = Shape::UnknownRank();
  for (int i = 0; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN_OR_RETURN(shape, shape.MergeWith(c.input(i)));
  }
  c.set_all_outputs(shape);
  return absl::OkStatus();
}

absl::Status ShapeFromInput0(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, c.InputAsShape(0, /*minus_one_is_unknown=*/false));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

namespace {

// A vector (or scalar) of integers some of which are known. Shapes in graphs are spelled out by
// short chains of a few ops (Shape, StridedSlice, Pack, ConcatV2, arithmetic); this evaluates such
// a chain as far as constants and static shapes reach, with -1 for "unknown", and gives up
// (nullopt) at any other op. The number of nodes visited is bounded, so hostile graphs (where paths
// double at every node) cost little.
constexpr int kMaxVisits = 256;
constexpr int64_t kMaxElements = Shape::kMaxRank;
using Ints = std::optional<std::vector<int64_t>>;

Ints Evaluate(const Output& value, int& visits);
Ints One(int64_t value) { return std::vector<int64_t>{value}; }

Ints ConstantInts(const Node& node) {
  const AttrValue* attr = node.FindAttr("value");
  const Tensor* t = attr == nullptr ? nullptr : attr->get_if<Tensor>();
  if (t == nullptr || !IsInteger(t->dtype()) || t->rank() > 1 || t->num_elements() > kMaxElements)
    return std::nullopt;
  std::vector<int64_t> out(t->num_elements());
  for (size_t i = 0; i < out.size(); ++i) out[i] = t->IntAt(i);
  return out;
}

Ints Concatenated(const Node& node, int first, int last, int& visits) {
  std::vector<int64_t> out;
  for (int i = first; i < last; ++i) {
    const Ints part = Evaluate(node.input(i), visits);
    if (!part || out.size() + part->size() > kMaxElements) return std::nullopt;
    out.insert(out.end(), part->begin(), part->end());
  }
  return out;
}

Ints Sliced(const Node& node, int& visits) {
  const Ints x = Evaluate(node.input(0), visits), begin = Evaluate(node.input(1), visits),
             end = Evaluate(node.input(2), visits), strides = Evaluate(node.input(3), visits);
  if (!x || !begin || !end || !strides || begin->size() != 1 || end->size() != 1 ||
      strides->size() != 1) {
    return std::nullopt;
  }
  if (node.attr_or<int64_t>("ellipsis_mask", 0) != 0 ||
      node.attr_or<int64_t>("new_axis_mask", 0) != 0) {
    return std::nullopt;
  }
  const int64_t n = static_cast<int64_t>(x->size()), stride = (*strides)[0];
  const bool shrink = node.attr_or<int64_t>("shrink_axis_mask", 0) == 1;
  const auto at = [n](int64_t i) { return i < 0 ? i + n : i; };
  const int64_t b = at((*begin)[0]);
  if (shrink) return b >= 0 && b < n ? One((*x)[b]) : std::nullopt;
  if (stride != 1) return std::nullopt;
  const int64_t from =
      node.attr_or<int64_t>("begin_mask", 0) == 1 ? 0 : std::clamp<int64_t>(b, 0, n);
  const int64_t to =
      node.attr_or<int64_t>("end_mask", 0) == 1 ? n : std::clamp<int64_t>(at((*end)[0]), from, n);
  return std::vector<int64_t>(x->begin() + from, x->begin() + std::max(from, to));
}

Ints Combined(const Node& node, int& visits) {
  Ints a = Evaluate(node.input(0), visits), b = Evaluate(node.input(1), visits);
  if (!a || !b) return std::nullopt;
  if (a->size() != b->size() && a->size() != 1 && b->size() != 1) return std::nullopt;
  const size_t n = a->size() == 1 ? b->size() : a->size();
  std::vector<int64_t> out(n);
  for (size_t i = 0; i < n; ++i) {
    const int64_t x = (*a)[a->size() == 1 ? 0 : i], y = (*b)[b->size() == 1 ? 0 : i];
    int64_t& z = out[i];
    z = -1;
    if (x < 0 || y < 0) continue;
    const std::string& op = node.op_name();
    bool overflow = false;
    if (op == "Mul") {
      overflow = __builtin_mul_overflow(x, y, &z);
    } else if (op == "Sub") {
      z = x - y;
    } else if (op == "FloorDiv") {
      z = y == 0 ? -1 : x / y;
    } else if (op == "Maximum") {
      z = std::max(x, y);
    } else if (op == "Minimum") {
      z = std::min(x, y);
    } else {
      overflow = __builtin_add_overflow(x, y, &z);
    }
    if (overflow || z < 0) z = -1;
  }
  return out;
}

Ints Evaluate(const Output& value, int& visits) {
  if (value.node == nullptr || --visits < 0 || value.shape().rank() > 1) return std::nullopt;
  const Node& node = *value.node;
  const std::string& op = node.op_name();
  if (op == "Const") return ConstantInts(node);
  if (op == "Shape") {
    const Shape& s = node.input(0).shape();
    if (!s.has_rank()) return std::nullopt;
    return std::vector<int64_t>(s.dims().begin(), s.dims().end());
  }
  if (op == "Rank" && node.input(0).shape().has_rank()) return One(node.input(0).shape().rank());
  if (op == "Size") return One(node.input(0).shape().num_elements());
  if (op == "Identity" || op == "Cast") {
    return IsInteger(node.input(0).dtype()) ? Evaluate(node.input(0), visits) : std::nullopt;
  }
  if (op == "Pack" && node.input(0).shape().IsScalar())
    return Concatenated(node, 0, node.num_inputs(), visits);
  if (op == "ExpandDims" && node.input(0).shape().IsScalar())
    return Evaluate(node.input(0), visits);
  if (op == "ConcatV2") return Concatenated(node, 0, node.num_inputs() - 1, visits);
  if (op == "StridedSlice" && node.num_inputs() == 4) return Sliced(node, visits);
  if (op == "AddV2" || op == "Add" || op == "Sub" || op == "Mul" || op == "FloorDiv" ||
      op == "Maximum" || op == "Minimum") {
    return Combined(node, visits);
  }
  return std::nullopt;
}

class BuildTimeValues : public ShapeContext::Values {
 public:
  const Tensor* value(const Node& node, int i) override {
    const Node* producer = node.input(i).node;
    if (producer == nullptr || producer->op_name() != "Const") return nullptr;
    const AttrValue* attr = producer->FindAttr("value");
    const Tensor* value = attr == nullptr ? nullptr : attr->get_if<Tensor>();
    return value == nullptr || !value->initialized() ? nullptr : value;
  }

  Shape value_as_shape(const Node& node, int i) override {
    int visits = kMaxVisits;
    const Ints ints = Evaluate(node.input(i), visits);
    if (ints) {
      std::vector<int64_t> dims = *ints;
      for (int64_t& d : dims) d = std::max<int64_t>(d, -1);
      return Shape(dims);
    }
    const int64_t rank = node.input(i).shape().rank() == 1 ? node.input(i).dim(0) : -1;
    if (rank < 0 || rank > Shape::kMaxRank) return Shape::UnknownRank();
    return Shape(std::vector<int64_t>(rank, Shape::kUnknown));
  }
};

}  // namespace

ShapeContext::Values& GraphValues() {
  static BuildTimeValues* const values = new BuildTimeValues;
  return *values;
}

}  // namespace weir
