#include "weir/core/graph/shape_context.h"

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

// Evaluates vectors (or scalars) of integers while a graph is built, with -1 for an unknown
// element. Graphs compute shapes by short sequences of a few ops (Shape, StridedSlice, Pack,
// ConcatV2, arithmetic), whose records evaluate them (OpTraits::shape_value) as far as constants
// and static shapes reach; any other op gives nothing. The number of visited nodes is bounded, so
// hostile graphs (where paths double at every node) cost little.
constexpr int kMaxVisits = 256;

class Evaluation final : public ShapeValueContext {
 public:
  Evaluation(const Node& node, int& visits) : node_(node), visits_(visits) {}

  static std::optional<std::vector<int64_t>> Of(const Output& value, int& visits) {
    if (value.node == nullptr || --visits < 0 || value.shape().rank() > 1) return std::nullopt;
    const ShapeValueFn evaluate = value.node->op().traits().shape_value;
    if (evaluate == nullptr) return std::nullopt;
    Evaluation evaluation(*value.node, visits);
    return evaluate(evaluation);
  }

  const Node& node() const override { return node_; }
  std::optional<std::vector<int64_t>> Input(int i) override { return Of(node_.input(i), visits_); }

 private:
  const Node& node_;
  int& visits_;
};

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
    if (std::optional<std::vector<int64_t>> ints = Evaluation::Of(node.input(i), visits)) {
      std::vector<int64_t> dims = *std::move(ints);
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
