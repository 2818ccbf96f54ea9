#include <cmath>
#include <vector>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/linalg/linalg.h"

// Matrix decompositions: Cholesky, LU, QR and singular value decomposition.
namespace weir {

namespace {

// ---- Cholesky

template <class T>
bool IsNan(T x) {
  return std::isnan(std::real(x)) || std::isnan(std::imag(x));
}

// Returns the column of the first NaN of a row among the first `end`; `end` if there is none.
template <class T>
int64_t FirstNan(const ColumnMajorMatrix<T>& a, int64_t row, int64_t end) {
  for (int64_t j = 0; j < end; ++j) {
    if (IsNan(a(row, j))) return j;
  }
  return end;
}

// Factors a matrix with NaN in its lower triangle, as TensorFlow does: NaN are the elements that
// depend on one, which are the rest of its row, and below its row the columns from there on. The
// other elements are those for a matrix with 0 in place of each NaN, and such a large diagonal from
// the first of these rows on that only the rows above can fail to be positive definite. Returns
// false if they do, or if there is no NaN.
template <class T>
bool FactorBesideNan(ColumnMajorMatrix<T>* a) {
  const int64_t n = a->rows;
  std::vector<int64_t> end(static_cast<size_t>(n));
  int64_t first = n;
  for (int64_t i = 0; i < n; ++i) {
    end[i] = FirstNan(*a, i, std::min(first, i + 1));
    if (end[i] <= i) first = std::min(first, i);
    for (int64_t j = 0; j <= i; ++j) {
      if (IsNan((*a)(i, j))) (*a)(i, j) = T(0);
    }
    if (first <= i) (*a)(i, i) = std::numeric_limits<lapack::Real<T>>::max();
  }
  if (first == n || lapack::CholeskyFactor(static_cast<int>(n), a->data()) != 0) return false;
  for (int64_t i = first; i < n; ++i) {
    for (int64_t j = end[i]; j <= i; ++j) (*a)(i, j) = NotANumber<T>();
  }
  return true;
}

// Computes the lower factor; fills it with NaN if there is none.
template <class T>
absl::Status Cholesky(KernelContext& c) {
  const Tensor& input = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckSquare(input));
  WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, input.shape()));
  const int64_t n = input.dim(-1), size = n * n;
  if (output->num_elements() == 0) return absl::OkStatus();
  const int64_t count = output->num_elements() / size;
  return ForEachMatrix(c, count, CubicCost(n, n), [&](int64_t b) {
    ColumnMajorMatrix<T> a(input.data<T>() + b * size, n, n);
    bool found = lapack::CholeskyFactor(static_cast<int>(n), a.data()) == 0;
    if (!found) {
      a = ColumnMajorMatrix<T>(input.data<T>() + b * size, n, n);
      found = FactorBesideNan(&a);
    }
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < j; ++i) a(i, j) = T(0);
      for (int64_t i = j; !found && i < n; ++i) a(i, j) = NotANumber<T>();
    }
    a.Write(output->data<T>() + b * size);
    return absl::OkStatus();
  });
}

// The gradient with respect to A = L L*, given the gradient with respect to L. Source: Murray,
// "Differentiation of the Cholesky decomposition" (2016): it is the self-adjoint part of L^-* P(L*
// grad) L^-1, where P keeps the lower triangle and half of the diagonal.
template <class T>
void CholeskyBackward(ColumnMajorMatrix<T> l, const ColumnMajorMatrix<T>& gradient,
                      ColumnMajorMatrix<T>* result) {
  const int n = static_cast<int>(l.rows);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < j; ++i) l(i, j) = T(0);
  }
  using lapack::Form;
  using lapack::Triangle;
  ColumnMajorMatrix<T> middle(n, n);
  lapack::Multiply(Form::kAdjoint, Form::kPlain, n, n, n, l.data(), gradient.data(), middle.data());
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < j; ++i) middle(i, j) = T(0);
    middle(j, j) /= T(2);
  }
  lapack::TriangularSolve(Triangle::kLower, Form::kAdjoint, n, n, l.data(), middle.data());
  ColumnMajorMatrix<T> adjoint(n, n);  // (L^-* P L^-1)* = L^-* (L^-* P)*
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) adjoint(i, j) = Conjugate(middle(j, i));
  }
  lapack::TriangularSolve(Triangle::kLower, Form::kAdjoint, n, n, l.data(), adjoint.data());
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      (*result)(i, j) = (adjoint(i, j) + Conjugate(adjoint(j, i))) / T(2);
    }
  }
}

// Entries above the diagonal, including NaN, are ignored.
template <class T>
ColumnMajorMatrix<T> LowerTriangle(const T* matrix, int64_t n) {
  ColumnMajorMatrix<T> out(matrix, n, n);
  for (int64_t j = 1; j < n; ++j) {
    for (int64_t i = 0; i < j; ++i) out(i, j) = T(0);
  }
  return out;
}

template <class T>
absl::Status CholeskyGrad(KernelContext& c) {
  const Tensor &l = c.input(0), &gradient = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckSquare(l));
  WEIR_RETURN_IF_ERROR(CheckSquare(gradient));
  if (l.shape() != gradient.shape()) {
    return InvalidArgument("Inputs L and grad must have the same shape, got ", l.shape().ToString(),
                           " and ", gradient.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, l.shape()));
  const int64_t n = l.dim(-1), size = n * n;
  if (output->num_elements() == 0) return absl::OkStatus();
  return ForEachMatrix(c, output->num_elements() / size, 3 * CubicCost(n, n), [&](int64_t b) {
    ColumnMajorMatrix<T> result(n, n);
    CholeskyBackward(LowerTriangle(l.data<T>() + b * size, n),
                     LowerTriangle(gradient.data<T>() + b * size, n), &result);
    result.Write(output->data<T>() + b * size);
    return absl::OkStatus();
  });
}

// ---- LU

// Converts LAPACK's row interchanges to a permutation.
template <class Index>
void WritePermutation(const std::vector<int>& pivots, Index* p) {
  const size_t n = pivots.size();
  for (size_t i = 0; i < n; ++i) p[i] = static_cast<Index>(i);
  for (size_t i = 0; i < n; ++i) std::swap(p[i], p[pivots[i] - 1]);
}

template <class T, class Index>
absl::Status Lu(KernelContext& c) {
  const Tensor& input = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckSquare(input));
  const int64_t n = input.dim(-1), size = n * n;
  WEIR_ASSIGN_OR_RETURN(Tensor * lu, c.AllocateOutput(0, input.shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor * p, c.AllocateOutput(1, BatchOf(input).Concatenate({n})));
  if (lu->num_elements() == 0) return absl::OkStatus();
  return ForEachMatrix(c, lu->num_elements() / size, CubicCost(n, n), [&](int64_t b) {
    ColumnMajorMatrix<T> a(input.data<T>() + b * size, n, n);
    std::vector<int> pivots(static_cast<size_t>(n));
    const int zero_pivot = lapack::LuFactor(static_cast<int>(n), a.data(), pivots.data());
    // TensorFlow detects a NaN pivot only if it is the first one.
    if (zero_pivot != 0 || std::isnan(std::abs(a(0, 0))))
      return InvalidArgument("Input is not invertible.");
    a.Write(lu->data<T>() + b * size);
    WritePermutation(pivots, p->data<Index>() + b * n);
    return absl::OkStatus();
  });
}

// ---- QR

// Copies the first `inner` rows of R and columns of Q.
template <class T>
void FactorQr(const T* in, int64_t m, int64_t n, int64_t inner, T* q, T* r) {
  using C = Compute<T>;
  ColumnMajorMatrix<C> a(in, m, n);
  const int reflections = static_cast<int>(std::min(m, n));
  std::vector<C> tau(static_cast<size_t>(reflections));
  lapack::QrFactor(static_cast<int>(m), static_cast<int>(n), a.data(), tau.data());
  ColumnMajorMatrix<C> upper(inner, n), unitary(m, inner);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i <= std::min(j, inner - 1); ++i) upper(i, j) = a(i, j);
  }
  std::copy_n(a.data(), m * std::min(inner, n), unitary.data());
  lapack::QrUnitary(static_cast<int>(m), static_cast<int>(inner), reflections, unitary.data(),
                    tau.data());
  upper.Write(r);
  unitary.Write(q);
}

// The result for an empty matrix: full orthogonal factors are identities.
template <class T>
void WriteIdentities(Tensor* t) {
  const int64_t m = t->dim(-2), n = t->dim(-1);
  for (int64_t i = 0; i < t->num_elements(); ++i) {
    t->data<T>()[i] = T(i / n % m == i % n ? 1.0f : 0.0f);
  }
}

template <class T>
absl::StatusOr<Kernel> MakeQr(const KernelInit& init) {
  const bool full = init.attr<bool>("full_matrices");
  return Kernel([full](KernelContext& c) -> absl::Status {
    const Tensor& input = c.input(0);
    WEIR_RETURN_IF_ERROR(CheckMatrices(input));
    const int64_t m = input.dim(-2), n = input.dim(-1), inner = full ? m : std::min(m, n);
    const Shape batch = BatchOf(input);
    WEIR_ASSIGN_OR_RETURN(Tensor * q, c.AllocateOutput(0, batch.Concatenate({m, inner})));
    WEIR_ASSIGN_OR_RETURN(Tensor * r, c.AllocateOutput(1, batch.Concatenate({inner, n})));
    if (input.num_elements() == 0) {
      WriteIdentities<T>(q);
      return absl::OkStatus();
    }
    return ForEachMatrix(c, batch.num_elements(), 4 * CubicCost(m, n), [&](int64_t b) {
      FactorQr(input.data<T>() + b * m * n, m, n, inner, q->data<T>() + b * m * inner,
               r->data<T>() + b * inner * n);
      return absl::OkStatus();
    });
  });
}

// ---- singular values

// Computes the three outputs for one matrix; u and v are null if not requested. Fills them with NaN
// for a matrix that contains one.
template <class T>
void FactorSvd(const T* in, int64_t m, int64_t n, lapack::Vectors vectors, T* s, T* u, T* v) {
  const int64_t inner = std::min(m, n);
  const bool wanted = vectors != lapack::Vectors::kNone;
  const bool full = vectors == lapack::Vectors::kFull;
  ColumnMajorMatrix<T> a(in, m, n);
  std::vector<lapack::Real<T>> values(static_cast<size_t>(inner));
  ColumnMajorMatrix<T> left(wanted ? m : 0, full ? m : inner), right(!wanted ? 0
                                                                     : full  ? n
                                                                             : inner,
                                                                     n);
  const bool found =
      AllFinite(a) && lapack::Svd(vectors, static_cast<int>(m), static_cast<int>(n), a.data(),
                                  values.data(), left.data(), right.data()) == 0;
  if (!found) {
    std::fill(values.begin(), values.end(), NotANumber<lapack::Real<T>>());
    std::fill(left.elements.begin(), left.elements.end(), NotANumber<T>());
    std::fill(right.elements.begin(), right.elements.end(), NotANumber<T>());
  }
  std::copy(values.begin(), values.end(), s);
  if (!wanted) return;
  left.Write(u);
  right.WriteAdjoint(v);
}

template <class T>
absl::Status Svd(KernelContext& c, lapack::Vectors vectors) {
  const Tensor& input = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckMatrices(input));
  const int64_t m = input.dim(-2), n = input.dim(-1), inner = std::min(m, n);
  const bool wanted = vectors != lapack::Vectors::kNone;
  const bool full = vectors == lapack::Vectors::kFull;
  const int64_t u_columns = full ? m : inner, v_columns = full ? n : inner;
  const Shape batch = BatchOf(input), none({0});
  WEIR_ASSIGN_OR_RETURN(Tensor * s, c.AllocateOutput(0, batch.Concatenate({inner})));
  WEIR_ASSIGN_OR_RETURN(Tensor * u,
                        c.AllocateOutput(1, wanted ? batch.Concatenate({m, u_columns}) : none));
  WEIR_ASSIGN_OR_RETURN(Tensor * v,
                        c.AllocateOutput(2, wanted ? batch.Concatenate({n, v_columns}) : none));
  if (input.num_elements() == 0) {
    if (wanted) {
      WriteIdentities<T>(u);
      WriteIdentities<T>(v);
    }
    return absl::OkStatus();
  }
  return ForEachMatrix(c, batch.num_elements(), 12 * CubicCost(m, n), [&](int64_t b) {
    FactorSvd(input.data<T>() + b * m * n, m, n, vectors, s->data<T>() + b * inner,
              wanted ? u->data<T>() + b * m * u_columns : nullptr,
              wanted ? v->data<T>() + b * n * v_columns : nullptr);
    return absl::OkStatus();
  });
}

template <class T>
absl::StatusOr<Kernel> MakeSvd(const KernelInit& init) {
  const lapack::Vectors vectors = !init.attr<bool>("compute_uv")     ? lapack::Vectors::kNone
                                  : init.attr<bool>("full_matrices") ? lapack::Vectors::kFull
                                                                     : lapack::Vectors::kThin;
  return Kernel([vectors](KernelContext& c) -> absl::Status { return Svd<T>(c, vectors); });
}

}  // namespace

void AddDecompositionCpu(KernelRegistry* r) {
  ForTypes(JoinLists<List<half>, RealAndComplex>{},
           [r]<class T>(DataType type) { r->Add("Qr", kCpu, type, MakeQr<T>); });
  ForTypes(RealAndComplex{}, [r]<class T>(DataType type) {
    for (const char* op : {"Cholesky", "BatchCholesky"}) {
      r->Add(op, kCpu, type, Cholesky<T>);
    }
    for (const char* op : {"Svd", "BatchSvd"}) r->Add(op, kCpu, type, MakeSvd<T>);
    r->Add("Lu", kCpu, {{"T", type}, {"output_idx_type", DT_INT32}}, Lu<T, int32_t>);
    r->Add("Lu", kCpu, {{"T", type}, {"output_idx_type", DT_INT64}}, Lu<T, int64_t>);
  });
  ForTypes(List<float, double>{}, [r]<class T>(DataType type) {
    for (const char* op : {"CholeskyGrad", "BatchCholeskyGrad"}) {
      r->Add(op, kCpu, type, CholeskyGrad<T>);
    }
  });
}

}  // namespace weir
