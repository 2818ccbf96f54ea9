#include "weir/kernels/linalg/matmul.h"

namespace weir {

absl::StatusOr<MatMulArgs> MatMulOf(const Shape& a, const Shape& b, bool transpose_a,
                                    bool transpose_b) {
  if (a.rank() != 2)
    return InvalidArgument("In[0] is not a matrix. Instead it has shape ", a.ToString());
  if (b.rank() != 2)
    return InvalidArgument("In[1] is not a matrix. Instead it has shape ", b.ToString());
  const int64_t k = a.dim(transpose_a ? 0 : 1);
  if (k != b.dim(transpose_b ? 1 : 0)) {
    return InvalidArgument("Matrix size-incompatible: In[0]: ", a.ToString(),
                           ", In[1]: ", b.ToString(), transpose_a ? ", transpose_a" : "",
                           transpose_b ? ", transpose_b" : "");
  }
  return MatMulArgs{.m = a.dim(transpose_a ? 1 : 0),
                    .n = b.dim(transpose_b ? 0 : 1),
                    .k = k,
                    .transpose_a = transpose_a,
                    .transpose_b = transpose_b};
}

absl::StatusOr<BatchMatMulArgs> BatchMatMulOf(const Shape& x, const Shape& y, bool adj_x,
                                              bool adj_y, bool broadcasts) {
  if (x.rank() < 2) return InvalidArgument("In[0] ndims must be >= 2: ", x.rank());
  if (y.rank() < 2) return InvalidArgument("In[1] ndims must be >= 2: ", y.rank());
  BatchMatMulArgs args{.one = {.m = x.dim(adj_x ? -1 : -2),
                               .n = y.dim(adj_y ? -2 : -1),
                               .k = x.dim(adj_x ? -2 : -1),
                               .transpose_a = adj_x,
                               .transpose_b = adj_y,
                               .conjugate_a = adj_x,
                               .conjugate_b = adj_y},
                       .batch_x = x.Sub(0, x.rank() - 2),
                       .batch_y = y.Sub(0, y.rank() - 2)};
  absl::StatusOr<Shape> batch = BroadcastShapes(args.batch_x, args.batch_y);
  if (!batch.ok() || (!broadcasts && args.batch_x != args.batch_y)) {
    return InvalidArgument("In[0] and In[1] must have compatible batch dimensions: ", x.ToString(),
                           " vs. ", y.ToString());
  }
  if (args.one.k != y.dim(adj_y ? -1 : -2)) {
    return InvalidArgument("Matrix size-incompatible: In[0]: ", x.ToString(),
                           ", In[1]: ", y.ToString());
  }
  args.batch = *std::move(batch);
  args.out = args.batch;
  args.out.AddDim(args.one.m);
  args.out.AddDim(args.one.n);
  return args;
}

}  // namespace weir
