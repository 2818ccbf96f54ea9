#include "weir/capi/shape_inference.h"

#include <algorithm>

#include "weir/capi/objects.h"
#include "weir/core/graph/shape_context.h"

// What the shape functions of plug-ins read and set.

struct TF_ShapeHandle {
  weir::Shape shape = weir::Shape::UnknownRank();
};

struct TF_DimensionHandle {
  int64_t extent = weir::Shape::kUnknown;
};

struct TF_ShapeInferenceContext {
  weir::ShapeContext& context;
};

namespace weir::capi {

ShapeFn ShapeFnOf(void (*function)(TF_ShapeInferenceContext*, TF_Status*)) {
  return [function](ShapeContext& c) {
    TF_ShapeInferenceContext context{c};
    TF_Status status;
    function(&context, &status);
    return status.status;
  };
}

namespace {

// How the rank of a shape compares with the one that is asked for.
enum class Relation { kEqual, kAtLeast, kAtMost };

absl::StatusOr<Shape> WithRank(const Shape& shape, int64_t rank, Relation relation) {
  if (rank < 0 || rank > Shape::kMaxRank)
    return InvalidArgument("Rank ", rank, " is not in [0, ", Shape::kMaxRank, "]");
  const int64_t own = shape.rank();
  if (!shape.has_rank()) {
    if (relation != Relation::kEqual) return shape;
    return Shape(std::vector<int64_t>(static_cast<size_t>(rank), Shape::kUnknown));
  }
  switch (relation) {
    case Relation::kEqual:
      if (own == rank) return shape;
      return InvalidArgument("Shape must be rank ", rank, " but is rank ", own);
    case Relation::kAtLeast:
      if (own >= rank) return shape;
      return InvalidArgument("Shape must be at least rank ", rank, " but is rank ", own);
    case Relation::kAtMost:
      if (own <= rank) return shape;
      return InvalidArgument("Shape must be at most rank ", rank, " but is rank ", own);
  }
  return shape;
}

absl::StatusOr<Shape> Subshape(const Shape& shape, int64_t start, int64_t end) {
  const int64_t rank = shape.rank();
  if (!shape.has_rank()) {
    if (start == 0 && end == INT64_MAX) return shape;
    if (start < 0 || end < 0 || end == INT64_MAX) return Shape::UnknownRank();
    if (start > end) {
      return InvalidArgument("Subshape must have computed start <= end, but is ", start, " and ",
                             end, " (of a shape of unknown rank)");
    }
    if (end - start > Shape::kMaxRank) return Shape::UnknownRank();
    return Shape(std::vector<int64_t>(static_cast<size_t>(end - start), Shape::kUnknown));
  }
  const int64_t from = start < 0 ? start + rank : std::min(start, rank);
  const int64_t to = end < 0 ? end + rank : std::min(end, rank);
  if (from < 0) {
    return InvalidArgument("Subshape start out of bounds: ", start, ", for shape with rank ", rank);
  }
  if (to < 0)
    return InvalidArgument("Subshape end out of bounds: ", end, ", for shape with rank ", rank);
  if (from > to) {
    return InvalidArgument("Subshape must have computed start <= end, but is ", from, " and ", to,
                           " (computed from start ", start, " and end ", end,
                           " over shape with rank ", rank, ")");
  }
  return Shape(shape.dims().subspan(static_cast<size_t>(from), static_cast<size_t>(to - from)));
}

// Sets a result and the status.
void SetShape(absl::StatusOr<Shape> shape, TF_ShapeHandle* result, TF_Status* status) {
  SetStatus(status, shape.status());
  if (shape.ok()) result->shape = *std::move(shape);
}

void SetWithRank(absl::string_view function, TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle,
                 int64_t rank, Relation relation, TF_ShapeHandle* result, TF_Status* status) {
  if (HaveAll(function, {ctx, handle, result}, status))
    SetShape(WithRank(handle->shape, rank, relation), result, status);
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::Relation;
using weir::capi::SetStatus;

TF_ShapeHandle* TF_NewShapeHandle() { return new TF_ShapeHandle; }

void TF_DeleteShapeHandle(TF_ShapeHandle* handle) { delete handle; }

TF_DimensionHandle* TF_NewDimensionHandle() { return new TF_DimensionHandle; }

void TF_DeleteDimensionHandle(TF_DimensionHandle* handle) { delete handle; }

TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext* ctx) {
  if (!HaveAll("TF_ShapeInferenceContextScalar", {ctx})) return nullptr;
  return new TF_ShapeHandle{weir::Shape()};
}

TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext* ctx, size_t size) {
  if (!HaveAll("TF_ShapeInferenceContextVectorFromSize", {ctx})) return nullptr;
  if (size > static_cast<size_t>(INT64_MAX)) {
    weir::capi::LogMisuse("TF_ShapeInferenceContextVectorFromSize", "the size is too large");
    return nullptr;
  }
  return new TF_ShapeHandle{weir::Shape({static_cast<int64_t>(size)})};
}

int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* ctx) {
  return HaveAll("TF_ShapeInferenceContextNumInputs", {ctx}) ? ctx->context.num_inputs() : -1;
}

void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext* ctx, int i, TF_ShapeHandle* handle,
                                      TF_Status* status) {
  if (!HaveAll("TF_ShapeInferenceContextGetInput", {ctx, handle}, status)) return;
  if (i < 0 || i >= ctx->context.num_inputs())
    return SetStatus(status, weir::InvalidArgument("input index out of range"));
  handle->shape = ctx->context.input(i);
  SetStatus(status, absl::OkStatus());
}

void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext* ctx, int i, TF_ShapeHandle* handle,
                                       TF_Status* status) {
  if (!HaveAll("TF_ShapeInferenceContextSetOutput", {ctx, handle}, status)) return;
  if (i < 0 || i >= ctx->context.num_outputs())
    return SetStatus(status, weir::InvalidArgument("output index out of range"));
  ctx->context.set_output(i, handle->shape);
  SetStatus(status, absl::OkStatus());
}

void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext* ctx, TF_Status* status) {
  if (!HaveAll("TF_ShapeInferenceContextSetUnknownShape", {ctx}, status)) return;
  ctx->context.set_all_outputs(weir::Shape::UnknownRank());
  SetStatus(status, absl::OkStatus());
}

void TF_ShapeInferenceContext_GetAttrType(TF_ShapeInferenceContext* ctx, const char* attr_name,
                                          TF_DataType* val, TF_Status* status) {
  if (!HaveAll("TF_ShapeInferenceContext_GetAttrType", {ctx, attr_name, val}, status)) return;
  const weir::AttrValue* const value = ctx->context.node().FindAttr(attr_name);
  if (value == nullptr)
    return SetStatus(status, weir::NotFound("No attr named '", attr_name, "' in NodeDef:"));
  const weir::DataType* const type = value->get_if<weir::DataType>();
  if (type == nullptr)
    return SetStatus(status, weir::InvalidArgument("attr '", attr_name, "' is not a type"));
  *val = static_cast<TF_DataType>(*type);
  SetStatus(status, absl::OkStatus());
}

int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle) {
  return HaveAll("TF_ShapeInferenceContextRank", {ctx, handle}) ? handle->shape.rank() : -1;
}

int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle) {
  return HaveAll("TF_ShapeInferenceContextRankKnown", {ctx, handle}) && handle->shape.has_rank();
}

void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle,
                                      int64_t rank, TF_ShapeHandle* result, TF_Status* status) {
  weir::capi::SetWithRank("TF_ShapeInferenceContextWithRank", ctx, handle, rank, Relation::kEqual,
                          result, status);
}

void TF_ShapeInferenceContextWithRankAtLeast(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle,
                                             int64_t rank, TF_ShapeHandle* result,
                                             TF_Status* status) {
  weir::capi::SetWithRank("TF_ShapeInferenceContextWithRankAtLeast", ctx, handle, rank,
                          Relation::kAtLeast, result, status);
}

void TF_ShapeInferenceContextWithRankAtMost(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle,
                                            int64_t rank, TF_ShapeHandle* result,
                                            TF_Status* status) {
  weir::capi::SetWithRank("TF_ShapeInferenceContextWithRankAtMost", ctx, handle, rank,
                          Relation::kAtMost, result, status);
}

void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* shape_handle,
                                 int64_t i, TF_DimensionHandle* result) {
  if (!HaveAll("TF_ShapeInferenceContextDim", {ctx, shape_handle, result})) return;
  const weir::Shape& shape = shape_handle->shape;
  const bool exists = shape.has_rank() && i >= -shape.rank() && i < shape.rank();
  result->extent = exists ? shape.dim(static_cast<int>(i)) : weir::Shape::kUnknown;
}

int TF_DimensionHandleValueKnown(TF_DimensionHandle* dim_handle) {
  return HaveAll("TF_DimensionHandleValueKnown", {dim_handle}) && dim_handle->extent >= 0;
}

int64_t TF_DimensionHandleValue(TF_DimensionHandle* dim_handle) {
  return HaveAll("TF_DimensionHandleValue", {dim_handle}) ? dim_handle->extent : -1;
}

void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* shape_handle,
                                      int64_t start, int64_t end, TF_ShapeHandle* result,
                                      TF_Status* status) {
  if (HaveAll("TF_ShapeInferenceContextSubshape", {ctx, shape_handle, result}, status))
    weir::capi::SetShape(weir::capi::Subshape(shape_handle->shape, start, end), result, status);
}

void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* first,
                                               TF_ShapeHandle* second, TF_ShapeHandle* result,
                                               TF_Status* status) {
  if (!HaveAll("TF_ShapeInferenceContextConcatenateShapes", {ctx, first, second, result}, status))
    return;
  const weir::Shape joined = first->shape.Concatenate(second->shape);
  weir::capi::SetShape(joined.has_rank() ? weir::Shape::Make(joined.dims()) : joined, result,
                       status);
}
