#include <algorithm>

#include "weir/core/shape_context.h"
#include "weir/ops/registry.h"

namespace weir {

namespace {

absl::Status QrShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape input, c.WithRankAtLeast(0, 2));
  if (!input.has_rank()) return absl::OkStatus();
  const int64_t m = input.dim(-2), n = input.dim(-1);
  const int64_t inner = c.attr<bool>("full_matrices") ? m
                        : m < 0 || n < 0              ? Shape::kUnknown
                                                      : std::min(m, n);
  const Shape batch = input.Sub(0, -2);
  c.set_output(0, batch.Concatenate({m, inner}));
  c.set_output(1, batch.Concatenate({inner, n}));
  return absl::OkStatus();
}

}  // namespace

void AddLinalgOps(OpRegistry* ops) {
  ops->Add(OpSpec("Qr")
               .In("input: T")
               .Out("q: T, r: T")
               .Attr("full_matrices: bool = false")
               .Attr("T: {double, float, half, complex64, complex128}")
               .InferShape(QrShape)
               .Doc("Writes each matrix in the last two dimensions as a unitary matrix q times an "
                    "upper triangular r."));
}

}  // namespace weir
