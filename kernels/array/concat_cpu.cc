#include "weir/kernels/array/concat_layout.h"

#include "weir/kernels/array/column_parts.h"
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

// The elements of a tensor as those of a part, or a matrix, that is only read.
void* Readable(const Tensor& t) { return const_cast<void*>(t.raw()); }

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
  if (out->num_elements() == 0) return absl::OkStatus();
  ColumnParts parts;
  int64_t column = 0;
  for (int i = 0; i < n; ++i) {
    if (join.widths[i] > 0) parts.push_back({Readable(c.input(first + i)), column, join.widths[i]});
    column += join.widths[i];
  }
  JoinColumns(c, {out->raw(), out->dtype(), join.rows, join.row}, parts);
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
  if (out->num_elements() == 0) return absl::OkStatus();
  ColumnParts parts;
  for (int i = 0; i < n; ++i) parts.push_back({Readable(c.input(i)), i * width, width});
  JoinColumns(c, {out->raw(), out->dtype(), rows, n * width}, parts);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakePack(const KernelInit& init) {
  const int64_t axis = init.attr<int64_t>("axis");
  return Kernel([axis](KernelContext& c) -> absl::Status { return Pack(c, axis); });
}

// ---- splitting

// The outputs of a split: columns of a matrix of `rows` rows of `row` elements, which is `in`.
class Splitter {
 public:
  Splitter(KernelContext& c, const Tensor& in, int64_t rows, int64_t row)
      : c_(c), in_(in), rows_(rows), row_(row) {}

  // Output i is columns [begin, begin + width).
  absl::Status Add(int i, int64_t begin, int64_t width, const Shape& shape) {
    if (rows_ == 1 && width > 0) return OutputRun(c_, i, in_, begin, shape);
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c_.AllocateOutput(i, shape));
    if (rows_ > 0 && width > 0) parts_.push_back({out->raw(), begin, width});
    return absl::OkStatus();
  }
  // Writes the outputs.
  void Run() { SplitColumns(c_, {Readable(in_), in_.dtype(), rows_, row_}, parts_); }

 private:
  KernelContext& c_;
  const Tensor& in_;
  const int64_t rows_, row_;
  ColumnParts parts_;
};

// Which outputs a kernel computes: those that something uses.
using Needed = std::vector<bool>;
Needed NeededOutputs(const KernelInit& init) {
  Needed needed;
  for (int i = 0; i < init.node.num_outputs(); ++i) needed.push_back(init.is_used(i));
  return needed;
}

absl::Status SplitInto(KernelContext& c, const Tensor& in, int axis,
                       absl::Span<const int64_t> sizes, const Needed& needed) {
  const int64_t rows = Product(in.shape(), 0, axis), row = Product(in.shape(), axis, in.rank());
  const int64_t tail = Product(in.shape(), axis + 1, in.rank());
  Splitter splitter(c, in, rows, row);
  int64_t column = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Shape shape = in.shape();
    shape.set_dim(axis, sizes[i]);
    const int64_t width = sizes[i] * tail;
    if (needed[i]) WEIR_RETURN_IF_ERROR(splitter.Add(static_cast<int>(i), column, width, shape));
    column += width;
  }
  splitter.Run();
  return absl::OkStatus();
}

absl::Status Split(KernelContext& c, const Needed& needed) {
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
  return SplitInto(c, in, axis, sizes, needed);
}

absl::Status SplitV(KernelContext& c, const Needed& needed) {
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
  return SplitInto(c, in, axis, sizes, needed);
}

template <absl::Status (*kRun)(KernelContext&, const Needed&)>
absl::StatusOr<Kernel> MakeSplit(const KernelInit& init) {
  return Kernel([needed = NeededOutputs(init)](KernelContext& c) { return kRun(c, needed); });
}

absl::Status Unpack(KernelContext& c, int64_t named, const Needed& needed) {
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
  Splitter splitter(c, in, rows, width * c.num_outputs());
  for (int i = 0; i < c.num_outputs(); ++i) {
    if (needed[i]) WEIR_RETURN_IF_ERROR(splitter.Add(i, i * width, width, shape));
  }
  splitter.Run();
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeUnpack(const KernelInit& init) {
  const int64_t axis = init.attr<int64_t>("axis");
  return Kernel([axis, needed = NeededOutputs(init)](KernelContext& c) -> absl::Status {
    return Unpack(c, axis, needed);
  });
}

}  // namespace

void AddConcatCpu(KernelRegistry* r) {
  r->Add("Concat", kCpu, MakeConcat).HostArgs({"concat_dim"});
  r->Add("ConcatV2", kCpu, MakeConcat).HostArgs({"axis"});
  r->Add("ConcatOffset", kCpu, ConcatOffset).HostArgs({"concat_dim", "shape", "offset"});
  r->Add("Pack", kCpu, MakePack);
  r->Add("Split", kCpu, MakeSplit<Split>).HostArgs({"split_dim"});
  r->Add("SplitV", kCpu, MakeSplit<SplitV>).HostArgs({"size_splits", "split_dim"});
  r->Add("Unpack", kCpu, MakeUnpack);
}

}  // namespace weir
