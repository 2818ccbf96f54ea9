#ifndef WEIR_KERNELS_CONV_FLOAT_H_
#define WEIR_KERNELS_CONV_FLOAT_H_

#include "weir/core/tensor.h"
#include "weir/kernels/epilogue.h"

namespace weir {

// The operands of a convolution of floats, in the order of Conv2D's inputs and output: the one that
// the pass computes is written. Images are [batch, depth, height, width, channels].
struct ConvOperands {
  const Tensor* filter = nullptr;  // where it is an input: identifies it when it lasts
  float* input = nullptr;
  float* filter_data = nullptr;
  float* output = nullptr;
  Epilogue::Operands epilogue = {};
};

}  // namespace weir

#endif  // WEIR_KERNELS_CONV_FLOAT_H_
