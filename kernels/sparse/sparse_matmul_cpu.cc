#include <algorithm>
#include <complex>

#include "weir/kernels/lib/accumulate.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/pieces.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/linalg/matmul.h"
#include "weir/kernels/sparse/sparse_kernels.h"

// Products of matrices with many zeros.
namespace weir {

namespace {

// ---- SparseTensorDenseMatMul

// The sizes of op(A) [rows, inner] and op(B) [inner, cols].
struct Sizes {
  int64_t rows, inner, cols;
};

absl::StatusOr<Sizes> SizesOf(const SparseValue& a, const Shape& b, bool adjoint_a,
                              bool adjoint_b) {
  if (a.rank() != 2) return InvalidArgument("Tensor 'a_shape' must have 2 elements");
  if (b.rank() != 2) return InvalidArgument("Tensor 'b' is not a matrix");
  const Sizes s{a.dims[adjoint_a ? 1 : 0], a.dims[adjoint_a ? 0 : 1], b.dim(adjoint_b ? 0 : 1)};
  const int64_t inner_b = b.dim(adjoint_b ? 1 : 0);
  if (s.inner != inner_b) {
    return InvalidArgument(
        "Cannot multiply A and B because inner dimension does not match: ", s.inner, " vs. ",
        inner_b, ".  Did you forget a transpose?  Dimensions of A: [", a.dims[0], ", ", a.dims[1],
        ").  Dimensions of B: ", b.ToString());
  }
  return s;
}

absl::Status CheckInside(const SparseValue& a, const Sizes& s, bool adjoint_a) {
  const int row = adjoint_a ? 1 : 0, inner = 1 - row;
  for (int64_t i = 0; i < a.count(); ++i) {
    const int64_t m = a.row(i)[row], k = a.row(i)[inner];
    if (k < 0 || k >= s.inner) {
      return InvalidArgument("k (", k, ") from index[", i, ",", inner,
                             "] out of bounds (>=", s.inner, ")");
    }
    if (m < 0 || m >= s.rows) {
      return InvalidArgument("m (", m, ") from index[", i, ",", row, "] out of bounds (>=", s.rows,
                             ")");
    }
  }
  return absl::OkStatus();
}

// Each element of A adds a multiple of a row of op(B) to a row of the result. Elements may be in
// any order, so threads split the columns.
template <class T>
absl::Status MultiplyDense(KernelContext& c, bool adjoint_a, bool adjoint_b) {
  using Acc = Wide<T>;
  WEIR_ASSIGN_OR_RETURN(const SparseValue a, ReadSparse(c, 0));
  const Tensor& b = c.input(3);
  WEIR_ASSIGN_OR_RETURN(const Sizes s, SizesOf(a, b.shape(), adjoint_a, adjoint_b));
  WEIR_RETURN_IF_ERROR(CheckInside(a, s, adjoint_a));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({s.rows, s.cols}));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor sums, c.AllocateTemp(DataTypeOf<Acc>::value, shape));
  ClearElements(c.pool(), sums);
  Acc* const acc = sums.data<Acc>();
  const T *const values = a.values.data<T>(), *const x = b.data<T>();
  const int64_t inner_stride = adjoint_b ? 1 : s.cols;
  const auto conjugate = [](bool yes, Acc v) { return yes ? ScalarMath<Acc>::Conj(v) : v; };
  c.pool().ParallelFor(
      s.cols, static_cast<double>(a.count()),
      [&](int64_t begin, int64_t end) {
        for (const auto [first, last] : CancellableBlocks(a.count())) {
          for (int64_t i = first; i < last; ++i) {
            const int64_t *const row = a.row(i), m = row[adjoint_a ? 1 : 0],
                                 k = row[adjoint_a ? 0 : 1];
            const Acc v = conjugate(adjoint_a, static_cast<Acc>(values[i]));
            Acc* const to = acc + m * s.cols;
            const T* const from = x + k * inner_stride;
            const auto add = [&](int64_t j, T factor) {
              const Acc y = conjugate(adjoint_b, static_cast<Acc>(factor));
              to[j] = Add(to[j], ScalarMath<Acc>::Mul(v, y));
            };
            if (adjoint_b) {
              for (int64_t j = begin; j < end; ++j) add(j, from[j * s.inner]);
            } else {  // separate, for the vectorizer
              for (int64_t j = begin; j < end; ++j) add(j, from[j]);
            }
          }
        }
      },
      MinColumnsPerPiece(s.cols, c.pool().num_threads(), /*least=*/16));
  for (int64_t i = 0; i < out->num_elements(); ++i) out->data<T>()[i] = static_cast<T>(acc[i]);
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<Kernel> MakeMultiplyDense(const KernelInit& init) {
  const bool adjoint_a = init.attr<bool>("adjoint_a"), adjoint_b = init.attr<bool>("adjoint_b");
  return Kernel([adjoint_a, adjoint_b](KernelContext& c) -> absl::Status {
    return MultiplyDense<T>(c, adjoint_a, adjoint_b);
  });
}

template <class... Ts>
void AddMultiplyDense(KernelRegistry* r, List<Ts...>) {
  (r->Add("SparseTensorDenseMatMul", kCpu, DataTypeOf<Ts>::value, MakeMultiplyDense<Ts>), ...);
}

// ---- SparseMatMul

// Dense matrices that are declared to have many zeros; the plain matrix product handles them. Its
// elements are float, whatever those of the arguments are.
absl::StatusOr<Tensor> AsFloat(KernelContext& c, const Tensor& t) {
  if (t.dtype() == DT_FLOAT) return t;
  WEIR_ASSIGN_OR_RETURN(Tensor wide, c.AllocateTemp(DT_FLOAT, t.shape()));
  for (int64_t i = 0; i < t.num_elements(); ++i) wide.data<float>()[i] = t.data<bfloat16>()[i];
  return wide;
}

absl::StatusOr<Kernel> MakeMultiplySparse(const KernelInit& init) {
  const bool transpose_a = init.attr<bool>("transpose_a");
  const bool transpose_b = init.attr<bool>("transpose_b");
  return Kernel([transpose_a, transpose_b](KernelContext& c) -> absl::Status {
    if (c.input(0).rank() != 2) return InvalidArgument("a is not a matrix");
    if (c.input(1).rank() != 2) return InvalidArgument("b is not a matrix");
    WEIR_ASSIGN_OR_RETURN(const MatMulArgs args, MatMulOf(c.input(0).shape(), c.input(1).shape(),
                                                          transpose_a, transpose_b));
    WEIR_ASSIGN_OR_RETURN(const Tensor a, AsFloat(c, c.input(0)));
    WEIR_ASSIGN_OR_RETURN(const Tensor b, AsFloat(c, c.input(1)));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({args.m, args.n})));
    if (args.k == 0 || out->num_elements() == 0) {
      ClearElements(c.pool(), *out);
      return absl::OkStatus();
    }
    return RunMatMul(c.pool(), DT_FLOAT, args, a.raw(), b.raw(), out->raw());
  });
}

}  // namespace

void AddSparseMatMulCpu(KernelRegistry* r) {
  AddMultiplyDense(r, JoinLists<Floats, List<int32_t>, Complexes>{});
  r->Add("SparseMatMul", kCpu, MakeMultiplySparse);
}

}  // namespace weir
