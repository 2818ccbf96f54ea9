#ifndef WEIR_KERNELS_GPU_GPU_LOOPS_H_
#define WEIR_KERNELS_GPU_GPU_LOOPS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "weir/core/tensor/dtype.h"
#include "weir/kernels/gpu/grid_index.h"
#include "weir/kernels/lib/philox.h"
#include "weir/kernels/lib/training.h"

// The type-erased loops of GPU kernels: the interface between the sources compiled by nvcc
// (*_gpu.cu) and the files that validate arguments and allocate memory (*_gpu.cc). Every function
// enqueues on the stream and returns; pointers are to device memory. Temporary memory may be freed
// as soon as a function has returned, because device memory is reused in stream order.
namespace weir::gpu {

// ---- unary_gpu.cu, binary_gpu.cu

// y[i] = f(x[i]) for i in [0, n). `p` is the op's parameter, if it has one.
using Unary = void (*)(void* stream, const void* x, void* y, int64_t n, double p);
// z[i] = f(x[at 0], y[at 1]) for every i of the grid.
using Binary = void (*)(void* stream, const GridIndex<2>& grid, const void* x, const void* y,
                        void* z, double p);
template <class Run>
struct Elementwise {
  const char* op;
  DataType in, out;
  Run run;
};
const std::vector<Elementwise<Unary>>& Unaries();
const std::vector<Elementwise<Binary>>& Binaries();
// Returns null if there is none.
Binary FindBinary(absl::string_view op, DataType type);

// ---- moves_gpu.cu; elements are `size` bytes: 1, 2, 4, 8 or 16

// to[at 1] = from[at 0]
void CopyGrid(void* stream, size_t size, const GridIndex<2>& grid, const void* from, void* to);
// to[i] = the element in the first bytes of `value`, which is passed by value.
void Fill(void* stream, size_t size, const Bytes16& value, void* to, int64_t n);
// to[i] = *from
void Repeat(void* stream, size_t size, const void* from, void* to, int64_t n);
// z[i] = condition[at 0] ? x[at 1] : y[at 2]
void Choose(void* stream, size_t size, const GridIndex<3>& grid, const bool* condition,
            const void* x, const void* y, void* z);

// params is [batch, outer, limit, inner], indices [batch, count], the result [batch, outer, count,
// inner]. An out-of-range index yields zeros.
struct GatherArgs {
  int64_t batch, outer, limit, inner, count;
  const void* params;
  const void* indices;
  void* out;
};
void Gather(void* stream, size_t size, DataType index_type, const GatherArgs& args);

// out is [prefix, depth, suffix], indices [prefix, suffix]; `on` and `off` are one element each.
struct OneHotArgs {
  int64_t prefix, depth, suffix;
  const void* indices;
  const void* on;
  const void* off;
  void* out;
};
void OneHot(void* stream, size_t size, DataType index_type, const OneHotArgs& args);

// ---- cast_gpu.cu, with AddN

using CastTypes = JoinLists<Floats, List<int8_t, uint8_t, int32_t, int64_t, bool>>;
// Returns false if there is no conversion between the types: not both are of CastTypes. Clears
// `dropped_bits` of the mantissa first.
bool Cast(void* stream, DataType from, DataType to, int dropped_bits, const void* x, void* y,
          int64_t n);

// out[i] = xs[0][i] + ... + xs[count - 1][i]. Returns false if the type has no kernel.
bool AddAll(void* stream, DataType type, const void* const* xs, int count, void* out, int64_t n);

// ---- reduce_gpu.cu

// One pass of a reduction of elements viewed as [kept, reduced]: `splits` threads share each
// result. Each of them takes every splits-th element and writes one accumulator. `to_results` means
// that splits is 1 and accumulators are converted to results.
struct ReducePass {
  const void* in = nullptr;  // elements, or accumulators (from_partials)
  void* out = nullptr;
  bool from_partials = false, to_results = false;
  // Adjacent threads process adjacent positions of the reduced dimensions (otherwise of the kept
  // ones); accumulators have the same order.
  bool reduced_inside = true;
  int64_t splits = 1;
  int64_t count = 0;  // total number of elements per result
  GridIndex<1> kept, reduced;
};
struct Reducer {
  size_t acc_size = 0;
  void (*run)(void* stream, const ReducePass& pass) = nullptr;
};
// Ops: Sum, Mean, Prod, Max, Min, EuclideanNorm, L2Loss, All, Any. Returns null if there is none.
const Reducer* FindReducer(absl::string_view op, DataType type);
// ArgMax and ArgMin into int32 or int64.
const Reducer* FindArgReducer(bool max, DataType type, DataType out);

// ---- softmax_gpu.cu: rows of `n` classes. Computes in type C: double for double, otherwise float.
// Out-of-range labels yield NaN.

struct SoftmaxArgs {
  DataType type = DT_FLOAT;          // of logits, labels (probabilities) and results
  DataType label_type = DT_INVALID;  // of labels that are class indices
  int64_t rows = 0, n = 0;
  const void* logits = nullptr;
  const void* max = nullptr;   // [rows]
  void* exps = nullptr;        // C [rows, n]
  const void* sums = nullptr;  // C [rows]
  const void* labels = nullptr;
  void* loss = nullptr;  // [rows]; for probabilities C [rows, n]: the terms of the loss
  void* out = nullptr;   // [rows, n]
};
void SoftmaxExps(void* stream, const SoftmaxArgs& args);         // exps = exp(logits - max)
void SoftmaxNormalize(void* stream, const SoftmaxArgs& args);    // out = exps / sums
void SoftmaxLogs(void* stream, const SoftmaxArgs& args);         // out = logits - max - log(sums)
void SparseCrossEntropy(void* stream, const SoftmaxArgs& args);  // loss and out, from exps
void CrossEntropyTerms(void* stream, const SoftmaxArgs& args);   // loss and out, from exps

// ---- pool_gpu.cu

// Images [batch, depth, height, width, channels] with separate strides.
struct PoolArgs {
  int64_t batch = 0, channels = 0;
  int64_t in[3] = {}, window[3] = {}, out[3] = {}, stride[3] = {}, pad[3] = {};
  bool channels_first = false;
  const void* a = nullptr;  // x; for average gradients dy
  const void* b = nullptr;  // dy; for kMaxGradGrad g
  void* result = nullptr;
};
enum class PoolOp { kMax, kMaxGrad, kMaxGradGrad, kAvg, kAvgGrad };
// Returns false if the type has no kernel.
bool Pool(void* stream, PoolOp op, DataType type, const PoolArgs& args);

// ---- batch_norm_gpu.cu

// Images of this type viewed as [outer, channels, inner]; vectors of channels are float.
struct BatchNormArgs {
  DataType type = DT_FLOAT;
  int64_t outer = 0, channels = 0, inner = 0;
  bool is_training = true;
  float epsilon = 0;
  const void* x = nullptr;
  const void* dy = nullptr;
  void* out = nullptr;
  float* temp = nullptr;  // float images
  const float* mean = nullptr;
  const float* variance = nullptr;  // the biased variance
  const float* scale = nullptr;
  const float* offset = nullptr;
  const float* sum = nullptr;      // sum of dy
  const float* product = nullptr;  // the sum of dy * (x - mean)
};
void BatchNormSquares(void* stream, const BatchNormArgs& args);   // temp = (x - mean)^2
void BatchNormProducts(void* stream, const BatchNormArgs& args);  // temp = dy * (x - mean)
// out = (x - mean) / sqrt(variance + epsilon) * scale + offset
void BatchNormalize(void* stream, const BatchNormArgs& args);
// out = dx; see batch_norm_cpu.cc
void BatchNormGradient(void* stream, const BatchNormArgs& args);
// dscale = product / sqrt(variance + epsilon)
void BatchNormScaleGradient(void* stream, const BatchNormArgs& args, float* dscale);
// out[i] = (1 - factor) * old[i] + factor * times * now[i]; with a factor of 1, `old` is not read.
void BatchNormRunning(void* stream, int64_t n, float factor, float times, const float* old,
                      const float* now, float* out);

// ---- random_gpu.cu, training_gpu.cu

bool Random(void* stream, RandomKind kind, DataType type, const Philox& start, uint64_t low,
            uint64_t range, void* out, int64_t n);

struct UpdateArgs {
  void* var = nullptr;
  void* slots[3] = {};
  const void* grad = nullptr;
  const void* scalars[7] = {};  // of the rule's type; null: given.at[i]
  const int64_t* global_step = nullptr;
  UpdateScalars given;
};
bool Update(void* stream, absl::string_view rule, bool power, DataType type, const UpdateArgs& args,
            int64_t n);

}  // namespace weir::gpu

#endif  // WEIR_KERNELS_GPU_GPU_LOOPS_H_
