#include "weir/kernels/lib/accumulate.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Padding with a constant, or by mirroring.
namespace weir {

namespace {

struct Border {
  Dims before, after;
};

absl::StatusOr<Border> ReadPaddings(const Tensor& paddings, int rank) {
  if (paddings.rank() != 2 || paddings.dim(1) != 2 || paddings.dim(0) != rank) {
    return InvalidArgument("paddings must be a matrix with 2 columns and a row for each of the ",
                           rank, " dimensions of the input, but has shape ",
                           paddings.shape().ToString());
  }
  const Dims values = ReadInts(paddings);
  Border border;
  for (int i = 0; i < rank; ++i) {
    if (values[2 * i] < 0 || values[2 * i + 1] < 0) {
      return InvalidArgument("Paddings must be non-negative: ", values[2 * i], " ",
                             values[2 * i + 1]);
    }
    border.before.push_back(values[2 * i]);
    border.after.push_back(values[2 * i + 1]);
  }
  return border;
}

absl::StatusOr<Shape> PaddedShape(const Shape& in, const Border& border) {
  Dims dims;
  for (int i = 0; i < in.rank(); ++i) {
    int64_t extent = 0;
    if (__builtin_add_overflow(in.dim(i), border.before[i], &extent) ||
        __builtin_add_overflow(extent, border.after[i], &extent)) {
      return InvalidArgument("dimension ", i, " of the padded shape overflows");
    }
    dims.push_back(extent);
  }
  return CheckedShape(dims);
}

// Copies the input into the output, shifted by `before`.
void CopyInterior(const KernelContext& c, const Tensor& in, const Border& border, Tensor* out) {
  if (in.num_elements() == 0) return;
  const Dims to = StridesOf(out->shape());
  StridedCopy copy{Dims(in.shape().dims().begin(), in.shape().dims().end()), StridesOf(in.shape()),
                   to};
  int64_t offset = 0;
  for (int i = 0; i < in.rank(); ++i) offset += border.before[i] * to[i];
  copy.Run(c, in.dtype(), in.raw(), ElementAt(*out, offset));
}

absl::Status Pad(KernelContext& c) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const Border border, ReadPaddings(c.input(1), in.rank()));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, PaddedShape(in.shape(), border));
  if (c.num_inputs() == 3) WEIR_RETURN_IF_ERROR(CheckRank(c.input(2), 0, "constant_values"));
  if (shape == in.shape()) return OutputRun(c, 0, in, 0, shape);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (c.num_inputs() == 3) {
    FillElements(c, in.dtype(), c.input(2).raw(), out->raw(), out->num_elements());
  } else {
    ClearElements(c, *out);
  }
  CopyInterior(c, in, border, out);
  return absl::OkStatus();
}

// ---- mirroring

// REFLECT omits the border element (offset 1), SYMMETRIC repeats it (offset 0).
int64_t MirrorOffset(const KernelInit& init) {
  return init.attr<std::string>("mode") == "REFLECT" ? 1 : 0;
}

absl::Status CheckMirror(const Border& border, const Shape& inner, int64_t offset) {
  for (int i = 0; i < inner.rank(); ++i) {
    const int64_t limit = inner.dim(i) - offset;
    if (border.before[i] > limit || border.after[i] > limit) {
      return InvalidArgument("paddings must be ", offset == 0 ? "no greater than" : "less than",
                             " the dimension size: ", border.before[i], ", ", border.after[i],
                             " not ", offset == 0 ? "no greater than " : "less than ",
                             inner.dim(i));
    }
  }
  return absl::OkStatus();
}

// One mirrored border of a tensor: copies `extent` slices along a dimension, read backward starting
// at position `from`, to position `to`.
struct Mirror {
  int dim;
  int64_t from, to, extent;
};

// Returns the borders in the order that builds up a padded tensor: first those of the last
// dimension, over the interior of all others; each next dimension then mirrors the result.
std::vector<Mirror> MirrorsOf(const Shape& inner, const Border& border, int64_t offset) {
  std::vector<Mirror> mirrors;
  for (int d = inner.rank() - 1; d >= 0; --d) {
    const int64_t before = border.before[d], after = border.after[d], end = before + inner.dim(d);
    if (before > 0) mirrors.push_back({d, before + before - 1 + offset, 0, before});
    if (after > 0) mirrors.push_back({d, end - 1 - offset, end, after});
  }
  return mirrors;
}

// Returns the grid of a mirror: full extents in the dimensions already built up (those after
// `dim`), interior ones before it.
struct MirrorGrid {
  Dims extents, from_strides, strides;
  int64_t from = 0, to = 0;
  MirrorGrid(const Shape& outer, const Shape& inner, const Border& border, const Mirror& m)
      : strides(StridesOf(outer)) {
    from_strides = strides;
    from_strides[m.dim] = -strides[m.dim];
    for (int i = 0; i < outer.rank(); ++i) {
      extents.push_back(i == m.dim ? m.extent : i < m.dim ? inner.dim(i) : outer.dim(i));
      const int64_t skipped = i < m.dim ? border.before[i] * strides[i] : 0;
      from += i == m.dim ? m.from * strides[i] : skipped;
      to += i == m.dim ? m.to * strides[i] : skipped;
    }
  }
};

absl::Status MirrorPad(KernelContext& c, int64_t offset) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const Border border, ReadPaddings(c.input(1), in.rank()));
  WEIR_RETURN_IF_ERROR(CheckMirror(border, in.shape(), offset));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, PaddedShape(in.shape(), border));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  CopyInterior(c, in, border, out);
  for (const Mirror& m : MirrorsOf(in.shape(), border, offset)) {
    MirrorGrid grid(shape, in.shape(), border, m);
    StridedCopy copy{std::move(grid.extents), std::move(grid.from_strides),
                     std::move(grid.strides)};
    copy.Run(c, in.dtype(), ElementAt(*out, grid.from), ElementAt(*out, grid.to));
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeMirrorPad(const KernelInit& init) {
  const int64_t offset = MirrorOffset(init);
  return Kernel([offset](KernelContext& c) -> absl::Status { return MirrorPad(c, offset); });
}

// Accumulates what a mirror copied into its source.
template <class T>
void Unmirror(const MirrorGrid& grid, T* data) {
  int64_t count = 1;
  for (const int64_t e : grid.extents) count *= e;
  Dims index(grid.extents.size(), 0);
  int64_t from = grid.from, to = grid.to;
  for (int64_t k = 0; k < count; ++k) {
    data[from] = Add(data[from], data[to]);
    for (size_t i = index.size(); i-- > 0;) {
      from += grid.from_strides[i];
      to += grid.strides[i];
      if (++index[i] < grid.extents[i]) break;
      from -= grid.from_strides[i] * grid.extents[i];
      to -= grid.strides[i] * grid.extents[i];
      index[i] = 0;
    }
  }
}

// Applies the mirrors' gradients in reverse order to a copy; the interior is the result.
template <class T>
absl::Status MirrorPadGrad(KernelContext& c, int64_t offset) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const Border border, ReadPaddings(c.input(1), in.rank()));
  Shape inner;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t limit = in.dim(i);
    if (border.before[i] > limit || border.after[i] > limit - border.before[i]) {
      return InvalidArgument("Total paddings must be no greater than the dimension size: ",
                             border.before[i], " and ", border.after[i], " of ", limit);
    }
    inner.AddDim(limit - border.before[i] - border.after[i]);
  }
  WEIR_RETURN_IF_ERROR(CheckMirror(border, inner, offset));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, inner));
  if (out->num_elements() == 0) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(Tensor sums, c.AllocateTemp(in.dtype(), in.shape()));
  CopyElements(in.dtype(), in.raw(), sums.raw(), in.num_elements());
  const std::vector<Mirror> mirrors = MirrorsOf(inner, border, offset);
  for (size_t i = mirrors.size(); i-- > 0;)
    Unmirror(MirrorGrid(in.shape(), inner, border, mirrors[i]), sums.data<T>());
  const Dims strides = StridesOf(in.shape());
  StridedCopy copy{Dims(inner.dims().begin(), inner.dims().end()), strides, StridesOf(inner)};
  int64_t begin = 0;
  for (int i = 0; i < in.rank(); ++i) begin += border.before[i] * strides[i];
  copy.Run(c, in.dtype(), ElementAt(sums, begin), out->raw());
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeMirrorPadGrad(const KernelInit& init) {
  const int64_t offset = MirrorOffset(init);
  const DataType type = init.attr<DataType>("T");
  Kernel kernel;
  const bool found = DispatchType(type, Numbers{}, [&]<class T>() {
    kernel =
        Kernel([offset](KernelContext& c) -> absl::Status { return MirrorPadGrad<T>(c, offset); });
  });
  if (!found) return Unimplemented("elements of type ", DataTypeName(type), " cannot be added");
  return kernel;
}

}  // namespace

void AddPadCpu(KernelRegistry* r) {
  r->Add("Pad", kCpu, Pad).HostArgs({"paddings"});
  r->Add("PadV2", kCpu, Pad).HostArgs({"paddings", "constant_values"});
  r->Add("MirrorPad", kCpu, MakeMirrorPad).HostArgs({"paddings"});
  r->Add("MirrorPadGrad", kCpu, MakeMirrorPadGrad).HostArgs({"paddings"});
}

}  // namespace weir
