#include "weir/ops/image/image.h"

#include <string>
#include <vector>

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/lib/window.h"

// Patch extraction, dilation and other sliding-window ops without pooling, and data format
// conversion.
namespace weir {

namespace {

using Longs = std::vector<int64_t>;

// ---- shape functions

absl::StatusOr<Longs> WindowList(const ShapeContext& c, absl::string_view name, size_t rank) {
  Longs list = c.node().attr_or<Longs>(name, Longs(rank, 1));
  for (const int64_t value : list) WEIR_RETURN_IF_ERROR(CheckInt32Attr(name, value));
  if (list.size() == rank) return list;
  return InvalidArgument(c.node().op_name(), " requires the ", name, " attribute to contain ", rank,
                         " values, but got: ", list.size());
}

absl::Status PatchesShape(ShapeContext& c) {
  const int rank = c.node().op_name() == "ExtractImagePatches" ? 4 : 5;
  WEIR_ASSIGN_OR_RETURN(const Shape in, c.WithRank(0, rank));
  WEIR_ASSIGN_OR_RETURN(const Longs sizes, WindowList(c, "ksizes", rank));
  WEIR_ASSIGN_OR_RETURN(const Longs strides, WindowList(c, "strides", rank));
  WEIR_ASSIGN_OR_RETURN(const Longs rates, WindowList(c, "rates", rank));
  Shape out = UnknownDims(rank);
  out.set_dim(0, in.dim(0));
  int64_t depth = in.dim(-1);
  for (int i = 1; i + 1 < rank; ++i) {
    if (sizes[i] < 1) return OutOfRange("ksizes is out of range: ", sizes[i]);
    if (rates[i] < 1) return OutOfRange("rates is out of range: ", rates[i]);
    WEIR_ASSIGN_OR_RETURN(depth, MulDims(depth, sizes[i]));
    Window w;
    w.input = in.dim(i);
    w.size = sizes[i];
    w.stride = strides[i];
    w.dilation = rates[i];
    WEIR_RETURN_IF_ERROR(Slide(c.attr<std::string>("padding"), &w));
    out.set_dim(i, w.output);
  }
  out.set_dim(rank - 1, depth);
  c.set_output(0, out);
  return absl::OkStatus();
}

absl::Status DilationShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape in, c.WithRank(0, 4));
  WEIR_ASSIGN_OR_RETURN(const Shape filter, c.WithRank(1, 3));
  WEIR_ASSIGN_OR_RETURN(const Longs strides, WindowList(c, "strides", 4));
  WEIR_ASSIGN_OR_RETURN(const Longs rates, WindowList(c, "rates", 4));
  WEIR_ASSIGN_OR_RETURN(const int64_t depth, MergeDims(in.dim(3), filter.dim(2)));
  Shape out({in.dim(0), -1, -1, depth});
  for (int i = 1; i < 3; ++i) {
    Window w;
    w.input = in.dim(i);
    w.size = filter.dim(i - 1);
    w.stride = strides[i];
    w.dilation = rates[i];
    WEIR_RETURN_IF_ERROR(Slide(c.attr<std::string>("padding"), &w));
    out.set_dim(i, filter.dim(i - 1) < 0 ? Shape::kUnknown : w.output);
  }
  c.set_output(0, out);
  return absl::OkStatus();
}

absl::Status LikeFilter(ShapeContext& c) { return PassShape(c, 1, 0); }

// ---- gradients

// A dimension of a Pack "Reshape/shape": a tensor or a number.
struct Dim {
  Dim(Output o) : tensor(o) {}
  Dim(int64_t v) : number(v) {}
  Output tensor;
  int64_t number = 0;
};
Output ReshapeTo(Graph& g, Output x, DataType type, const std::vector<Dim>& dims) {
  const std::string name = g.UniqueName(g.name_scope() + "Reshape", false);
  const std::string local = name.substr(g.name_scope().size());
  Outputs packed;
  for (size_t i = 0; i < dims.size(); ++i) {
    packed.push_back(dims[i].tensor.valid()
                         ? dims[i].tensor
                         : ConstOf(g, type, dims[i].number, absl::StrCat(local, "/shape/", i)));
  }
  return Reshape(x, Stack(packed, 0, local + "/shape"), local);
}

// Returns 1 for the first pixel, 2 for the next, and so on. Patches of this image map each patch
// element to its pixel, with 0 for padding.
Output PixelNumbers(Output count) {
  Graph& g = count.graph();
  const Output end = AddV2Op(count, ConstOf(g, DT_INT64, 1, "add/y"));
  const NameScope scope(g, "range");
  const Output start = Const(g, 1.0f, "start"), step = Const(g, 1.0f, "delta");
  return AddOp("Range", {start, Cast(end, DT_FLOAT), step}, {}, scope.name());
}

Grads ImagePatchesGradient(GradContext& g) {
  Graph& graph = g.graph();
  const Outputs in = Unstack(ShapeTensor(g.x(), DT_INT64), 0, 4);
  const Output out_shape = ShapeTensor(g.y(), DT_INT64);
  const Outputs out = Unstack(StridedSlice(out_shape, {Index::Range(1, 3)}), 0, 2);
  if (in.size() != 4 || out.size() != 2) return {};
  const Output batch = in[0], rows = in[1], columns = in[2], channels = in[3];
  const Longs sizes = g.attr<Longs>("ksizes");
  const Output pixels = MulOp(rows, columns);
  const Output numbers =
      ReshapeTo(graph, PixelNumbers(pixels), DT_INT64, {int64_t{1}, rows, columns, int64_t{1}});
  const Output patches = Cast(AddOp("ExtractImagePatches", {numbers},
                                    CopyAttrs(g.node(), {"ksizes", "strides", "rates", "padding"})),
                              DT_INT64);
  const Output expanded = Transpose(
      ReshapeTo(graph, g.dy(), DT_INT64, {batch, out[0], out[1], sizes[1], sizes[2], channels}),
      {1, 2, 3, 4, 0, 5});
  const Output flat = ReshapeTo(graph, expanded, DT_INT64, {int64_t{-1}, MulOp(batch, channels)});
  const Output ids = SubOp(Reshape(patches, {-1}), ConstOf(graph, DT_INT64, 1, "sub/y"));
  const Output sums = UnsortedSegmentSumOp(flat, ids, pixels);
  return {
      Transpose(ReshapeTo(graph, sums, DT_INT64, {rows, columns, batch, channels}), {2, 0, 1, 3})};
}

// Multiplies a sparse matrix by the gradients. The matrix has a one for each pixel at each patch
// element that is this pixel. Row 0 of the matrix is the padding and is removed.
Grads VolumePatchesGradient(GradContext& g) {
  Graph& graph = g.graph();
  const Shape in = g.x().shape(), out = g.y().shape();
  if (!in.has_rank() || !in.Sub(1, 4).IsFullyDefined() || !out.Sub(1, 4).IsFullyDefined()) {
    graph.Fail(InvalidArgument("the gradient of ", g.node().Label(),
                               " needs volumes of a static size, not ", in.ToString()));
    return {};
  }
  const Output sizes = ShapeTensor(g.x());
  const Output batch = StridedSlice(sizes, {0}), channels = StridedSlice(sizes, {4});
  const Longs k = g.attr<Longs>("ksizes");
  const int64_t pixels = 1 + in.dim(1) * in.dim(2) * in.dim(3);
  const int64_t taps = k[1] * k[2] * k[3], places = out.dim(1) * out.dim(2) * out.dim(3) * taps;
  const auto counting = [&](int64_t first, int64_t end) {
    const NameScope scope(graph, "range");
    const Output start = Const(graph, first, "start"), limit = Const(graph, end, "limit");
    return AddOp("Range", {start, limit, Const(graph, int64_t{1}, "delta")}, {}, scope.name());
  };
  const Output numbers = Reshape(counting(1, pixels), {1, in.dim(1), in.dim(2), in.dim(3), 1});
  const Output patches = AddOp("ExtractVolumePatches", {numbers},
                               CopyAttrs(g.node(), {"ksizes", "strides", "padding"}));
  const Output targets =
      Reshape(counting(0, places), {1, out.dim(1), out.dim(2), out.dim(3), taps});
  const Output pairs =
      Reshape(Concat({ExpandDims(patches, -1), ExpandDims(targets, -1)}, -1), {-1, 2});
  const Output ones = Ones(graph, {places}, g.dy().dtype());
  const auto longs = [&](std::initializer_list<int64_t> v, absl::string_view name) {
    return Const<int64_t>(graph, v, name);
  };
  const Output shape = longs({pixels, places}, "SparseTensor/dense_shape");
  const Output start = longs({1, 0}, "Const"), size = longs({pixels - 1, places}, "Const");
  const Outputs matrix = AllOutputs(AddNode("SparseSlice", {pairs, ones, shape, start, size}), 3);
  const Output expanded =
      Transpose(ReshapeTo(graph, g.dy(), DT_INT32,
                          {batch, out.dim(1), out.dim(2), out.dim(3), k[1], k[2], k[3], channels}),
                {1, 2, 3, 4, 5, 6, 0, 7});
  const Output flat = ReshapeTo(graph, expanded, DT_INT32, {int64_t{-1}, MulOp(batch, channels)});
  const Output sums = AddOp("SparseTensorDenseMatMul", {matrix[0], matrix[1], matrix[2], flat});
  return {Transpose(
      ReshapeTo(graph, sums, DT_INT32, {in.dim(1), in.dim(2), in.dim(3), batch, channels}),
      {3, 0, 1, 2, 4})};
}

Grads DilationGradient(GradContext& g) {
  const Attrs attrs = CopyAttrs(g.node(), {"strides", "rates", "padding"});
  const Output by_input = AddOp("Dilation2DBackpropInput", {g.x(0), g.x(1), g.dy()}, attrs);
  return {by_input, AddOp("Dilation2DBackpropFilter", {g.x(0), g.x(1), g.dy()}, attrs)};
}

constexpr char kPadding[] = "padding: {'SAME', 'VALID'}";

OpSpec DilationSpec(const char* name, const char* inputs, const char* output, ShapeFn shape,
                    const char* doc) {
  OpSpec spec(name);
  spec.In(inputs)
      .Out(output)
      .Attr("T: realnumbertype")
      .Attr("strides: list(int) >= 4")
      .Attr("rates: list(int) >= 4")
      .Attr(kPadding)
      .InferShape(shape)
      .Doc(doc);
  return spec;
}

OpSpec FormatSpec(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.In("x: T")
      .Out("y: T")
      .Attr("T: {int32, int64} = DT_INT32")
      .Attr("src_format: string = 'NHWC'")
      .Attr("dst_format: string = 'NCHW'")
      .InferShape(SameShape)
      .NotDifferentiable()
      .Doc(doc);
  return spec;
}

}  // namespace

void AddPatchOps(OpRegistry* ops) {
  ops->Add(OpSpec("ExtractImagePatches")
               .In("images: T")
               .Out("patches: T")
               .Attr("ksizes: list(int) >= 4")
               .Attr("strides: list(int) >= 4")
               .Attr("rates: list(int) >= 4")
               .Attr("T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, "
                     "uint16, uint32, uint64, complex64, complex128, bool}")
               .Attr(kPadding)
               .InferShape(PatchesShape)
               .Gradient(ImagePatchesGradient)
               .Doc("Extracts windows of images and flattens each into the channel dimension."));
  ops->Add(OpSpec("ExtractVolumePatches")
               .In("input: T")
               .Out("patches: T")
               .Attr("ksizes: list(int) >= 5")
               .Attr("strides: list(int) >= 5")
               .Attr("T: realnumbertype")
               .Attr(kPadding)
               .InferShape(PatchesShape)
               .Gradient(VolumePatchesGradient)
               .Doc("Extracts windows of volumes and flattens each into the channel dimension."));
  OpSpec dilation = DilationSpec("Dilation2D", "input: T, filter: T", "output: T", DilationShape,
                                 "Computes the maximum over each window of input + filter.");
  ops->Add(dilation.Gradient(DilationGradient));
  constexpr char kInputs[] = "input: T, filter: T, out_backprop: T";
  ops->Add(DilationSpec("Dilation2DBackpropInput", kInputs, "in_backprop: T", SameShape,
                        "Computes the gradient of Dilation2D with respect to its input."));
  ops->Add(DilationSpec("Dilation2DBackpropFilter", kInputs, "filter_backprop: T", LikeFilter,
                        "Computes the gradient of Dilation2D with respect to its filter."));
  ops->Add(FormatSpec("DataFormatDimMap",
                      "Converts dimension numbers from one data format (NHWC) to another."));
  ops->Add(FormatSpec("DataFormatVecPermute",
                      "Permutes a list with an entry for each (spatial) dimension from one data "
                      "format to another."));
}

// ---- builders

Output ExtractImagePatches(Output images, const PatchOptions& o, absl::string_view name) {
  return AddOp(
      "ExtractImagePatches", {images},
      {{"ksizes", o.ksizes}, {"strides", o.strides}, {"rates", o.rates}, {"padding", o.padding}},
      name);
}
Output Dilation2D(Output input, Output filter, const DilationOptions& o, absl::string_view name) {
  return AddOp("Dilation2D", {input, filter},
               {{"strides", o.strides}, {"rates", o.rates}, {"padding", o.padding}}, name);
}

}  // namespace weir
