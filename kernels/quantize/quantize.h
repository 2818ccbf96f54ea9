#ifndef WEIR_KERNELS_QUANTIZE_QUANTIZE_H_
#define WEIR_KERNELS_QUANTIZE_QUANTIZE_H_

#include <algorithm>
#include <cstdint>

#include "weir/core/runtime/kernel.h"

// Shared code of the kernels that quantize: numbers of a range [min, max] become integers, with one
// range per tensor or per channel.
namespace weir {

// A tensor as [outer, channels, inner]. Without an axis the whole tensor is one channel.
struct Channels {
  int64_t outer = 1, count = 1, inner = 1;

  // `axis` is a dimension of the shape, or negative for none.
  static Channels Along(const Shape& shape, int64_t axis) {
    Channels c;
    if (axis < 0) {
      c.inner = shape.num_elements();
      return c;
    }
    const int at = static_cast<int>(axis);
    c.outer = shape.Sub(0, at).num_elements();
    c.count = shape.dim(at);
    c.inner = shape.Sub(at + 1).num_elements();
    return c;
  }

  // Calls fn(begin, end, channel) for elements [begin, end) of one channel, until all are done;
  // `cost` is in nanoseconds per element.
  template <class F>
  void ForEachRun(ThreadPool& pool, double cost, const F& fn) const {
    pool.ParallelFor(outer * count * inner, cost, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t row = begin / inner, stop = std::min(end, (row + 1) * inner);
        fn(begin, stop, row % count);
        begin = stop;
      }
    });
  }
  // Calls fn(element, channel) for every element.
  template <class F>
  void ForEach(ThreadPool& pool, double cost, const F& fn) const {
    ForEachRun(pool, cost, [&](int64_t begin, int64_t end, int64_t channel) {
      for (; begin < end; ++begin) fn(begin, channel);
    });
  }
};

void AddFakeQuantCpu(KernelRegistry* r);              // fake_quant_cpu.cc
void AddQuantizeAndDequantizeCpu(KernelRegistry* r);  // quantize_and_dequantize_cpu.cc
void AddQuantizedImageCpu(KernelRegistry* r);         // quantized_image_cpu.cc
void AddQuantizedConcatCpu(KernelRegistry* r);        // quantized_concat_cpu.cc
void AddQuantizedFusedCpu(KernelRegistry* r);         // quantized_fused_cpu.cc
void AddQuantizedMathCpu(KernelRegistry* r);          // quantized_math_cpu.cc
void AddQuantizedNormCpu(KernelRegistry* r);          // quantized_norm_cpu.cc
void AddRequantizeCpu(KernelRegistry* r);             // requantize_cpu.cc
void AddRequantizePerChannelCpu(KernelRegistry* r);   // requantize_per_channel_cpu.cc

}  // namespace weir

#endif  // WEIR_KERNELS_QUANTIZE_QUANTIZE_H_
