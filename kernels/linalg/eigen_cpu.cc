#include <vector>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/linalg/linalg.h"

// Eigenvalues and eigenvectors.
namespace weir {

namespace {

// Computes the eigenvalues in ascending order, and the eigenvectors in the columns of `a`, of which
// only the lower triangle is read.
template <class T>
absl::Status Decompose(bool vectors, ColumnMajorMatrix<T>* a, std::vector<lapack::Real<T>>* e) {
  const int64_t n = a->rows;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < j; ++i) (*a)(i, j) = T(0);
  }
  e->resize(static_cast<size_t>(n));
  if (!AllFinite(*a) ||
      lapack::SelfAdjointEigen(vectors, static_cast<int>(n), a->data(), e->data()) != 0) {
    return InvalidArgument(
        "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
  }
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<Kernel> MakeSelfAdjointEigV2(const KernelInit& init) {
  const bool vectors = init.attr<bool>("compute_v");
  return Kernel([vectors](KernelContext& c) -> absl::Status {
    const Tensor& input = c.input(0);
    WEIR_RETURN_IF_ERROR(CheckSquare(input));
    const int64_t n = input.dim(-1), size = n * n;
    WEIR_ASSIGN_OR_RETURN(Tensor * e, c.AllocateOutput(0, BatchOf(input).Concatenate({n})));
    WEIR_ASSIGN_OR_RETURN(Tensor * v, c.AllocateOutput(1, vectors ? input.shape() : Shape({0})));
    if (input.num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(c, input.num_elements() / size, 8 * CubicCost(n, n),
                         [&](int64_t b) -> absl::Status {
                           ColumnMajorMatrix<T> a(input.data<T>() + b * size, n, n);
                           std::vector<lapack::Real<T>> values;
                           WEIR_RETURN_IF_ERROR(Decompose(vectors, &a, &values));
                           std::copy(values.begin(), values.end(), e->data<T>() + b * n);
                           if (vectors) a.Write(v->data<T>() + b * size);
                           return absl::OkStatus();
                         });
  });
}

// The first version of the op has one output: the eigenvalues in its first row and the eigenvectors
// below.
template <class T>
absl::Status SelfAdjointEig(KernelContext& c) {
  const Tensor& input = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckSquare(input));
  const int64_t n = input.dim(-1), size = n * n;
  WEIR_ASSIGN_OR_RETURN(Tensor * output,
                        c.AllocateOutput(0, BatchOf(input).Concatenate({n + 1, n})));
  if (input.num_elements() == 0) return absl::OkStatus();
  return ForEachMatrix(c, input.num_elements() / size, 8 * CubicCost(n, n),
                       [&](int64_t b) -> absl::Status {
                         ColumnMajorMatrix<T> a(input.data<T>() + b * size, n, n);
                         std::vector<T> values;
                         WEIR_RETURN_IF_ERROR(Decompose(/*vectors=*/true, &a, &values));
                         T* to = output->data<T>() + b * (size + n);
                         std::copy(values.begin(), values.end(), to);
                         a.Write(to + n);
                         return absl::OkStatus();
                       });
}

template <class T>
absl::StatusOr<Kernel> MakeEig(const KernelInit& init) {
  using Out = std::complex<lapack::Real<T>>;
  const auto out = init.attr<DataType>("Tout");
  if (out != DataTypeOf<Out>::value) {
    return InvalidArgument("Invalid output dtype ", DataTypeName(out), " for an input of ",
                           DataTypeName(DataTypeOf<T>::value), ": it must be ",
                           DataTypeName(DataTypeOf<Out>::value));
  }
  const bool vectors = init.attr<bool>("compute_v");
  return Kernel([vectors](KernelContext& c) -> absl::Status {
    const Tensor& input = c.input(0);
    WEIR_RETURN_IF_ERROR(CheckSquare(input));
    const int64_t n = input.dim(-1), size = n * n;
    WEIR_ASSIGN_OR_RETURN(Tensor * e, c.AllocateOutput(0, BatchOf(input).Concatenate({n})));
    WEIR_ASSIGN_OR_RETURN(Tensor * v, c.AllocateOutput(1, vectors ? input.shape() : Shape({0})));
    if (input.num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(
        c, input.num_elements() / size, 20 * CubicCost(n, n), [&](int64_t b) -> absl::Status {
          ColumnMajorMatrix<T> a(input.data<T>() + b * size, n, n);
          ColumnMajorMatrix<Out> found(vectors ? n : 0, n);
          if (!AllFinite(a) || lapack::Eigen(vectors, static_cast<int>(n), a.data(),
                                             e->data<Out>() + b * n, found.data()) != 0) {
            return InvalidArgument(
                "Eigen decomposition was not successful. The input might not be valid.");
          }
          if (vectors) found.Write(v->data<Out>() + b * size);
          return absl::OkStatus();
        });
  });
}

}  // namespace

void AddEigenKernels(KernelRegistry* r) {
  ForTypes(RealAndComplex{}, [r]<class T>(DataType type) {
    for (const char* op : {"SelfAdjointEigV2", "BatchSelfAdjointEigV2"}) {
      r->Add(op, kCpu, type, MakeSelfAdjointEigV2<T>);
    }
    r->Add("Eig", kCpu, type, MakeEig<T>);
  });
  ForTypes(List<float, double>{}, [r]<class T>(DataType type) {
    for (const char* op : {"SelfAdjointEig", "BatchSelfAdjointEig"}) {
      r->Add(op, kCpu, type, SelfAdjointEig<T>);
    }
  });
}

}  // namespace weir
