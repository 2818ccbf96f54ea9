#include "weir/ops/linalg/fft.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

DataType ComplexOf(DataType real) { return real == DT_DOUBLE ? DT_COMPLEX128 : DT_COMPLEX64; }
DataType RealOf(DataType complex) { return complex == DT_COMPLEX128 ? DT_DOUBLE : DT_FLOAT; }

Output RealTransform(absl::string_view op, bool inverse, Output x, const Ints& fft_length,
                     absl::string_view name) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  NameScope scope(g, name.empty() ? op : name);
  const Output length = fft_length.In(g, "fft_length", DT_INT32);
  const DataType complex = inverse ? x.dtype() : ComplexOf(x.dtype());
  return AddOp(op, {x, length}, {{"Treal", RealOf(complex)}, {"Tcomplex", complex}}, scope.name());
}

}  // namespace

Output Fft(Output x, absl::string_view name) { return AddOp("FFT", {x}, {}, name); }
Output Fft2d(Output x, absl::string_view name) { return AddOp("FFT2D", {x}, {}, name); }
Output Fft3d(Output x, absl::string_view name) { return AddOp("FFT3D", {x}, {}, name); }
Output Ifft(Output x, absl::string_view name) { return AddOp("IFFT", {x}, {}, name); }
Output Ifft2d(Output x, absl::string_view name) { return AddOp("IFFT2D", {x}, {}, name); }
Output Ifft3d(Output x, absl::string_view name) { return AddOp("IFFT3D", {x}, {}, name); }

Output Rfft(Output x, const Ints& fft_length, absl::string_view name) {
  return RealTransform("RFFT", false, x, fft_length, name);
}
Output Rfft2d(Output x, const Ints& fft_length, absl::string_view name) {
  return RealTransform("RFFT2D", false, x, fft_length, name);
}
Output Rfft3d(Output x, const Ints& fft_length, absl::string_view name) {
  return RealTransform("RFFT3D", false, x, fft_length, name);
}
Output Irfft(Output x, const Ints& fft_length, absl::string_view name) {
  return RealTransform("IRFFT", true, x, fft_length, name);
}
Output Irfft2d(Output x, const Ints& fft_length, absl::string_view name) {
  return RealTransform("IRFFT2D", true, x, fft_length, name);
}
Output Irfft3d(Output x, const Ints& fft_length, absl::string_view name) {
  return RealTransform("IRFFT3D", true, x, fft_length, name);
}

namespace {

// ---- shape functions

template <int kRank>
absl::Status ComplexShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape s, c.WithRankAtLeast(0, kRank));
  c.set_output(0, s);
  return absl::OkStatus();
}

// Sets the last dimensions to those that input 1 specifies. For a real input the last dimension
// holds only the nonnegative frequencies.
absl::Status LengthsShape(ShapeContext& c, const Shape& input, int64_t rank, bool halved) {
  if (!input.has_rank() || rank < 0) return absl::OkStatus();
  const auto lengths = KnownInts(c, 1);
  Shape out = input.Sub(0, input.rank() - static_cast<int>(rank));
  for (int64_t i = 0; i < rank; ++i) {
    int64_t n = Shape::kUnknown;
    if (lengths.has_value()) {
      n = (*lengths)[static_cast<size_t>(i)];
      if (n < 0) return InvalidArgument("fft_length[", i, "] must >= 0, but got: ", n);
      if (halved && i == rank - 1 && n > 0) n = n / 2 + 1;
    }
    out.AddDim(n);
  }
  c.set_output(0, out);
  return absl::OkStatus();
}

template <int kRank, bool kInverse>
absl::Status RealShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRankAtLeast(0, kRank));
  WEIR_ASSIGN_OR_RETURN(const int64_t count, VectorLength(c, 1));
  WEIR_RETURN_IF_ERROR(MergeDims(count, kRank).status());
  return LengthsShape(c, input, kRank, !kInverse);
}

// The axes must be the last ones, so only their number matters.
template <bool kHalved>
absl::Status AnyRankShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(int64_t rank, VectorLength(c, 1));
  WEIR_ASSIGN_OR_RETURN(const int64_t axes, VectorLength(c, 2));
  WEIR_ASSIGN_OR_RETURN(rank, MergeDims(rank, axes));
  if (rank < 0) {
    c.set_output(0, UnknownDims(c.input(0).rank()));
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(
      const Shape input,
      c.WithRankAtLeast(0, static_cast<int>(std::min<int64_t>(rank, Shape::kMaxRank))));
  return LengthsShape(c, input, rank, kHalved);
}

// ---- gradients

// Returns the number of points in the last `rank` dimensions.
Output PointsOf(const Output& x, int rank) {
  return ProdOp(StridedSlice(ShapeVector(x), {Index::Range(-rank, std::nullopt)}), 0);
}

using Transform = Output (*)(Output x, absl::string_view name);
template <int kRank, Transform kInverse>
Grads FftGradient(GradContext& g) {
  const Output size = Cast(PointsOf(g.dy(), kRank), g.dy().dtype());
  return {kInverse(g.dy(), {}) * size};
}
template <int kRank, Transform kForward>
Grads IfftGradient(GradContext& g) {
  const DataType type = g.dy().dtype();
  const Output share = Cast(1.0 / Cast(PointsOf(g.dy(), kRank), RealOf(type)), type);
  return {kForward(g.dy(), {}) * share};
}

// Returns 1, -1, 1, ... as complex numbers.
Output AlternatingSigns(const Output& count, DataType type) {
  Graph& g = count.graph();
  const Output odd = FloorMod(Range(g, 0, count, 1), 2);
  return Cast(1 - 2 * odd, type);
}

// Returns one element of fft_length or of a shape.
Output LastOf(const Output& vector, int64_t at = -1) { return StridedSlice(vector, {Index(at)}); }

Output FirstColumn(const Output& x) {
  return StridedSlice(x, {Index::Ellipsis(), Index::Range(0, 1)});
}
Output LastColumn(const Output& x) {
  return StridedSlice(x, {Index::Ellipsis(), Index::Range(-1, std::nullopt)});
}

// Returns exp(-2 pi i j k / n) for j, k < n.
Output FourierMatrix(const Output& n, DataType type) {
  Graph& g = n.graph();
  const Output one = Const(g, int32_t{1});
  const Output a = Tile(ExpandDims(Range(g, 0, n, 1), 0), Stack({n, one}));
  const Output products = a * Transpose(a, {1, 0});
  const auto factor = [&] {
    return type == DT_COMPLEX128 ? Const(g, std::complex<double>(0, -2 * M_PI))
                                 : Const(g, std::complex<float>(0, static_cast<float>(-2 * M_PI)));
  };
  return Exp(factor() * Cast(products, type) / Cast(n, type));
}

// Repeats `matrix` for each matrix in t.
Output RepeatFor(const Output& matrix, const Output& t) {
  Graph& g = t.graph();
  const Output extra = Ones(g, Stack({Subtract(Rank(t), 2, "sub")}, 0), DT_INT32);
  const Output expanded = Reshape(matrix, Concat({extra, ShapeVector(matrix)}, 0));
  const Output outer = StridedSlice(ShapeVector(t), {Index::Range(std::nullopt, -2)});
  return Tile(expanded, Concat({outer, Const<int32_t>(g, {1, 1})}, 0));
}

// Returns the terms that the inverse transform lacks for the frequencies without a conjugate
// counterpart: the first one, and the last one if the length is even.
Output ExtraTerms(const Output& dy, const Output& input_shape, const Output& is_even) {
  const Output signs = AlternatingSigns(LastOf(input_shape), dy.dtype());
  return FirstColumn(dy) + is_even * LastColumn(dy) * signs;
}
Output ExtraTerms2d(const Output& dy, const Output& input_shape, const Output& is_even) {
  Graph& g = dy.graph();
  const Output y0 = FirstColumn(dy), ym = LastColumn(dy);
  const Output mask = RepeatFor(FourierMatrix(LastOf(input_shape, -2), dy.dtype()), y0);
  const Output first = MatMul(mask, Conj(y0)), last = MatMul(mask, Conj(ym));
  const Output columns = LastOf(input_shape);
  const Output ones = Ones(g, Stack({Subtract(Rank(dy), 1, "sub")}, 0), DT_INT32);
  const Output wide =
      Tile(last, Concat({ones, Stack({columns}, 0)}, 0)) * AlternatingSigns(columns, dy.dtype());
  return first + is_even * wide;
}

template <int kRank>
Grads RfftGradient(GradContext& g) {
  const Output x = g.x(0), fft_length = g.x(1), dy = g.dy();
  const Output input_shape = ShapeVector(x);
  const Output is_even = Cast(1 - FloorMod(LastOf(fft_length), 2), dy.dtype());
  const Output extra =
      kRank == 1 ? ExtraTerms(dy, input_shape, is_even) : ExtraTerms2d(dy, input_shape, is_even);
  const Output size = Cast(PointsOf(x, kRank), RealOf(dy.dtype()));
  const Output back = kRank == 1 ? Irfft(dy, fft_length) : Irfft2d(dy, fft_length);
  return {0.5 * (back * size + Real(extra))};
}

template <int kRank>
Grads IrfftGradient(GradContext& g) {
  const Output x = g.x(0), fft_length = g.x(1), dy = g.dy();
  Graph& graph = g.graph();
  const DataType real = dy.dtype();
  const Output is_odd = FloorMod(LastOf(fft_length), 2);
  const Output inner = LastOf(ShapeVector(x)) - 2 + is_odd;
  const Output twos = 2 * Ones(graph, Stack({inner}, 0), real);
  const Output tail = Ones(graph, Stack({1 - is_odd}, 0), real);
  const Output one = Reshape(ConstOf(graph, real, 1), {1});
  const Output mask = Concat({one, twos, tail}, 0);
  const Output share = Reciprocal(Cast(PointsOf(dy, kRank), real));
  const Output there = kRank == 1 ? Rfft(dy, fft_length) : Rfft2d(dy, fft_length);
  return {there * Cast(share * mask, ComplexOf(real))};
}

// ---- op definitions

template <int kRank>
void AddComplexOps(OpRegistry* ops, const std::string& suffix, GradientFn forward,
                   GradientFn inverse) {
  for (const bool back : {false, true}) {
    const std::string name = (back ? "IFFT" : "FFT") + suffix;
    const char* doc =
        back ? "Computes the inverse discrete Fourier transform over the last dimensions."
             : "Computes the discrete Fourier transform over the last dimensions.";
    ops->Add(OpSpec(name)
                 .In("input: Tcomplex")
                 .Out("output: Tcomplex")
                 .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
                 .InferShape(ComplexShape<kRank>)
                 .Gradient(back ? inverse : forward)
                 .Doc(doc));
    ops->Add(OpSpec("Batch" + name)
                 .In("input: complex64")
                 .Out("output: complex64")
                 .Deprecated(15, "use the op without Batch, which accepts batches")
                 .InferShape(ComplexShape<kRank>)
                 .Doc(doc));
  }
}

// `gradient` may be null: TensorFlow has no gradient for three or more dimensions.
OpSpec RealSpec(const std::string& name, bool inverse, ShapeFn shape, const GradientFn& gradient) {
  OpSpec spec(name);
  spec.In(inverse ? "input: Tcomplex, fft_length: int32" : "input: Treal, fft_length: int32")
      .Out(inverse ? "output: Treal" : "output: Tcomplex")
      .Attr("Treal: {float, double} = DT_FLOAT")
      .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
      .InferShape(std::move(shape))
      .Doc(inverse
               ? "Computes the inverse of the discrete Fourier transform of real numbers, from the "
                 "first half of the frequencies of the last dimension."
               : "Computes the discrete Fourier transform of real numbers. Returns only the first "
                 "half of the frequencies of the last dimension; the others are their conjugates.");
  if (gradient) spec.Gradient(gradient);
  return spec;
}

// The ops with a list of axes, which must be the last ones.
OpSpec AnyRankSpec(const char* name, const char* in, const char* out, bool real, ShapeFn shape) {
  OpSpec spec(name);
  spec.In(in).Out(out);
  if (real) spec.Attr("Treal: {float, double} = DT_FLOAT");
  spec.Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
      .InferShape(Ranked("input: >=1", std::move(shape)))
      .Doc(
          "Computes the discrete Fourier transform (or its inverse, I) over the dimensions `axes`, "
          "which are the last ones; of or to real numbers, R.");
  return spec;
}

}  // namespace

void AddFftOps(OpRegistry* ops) {
  AddComplexOps<1>(ops, "", FftGradient<1, Ifft>, IfftGradient<1, Fft>);
  AddComplexOps<2>(ops, "2D", FftGradient<2, Ifft2d>, IfftGradient<2, Fft2d>);
  AddComplexOps<3>(ops, "3D", FftGradient<3, Ifft3d>, IfftGradient<3, Fft3d>);
  ops->Add(RealSpec("RFFT", false, RealShape<1, false>, RfftGradient<1>));
  ops->Add(RealSpec("RFFT2D", false, RealShape<2, false>, RfftGradient<2>));
  ops->Add(RealSpec("RFFT3D", false, RealShape<3, false>, nullptr));
  ops->Add(RealSpec("IRFFT", true, RealShape<1, true>, IrfftGradient<1>));
  ops->Add(RealSpec("IRFFT2D", true, RealShape<2, true>, IrfftGradient<2>));
  ops->Add(RealSpec("IRFFT3D", true, RealShape<3, true>, nullptr));
  const char* complex = "input: Tcomplex, fft_length: int32, axes: int32";
  const char* real = "input: Treal, fft_length: int32, axes: int32";
  for (const char* name : {"FFTND", "IFFTND"}) {
    ops->Add(AnyRankSpec(name, complex, "output: Tcomplex", false, AnyRankShape<false>));
  }
  ops->Add(AnyRankSpec("RFFTND", real, "output: Tcomplex", true, AnyRankShape<true>));
  ops->Add(AnyRankSpec("IRFFTND", complex, "output: Treal", true, AnyRankShape<false>));
}

}  // namespace weir
