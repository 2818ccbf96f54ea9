#ifndef WEIR_KERNELS_NN_CONV_DNNL_H_
#define WEIR_KERNELS_NN_CONV_DNNL_H_

#include <memory>
#include <mutex>
#include <vector>

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/nn/conv.h"
#include "weir/kernels/nn/conv_operands.h"
#include "weir/kernels/nn/packed_weight_cache.h"

namespace weir {

template <class T>
class DnnlConvPrimitives;

// Convolutions of T by oneDNN, for one node. Caches what oneDNN prepares for a shape (generated
// code, packed layouts). Thread-safe.
//
// T is float, or bfloat16 if the processor has bfloat16 dot-product instructions
// (HasBfloat16Products; kernels/linalg/matmul_bfloat16.h describes how they round).
template <class T>
class DnnlConv {
 public:
  // `step_invariant_filter`: the filter is usually the same tensor as in the previous run, and
  // nobody writes to it while this object holds a reference (KernelInit::step_invariant_inputs), so
  // its packed form is cached. An epilogue requires the forward pass of floats.
  DnnlConv(ConvPass pass, bool step_invariant_filter, const Epilogue& epilogue = {});
  ~DnnlConv();

  // Returns false, without side effects, if oneDNN has no kernel for the shape.
  absl::StatusOr<bool> Run(KernelContext& ctx, const ConvShape& shape,
                           const ConvOperands<T>& operands);

 private:
  absl::StatusOr<std::shared_ptr<const DnnlConvPrimitives<T>>> PrimitivesFor(const ConvShape& shape,
                                                                             bool splits);
  absl::StatusOr<Tensor> PackedFilter(
      KernelContext& ctx, const std::shared_ptr<const DnnlConvPrimitives<T>>& primitives,
      const ConvOperands<T>& operands);

  const ConvPass pass_;
  const bool step_invariant_filter_;
  const Epilogue epilogue_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const DnnlConvPrimitives<T>>> cache_;  // newest last
  PackedWeightCache packed_filter_;                                  // packed for one of them
};

}  // namespace weir

#endif  // WEIR_KERNELS_NN_CONV_DNNL_H_
