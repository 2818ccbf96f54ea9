#include "weir/kernels/array/reverse_lines.h"
#include "weir/kernels/lib/accumulate.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/device_primitives.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Reordering and repetition: transposes, reversals, rolls, tiles and broadcasts, each one strided
// copy or a few.
namespace weir {

namespace {

absl::Status ReadPermutation(const Tensor& t, int rank, Dims* perm) {
  *perm = ReadInts(t);
  if (t.rank() != 1 || static_cast<int>(perm->size()) != rank) {
    return InvalidArgument("transpose expects a vector of size ", rank, ". But input(1) has shape ",
                           t.shape().ToString());
  }
  absl::InlinedVector<bool, 8> seen(rank, false);
  for (int64_t& p : *perm) {
    const int64_t given = p;
    if (p < 0) p += rank;
    if (p < 0 || p >= rank) return InvalidArgument(given, " is out of range [0 .. ", rank, ")");
    if (seen[p])
      return InvalidArgument(
          p, " is duplicated in the permutation, so another dimension is missing from it");
    seen[p] = true;
  }
  return absl::OkStatus();
}

template <class T>
void ConjugateInPlace(ThreadPool& pool, Tensor* t) {
  T* x = t->data<T>();
  pool.ParallelFor(t->num_elements(), 0.5, [x](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) x[i] = std::conj(x[i]);
  });
}

absl::Status Transpose(KernelContext& c, bool conjugate) {
  const Tensor& in = c.input(0);
  Dims perm;
  WEIR_RETURN_IF_ERROR(ReadPermutation(c.input(1), in.rank(), &perm));
  const Dims in_strides = StridesOf(in.shape());
  Shape shape;
  StridedCopy copy;
  for (const int64_t p : perm) {
    shape.AddDim(in.dim(static_cast<int>(p)));
    copy.AddDim(in.dim(static_cast<int>(p)), in_strides[p], 0);
  }
  copy.to_strides = StridesOf(shape);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  copy.Run(c, in.dtype(), in.raw(), out->raw());
  if (conjugate)
    DispatchType(in.dtype(), Complexes{}, [&]<class T>() { ConjugateInPlace<T>(c.pool(), out); });
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeTranspose(const KernelInit& init) {
  const bool conjugate = init.node.op_name() == "ConjugateTranspose";
  return Kernel([conjugate](KernelContext& c) -> absl::Status { return Transpose(c, conjugate); });
}

template <class T>
absl::Status InvertPermutation(KernelContext& c) {
  const Tensor& in = c.input(0);
  if (in.rank() != 1)
    return InvalidArgument("invert_permutation expects a 1D vector, got ", in.shape().ToString());
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  const int64_t n = in.num_elements();
  T* inverse = out->data<T>();
  std::fill_n(inverse, n, T(-1));
  for (int64_t i = 0; i < n; ++i) {
    const T p = in.data<T>()[i];
    if (p < 0 || p >= n) return InvalidArgument(p, " is not between 0 and ", n);
    if (inverse[p] != -1) return InvalidArgument(p, " is duplicated in the input.");
    inverse[p] = static_cast<T>(i);
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeInvertPermutation(const KernelInit& init) {
  if (init.attr<DataType>("T") == DT_INT64) return Kernel(&InvertPermutation<int64_t>);
  return Kernel(&InvertPermutation<int32_t>);
}

// ---- reversing

using Flags = absl::InlinedVector<bool, 8>;

// Reverses `dim` and some dimensions before it, pixel by pixel: the elements after `dim`. Long
// lines of pixels are cut into pieces for the threads.
void ReversePixels(ThreadPool& pool, const Tensor& in, const Flags& reversed, int dim,
                   Tensor* out) {
  constexpr int64_t kPiece = 4096;
  const int64_t inner = in.shape().Sub(dim + 1).num_elements(), n = in.dim(dim);
  const int64_t line = n * inner, pieces = (n + kPiece - 1) / kPiece;
  const size_t pixel = static_cast<size_t>(inner) * ElementSize(in.dtype());
  const double cost = 20 + 0.06 * static_cast<double>(pixel) * std::min(n, kPiece);
  pool.ParallelFor(in.num_elements() / line * pieces, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t from = 0, stride = line, rest = i / pieces;
      for (int d = dim - 1; d >= 0; --d) {
        const int64_t index = rest % in.dim(d);
        from += (reversed[d] ? in.dim(d) - 1 - index : index) * stride;
        rest /= in.dim(d);
        stride *= in.dim(d);
      }
      const int64_t first = i % pieces * kPiece, count = std::min(kPiece, n - first);
      ReverseLine(pixel, ElementAt(in, from + (n - first - count) * inner), count,
                  ElementAt(*out, i / pieces * line + first * inner));
    }
  });
}

absl::Status ReverseDims(KernelContext& c, const Flags& reversed) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return absl::OkStatus();
  int last = in.rank() - 1;
  while (last >= 0 && !reversed[last]) --last;
  constexpr int64_t kShort = 8;  // pixels
  if (last >= 0 && in.dim(last) >= kShort && IsPlain(in.dtype()) &&
      CanReverse(in.shape().Sub(last + 1).num_elements() * ElementSize(in.dtype())) &&
      PrimitivesFor(c, in.dtype()) == nullptr) {
    ReversePixels(c.pool(), in, reversed, last, out);
    return absl::OkStatus();
  }
  const Dims strides = StridesOf(in.shape());
  StridedCopy copy;
  int64_t offset = 0;
  for (int i = 0; i < in.rank(); ++i) {
    if (reversed[i]) offset += (in.dim(i) - 1) * strides[i];
    copy.AddDim(in.dim(i), reversed[i] ? -strides[i] : strides[i], strides[i]);
  }
  copy.Run(c, in.dtype(), ElementAt(in, offset), out->raw());
  return absl::OkStatus();
}

absl::Status Reverse(KernelContext& c) {
  const Tensor& dims = c.input(1);
  if (dims.rank() != 1 || dims.num_elements() != c.input(0).rank()) {
    return InvalidArgument("'dims' must have length equal to input rank ", c.input(0).rank(),
                           ", but has shape ", dims.shape().ToString());
  }
  return ReverseDims(c, Flags(dims.data<bool>(), dims.data<bool>() + dims.num_elements()));
}

absl::Status ReverseV2(KernelContext& c) {
  const int rank = c.input(0).rank();
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(1), 1, "axis"));
  Flags reversed(rank, false);
  for (const int64_t named : ReadInts(c.input(1))) {
    if (named < -rank || named >= rank) {
      return InvalidArgument("'axis'[", named, "] is out of valid range [", -rank, ", ", rank - 1,
                             "]");
    }
    const int64_t axis = named < 0 ? named + rank : named;
    if (reversed[axis]) return InvalidArgument("axis ", axis, " specified more than once.");
    reversed[axis] = true;
  }
  return ReverseDims(c, reversed);
}

absl::Status ReverseSequence(KernelContext& c, int64_t seq_dim, int64_t batch_dim) {
  const Tensor &in = c.input(0), &lengths_tensor = c.input(1);
  if (seq_dim == batch_dim || seq_dim < 0 || seq_dim >= in.rank() || batch_dim < 0 ||
      batch_dim >= in.rank()) {
    const std::string given = seq_dim == batch_dim
                                  ? absl::StrCat("batch_dim == seq_dim == ", seq_dim, ": they")
                                  : absl::StrCat("seq_dim ", seq_dim, " and batch_dim ", batch_dim);
    return InvalidArgument(given, " must be two different dimensions of the input of shape ",
                           in.shape().ToString());
  }
  const int seq = static_cast<int>(seq_dim), batch = static_cast<int>(batch_dim);
  if (lengths_tensor.rank() != 1 || lengths_tensor.num_elements() != in.dim(batch)) {
    return InvalidArgument("Length of seq_lens != input.dims(", batch, "), (",
                           lengths_tensor.shape().ToString(), " vs. ", in.dim(batch), ")");
  }
  const Dims lengths = ReadInts(lengths_tensor), strides = StridesOf(in.shape());
  for (const int64_t n : lengths) {
    if (n < 0 || n > in.dim(seq))
      return InvalidArgument("seq_lens has ", n, ", which is not in [0, ", in.dim(seq), "]");
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return absl::OkStatus();
  for (size_t b = 0; b < lengths.size(); ++b) {
    const int64_t base = static_cast<int64_t>(b) * strides[batch], n = lengths[b];
    StridedCopy head, tail;
    for (int i = 0; i < in.rank(); ++i) {
      const int64_t extent = i == batch ? 1 : in.dim(i);
      head.AddDim(i == seq ? n : extent, i == seq ? -strides[i] : strides[i], strides[i]);
      tail.AddDim(i == seq ? extent - n : extent, strides[i], strides[i]);
    }
    const int64_t end = base + n * strides[seq];
    if (n > 0) head.Run(c, in.dtype(), ElementAt(in, end - strides[seq]), ElementAt(*out, base));
    if (n < in.dim(seq)) tail.Run(c, in.dtype(), ElementAt(in, end), ElementAt(*out, end));
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeReverseSequence(const KernelInit& init) {
  const int64_t seq = init.attr<int64_t>("seq_dim"), batch = init.attr<int64_t>("batch_dim");
  return Kernel(
      [seq, batch](KernelContext& c) -> absl::Status { return ReverseSequence(c, seq, batch); });
}

// ---- rolling

// Copies the input shifted by shifts[i] (in [0, extent)) in each dimension. A dimension that is
// shifted splits into two parts, so there are up to 2^d blocks.
void RollBlocks(KernelContext& c, const Tensor& in, const Dims& shifts, int dim, StridedCopy* block,
                int64_t from, int64_t to, Tensor* out) {
  if (dim == in.rank()) {
    block->Run(c, in.dtype(), ElementAt(in, from), ElementAt(*out, to));
    return;
  }
  const int64_t extent = in.dim(dim), shift = shifts[dim], stride = block->to_strides[dim];
  block->extents[dim] = extent - shift;
  RollBlocks(c, in, shifts, dim + 1, block, from, to + shift * stride, out);
  if (shift == 0) return;
  block->extents[dim] = shift;
  RollBlocks(c, in, shifts, dim + 1, block, from + (extent - shift) * stride, to, out);
}

absl::Status Roll(KernelContext& c) {
  const Tensor& in = c.input(0);
  if (in.rank() < 1) return InvalidArgument("input must be 1-D or higher");
  if (c.input(1).rank() > 1 || c.input(1).shape() != c.input(2).shape()) {
    return InvalidArgument(
        "shift and axis must be scalars or vectors of the same size, but have shapes ",
        c.input(1).shape().ToString(), " and ", c.input(2).shape().ToString());
  }
  const Dims given = ReadInts(c.input(1)), axes = ReadInts(c.input(2));
  Dims shifts(in.rank(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const int axis, ReadAxis(axes[i], in.rank()));
    const int64_t extent = std::max<int64_t>(in.dim(axis), 1);
    shifts[axis] = (shifts[axis] + (given[i] % extent + extent) % extent) % extent;
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return absl::OkStatus();
  const Dims strides = StridesOf(in.shape());
  StridedCopy block{Dims(in.shape().dims().begin(), in.shape().dims().end()), strides, strides};
  RollBlocks(c, in, shifts, 0, &block, 0, 0, out);
  return absl::OkStatus();
}

// ---- repeating

absl::Status Tile(KernelContext& c) {
  const Tensor& in = c.input(0);
  const Dims multiples = ReadInts(c.input(1));
  if (c.input(1).rank() != 1 || static_cast<int>(multiples.size()) != in.rank()) {
    return InvalidArgument("Expected multiples argument to be a vector of length ", in.rank(),
                           " but got shape ", c.input(1).shape().ToString());
  }
  Dims dims;
  for (int i = 0; i < in.rank(); ++i) {
    int64_t extent = 0;
    if (multiples[i] < 0)
      return InvalidArgument("Expected multiples[", i, "] >= 0, but got ", multiples[i]);
    if (__builtin_mul_overflow(multiples[i], in.dim(i), &extent)) {
      return InvalidArgument("dimension ", i, " of the result overflows: ", multiples[i], " times ",
                             in.dim(i));
    }
    dims.push_back(extent);
  }
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  if (shape == in.shape()) return OutputRun(c, 0, in, 0, shape);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const Dims from = StridesOf(in.shape()), to = StridesOf(shape);
  StridedCopy copy;
  for (int i = 0; i < in.rank(); ++i) {
    copy.AddDim(multiples[i], 0, to[i] * in.dim(i));
    copy.AddDim(in.dim(i), from[i], to[i]);
  }
  copy.Run(c, in.dtype(), in.raw(), out->raw());
  return absl::OkStatus();
}

absl::Status BroadcastTo(KernelContext& c) {
  const Tensor& in = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(1), 1, "shape"));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(ReadInts(c.input(1))));
  absl::StatusOr<Shape> together = BroadcastShapes(in.shape(), shape);
  if (!together.ok() || *together != shape) {
    return InvalidArgument("Incompatible shapes: ", in.shape().ToString(), " vs. ",
                           shape.ToString());
  }
  if (shape == in.shape()) return OutputRun(c, 0, in, 0, shape);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const Dims from = StridesOf(in.shape()), to = StridesOf(shape);
  StridedCopy copy;
  for (int i = 0; i < shape.rank(); ++i) {
    const int own = i - (shape.rank() - in.rank());
    copy.AddDim(shape.dim(i), own >= 0 && in.dim(own) != 1 ? from[own] : 0, to[i]);
  }
  copy.Run(c, in.dtype(), in.raw(), out->raw());
  return absl::OkStatus();
}

// Accumulates the repetitions of a tiled tensor, block after block, into the result.
template <class T>
absl::Status TileGrad(KernelContext& c) {
  const Tensor& in = c.input(0);
  const Dims multiples = ReadInts(c.input(1));
  if (c.input(1).rank() != 1 || static_cast<int>(multiples.size()) != in.rank()) {
    return InvalidArgument("Expected multiples argument to be a vector of length ", in.rank(),
                           " but got shape ", c.input(1).shape().ToString());
  }
  Shape shape;
  for (int i = 0; i < in.rank(); ++i) {
    if (multiples[i] < 1 || in.dim(i) % multiples[i] != 0) {
      return InvalidArgument("Expected input_dim[", i, "] to be divisible by multiples[", i,
                             "], but ", in.dim(i), " % ", multiples[i]);
    }
    shape.AddDim(in.dim(i) / multiples[i]);
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  ClearElements(c, *out);
  const Dims strides = StridesOf(shape);
  Dims index(in.rank(), 0);
  for (int64_t flat = 0; flat < in.num_elements(); ++flat) {
    int64_t to = 0;
    for (int i = 0; i < in.rank(); ++i) to += index[i] % shape.dim(i) * strides[i];
    T& sum = out->data<T>()[to];
    sum = Add(sum, in.data<T>()[flat]);
    for (int i = in.rank() - 1; i >= 0 && ++index[i] == in.dim(i); --i) index[i] = 0;
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeTileGrad(const KernelInit& init) {
  Kernel kernel;
  const DataType type = init.attr<DataType>("T");
  if (!DispatchType(type, Numbers{}, [&]<class T>() { kernel = Kernel(&TileGrad<T>); })) {
    return Unimplemented("elements of type ", DataTypeName(type), " cannot be added");
  }
  return kernel;
}

}  // namespace

void AddTransposeCpu(KernelRegistry* r) {
  r->Add("Transpose", kCpu, MakeTranspose).HostArgs({"perm"});
  r->Add("ConjugateTranspose", kCpu, MakeTranspose).HostArgs({"perm"});
  r->Add("InvertPermutation", kCpu, MakeInvertPermutation).HostArgs({"x", "y"});
  r->Add("Reverse", kCpu, Reverse).HostArgs({"dims"});
  r->Add("ReverseV2", kCpu, ReverseV2).HostArgs({"axis"});
  r->Add("ReverseSequence", kCpu, MakeReverseSequence).HostArgs({"seq_lengths"});
  r->Add("Roll", kCpu, Roll).HostArgs({"shift", "axis"});
  r->Add("Tile", kCpu, Tile).HostArgs({"multiples"});
  r->Add("TileGrad", kCpu, MakeTileGrad).HostArgs({"multiples"});
  r->Add("BroadcastTo", kCpu, BroadcastTo).HostArgs({"shape"});
}

}  // namespace weir
