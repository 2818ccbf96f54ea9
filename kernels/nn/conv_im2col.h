#ifndef WEIR_KERNELS_NN_CONV_IM2COL_H_
#define WEIR_KERNELS_NN_CONV_IM2COL_H_

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/nn/conv.h"
#include "weir/kernels/nn/conv_operands.h"
#include "weir/kernels/nn/packed_weight_cache.h"

namespace weir {

// Strided float convolutions with step-invariant filters, as matrix products of im2col patches
// (gemm.h), for one node. Thread-safe.
class Im2colConv {
 public:
  // See DnnlConv.
  Im2colConv(ConvPass pass, bool step_invariant_filter, const Epilogue& epilogue = {});

  // Returns false, without side effects, for other convolutions.
  absl::StatusOr<bool> Run(KernelContext& ctx, const ConvShape& shape,
                           const ConvOperands<float>& operands);

 private:
  bool IsFor(const ConvShape& shape) const;

  const bool applies_;
  const Epilogue epilogue_;
  PackedWeightCache packed_filter_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_NN_CONV_IM2COL_H_
