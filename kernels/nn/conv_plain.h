#ifndef WEIR_KERNELS_NN_CONV_PLAIN_H_
#define WEIR_KERNELS_NN_CONV_PLAIN_H_

#include "weir/core/runtime/thread_pool.h"
#include "weir/kernels/nn/conv.h"

// Reference convolutions by the definition, for types that oneDNN lacks (double, int32), and for
// float where it has no kernel. Images are [batch, depth, height, width, channels]; the output is
// overwritten. T: float, double, int32_t.
namespace weir {

template <class T>
void PlainConv(ThreadPool& pool, const ConvShape& s, const T* input, const T* filter, T* output);
template <class T>
void PlainConvBackpropInput(ThreadPool& pool, const ConvShape& s, const T* filter, const T* dy,
                            T* dx);
template <class T>
void PlainConvBackpropFilter(ThreadPool& pool, const ConvShape& s, const T* input, const T* dy,
                             T* df);

}  // namespace weir

#endif  // WEIR_KERNELS_NN_CONV_PLAIN_H_
