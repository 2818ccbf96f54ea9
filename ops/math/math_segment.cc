#include "weir/core/graph/scope.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"

// Sums and other reductions of the rows of segments.
namespace weir {

absl::Status SegmentsShape(ShapeContext& c, int64_t count) {
  const Shape &data = c.input(0), &ids = c.input(1);
  if (!data.has_rank() || !ids.has_rank()) return absl::OkStatus();
  if (ids.rank() > data.rank()) {
    return InvalidArgument("segment_ids of shape ", ids.ToString(),
                           " is not a prefix of data's shape ", data.ToString());
  }
  WEIR_RETURN_IF_ERROR(data.Sub(0, ids.rank()).MergeWith(ids).status());
  c.set_output(0, Shape({count}).Concatenate(data.Sub(ids.rank())));
  return absl::OkStatus();
}

// ---- shape functions

namespace {

absl::Status SegmentShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape data, c.WithRankAtLeast(0, 1));
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  if (data.has_rank()) c.set_output(0, Shape({Shape::kUnknown}).Concatenate(data.Sub(1)));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CountAt(ShapeContext& c, int i, absl::string_view what) {
  WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  const Tensor* value = c.input_value(i);
  if (value == nullptr || value->num_elements() != 1) return Shape::kUnknown;
  const int64_t n = value->IntAt(0);
  if (n < 0) return InvalidArgument(what, " must be non-negative: ", n);
  return n;
}

absl::Status UnsortedSegmentShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t n, CountAt(c, 2, "num_segments"));
  return SegmentsShape(c, n);
}

absl::Status CheckSparse(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRankAtLeast(0, 1).status());
  WEIR_ASSIGN_OR_RETURN(const Shape indices, c.WithRank(1, 1));
  WEIR_ASSIGN_OR_RETURN(const Shape ids, c.WithRank(2, 1));
  return MergeDims(indices.dim(0), ids.dim(0)).status();
}

absl::Status SparseSegmentShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(CheckSparse(c));
  if (c.input(0).has_rank())
    c.set_output(0, Shape({Shape::kUnknown}).Concatenate(c.input(0).Sub(1)));
  return absl::OkStatus();
}

// Input 3 is the number of rows of the result: the number of segments or, for gradients, the number
// of rows of the gathered tensor.
absl::Status SparseSegmentRowsShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(CheckSparse(c));
  WEIR_ASSIGN_OR_RETURN(const int64_t n, CountAt(c, 3, "the number of rows"));
  if (c.input(0).has_rank()) c.set_output(0, Shape({n}).Concatenate(c.input(0).Sub(1)));
  return absl::OkStatus();
}

// Returns only the rows that occur, and their indices.
absl::Status SparseSegmentGradV2Shape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(CheckSparse(c));
  WEIR_RETURN_IF_ERROR(CountAt(c, 3, "dense_output_dim0").status());
  if (c.input(0).has_rank())
    c.set_output(0, Shape({Shape::kUnknown}).Concatenate(c.input(0).Sub(1)));
  c.set_output(1, Shape({Shape::kUnknown}));
  return absl::OkStatus();
}

// ---- gradients

Output Rows(Output data, Output ids) { return Gather(data, ids); }

Grads SegmentSumGradient(GradContext& g) { return {Rows(g.dy(), g.x(1)), Grad()}; }

// Counts the rows of each segment by summing ones in the shape of the ids, extended with a
// dimension of size 1 for each further dimension of the data.
Grads SegmentMeanGradient(GradContext& g) {
  const Output rank = Rank(g.x(0));
  const Output ids_shape = ShapeVector(g.x(1));
  const Output trailing = ExpandDims(rank - 1, 0);
  const Output shape = Concat({ids_shape, Ones(g.graph(), trailing, DT_INT32)}, 0);
  const Output ones = Ones(g.graph(), shape, g.dy().dtype());
  return {Rows(g.dy() / SegmentSum(ones, g.x(1)), g.x(1)), Grad()};
}

// Divides the gradient equally among all elements of a segment that attain the extreme value.
Grads SegmentExtremeGradient(GradContext& g) {
  const Output data = g.x(0), ids = g.x(1);
  const Output zeros = ZerosOf(data);
  const Output hits = Equal(data, Rows(g.y(), ids));
  const Output count = SegmentSum(Cast(hits, g.dy().dtype()), ids);
  const Output shared = Rows(g.dy() / count, ids);
  return {SelectV2(hits, shared, zeros), Grad()};
}

// The derivative is the segment's product divided by the element. If an element is the only zero of
// its segment, it is the product of the other elements; with two or more zeros it is zero.
Grads SegmentProdGradient(GradContext& g) {
  const Output data = g.x(0), ids = g.x(1);
  const Output is_zero = Equal(data, 0);
  const Output zeros_in = SegmentSum(Cast(is_zero, DT_INT32), ids);
  const Output dy = SelectV2(Greater(zeros_in, 1), ZerosOf(g.dy()), g.dy());
  const Output nonzero = SelectV2(is_zero, OnesOf(data), data);
  const Output nonzero_product = SegmentProd(nonzero, ids);
  const Output product = Rows(g.y(), ids);
  const Output others = Rows(nonzero_product, ids);
  const Output slope = SelectV2(is_zero, others, product / nonzero);
  return {Rows(dy, ids) * slope, Grad()};
}

// For unsorted segments: gathers rows of `data` by id, with zeros for negative ids.
struct Gathered {
  Output rows, safe_ids, is_positive;
};
Gathered GatherDropNegatives(Output data, Output ids, Output safe_ids = {},
                             Output is_positive = {}) {
  Graph& graph = data.graph();
  if (!safe_ids.valid()) safe_ids = Maximum(ids, ZerosOf(ids));
  const Output rows = Rows(data, safe_ids);
  if (!is_positive.valid()) {
    is_positive = GreaterEqual(ids, 0);
    // Broadcast along the dimensions that the ids do not have.
    const Output shape = ShapeVector(is_positive), extra = Rank(rows) - Rank(is_positive);
    Output ones;
    {
      const NameScope scope(graph, "ones");
      ones = Ones(graph, Stack({extra}, 0, "packed"), DT_INT32, scope.name());
    }
    is_positive = Reshape(is_positive, Concat({shape, ones}, 0));
    is_positive = LogicalAnd(is_positive, OnesLike(rows, DT_BOOL), "and");
  }
  return {SelectV2(is_positive, rows, ZerosOf(rows)), safe_ids, is_positive};
}

Grads UnsortedSegmentSumGradient(GradContext& g) {
  return {GatherDropNegatives(g.dy(), g.x(1)).rows, Grad(), Grad()};
}

Grads UnsortedSegmentExtremeGradient(GradContext& g) {
  const Output data = g.x(0), ids = g.x(1);
  const Gathered best = GatherDropNegatives(g.y(), ids);
  const Output hits = LogicalAnd(Equal(data, best.rows), best.is_positive);
  const Output count = UnsortedSegmentSum(Cast(hits, g.dy().dtype()), ids, g.x(2));
  const Gathered shared = GatherDropNegatives(g.dy() / count, ids, best.safe_ids, best.is_positive);
  return {SelectV2(hits, shared.rows, ZerosOf(shared.rows)), Grad(), Grad()};
}

Grads UnsortedSegmentProdGradient(GradContext& g) {
  const Output data = g.x(0), ids = g.x(1), num = g.x(2);
  const Output is_zero = Equal(data, 0);
  const Output zeros_in = UnsortedSegmentSum(Cast(is_zero, DT_INT32), ids, num);
  const Output dy = SelectV2(Greater(zeros_in, 1), ZerosOf(g.dy()), g.dy());
  const Output nonzero = SelectV2(is_zero, OnesOf(data), data);
  const Output nonzero_product = UnsortedSegmentProd(nonzero, ids, num);
  const Output safe_ids = Maximum(ids, ZerosOf(ids));
  const Output product = Rows(g.y(), safe_ids), others = Rows(nonzero_product, safe_ids);
  const Output slope = SelectV2(is_zero, others, product / nonzero);
  return {GatherDropNegatives(dy, ids, safe_ids).rows * slope, Grad(), Grad()};
}

Output FirstDimOf(Output shape) { return StridedSlice(shape, {Index(0)}); }

// `op` scatters the rows of dy into zeros. With sparse_gradient, its second version omits the zero
// rows.
template <int kInputs>
GradientFn SparseSegmentGradient(const char* op) {
  return [op](GradContext& g) -> Grads {
    Grads out(kInputs);
    const Output shape = ShapeVector(g.x(0)), rows = FirstDimOf(shape);
    if (g.attr<bool>("sparse_gradient")) {
      const Node* const sums = AddNode(absl::StrCat(op, "V2"), {g.dy(), g.x(1), g.x(2), rows});
      if (sums != nullptr) out[0] = IndexedSlices{sums->output(0), sums->output(1), shape};
    } else {
      out[0] = AddOp(op, {g.dy(), g.x(1), g.x(2), rows});
    }
    return out;
  };
}

// The gradient of a scatter is a gather.
template <bool kSqrt, bool kScaled>
Grads SparseSegmentGradGradient(GradContext& g) {
  const char* op = !kScaled ? "SparseSegmentSum"
                   : kSqrt  ? "SparseSegmentSqrtN"
                            : "SparseSegmentMean";
  Output sums = AddOp(absl::StrCat(op, "WithNumSegments"),
                      {g.dy(), g.x(1), g.x(2), FirstDimOf(ShapeVector(g.x(0)))});
  return {sums};
}

constexpr char kNumSegments[] = "Tnumsegments: {int32, int64} = DT_INT32";

OpSpec SegmentSpec(absl::string_view op, absl::string_view types) {
  return OpSpec(op)
      .In("data: T, segment_ids: Tindices")
      .Out("output: T")
      .Attr(types)
      .Attr("Tindices: {int32, int64}")
      .Reduction()
      .InferShape(SegmentShape);
}

OpSpec UnsortedSpec(absl::string_view op, absl::string_view types, absl::string_view indices) {
  return OpSpec(op)
      .In("data: T, segment_ids: Tindices, num_segments: Tnumsegments")
      .Out("output: T")
      .Attr(types)
      .Attr(indices)
      .Attr(kNumSegments)
      .Reduction()
      .InferShape(UnsortedSegmentShape);
}

void AddSparse(OpRegistry* ops, const std::string& kind, absl::string_view types,
               const GradientFn& gradient, const GradientFn& gradient_n, const GradientFn& second,
               absl::string_view doc) {
  constexpr char kIdx[] = "Tidx: {int32, int64} = DT_INT32",
                 kIds[] = "Tsegmentids: {int32, int64} = DT_INT32";
  const std::string op = "SparseSegment" + kind;
  ops->Add(OpSpec(op)
               .In("data: T, indices: Tidx, segment_ids: Tsegmentids")
               .Out("output: T")
               .Attr(types)
               .Attr(kIdx)
               .Attr(kIds)
               .Attr("sparse_gradient: bool = false")
               .InferShape(SparseSegmentShape)
               .Gradient(gradient)
               .Doc(doc));
  ops->Add(OpSpec(op + "WithNumSegments")
               .In("data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments")
               .Out("output: T")
               .Attr(types)
               .Attr(kIdx)
               .Attr(kNumSegments)
               .Attr(kIds)
               .Attr("sparse_gradient: bool = false")
               .InferShape(SparseSegmentRowsShape)
               .Gradient(gradient_n)
               .Doc(absl::StrCat(doc, " The number of segments is an input.")));
  ops->Add(OpSpec(op + "Grad")
               .In("grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32")
               .Out("output: T")
               .Attr(kFloatTypes)
               .Attr(kIdx)
               .Attr(kIds)
               .InferShape(SparseSegmentRowsShape)
               .Gradient(second)
               .Doc(absl::StrCat("Computes the gradient of ", op, " with respect to its data.")));
  ops->Add(OpSpec(op + "GradV2")
               .In("grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32")
               .Out("output: T, sorted_unique_indices: Tidx")
               .Attr(kFloatTypes)
               .Attr(kIdx)
               .Attr(kIds)
               .InferShape(SparseSegmentGradV2Shape)
               .Doc(absl::StrCat("Computes the nonzero rows of the gradient of ", op,
                                 ", and their indices.")));
}

}  // namespace

void AddSegmentOps(OpRegistry* ops) {
  const char* const all = "T: numbertype";
  ops->Add(SegmentSpec("SegmentSum", all)
               .Gradient(SegmentSumGradient)
               .Doc("Computes the sum of rows with equal (sorted) ids."));
  ops->Add(SegmentSpec("SegmentMean", all)
               .Gradient(SegmentMeanGradient)
               .Doc("Computes the mean of rows with equal (sorted) ids."));
  ops->Add(SegmentSpec("SegmentProd", all)
               .Gradient(SegmentProdGradient)
               .Doc("Computes the product of rows with equal (sorted) ids, or 1 for ids that do "
                    "not occur."));
  ops->Add(SegmentSpec("SegmentMin", kRealTypes)
               .Gradient(SegmentExtremeGradient)
               .Doc("Computes the minimum of rows with equal (sorted) ids, or 0 for ids that do "
                    "not occur."));
  ops->Add(SegmentSpec("SegmentMax", kRealTypes)
               .Gradient(SegmentExtremeGradient)
               .Doc("Computes the maximum of rows with equal (sorted) ids, or 0 for ids that do "
                    "not occur."));
  const char* const ids = "Tindices: {int32, int64}";
  ops->Add(UnsortedSpec("UnsortedSegmentSum", all, "Tindices: {int16, int32, int64}")
               .Gradient(UnsortedSegmentSumGradient)
               .Doc("Computes the sum of rows with equal ids. Negative ids are dropped."));
  ops->Add(UnsortedSpec("UnsortedSegmentProd", all, ids)
               .Gradient(UnsortedSegmentProdGradient)
               .Doc("Computes the product of rows with equal ids, or 1 for ids that do not occur. "
                    "Negative ids are dropped."));
  ops->Add(UnsortedSpec("UnsortedSegmentMin", kRealTypes, ids)
               .Gradient(UnsortedSegmentExtremeGradient)
               .Doc("Computes the minimum of rows with equal ids, or the type's largest value for "
                    "ids that do not occur. Negative ids are dropped."));
  ops->Add(UnsortedSpec("UnsortedSegmentMax", kRealTypes, ids)
               .Gradient(UnsortedSegmentExtremeGradient)
               .Doc("Computes the maximum of rows with equal ids, or the type's lowest value for "
                    "ids that do not occur. Negative ids are dropped."));
  AddSparse(ops, "Sum", kRealTypes, SparseSegmentGradient<3>("SparseSegmentSumGrad"),
            SparseSegmentGradient<4>("SparseSegmentSumGrad"),
            SparseSegmentGradGradient<false, false>,
            "Computes the sum of rows data[indices] with equal (sorted) ids.");
  AddSparse(ops, "Mean", kFloatTypes, SparseSegmentGradient<3>("SparseSegmentMeanGrad"),
            SparseSegmentGradient<4>("SparseSegmentMeanGrad"),
            SparseSegmentGradGradient<false, true>,
            "Computes the mean of rows data[indices] with equal (sorted) ids.");
  AddSparse(ops, "SqrtN", kFloatTypes, SparseSegmentGradient<3>("SparseSegmentSqrtNGrad"),
            SparseSegmentGradient<4>("SparseSegmentSqrtNGrad"),
            SparseSegmentGradGradient<true, true>,
            "Computes the sum of rows data[indices] with equal (sorted) ids, divided by the square "
            "root of their number.");
}

// ---- builders

Output SegmentSum(Output data, Output ids, absl::string_view name) {
  return AddOp("SegmentSum", {data, ids}, {}, name);
}
Output SegmentMean(Output data, Output ids, absl::string_view name) {
  return AddOp("SegmentMean", {data, ids}, {}, name);
}
Output SegmentProd(Output data, Output ids, absl::string_view name) {
  return AddOp("SegmentProd", {data, ids}, {}, name);
}
Output SegmentMin(Output data, Output ids, absl::string_view name) {
  return AddOp("SegmentMin", {data, ids}, {}, name);
}
Output SegmentMax(Output data, Output ids, absl::string_view name) {
  return AddOp("SegmentMax", {data, ids}, {}, name);
}

namespace {

Output UnsortedSegment(const char* op, Output data, Output ids, const Ints& num_segments,
                       absl::string_view name) {
  if (!data.valid()) return {};
  if (num_segments.is_tensor()) return AddOp(op, {data, ids, num_segments.tensor()}, {}, name);
  NameScope scope(data.graph(), name.empty() ? op : name);
  return AddOp(op, {data, ids, num_segments.In(data.graph(), "num_segments")}, {}, scope.name());
}

}  // namespace

Output UnsortedSegmentSum(Output data, Output ids, const Ints& num_segments,
                          absl::string_view name) {
  return UnsortedSegment("UnsortedSegmentSum", data, ids, num_segments, name);
}
Output UnsortedSegmentProd(Output data, Output ids, const Ints& num_segments,
                           absl::string_view name) {
  return UnsortedSegment("UnsortedSegmentProd", data, ids, num_segments, name);
}
Output UnsortedSegmentMin(Output data, Output ids, const Ints& num_segments,
                          absl::string_view name) {
  return UnsortedSegment("UnsortedSegmentMin", data, ids, num_segments, name);
}
Output UnsortedSegmentMax(Output data, Output ids, const Ints& num_segments,
                          absl::string_view name) {
  return UnsortedSegment("UnsortedSegmentMax", data, ids, num_segments, name);
}
Output SparseSegmentSum(Output data, Output indices, Output ids, absl::string_view name) {
  return AddOp("SparseSegmentSum", {data, indices, ids}, {}, name);
}
Output SparseSegmentMean(Output data, Output indices, Output ids, absl::string_view name) {
  return AddOp("SparseSegmentMean", {data, indices, ids}, {}, name);
}
Output SparseSegmentSqrtN(Output data, Output indices, Output ids, absl::string_view name) {
  return AddOp("SparseSegmentSqrtN", {data, indices, ids}, {}, name);
}

}  // namespace weir
