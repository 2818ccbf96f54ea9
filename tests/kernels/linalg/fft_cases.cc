#include <cmath>
#include <complex>

#include "weir/tests/kernels/lib/pick.h"

// Fourier transforms, compared with the sums that define them.
namespace weir {

namespace {

using pick::Index;

// Transforms the last dimensions of `x`, cropped or padded to `lengths`.
std::vector<complex128> Transform(const Tensor& x, const std::vector<int64_t>& lengths,
                                  bool inverse) {
  const int rank = static_cast<int>(lengths.size()), outer = x.rank() - rank;
  Shape shape = x.shape().Sub(0, outer);
  for (const int64_t n : lengths) shape.AddDim(n);
  std::vector<complex128> out(static_cast<size_t>(shape.num_elements()));
  ForEachIndex(shape, [&](int64_t to, const Index& k) {
    ForEachIndex(Shape(absl::MakeConstSpan(lengths)), [&](int64_t, const Index& j) {
      Index from(k.begin(), k.begin() + outer);
      double turn = 0;
      for (int d = 0; d < rank; ++d) {
        from.push_back(j[d]);
        turn +=
            static_cast<double>(j[d] * k[outer + d] % lengths[d]) / static_cast<double>(lengths[d]);
      }
      const int64_t flat = pick::Flat(x.shape(), from);
      const complex128 value =
          x.dtype() == DT_DOUBLE ? x.data<double>()[flat] : x.data<complex128>()[flat];
      out[to] += value * std::polar(1.0, (inverse ? 2 : -2) * M_PI * turn);
    });
    if (inverse) {
      for (const int64_t n : lengths) out[to] /= static_cast<double>(n);
    }
  });
  return out;
}

std::vector<int64_t> LastDims(const Tensor& x, int rank) {
  std::vector<int64_t> dims;
  for (int i = 0; i < rank; ++i) dims.push_back(x.dim(i - rank));
  return dims;
}

bool IsInverse(const Node& n) { return n.op_name().find("IFFT") != std::string::npos; }
int RankOf(const Node& n) {
  const std::string& op = n.op_name();
  return op.find("2D") != std::string::npos ? 2 : op.find("3D") != std::string::npos ? 3 : 1;
}

Tensors ComplexReference(const Node& n, const Tensors& in) {
  const std::vector<complex128> y = Transform(
      in[0], in.size() == 1 ? LastDims(in[0], RankOf(n)) : pick::Ints(in[1]), IsInverse(n));
  Tensor out(DT_COMPLEX128, in[0].shape());
  if (in.size() > 1) {
    Shape shape = in[0].shape().Sub(0, in[0].rank() - static_cast<int>(in[1].dim(0)));
    for (const int64_t d : pick::Ints(in[1])) shape.AddDim(d);
    out = Tensor(DT_COMPLEX128, shape);
  }
  std::copy(y.begin(), y.end(), out.data<complex128>());
  return {out};
}

// The full transform, of which half of the last dimension is returned.
Tensors FromRealReference(const Node&, const Tensors& in) {
  const std::vector<int64_t> lengths = pick::Ints(in[1]);
  const std::vector<complex128> y = Transform(in[0], lengths, false);
  Shape shape = in[0].shape().Sub(0, in[0].rank() - static_cast<int>(lengths.size()));
  for (const int64_t n : lengths) shape.AddDim(n);
  const int64_t n = lengths.back(), half = n == 0 ? 0 : n / 2 + 1;
  shape.set_dim(shape.rank() - 1, half);
  Tensor out(DT_COMPLEX128, shape);
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    out.data<complex128>()[i] = y[i / half * n + i % half];
  }
  return {out};
}

// The other half of the frequencies are the conjugates at the negated frequencies of all
// dimensions.
Tensors ToRealReference(const Node&, const Tensors& in) {
  const std::vector<int64_t> lengths = pick::Ints(in[1]);
  const int rank = static_cast<int>(lengths.size()), outer = in[0].rank() - rank;
  Shape shape = in[0].shape().Sub(0, outer);
  for (const int64_t n : lengths) shape.AddDim(n);
  const int64_t half = lengths.back() / 2 + 1;
  Tensor full(DT_COMPLEX128, shape);
  ForEachIndex(shape, [&](int64_t to, const Index& k) {
    Index from = k;
    const bool mirrored = k.back() >= half;
    if (mirrored) {
      for (int d = 0; d < rank; ++d) from[outer + d] = (lengths[d] - k[outer + d]) % lengths[d];
    }
    const complex128 value = in[0].data<complex128>()[pick::Flat(in[0].shape(), from)];
    full.data<complex128>()[to] = mirrored ? std::conj(value) : value;
  });
  const std::vector<complex128> y = Transform(full, lengths, true);
  Tensor out(DT_DOUBLE, shape);
  for (int64_t i = 0; i < out.num_elements(); ++i) out.data<double>()[i] = y[i].real();
  return {out};
}

Tensor Lengths(const std::vector<int64_t>& lengths) {
  Tensor t(DT_INT32, Shape({static_cast<int64_t>(lengths.size())}));
  for (size_t i = 0; i < lengths.size(); ++i) t.SetIntAt(static_cast<int64_t>(i), lengths[i]);
  return t;
}

void AddComplexRows(std::vector<OpCase>* rows) {
  const struct {
    const char* label;
    Shape shape;
    const char* suffix;
  } shapes[] = {
      {"eight", {3, 8}, ""},        {"many_factors", {2, 60}, ""}, {"prime", {2, 13}, ""},
      {"large_prime", {2, 67}, ""}, {"twice_a_prime", {142}, ""},  {"one", {2, 1}, ""},
      {"empty", {2, 0}, ""},        {"none", {0, 3}, ""},          {"plane", {2, 6, 5}, "2D"},
      {"row", {1, 4}, "2D"},        {"space", {2, 2, 3, 4}, "3D"}, {"cube", {3, 2, 5}, "3D"}};
  for (const auto& s : shapes) {
    for (const char* op : {"FFT", "IFFT"}) {
      rows->push_back(OpCase(std::string(op) + s.suffix)
                          .Label(s.label)
                          .TypeAttr("Tcomplex")
                          .Input(s.shape)
                          .ToleranceFactor(10)
                          .Reference(ComplexReference));
    }
  }
  for (const char* op : {"FFTND", "IFFTND"}) {
    rows->push_back(OpCase(op)
                        .TypeAttr("Tcomplex")
                        .Input({2, 3, 4})
                        .Input(Lengths({2, 4}))
                        .Input(pick::I32({-2, -1}))
                        .ToleranceFactor(10)
                        .Reference(ComplexReference));
  }
}

void AddRealRows(std::vector<OpCase>* rows) {
  const struct {
    const char* label;
    const char* suffix;
    Shape real, complex;  // the input shape of each of the two
    std::vector<int64_t> lengths;
  } shapes[] = {{"even", "", {2, 6}, {2, 4}, {6}},
                {"odd", "", {2, 7}, {2, 4}, {7}},
                {"cut", "", {2, 9}, {2, 6}, {5}},
                {"one", "", {3, 1}, {3, 1}, {1}},
                {"large_prime", "", {67}, {34}, {67}},
                {"nothing", "", {2, 3}, {2, 3}, {0}},
                {"plane", "2D", {2, 4, 6}, {2, 4, 4}, {4, 6}},
                {"odd_plane", "2D", {3, 5}, {3, 3}, {3, 5}},
                {"space", "3D", {2, 3, 2, 4}, {2, 3, 2, 3}, {3, 2, 4}},
                {"two_axes", "ND", {2, 4, 6}, {2, 4, 4}, {4, 6}}};
  for (const auto& s : shapes) {
    for (const bool wide : {false, true}) {
      const std::string label = std::string(s.label) + (wide ? "_double" : "");
      const bool any = std::string(s.suffix) == "ND";
      OpCase there = OpCase(std::string("RFFT") + s.suffix)
                         .Label(label)
                         .TypeAttr("Treal")
                         .Types({wide ? DT_DOUBLE : DT_FLOAT})
                         .Attr("Tcomplex", wide ? DT_COMPLEX128 : DT_COMPLEX64)
                         .Input(s.real)
                         .Input(Lengths(s.lengths))
                         .Gradient(0)
                         .ToleranceFactor(10)
                         .Reference(FromRealReference);
      OpCase back = OpCase(std::string("IRFFT") + s.suffix)
                        .Label(label)
                        .TypeAttr("Tcomplex")
                        .Types({wide ? DT_COMPLEX128 : DT_COMPLEX64})
                        .Attr("Treal", wide ? DT_DOUBLE : DT_FLOAT)
                        .Input(s.complex)
                        .Input(Lengths(s.lengths))
                        .ToleranceFactor(10)
                        .Reference(ToRealReference);
      if (any) {
        there.Input(pick::I32({-2, -1}));
        back.Input(pick::I32({1, 2}));
      }
      rows->push_back(there);
      rows->push_back(back);
    }
  }
}

std::vector<OpCase> FftCases() {
  std::vector<OpCase> rows;
  AddComplexRows(&rows);
  AddRealRows(&rows);
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Fft, OpSweepTest, testing::ValuesIn(FftCases()), OpCaseName);

}  // namespace weir
