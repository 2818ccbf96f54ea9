#ifndef WEIR_KERNELS_NN_CONV_OPERANDS_H_
#define WEIR_KERNELS_NN_CONV_OPERANDS_H_

#include "weir/core/tensor/tensor.h"
#include "weir/kernels/linalg/epilogue.h"

namespace weir {

// The operands of a convolution of T, in the order of Conv2D's inputs and output; the pass writes
// the operand that it computes. Images are [batch, depth, height, width, channels].
template <class T>
struct ConvOperands {
  const Tensor* filter = nullptr;  // if the filter is an input: its tensor, which identifies it
                                   // when it is step-invariant
  T* input = nullptr;
  T* filter_data = nullptr;
  T* output = nullptr;
  Epilogue::Operands epilogue = {};  // for float only
};

}  // namespace weir

#endif  // WEIR_KERNELS_NN_CONV_OPERANDS_H_
