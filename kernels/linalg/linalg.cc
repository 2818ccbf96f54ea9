#include "weir/kernels/linalg/linalg.h"

#include "weir/kernels/lib/registry.h"

namespace weir {

absl::Status CheckMatrices(const Tensor& t, absl::string_view argument) {
  // LAPACK's workspace sizes are small multiples of products of two sides, which must fit 32 bits.
  constexpr int64_t kLongestShort = 20'000, kLongest = int64_t{1} << 24;
  if (t.rank() < 2) {
    return InvalidArgument(argument, " must have rank >= 2, got ", t.rank(), " (shape ",
                           t.shape().ToString(), ")");
  }
  const int64_t m = t.dim(-2), n = t.dim(-1);
  if (std::min(m, n) > kLongestShort || std::max(m, n) > kLongest) {
    return InvalidArgument(argument, " has matrices of ", m, " x ", n, ", which is too large");
  }
  return absl::OkStatus();
}

absl::Status CheckSquare(const Tensor& t, absl::string_view message) {
  WEIR_RETURN_IF_ERROR(CheckMatrices(t));
  if (t.dim(-2) != t.dim(-1)) return InvalidArgument(message, " Got shape ", t.shape().ToString());
  return absl::OkStatus();
}

absl::Status CheckSameBatch(const Tensor& a, const Tensor& b) {
  if (a.rank() != b.rank()) return InvalidArgument("All input tensors must have the same rank.");
  if (BatchOf(a) != BatchOf(b)) {
    return InvalidArgument("All input tensors must have the same outer dimensions.");
  }
  return absl::OkStatus();
}

void AddLinalgCpu(KernelRegistry* r) {
  AddEigenKernels(r);
  AddSolveKernels(r);
  AddTriangularKernels(r);
  AddTridiagonalKernels(r);
  AddMatrixFunctionKernels(r);
}

}  // namespace weir
