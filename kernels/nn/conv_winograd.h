#ifndef WEIR_KERNELS_NN_CONV_WINOGRAD_H_
#define WEIR_KERNELS_NN_CONV_WINOGRAD_H_

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/nn/conv.h"
#include "weir/kernels/nn/conv_operands.h"
#include "weir/kernels/nn/packed_weight_cache.h"

namespace weir {

// Winograd convolutions of floats with 3x3 filters at stride 1, and gradients of their input, with
// four ninths of the multiplications (winograd.h), for one node. Results differ from direct
// convolution by rounding. Thread-safe.
class WinogradConv {
 public:
  // See DnnlConv.
  WinogradConv(ConvPass pass, bool step_invariant_filter, const Epilogue& epilogue = {});

  // Returns false, without side effects, for other convolutions, where it would be slower, and
  // where an operand is not finite: an infinity would turn into NaN.
  absl::StatusOr<bool> Run(KernelContext& ctx, const ConvShape& shape,
                           const ConvOperands<float>& operands);

 private:
  const ConvPass pass_;
  const bool step_invariant_filter_;
  const Epilogue epilogue_;
  PackedWeightCache packed_filter_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_NN_CONV_WINOGRAD_H_
