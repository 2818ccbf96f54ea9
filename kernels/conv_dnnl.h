#ifndef WEIR_KERNELS_CONV_DNNL_H_
#define WEIR_KERNELS_CONV_DNNL_H_

#include <memory>
#include <mutex>
#include <vector>

#include "weir/core/kernel.h"
#include "weir/kernels/conv.h"
#include "weir/kernels/epilogue.h"
#include "weir/kernels/kept_bytes.h"

namespace weir {

class DnnlConvPlan;

// Float convolutions by oneDNN, for one node: what oneDNN prepares for a shape (generated code,
// packed layouts) is kept and used again when the shape comes again. Images are [batch, depth,
// height, width, channels]. Thread-safe.
class DnnlConv {
 public:
  // `lasting_filter`: the filter is mostly the same tensor as in the run before, and nobody writes
  // to it while it is held here (KernelInit::lasting_inputs), so that it stays packed. An epilogue
  // is for the forward pass.
  DnnlConv(ConvPass pass, bool lasting_filter, const Epilogue& epilogue = {});
  ~DnnlConv();

  // The operands of a pass, in the order of Conv2D's inputs and output: the one that the pass
  // computes is written.
  struct Operands {
    const Tensor* filter = nullptr;  // where it is an input: identifies it when it lasts
    float* input = nullptr;
    float* filter_data = nullptr;
    float* output = nullptr;
    Epilogue::Operands epilogue = {};
  };
  // False if oneDNN has no kernel for the shape: nothing has been done then.
  absl::StatusOr<bool> Run(KernelContext& ctx, const ConvShape& shape, const Operands& operands);

 private:
  absl::StatusOr<std::shared_ptr<const DnnlConvPlan>> PlanFor(const ConvShape& shape, int threads);
  absl::StatusOr<Tensor> PackedFilter(KernelContext& ctx,
                                      const std::shared_ptr<const DnnlConvPlan>& plan,
                                      const Operands& operands);

  const ConvPass pass_;
  const bool lasting_filter_;
  const Epilogue epilogue_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const DnnlConvPlan>> plans_;  // most recently made last
  // A lasting filter, how it lies packed, and for which plan.
  KeptBytes kept_;
  Tensor packed_source_, packed_;
  std::shared_ptr<const DnnlConvPlan> packed_for_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_CONV_DNNL_H_
