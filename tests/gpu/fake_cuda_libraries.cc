// Reference implementations, in double, of the cuBLAS and cuDNN functions that kernels/*/*_gpu.cc
// call; see fake_cuda.cc. They check the requirements of the real ones: strides, groups, types.

#include <cublas_v2.h>
#include <cudnn.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "weir/core/tensor/numeric_types.h"
#include "weir/kernels/gpu/launch.h"

// cuDNN 9 has no equally simple replacement.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

struct cublasContext {
  cudaStream_t stream = nullptr;
};
struct cudnnContext {
  cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int n = 0, c = 0, h = 0, w = 0;
};
struct cudnnFilterStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int k = 0, c = 0, h = 0, w = 0;
};
struct cudnnConvolutionStruct {
  int pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, groups = 1;
};

namespace weir {
namespace {

// Elements of one of the types, read and written as double.
enum class Type { kHalf, kBfloat16, kFloat, kDouble };
double Get(Type type, const void* data, int64_t i) {
  switch (type) {
    case Type::kHalf:
      return static_cast<float>(static_cast<const half*>(data)[i]);
    case Type::kBfloat16:
      return static_cast<float>(static_cast<const bfloat16*>(data)[i]);
    case Type::kFloat:
      return static_cast<const float*>(data)[i];
    default:
      return static_cast<const double*>(data)[i];
  }
}
void Set(Type type, void* data, int64_t i, double x) {
  switch (type) {
    case Type::kHalf:
      static_cast<half*>(data)[i] = half(static_cast<float>(x));
      return;
    case Type::kBfloat16:
      static_cast<bfloat16*>(data)[i] = bfloat16(static_cast<float>(x));
      return;
    case Type::kFloat:
      static_cast<float*>(data)[i] = static_cast<float>(x);
      return;
    default:
      static_cast<double*>(data)[i] = x;
  }
}

std::vector<double> All(Type type, const void* data, int64_t n) {
  std::vector<double> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[i] = Get(type, data, i);
  return values;
}

Type TypeOf(cudaDataType t) {
  return t == CUDA_R_16F    ? Type::kHalf
         : t == CUDA_R_16BF ? Type::kBfloat16
         : t == CUDA_R_64F  ? Type::kDouble
                            : Type::kFloat;
}
Type TypeOf(cudnnDataType_t t) {
  return t == CUDNN_DATA_HALF ? Type::kHalf : t == CUDNN_DATA_DOUBLE ? Type::kDouble : Type::kFloat;
}

struct Convolution {
  cudnnTensorStruct x, y;
  cudnnFilterStruct w;
  cudnnConvolutionStruct conv;

  bool Fits() const {
    const auto out = [](int in, int pad, int kernel, int dilation, int stride) {
      return (in + 2 * pad - ((kernel - 1) * dilation + 1)) / stride + 1;
    };
    return x.type == w.type && x.type == y.type && x.n == y.n && w.c * conv.groups == x.c &&
           w.k == y.c && w.k % conv.groups == 0 &&
           y.h == out(x.h, conv.pad_h, w.h, conv.dilation_h, conv.stride_h) &&
           y.w == out(x.w, conv.pad_w, w.w, conv.dilation_w, conv.stride_w);
  }

  // Calls fn(position in x, in w, in y) for every multiplication of the convolution.
  template <class Fn>
  void ForEachProduct(Fn&& fn) const {
    const int per_group = w.k / conv.groups;
    for (int64_t n = 0; n < y.n; ++n)
      for (int64_t k = 0; k < w.k; ++k)
        for (int64_t i = 0; i < y.h; ++i)
          for (int64_t j = 0; j < y.w; ++j)
            for (int64_t c = 0; c < w.c; ++c)
              for (int64_t u = 0; u < w.h; ++u)
                for (int64_t v = 0; v < w.w; ++v) {
                  const int64_t row = i * conv.stride_h - conv.pad_h + u * conv.dilation_h;
                  const int64_t column = j * conv.stride_w - conv.pad_w + v * conv.dilation_w;
                  if (row < 0 || row >= x.h || column < 0 || column >= x.w) continue;
                  const int64_t channel = k / per_group * w.c + c;
                  fn(((n * x.c + channel) * x.h + row) * x.w + column,
                     ((k * w.c + c) * w.h + u) * w.w + v, ((n * y.c + k) * y.h + i) * y.w + j);
                }
  }
};

// Each element of the result is the sum of its products. The workspace is overwritten, since
// callers must not rely on its contents.
constexpr size_t kWorkspace = 1024;
enum class ConvResult { kX, kW, kY };
cudnnStatus_t Convolve(cudnnHandle_t handle, const Convolution& conv, ConvResult made,
                       const void* alpha, const void* beta, const void* x, const void* w,
                       const void* y, void* workspace, size_t workspace_size) {
  if (!conv.Fits() || workspace_size != kWorkspace) return CUDNN_STATUS_BAD_PARAM;
  const Type type = TypeOf(conv.x.type);
  const bool wide = type == Type::kDouble;
  const double one = wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  const double zero = wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  if (one != 1 || zero != 0) return CUDNN_STATUS_NOT_SUPPORTED;
  RunOnHostStream(handle->stream, [=] {
    std::memset(workspace, 0xff, kWorkspace);
    const auto size = [](const cudnnTensorStruct& t) { return int64_t{1} * t.n * t.c * t.h * t.w; };
    std::vector<double> xs = All(type, x, size(conv.x)), ys = All(type, y, size(conv.y));
    std::vector<double> ws = All(type, w, int64_t{1} * conv.w.k * conv.w.c * conv.w.h * conv.w.w);
    std::vector<double>& sums = made == ConvResult::kX ? xs : made == ConvResult::kW ? ws : ys;
    std::fill(sums.begin(), sums.end(), 0.0);
    conv.ForEachProduct([&](int64_t i, int64_t j, int64_t k) {
      if (made == ConvResult::kX) xs[i] += ws[j] * ys[k];
      if (made == ConvResult::kW) ws[j] += xs[i] * ys[k];
      if (made == ConvResult::kY) ys[k] += xs[i] * ws[j];
    });
    void* const result = const_cast<void*>(made == ConvResult::kX   ? x
                                           : made == ConvResult::kW ? w
                                                                    : y);
    for (size_t i = 0; i < sums.size(); ++i) Set(type, result, static_cast<int64_t>(i), sums[i]);
  });
  return CUDNN_STATUS_SUCCESS;
}

// One algorithm that fails, one that is nondeterministic, and a good one.
template <class Perf, class Algorithm>
cudnnStatus_t Algorithms(Algorithm first, Algorithm second, int wanted, int* count, Perf* found) {
  if (wanted < 3) return CUDNN_STATUS_BAD_PARAM;
  *count = 3;
  for (int i = 0; i < 3; ++i) {
    found[i] = {};
    found[i].algo = i == 2 ? second : first;
    found[i].status = i == 0 ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
    found[i].determinism = i == 1 ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
    found[i].memory = kWorkspace;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace weir

extern "C" {

// ---- cuBLAS

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusName(cublasStatus_t) { return "CUBLAS_STATUS"; }
const char* cublasGetStatusString(cublasStatus_t) { return "an error"; }

// Matrices are column-major.
cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int64_t m, int64_t n,
    int64_t k, const void* alpha, const void* a, cudaDataType a_type, int64_t lda,
    long long stride_a, const void* b, cudaDataType b_type, int64_t ldb, long long stride_b,
    const void* beta, void* c, cudaDataType c_type, int64_t ldc, long long stride_c, int64_t count,
    cublasComputeType_t compute, cublasGemmAlgo_t) {
  const bool turn_a = transa != CUBLAS_OP_N, turn_b = transb != CUBLAS_OP_N;
  const bool wide = compute == CUBLAS_COMPUTE_64F;
  if (a_type != b_type || a_type != c_type || wide != (a_type == CUDA_R_64F) ||
      lda < (turn_a ? k : m) || ldb < (turn_b ? n : k) || ldc < m || m <= 0 || n <= 0 || k <= 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const double one = wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  const double zero = wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  if (one != 1 || zero != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  weir::RunOnHostStream(handle->stream, [=] {
    const weir::Type type = weir::TypeOf(a_type);
    for (int64_t p = 0; p < count; ++p)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < m; ++i) {
          double sum = 0;
          for (int64_t l = 0; l < k; ++l) {
            sum += weir::Get(type, a, p * stride_a + (turn_a ? l + i * lda : i + l * lda)) *
                   weir::Get(type, b, p * stride_b + (turn_b ? j + l * ldb : l + j * ldb));
          }
          weir::Set(type, c, p * stride_c + i + j * ldc, sum);
        }
  });
  return CUBLAS_STATUS_SUCCESS;
}

// ---- cuDNN

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS";
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* d) {
  *d = new cudnnTensorStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) {
  delete d;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  *d = {type, n, c, h, w};
  return format == CUDNN_TENSOR_NCHW ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* d) {
  *d = new cudnnFilterStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d) {
  delete d;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  *d = {type, k, c, h, w};
  return format == CUDNN_TENSOR_NCHW ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* d) {
  *d = new cudnnConvolutionStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d) {
  delete d;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int pad_h, int pad_w,
                                              int stride_h, int stride_w, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t) {
  *d = {pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, d->groups};
  return mode == CUDNN_CROSS_CORRELATION ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups) {
  d->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t, cudnnMathType_t) {
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnConvolutionDescriptor_t,
    cudnnTensorDescriptor_t, int wanted, int* count, cudnnConvolutionFwdAlgoPerf_t* found) {
  return weir::Algorithms(CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
                          wanted, count, found);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t,
    cudnnTensorDescriptor_t, int wanted, int* count, cudnnConvolutionBwdDataAlgoPerf_t* found) {
  return weir::Algorithms(CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                          wanted, count, found);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t,
    cudnnFilterDescriptor_t, int wanted, int* count, cudnnConvolutionBwdFilterAlgoPerf_t* found) {
  return weir::Algorithms(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                          wanted, count, found);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      cudnnTensorDescriptor_t x_desc, const void* x,
                                      cudnnFilterDescriptor_t w_desc, const void* w,
                                      cudnnConvolutionDescriptor_t conv,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      size_t workspace_size, const void* beta,
                                      cudnnTensorDescriptor_t y_desc, void* y) {
  if (algorithm != CUDNN_CONVOLUTION_FWD_ALGO_GEMM) return CUDNN_STATUS_BAD_PARAM;
  return weir::Convolve(handle, {*x_desc, *y_desc, *w_desc, *conv}, weir::ConvResult::kY, alpha,
                        beta, x, w, y, workspace, workspace_size);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           cudnnFilterDescriptor_t w_desc, const void* w,
                                           cudnnTensorDescriptor_t y_desc, const void* y,
                                           cudnnConvolutionDescriptor_t conv,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t workspace_size, const void* beta,
                                           cudnnTensorDescriptor_t x_desc, void* x) {
  if (algorithm != CUDNN_CONVOLUTION_BWD_DATA_ALGO_1) return CUDNN_STATUS_BAD_PARAM;
  return weir::Convolve(handle, {*x_desc, *y_desc, *w_desc, *conv}, weir::ConvResult::kX, alpha,
                        beta, x, w, y, workspace, workspace_size);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_desc, const void* x,
    cudnnTensorDescriptor_t y_desc, const void* y, cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace, size_t workspace_size,
    const void* beta, cudnnFilterDescriptor_t w_desc, void* w) {
  if (algorithm != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1) return CUDNN_STATUS_BAD_PARAM;
  return weir::Convolve(handle, {*x_desc, *y_desc, *w_desc, *conv}, weir::ConvResult::kW, alpha,
                        beta, x, w, y, workspace, workspace_size);
}

}  // extern "C"
