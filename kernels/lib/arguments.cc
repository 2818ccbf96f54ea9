#include "weir/kernels/lib/arguments.h"

#include "absl/strings/str_join.h"
#include "weir/core/graph/graph.h"
#include "weir/kernels/lib/scalar_math.h"

namespace weir {

namespace {

absl::Status NotScalarError(const Tensor& t, absl::string_view argument) {
  return InvalidArgument(argument, " must be a scalar, but has shape ", t.shape().ToString(),
                         ": it must have exactly one element");
}

int64_t FirstInt(const Tensor& t) {
  return t.dtype() == DT_INT32 ? *t.data<int32_t>() : t.IntAt(0);
}

}  // namespace

Dims ReadInts(const Tensor& t) {
  const int64_t n = t.num_elements();
  if (t.dtype() == DT_INT32) return Dims(t.data<int32_t>(), t.data<int32_t>() + n);
  if (t.dtype() == DT_INT64) return Dims(t.data<int64_t>(), t.data<int64_t>() + n);
  Dims out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = t.IntAt(i);
  return out;
}

absl::StatusOr<int64_t> ReadInt(const Tensor& t, absl::string_view argument) {
  WEIR_RETURN_IF_ERROR(CheckRank(t, 0, argument));
  return FirstInt(t);
}

absl::StatusOr<int64_t> ReadOneInt(const Tensor& t, absl::string_view argument) {
  if (t.num_elements() != 1) return NotScalarError(t, argument);
  return FirstInt(t);
}

absl::StatusOr<double> ReadReal(const Tensor& t, absl::string_view argument) {
  WEIR_RETURN_IF_ERROR(CheckRank(t, 0, argument));
  double value = 0;
  const bool is_real = DispatchType(t.dtype(), Floats(),
                                    [&]<class T>() { value = static_cast<Wide<T>>(*t.data<T>()); });
  return is_real ? value : static_cast<double>(t.IntAt(0));
}

absl::StatusOr<std::string> ReadString(const Tensor& t, absl::string_view argument) {
  WEIR_RETURN_IF_ERROR(CheckRank(t, 0, argument));
  return *t.data<std::string>();
}

absl::StatusOr<std::string> ReadOneString(const Tensor& t, absl::string_view argument) {
  if (t.num_elements() != 1) return NotScalarError(t, argument);
  return *t.data<std::string>();
}

absl::StatusOr<int> ReadAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("axis ", axis, " must be in the range [", -rank, ", ", rank, ")");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::StatusOr<Shape> ReadShape(const Tensor& t, absl::string_view argument) {
  WEIR_RETURN_IF_ERROR(CheckRank(t, 1, argument));
  const Dims dims = ReadInts(t);
  return CheckedShape(dims);
}

absl::StatusOr<Shape> CheckedShape(absl::Span<const int64_t> dims) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
  if (!shape.IsFullyDefined()) {
    return InvalidArgument("shape must be fully defined, with no negative dimension, but is ",
                           shape.ToString());
  }
  return shape;
}

absl::StatusOr<int> NarrowAttr(const Node& node, absl::string_view name) {
  const auto value = node.attr<int64_t>(name);
  WEIR_RETURN_IF_ERROR(CheckInt32Attr(name, value));
  return static_cast<int>(value);
}

absl::StatusOr<bool> IgnoresBadIndices(const Node& node) {
  const std::string policy = node.attr_or<std::string>("bad_indices_policy", "");
  if (policy == "IGNORE") return true;
  if (policy == "" || policy == "DEFAULT" || policy == "ERROR") return false;
  return InvalidArgument("Unknown bad indices handling attribute: ", policy,
                         " (bad_indices_policy is ERROR or IGNORE)");
}

std::string PositionText(const Shape& shape, int64_t i) {
  if (shape.rank() == 0) return "";
  Dims position(shape.rank());
  for (int d = shape.rank() - 1; d >= 0; --d) {
    position[d] = i % shape.dim(d);
    i /= shape.dim(d);
  }
  return absl::StrCat("[", absl::StrJoin(position, ","), "]");
}

absl::Status CheckRank(const Tensor& t, int rank, absl::string_view argument) {
  if (t.rank() == rank) return absl::OkStatus();
  static constexpr absl::string_view kWords[] = {"a scalar", "a vector", "a matrix"};
  if (rank < 3) {
    return InvalidArgument(argument, " must be ", kWords[rank], ", but has shape ",
                           t.shape().ToString());
  }
  return InvalidArgument(argument, " must be of rank ", rank, ", but has shape ",
                         t.shape().ToString());
}

absl::Status CheckRankAtLeast(const Tensor& t, int rank, absl::string_view argument) {
  if (t.rank() >= rank) return absl::OkStatus();
  return InvalidArgument(argument, " must be at least of rank ", rank, ", but has shape ",
                         t.shape().ToString());
}

absl::Status CheckShape(const Tensor& t, const Shape& want, absl::string_view argument) {
  if (t.shape() == want) return absl::OkStatus();
  return InvalidArgument("Expected ", argument, " shape to be ", want.ToString(), ", but got ",
                         t.shape().ToString());
}

}  // namespace weir
