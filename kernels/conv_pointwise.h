#ifndef WEIR_KERNELS_CONV_POINTWISE_H_
#define WEIR_KERNELS_CONV_POINTWISE_H_

#include "weir/core/kernel.h"
#include "weir/kernels/conv.h"
#include "weir/kernels/conv_operands.h"
#include "weir/kernels/kept_weight.h"

namespace weir {

// Float convolutions with 1x1 filters that last and skip pixels, as products of those that they
// take (gemm.h), for one node. Thread-safe.
class PointwiseConv {
 public:
  // See DnnlConv.
  PointwiseConv(ConvPass pass, bool lasting_filter, const Epilogue& epilogue = {});

  // False, and nothing has been done, for convolutions of another kind.
  absl::StatusOr<bool> Run(KernelContext& ctx, const ConvShape& shape,
                           const ConvOperands<float>& operands);

 private:
  const bool applies_;
  const Epilogue epilogue_;
  KeptWeight kept_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_CONV_POINTWISE_H_
