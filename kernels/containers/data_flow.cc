#include <algorithm>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Dynamic partition and stitch.
namespace weir {

namespace {

// ---- DynamicPartition

// Validates and counts the partition numbers, then copies every slice to the next position of its
// partition.
absl::Status DynamicPartition(KernelContext& c) {
  const Tensor &data = c.input(0), &partitions = c.input(1);
  const int n = c.num_outputs(), prefix = partitions.rank();
  if (data.rank() < prefix || data.shape().Sub(0, prefix) != partitions.shape()) {
    return InvalidArgument(
        "data.shape must start with partitions.shape, got data.shape = ", data.shape().ToString(),
        ", partitions.shape = ", partitions.shape().ToString());
  }
  const int32_t* of = partitions.data<int32_t>();
  std::vector<int64_t> counts(static_cast<size_t>(n));
  for (const auto [begin, end] : CancellableBlocks(partitions.num_elements())) {
    for (int64_t i = begin; i < end; ++i) {
      if (of[i] < 0 || of[i] >= n) {
        return InvalidArgument("partitions", PositionText(partitions.shape(), i), " = ", of[i],
                               " is not in [0, ", n, ")");
      }
      ++counts[static_cast<size_t>(of[i])];
    }
  }
  std::vector<Tensor*> outputs;
  for (int p = 0; p < n; ++p) {
    Shape shape({counts[static_cast<size_t>(p)]});
    for (int i = prefix; i < data.rank(); ++i) shape.AddDim(data.dim(i));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(p, shape));
    outputs.push_back(out);
  }
  if (data.num_elements() == 0) return absl::OkStatus();
  const int64_t slice = data.num_elements() / partitions.num_elements();
  std::vector<int64_t> next(static_cast<size_t>(n));
  for (const auto [begin, end] : CancellableBlocks(partitions.num_elements())) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t p = static_cast<size_t>(of[i]);
      CopyElements(data.dtype(), ElementAt(data, i * slice),
                   ElementAt(*outputs[p], next[p]++ * slice), slice);
    }
  }
  return absl::OkStatus();
}

// ---- DynamicStitch

absl::Status CheckPieces(KernelContext& c, int n, Shape* tail, int64_t* rows) {
  for (int i = 0; i < n; ++i) {
    const Tensor &indices = c.input(i), &data = c.input(n + i);
    const int prefix = indices.rank();
    if (data.rank() < prefix || data.shape().Sub(0, prefix) != indices.shape()) {
      return InvalidArgument("data[", i, "].shape = ", data.shape().ToString(),
                             " does not start with indices[", i,
                             "].shape = ", indices.shape().ToString());
    }
    const Shape own = data.shape().Sub(prefix);
    if (i == 0) *tail = own;
    if (own != *tail) {
      return InvalidArgument("Need data[0].shape[", c.input(0).rank(), ":] = data[", i, "].shape[",
                             prefix, ":], got data[0].shape = ", c.input(n).shape().ToString(),
                             ", data[", i, "].shape = ", data.shape().ToString());
    }
    for (const auto [begin, end] : CancellableBlocks(indices.num_elements())) {
      for (int64_t k = begin; k < end; ++k) {
        const int32_t index = indices.data<int32_t>()[k];
        if (index < 0)
          return InvalidArgument("indices[", i, "] is out of range: it has the element ", index);
        *rows = std::max<int64_t>(*rows, int64_t{index} + 1);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status DynamicStitch(KernelContext& c) {
  const int n = c.num_inputs() / 2;
  Shape tail;
  int64_t rows = 0;
  WEIR_RETURN_IF_ERROR(CheckPieces(c, n, &tail, &rows));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(Shape({rows}).Concatenate(tail).dims()));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  std::vector<bool> written(static_cast<size_t>(rows));
  const int64_t slice = tail.num_elements();
  int64_t left = rows;
  for (int i = 0; i < n; ++i) {
    const Tensor &indices = c.input(i), &data = c.input(n + i);
    for (const auto [begin, end] : CancellableBlocks(indices.num_elements())) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t row = indices.data<int32_t>()[k];
        CopyElements(data.dtype(), ElementAt(data, k * slice), ElementAt(*out, row * slice), slice);
        left -= written[static_cast<size_t>(row)] ? 0 : 1;
        written[static_cast<size_t>(row)] = true;
      }
    }
  }
  for (int64_t row = 0; left > 0 && row < rows; ++row) {
    ThrowIfCancelledAt(row);
    if (written[static_cast<size_t>(row)]) continue;
    --left;
    Tensor gap = out->Slice(row, row + 1);
    ClearElements(c.pool(), gap);
  }
  return absl::OkStatus();
}

}  // namespace

void AddDataFlowKernels(KernelRegistry* r) {
  r->Add("DynamicPartition", kCpu, DynamicPartition);
  r->Add("DynamicStitch", kCpu, DynamicStitch);
  r->Add("ParallelDynamicStitch", kCpu, DynamicStitch);
}

}  // namespace weir
