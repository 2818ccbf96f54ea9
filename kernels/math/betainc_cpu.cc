#include <string>

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/math/bessel.h"

namespace weir {

namespace {

// Returns the common shape of the non-scalar arguments.
absl::StatusOr<Shape> CommonShape(const KernelContext& c) {
  static constexpr const char* kNames = "abx";
  int widest = 0;
  for (int i = 1; i < 3; ++i) {
    if (c.input(widest).rank() == 0) widest = i;
  }
  const Shape& shape = c.input(widest).shape();
  for (int i = 0; i < 3; ++i) {
    if (c.input(i).rank() > 0 && c.input(i).shape() != shape) {
      return InvalidArgument("Shapes of ", std::string(1, kNames[widest]), " and ",
                             std::string(1, kNames[i]), " are inconsistent: ", shape.ToString(),
                             " vs. ", c.input(i).shape().ToString());
    }
  }
  return shape;
}

template <class T>
absl::Status RunBetainc(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CommonShape(c));
  WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
  const auto at = [&](int i, int64_t k) -> double {
    return c.input(i).data<T>()[c.input(i).rank() == 0 ? 0 : k];
  };
  c.pool().ParallelFor(output->num_elements(), 500, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      output->data<T>()[k] = static_cast<T>(Betainc(at(0, k), at(1, k), at(2, k)));
    }
  });
  return absl::OkStatus();
}

}  // namespace

void AddBetaincCpu(KernelRegistry* r) {
  r->Add("Betainc", kCpu, DT_FLOAT, RunBetainc<float>);
  r->Add("Betainc", kCpu, DT_DOUBLE, RunBetainc<double>);
}

}  // namespace weir
