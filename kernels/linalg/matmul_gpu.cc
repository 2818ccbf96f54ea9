#include "weir/kernels/linalg/matmul.h"

#include "weir/kernels/gpu/gpu_device.h"
#include "weir/kernels/gpu/gpu_kernels.h"
#include "weir/kernels/lib/device_primitives.h"

// Matrix products by cuBLAS. cuBLAS is column-major, so one of our matrices is the transpose of one
// of its, and C = A B is computed as C' = B' A': the operands change places, and everything else is
// unchanged. 16-bit floats are accumulated in float; float is not rounded to TF32.
namespace weir {

namespace gpu {

namespace {

struct BlasTypes {
  cudaDataType data;
  cublasComputeType_t compute;
};

BlasTypes TypesOf(DataType type) {
  switch (type) {
    case DT_HALF:
      return {CUDA_R_16F, CUBLAS_COMPUTE_32F};
    case DT_BFLOAT16:
      return {CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    case DT_DOUBLE:
      return {CUDA_R_64F, CUBLAS_COMPUTE_64F};
    default:
      return {CUDA_R_32F, CUBLAS_COMPUTE_32F};
  }
}

// `count` products; the strides are elements between the matrices of each argument.
struct Batch {
  int64_t count = 1, stride_a = 0, stride_b = 0, stride_c = 0;
};

absl::Status Multiply(KernelContext& c, DataType type, const MatMulArgs& g, const Batch& batch,
                      const void* a, const void* b, void* out) {
  if (g.m == 0 || g.n == 0 || batch.count == 0) return absl::OkStatus();
  if (g.k == 0) {
    const uint8_t zero = 0;
    const int64_t size = static_cast<int64_t>(ElementSize(type));
    c.device().primitives()->Fill(1, &zero, out, batch.count * g.m * g.n * size);
    return absl::OkStatus();
  }
  auto& device = static_cast<CudaDevice&>(c.device());
  WEIR_ASSIGN_OR_RETURN(const CudaDevice::Libraries libraries, device.Blas());
  const BlasTypes types = TypesOf(type);
  const float one_f = 1, zero_f = 0;
  const double one_d = 1, zero_d = 0;
  const bool wide = type == DT_DOUBLE;
  const void* const alpha = wide ? static_cast<const void*>(&one_d) : &one_f;
  const void* const beta = wide ? static_cast<const void*>(&zero_d) : &zero_f;
  const cublasOperation_t op_a = g.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_b = g.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int64_t row_a = g.transpose_a ? g.m : g.k, row_b = g.transpose_b ? g.k : g.n;
  return device.Check(
      cublasGemmStridedBatchedEx_64(libraries.blas, op_b, op_a, g.n, g.m, g.k, alpha, b, types.data,
                                    row_b, batch.stride_b, a, types.data, row_a, batch.stride_a,
                                    beta, out, types.data, g.n, batch.stride_c, batch.count,
                                    types.compute, CUBLAS_GEMM_DEFAULT),
      "cublasGemmStridedBatchedEx");
}

struct MatMulKernel {
  DataType type;
  bool transpose_a, transpose_b;

  absl::Status operator()(KernelContext& c) const {
    const Tensor &a = c.input(0), &b = c.input(1);
    WEIR_ASSIGN_OR_RETURN(const MatMulArgs args,
                          MatMulOf(a.shape(), b.shape(), transpose_a, transpose_b));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({args.m, args.n})));
    return Multiply(c, type, args, Batch(), a.raw(), b.raw(), out->raw());
  }
};

// Multiplies the matrices in the last two dimensions: one batched call if every argument has a
// constant stride between matrices, otherwise one call per product.
struct BatchMatMulKernel {
  DataType type;
  bool adj_x, adj_y, broadcasts;

  absl::Status operator()(KernelContext& c) const {
    const Tensor &x = c.input(0), &y = c.input(1);
    WEIR_ASSIGN_OR_RETURN(const BatchMatMulArgs args,
                          BatchMatMulOf(x.shape(), y.shape(), adj_x, adj_y, broadcasts));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, args.out));
    if (out->num_elements() == 0) return absl::OkStatus();
    return RunBatch(c, args, x, y, out);
  }

  absl::Status RunBatch(KernelContext& c, const BatchMatMulArgs& shapes, const Tensor& x,
                        const Tensor& y, Tensor* out) const {
    const MatMulArgs& args = shapes.one;
    const int64_t size_x = args.m * args.k, size_y = args.k * args.n, size_z = args.m * args.n;
    const Shape* const batches[] = {&shapes.batch_x, &shapes.batch_y};
    WEIR_ASSIGN_OR_RETURN(const GridIndex<2> grid, BroadcastGrid<2>(shapes.batch, batches));
    if (grid.rank <= 1) {
      const Batch all{grid.count, grid.strides[0][0] * size_x, grid.strides[1][0] * size_y, size_z};
      return Multiply(c, type, args, all, x.raw(), y.raw(), out->raw());
    }
    const int64_t bytes = static_cast<int64_t>(ElementSize(type));
    for (int64_t i = 0; i < grid.count; ++i) {
      int64_t at[2];
      grid.Locate(i, at);
      WEIR_RETURN_IF_ERROR(Multiply(c, type, args, Batch(),
                                    static_cast<const char*>(x.raw()) + at[0] * size_x * bytes,
                                    static_cast<const char*>(y.raw()) + at[1] * size_y * bytes,
                                    static_cast<char*>(out->raw()) + i * size_z * bytes));
    }
    return absl::OkStatus();
  }
};

KernelFactory BatchFactory(DataType type, bool broadcasts) {
  return [type, broadcasts](const KernelInit& init) -> absl::StatusOr<Kernel> {
    return Kernel(
        BatchMatMulKernel{type, init.attr<bool>("adj_x"), init.attr<bool>("adj_y"), broadcasts});
  };
}

}  // namespace

}  // namespace gpu

void AddMatMulGpu(KernelRegistry* r) {
  for (const DataType type : DataTypesOf(Floats())) {
    r->Add("MatMul", kGpu, type, [type](const KernelInit& init) -> absl::StatusOr<Kernel> {
      return Kernel(
          gpu::MatMulKernel{type, init.attr<bool>("transpose_a"), init.attr<bool>("transpose_b")});
    });
    r->Add("BatchMatMul", kGpu, type, gpu::BatchFactory(type, false));
    r->Add("BatchMatMulV2", kGpu, type, gpu::BatchFactory(type, true));
    r->Add("BatchMatMulV3", kGpu, TypeConstraints{{"Ta", type}, {"Tb", type}, {"Tout", type}},
           gpu::BatchFactory(type, true));
  }
}

}  // namespace weir
