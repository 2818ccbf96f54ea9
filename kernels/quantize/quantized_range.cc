#include "weir/kernels/quantize/quantized_range.h"

#include "weir/kernels/lib/arguments.h"

namespace weir {

absl::StatusOr<NumberRange> ReadRange(const KernelContext& c, int first) {
  const std::vector<ArgSpec>& args = c.node().op().inputs();
  for (int i = first; i < first + 2; ++i)
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(i), 0, args[i].name));
  return NumberRange{c.input(first).scalar<float>(), c.input(first + 1).scalar<float>()};
}

absl::StatusOr<NumberRange> ReadSingleRange(const KernelContext& c, int first) {
  const std::vector<ArgSpec>& args = c.node().op().inputs();
  for (int i = first; i < first + 2; ++i) {
    const Shape& shape = c.input(i).shape();
    if (shape.num_elements() == 1) continue;
    return InvalidArgument(args[i].name, " must be a scalar, but has shape ", shape.ToString());
  }
  return NumberRange{c.input(first).scalar<float>(), c.input(first + 1).scalar<float>()};
}

absl::Status CheckNotEmpty(const KernelContext& c, int first, const NumberRange& range) {
  if (range.max > range.min) return absl::OkStatus();
  const std::vector<ArgSpec>& args = c.node().op().inputs();
  return InvalidArgument(args[first + 1].name, " must be larger than ", args[first].name, ".");
}

absl::Status WriteRange(KernelContext& c, int first, const NumberRange& range) {
  WEIR_ASSIGN_OR_RETURN(Tensor * min, c.AllocateOutput(first, Shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor * max, c.AllocateOutput(first + 1, Shape()));
  *min->data<float>() = range.min;
  *max->data<float>() = range.max;
  return absl::OkStatus();
}

}  // namespace weir
