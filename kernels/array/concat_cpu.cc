#include "weir/kernels/array/concat_layout.h"

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Concatenates tensors along a dimension, and splits them. With respect to the axis, a tensor is a
// matrix: the dimensions before the axis form the rows, the axis and the dimensions after it the
// columns. A part is a range of columns.
namespace weir {

// The product of extents [begin, end).
static int64_t Product(const Shape& shape, int begin, int end) {
  uint64_t n = 1;  // overflows only for tensors without elements
  for (int i = begin; i < end; ++i) n *= static_cast<uint64_t>(shape.dim(i));
  return static_cast<int64_t>(n);
}

namespace {

// Copies `rows` rows of `columns` elements between matrices with the given row strides.
void CopyColumns(const KernelContext& c, DataType dtype, int64_t rows, int64_t columns,
                 const void* from, int64_t from_stride, void* to, int64_t to_stride) {
  if (rows == 0 || columns == 0) return;
  StridedCopy copy;
  copy.AddDim(rows, from_stride, to_stride);
  copy.AddDim(columns, 1, 1);
  copy.Run(c, dtype, from, to);
}

absl::Status CheckConcat(const Tensor& first, const Tensor& t, int i, int axis) {
  if (t.rank() != first.rank()) {
    return InvalidArgument(
        "ConcatOp : Ranks of all input tensors should match: shape[0] = ", first.shape().ToString(),
        " vs. shape[", i, "] = ", t.shape().ToString());
  }
  for (int d = 0; d < t.rank(); ++d) {
    if (d != axis && t.dim(d) != first.dim(d)) {
      return InvalidArgument("ConcatOp : Dimension ", d,
                             " in both shapes must be equal: shape[0] = ", first.shape().ToString(),
                             " vs. shape[", i, "] = ", t.shape().ToString());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConcatLayout> ConcatLayout::Of(const KernelContext& c, int first, int n,
                                              int axis_input) {
  WEIR_ASSIGN_OR_RETURN(const int64_t named, ReadOneInt(c.input(axis_input), "Concat dim tensor"));
  const Tensor& head = c.input(first);
  if (head.rank() == 0)
    return InvalidArgument("ConcatOp : Can't concatenate scalars (use tf.stack instead)");
  if (named < -head.rank() || named >= head.rank()) {
    return InvalidArgument("ConcatOp : Expected concatenating dimensions in the range [",
                           -head.rank(), ", ", head.rank(), "), but got ", named);
  }
  ConcatLayout join;
  const int axis = static_cast<int>(named < 0 ? named + head.rank() : named);
  join.shape = head.shape();
  for (int i = 0; i < n; ++i) {
    const Tensor& part = c.input(first + i);
    WEIR_RETURN_IF_ERROR(CheckConcat(head, part, i, axis));
    if (i > 0) join.shape.set_dim(axis, join.shape.dim(axis) + part.dim(axis));
    join.widths.push_back(Product(part.shape(), axis, part.rank()));
  }
  WEIR_ASSIGN_OR_RETURN(join.shape, CheckedShape(join.shape.dims()));
  join.rows = Product(join.shape, 0, axis);
  join.row = Product(join.shape, axis, join.shape.rank());
  return join;
}

namespace {

// Concatenates inputs [first, first + n) along the axis given by another input.
absl::Status Concat(KernelContext& c, int first, int n, int axis_input) {
  WEIR_ASSIGN_OR_RETURN(const ConcatLayout join, ConcatLayout::Of(c, first, n, axis_input));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, join.shape));
  int64_t column = 0;
  for (int i = 0; i < n; ++i) {
    const Tensor& part = c.input(first + i);
    const int64_t width = join.widths[i];
    CopyColumns(c, part.dtype(), join.rows, width, part.raw(), width, ElementAt(*out, column),
                join.row);
    column += width;
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeConcat(const KernelInit& init) {
  const int n = init.node.num_inputs() - 1;
  const bool axis_first = init.node.op_name() == "Concat";
  return Kernel([n, axis_first](KernelContext& c) -> absl::Status {
    return Concat(c, axis_first ? 1 : 0, n, axis_first ? 0 : n);
  });
}

absl::Status ConcatOffset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t named, ReadInt(c.input(0), "Concat dim tensor"));
  const Tensor& first = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckRank(first, 1, "shape"));
  const Dims head = ReadInts(first);
  WEIR_ASSIGN_OR_RETURN(const int axis, ReadAxis(named, static_cast<int>(head.size())));
  int64_t offset = 0;
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.input(i).shape() != first.shape()) {
      return InvalidArgument("input ", i - 1, " should contain ", head.size(),
                             " elements, but has shape ", c.input(i).shape().ToString());
    }
    const Dims dims = ReadInts(c.input(i));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(i - 1, first.shape()));
    ClearElements(c.pool(), *out);
    for (size_t d = 0; d < dims.size(); ++d) {
      if (static_cast<int>(d) != axis && dims[d] != head[d]) {
        return InvalidArgument("All dimensions except ", axis, " must match. Input ", i - 1,
                               " has shape ", Shape(absl::MakeConstSpan(dims)).ToString(),
                               " and doesn't match input 0 with shape ",
                               Shape(absl::MakeConstSpan(head)).ToString(), ".");
      }
    }
    if (out->dtype() == DT_INT64) {
      out->data<int64_t>()[axis] = offset;
    } else {
      out->data<int32_t>()[axis] = static_cast<int32_t>(offset);
    }
    if (__builtin_add_overflow(offset, dims[axis], &offset))
      return InvalidArgument("the offsets overflow");
  }
  return absl::OkStatus();
}

absl::Status Pack(KernelContext& c, int64_t named) {
  const Tensor& head = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const int axis, ReadAxis(named, head.rank() + 1));
  const int n = c.num_inputs();
  for (int i = 1; i < n; ++i) {
    if (c.input(i).shape() != head.shape()) {
      return InvalidArgument(
          "Shapes of all inputs must match: values[0].shape = ", head.shape().ToString(),
          " != values[", i, "].shape = ", c.input(i).shape().ToString());
    }
  }
  Shape shape = head.shape();
  shape.InsertDim(axis, n);
  WEIR_ASSIGN_OR_RETURN(shape, CheckedShape(shape.dims()));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  const int64_t rows = Product(head.shape(), 0, axis),
                width = Product(head.shape(), axis, head.rank());
  for (int i = 0; i < n; ++i) {
    const Tensor& part = c.input(i);
    CopyColumns(c, part.dtype(), rows, width, part.raw(), width, ElementAt(*out, i * width),
                n * width);
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakePack(const KernelInit& init) {
  const int64_t axis = init.attr<int64_t>("axis");
  return Kernel([axis](KernelContext& c) -> absl::Status { return Pack(c, axis); });
}

// ---- splitting

// Output i is columns [begin, begin + columns) of the input, a matrix of `rows` rows of `row`
// elements.
absl::Status OutputColumns(KernelContext& c, int i, const Tensor& in, int64_t rows, int64_t row,
                           int64_t begin, int64_t columns, const Shape& shape) {
  if (rows == 1 && shape.num_elements() > 0) return OutputRun(c, i, in, begin, shape);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(i, shape));
  CopyColumns(c, in.dtype(), rows, columns, ElementAt(in, begin), row, out->raw(), columns);
  return absl::OkStatus();
}

absl::Status SplitInto(KernelContext& c, const Tensor& in, int axis,
                       absl::Span<const int64_t> sizes) {
  const int64_t rows = Product(in.shape(), 0, axis), row = Product(in.shape(), axis, in.rank());
  const int64_t tail = Product(in.shape(), axis + 1, in.rank());
  int64_t column = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Shape shape = in.shape();
    shape.set_dim(axis, sizes[i]);
    const int64_t width = sizes[i] * tail;
    WEIR_RETURN_IF_ERROR(
        OutputColumns(c, static_cast<int>(i), in, rows, row, column, width, shape));
    column += width;
  }
  return absl::OkStatus();
}

absl::Status Split(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t named, ReadInt(c.input(0), "split_dim"));
  const Tensor& in = c.input(1);
  WEIR_ASSIGN_OR_RETURN(const int axis, ReadAxis(named, in.rank()));
  const int n = c.num_outputs();
  if (in.dim(axis) % n != 0) {
    return InvalidArgument(
        "Number of ways to split should evenly divide the split dimension, but got split_dim ",
        axis, " (size = ", in.dim(axis), ") and num_split ", n);
  }
  const Dims sizes(n, in.dim(axis) / n);
  return SplitInto(c, in, axis, sizes);
}

absl::Status SplitV(KernelContext& c) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const int64_t named, ReadOneInt(c.input(2), "split_dim"));
  WEIR_ASSIGN_OR_RETURN(const int axis, ReadAxis(named, in.rank()));
  Dims sizes = ReadInts(c.input(1));
  if (c.input(1).rank() != 1 || static_cast<int>(sizes.size()) != c.num_outputs()) {
    return InvalidArgument(
        "size of the split_tensor must be 1-D and have the same elements as outputs got ",
        c.input(1).shape().ToString(), " for ", c.num_outputs(), " outputs");
  }
  int64_t left = in.dim(axis), open = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 && open < 0) {
      open = static_cast<int64_t>(i);
    } else if (sizes[i] < 0 || sizes[i] > left) {
      return InvalidArgument(
          "Determined shape must either match input shape along split_dim exactly if fully ",
          "specified, or be less than the size of the input along split_dim if not: size_splits[",
          i, "] = ", sizes[i], " with ", left, " left of ", in.dim(axis));
    } else {
      left -= sizes[i];
    }
  }
  if (open < 0 && left != 0) {
    return InvalidArgument("Determined shape must match input shape along split_dim exactly: ",
                           left, " of ", in.dim(axis), " are left over");
  }
  if (open >= 0) sizes[open] = left;
  return SplitInto(c, in, axis, sizes);
}

absl::Status Unpack(KernelContext& c, int64_t named) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const int axis, ReadAxis(named, in.rank()));
  if (in.dim(axis) != c.num_outputs()) {
    return InvalidArgument("Input shape axis ", axis, " must equal ", c.num_outputs(),
                           ", got shape ", in.shape().ToString());
  }
  Shape shape = in.shape();
  shape.RemoveDim(axis);
  const int64_t rows = Product(in.shape(), 0, axis),
                width = Product(in.shape(), axis + 1, in.rank());
  for (int i = 0; i < c.num_outputs(); ++i) {
    WEIR_RETURN_IF_ERROR(
        OutputColumns(c, i, in, rows, width * c.num_outputs(), i * width, width, shape));
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeUnpack(const KernelInit& init) {
  const int64_t axis = init.attr<int64_t>("axis");
  return Kernel([axis](KernelContext& c) -> absl::Status { return Unpack(c, axis); });
}

}  // namespace

void AddConcatCpu(KernelRegistry* r) {
  r->Add("Concat", kCpu, MakeConcat).HostArgs({"concat_dim"});
  r->Add("ConcatV2", kCpu, MakeConcat).HostArgs({"axis"});
  r->Add("ConcatOffset", kCpu, ConcatOffset).HostArgs({"concat_dim", "shape", "offset"});
  r->Add("Pack", kCpu, MakePack);
  r->Add("Split", kCpu, Split).HostArgs({"split_dim"});
  r->Add("SplitV", kCpu, SplitV).HostArgs({"size_splits", "split_dim"});
  r->Add("Unpack", kCpu, MakeUnpack);
}

}  // namespace weir
