#include <algorithm>
#include <cstdint>
#include <string>

#include "weir/core/tensor/allocator.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/sparse/ragged.h"
#include "weir/kernels/sparse/sparse_value.h"

// RaggedTensorToTensor: copies rows of different lengths into a dense tensor. Rows that are too
// long are truncated; rows that are too short are padded with a default value.
namespace weir {

namespace {

// How a dimension is partitioned into rows. TensorFlow defines more kinds than its ops accept.
enum class Partition { kFirstDimSize, kRowSplits, kValueRowids, kOther };

absl::StatusOr<Partition> ParsePartition(const std::string& name) {
  if (name == "FIRST_DIM_SIZE") return Partition::kFirstDimSize;
  if (name == "ROW_SPLITS") return Partition::kRowSplits;
  if (name == "VALUE_ROWIDS") return Partition::kValueRowids;
  for (const char* other : {"ROW_LENGTHS", "ROW_LIMITS", "ROW_STARTS"}) {
    if (name == other) return Partition::kOther;
  }
  return InvalidArgument("Unknown string for partition info type: ", name);
}

// The ragged dimensions, outermost first.
struct Level {
  Partition kind;
  Dims numbers;  // splits or row ids
};
struct Ragged {
  int64_t first_dim = 0;
  std::vector<Level> levels;
};

constexpr int kFirstPartition = 3;

absl::StatusOr<Ragged> ReadRagged(const KernelContext& c, const std::vector<Partition>& kinds) {
  const Tensor& first = c.input(kFirstPartition);
  if (first.num_elements() == 0) {
    return InvalidArgument("Invalid first partition input. Tensor requires at least one element.");
  }
  Ragged ragged;
  if (kinds[0] == Partition::kFirstDimSize) {
    WEIR_ASSIGN_OR_RETURN(ragged.first_dim, ReadOneInt(first, "the size of the first dimension"));
  } else if (kinds[0] == Partition::kRowSplits) {
    ragged.first_dim = first.num_elements() - 1;
  } else {
    return InvalidArgument("Cannot handle ",
                           kinds[0] == Partition::kValueRowids ? "VALUE_ROWIDS" : "this type",
                           " in first dimension.");
  }
  for (size_t k = kinds[0] == Partition::kFirstDimSize ? 1 : 0; k < kinds.size(); ++k) {
    if (kinds[k] != Partition::kRowSplits && kinds[k] != Partition::kValueRowids)
      return InvalidArgument("Unsupported partition type in dimension ", ragged.levels.size());
    ragged.levels.push_back({kinds[k], ReadInts(c.input(kFirstPartition + static_cast<int>(k)))});
  }
  return ragged;
}

// Returns the length of the longest row.
int64_t LongestRow(const Level& level) {
  int64_t max_length = 0, run = 0;
  const Dims& n = level.numbers;
  for (size_t i = 0; i < n.size(); ++i) {
    if (level.kind == Partition::kValueRowids)
      max_length = std::max(max_length, run = i > 0 && n[i] == n[i - 1] ? run + 1 : 1);
    else if (i > 0 && n[i] > n[i - 1])
      max_length = std::max(max_length, static_cast<int64_t>(static_cast<uint64_t>(n[i]) -
                                                             static_cast<uint64_t>(n[i - 1])));
  }
  return max_length;
}

// Returns the extents that the argument `shape` specifies, -1 where it leaves them open, and those
// of the values where the dimensions are not ragged.
absl::StatusOr<Dims> RequestedDims(const Tensor& shape, int ragged_rank, const Shape& values) {
  Dims dims(ragged_rank + values.rank(), -1);
  if (shape.rank() > 0) {
    const Dims asked = ReadInts(shape);
    if (asked.size() != dims.size()) {
      return InvalidArgument(
          "rt_input.shape and the requested shape are incompatible: "
          "rt_input.rank = ",
          dims.size(), " but shape.rank = ", asked.size());
    }
    dims = asked;
  } else if (shape.IntAt(0) != -1) {
    return InvalidArgument("shape must be a vector, or the scalar -1, not the scalar ",
                           shape.IntAt(0));
  }
  for (const int64_t d : dims) {
    if (d < -1) return InvalidArgument("Invalid dimension size: ", d);
  }
  for (int d = 1; d < values.rank(); ++d) {
    int64_t& extent = dims[ragged_rank + d];
    if (extent != -1 && extent != values.dim(d)) {
      return InvalidArgument(
          "rt_input.shape and the requested shape are incompatible: rt_input.shape[",
          ragged_rank + d, "] = ", values.dim(d), " but shape[", ragged_rank + d, "] = ", extent);
    }
    extent = values.dim(d);
  }
  return dims;
}

// Checks that the default value broadcasts to one element of the ragged dimensions.
absl::Status CheckDefault(const Shape& value, const Shape& values) {
  if (value.rank() >= values.rank()) {
    return InvalidArgument("default_value.shape=", value.ToString(),
                           " and rt_input.flat_values.shape=", values.ToString(),
                           " are incompatible: default_value.rank = ", value.rank(),
                           " must be less than rt_input.flat_values.rank = ", values.rank());
  }
  for (int d = 1; d <= value.rank(); ++d) {
    if (value.dim(-d) == 1 || value.dim(-d) == values.dim(-d)) continue;
    return InvalidArgument("default_value.shape=", value.ToString(),
                           " and rt_input.flat_values.shape=", values.ToString(),
                           " are incompatible: default_value.shape[-", d, "] = ", value.dim(-d),
                           " but rt_input.flat_values.shape[-", d, "] = ", values.dim(-d));
  }
  return absl::OkStatus();
}

// The positions in the result where the rows of one dimension begin: -1 for a row that is truncated
// away, and for rows after the last listed one.
struct RowOffsets {
  Tensor listed;
  int64_t count = 0;  // of rows
  int64_t at(int64_t row) const {
    return row < listed.num_elements() ? listed.data<int64_t>()[row] : -1;
  }
};

absl::StatusOr<RowOffsets> MakeRowOffsets(int64_t count, int64_t listed) {
  RowOffsets offsets{.count = count};
  WEIR_ASSIGN_OR_RETURN(offsets.listed,
                        Tensor::Allocate(HostAllocator(), DT_INT64, Shape({listed})));
  return offsets;
}

// Returns the positions of the rows that the splits describe. The next dimension uses `limit` of
// them.
absl::StatusOr<RowOffsets> OffsetsFromSplits(const Dims& splits, const RowOffsets& parents,
                                             int64_t stride, int64_t width, int64_t limit) {
  const int64_t rows = static_cast<int64_t>(splits.size()) - 1;
  if (rows > parents.count) {
    return InvalidArgument("Row partition size is greater than output size: ", rows, " > ",
                           parents.count);
  }
  for (const auto [begin, end] : CancellableBlocks(rows)) {
    for (int64_t i = begin; i < end; ++i) {
      if (splits[0] != 0 || splits[i + 1] < splits[i])
        return InvalidArgument("Invalid row split size.");
    }
  }
  const int64_t count = rows < 1 ? 0 : splits[rows];
  WEIR_ASSIGN_OR_RETURN(RowOffsets offsets, MakeRowOffsets(count, std::min(count, limit)));
  const absl::Span<int64_t> to = offsets.listed.flat<int64_t>();
  for (const auto [first, last] : CancellableBlocks(rows)) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t parent = parents.at(i);
      const int64_t end = std::min<int64_t>(splits[i + 1], to.size());
      for (int64_t at = splits[i]; at < end; ++at) {
        const int64_t column = at - splits[i];
        to[at] = parent >= 0 && column < width ? parent + column * stride : -1;
      }
    }
  }
  return offsets;
}

absl::StatusOr<RowOffsets> OffsetsFromRowIds(const Dims& ids, const RowOffsets& parents,
                                             int64_t stride, int64_t width) {
  const int64_t count = static_cast<int64_t>(ids.size());
  WEIR_ASSIGN_OR_RETURN(RowOffsets offsets, MakeRowOffsets(count, count));
  int64_t column = 0;
  for (const auto [begin, end] : CancellableBlocks(count)) {
    for (int64_t i = begin; i < end; ++i) {
      if (ids[i] < 0 || ids[i] >= parents.count) {
        return InvalidArgument("Got ", i == 0 ? "current" : "next", "_value_rowid=", ids[i],
                               " which is not less than ", parents.count);
      }
      column = i > 0 && ids[i] == ids[i - 1] ? column + 1 : 0;
      const int64_t parent = parents.at(ids[i]);
      offsets.listed.data<int64_t>()[i] =
          parent >= 0 && column < width ? parent + column * stride : -1;
    }
  }
  return offsets;
}

// Returns the number of rows of the parent dimension that this level refers to.
int64_t NumParentRows(const Level& level) {
  const Dims& n = level.numbers;
  if (level.kind == Partition::kRowSplits) return std::max<int64_t>(n.size(), 1) - 1;
  const int64_t last = n.empty() ? -1 : *std::max_element(n.begin(), n.end());
  return std::max<int64_t>(last, std::min<int64_t>(last, INT64_MAX - 1) + 1);
}

// Returns the position in the result, in elements, of each row of the values.
absl::StatusOr<RowOffsets> ValueOffsets(const Ragged& ragged, const Dims& dims, int64_t rows) {
  const size_t depth = ragged.levels.size();
  Dims strides(depth + 1, 1);
  for (size_t k = depth; k-- > 0;) strides[k] = strides[k + 1] * dims[k + 1];
  const int64_t named = depth > 0 ? NumParentRows(ragged.levels[0]) : rows;
  const int64_t listed = std::max<int64_t>(std::min({named, ragged.first_dim, dims[0]}), 0);
  WEIR_ASSIGN_OR_RETURN(RowOffsets offsets, MakeRowOffsets(ragged.first_dim, listed));
  for (int64_t i = 0; i < listed; ++i) offsets.listed.data<int64_t>()[i] = i * strides[0];
  for (size_t k = 0; k < depth; ++k) {
    const Level& level = ragged.levels[k];
    const int64_t limit = k + 1 < depth ? NumParentRows(ragged.levels[k + 1]) : rows;
    WEIR_ASSIGN_OR_RETURN(
        offsets, level.kind == Partition::kRowSplits
                     ? OffsetsFromSplits(level.numbers, offsets, strides[k + 1], dims[k + 1], limit)
                     : OffsetsFromRowIds(level.numbers, offsets, strides[k + 1], dims[k + 1]));
  }
  if (depth > 0 && offsets.count > rows) {
    return InvalidArgument("the row partition needs ", offsets.count, " rows of values, not ",
                           rows);
  }
  return offsets;
}

// Writes `count` copies of the default value, each broadcast to the shape of one element.
void FillDefault(const KernelContext& c, const Tensor& value, const Shape& element, int64_t count,
                 Tensor* out) {
  StridedCopy copy;
  copy.AddDim(count, 0, element.num_elements());
  const Dims from = StridesOf(value.shape()), to = StridesOf(element);
  const int lead = element.rank() - value.rank();
  for (int d = 0; d < element.rank(); ++d) {
    const bool repeats = d < lead || value.dim(d - lead) == 1;
    copy.AddDim(element.dim(d), repeats ? 0 : from[d - lead], to[d]);
  }
  copy.Run(c, out->dtype(), value.raw(), out->raw());
}

absl::Status ToTensor(KernelContext& c, const std::vector<Partition>& kinds) {
  const Tensor &values = c.input(1), &value = c.input(2);
  WEIR_ASSIGN_OR_RETURN(const Ragged ragged, ReadRagged(c, kinds));
  WEIR_RETURN_IF_ERROR(CheckDefault(value.shape(), values.shape()));
  const int depth = static_cast<int>(ragged.levels.size());
  WEIR_ASSIGN_OR_RETURN(Dims dims, RequestedDims(c.input(0), depth, values.shape()));
  if (dims[0] == -1) dims[0] = ragged.first_dim;
  for (int k = 0; k < depth; ++k) {
    if (dims[k + 1] == -1) dims[k + 1] = LongestRow(ragged.levels[k]);
  }
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
  if (shape.num_elements() == 0) return c.AllocateOutput(0, shape).status();
  // Before the result is allocated: partitions that do not fit may ask for a large one.
  WEIR_ASSIGN_OR_RETURN(const RowOffsets offsets, ValueOffsets(ragged, dims, values.dim(0)));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  const Shape element = shape.Sub(depth + 1);
  const int64_t size = element.num_elements();
  FillDefault(c, value, element, shape.Sub(0, depth + 1).num_elements(), out);
  for (const auto [begin, end] :
       CancellableBlocks(std::min(offsets.listed.num_elements(), values.dim(0)))) {
    for (int64_t i = begin; i < end; ++i) {
      if (offsets.at(i) < 0) continue;
      CopyElements(out->dtype(), ElementAt(values, i * size), ElementAt(*out, offsets.at(i) * size),
                   size);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeToTensor(const KernelInit& init) {
  std::vector<Partition> kinds;
  for (const std::string& name : init.attr<std::vector<std::string>>("row_partition_types")) {
    WEIR_ASSIGN_OR_RETURN(kinds.emplace_back(), ParsePartition(name));
  }
  return Kernel([kinds](KernelContext& c) -> absl::Status { return ToTensor(c, kinds); });
}

}  // namespace

void AddRaggedToTensorCpu(KernelRegistry* r) {
  r->Add("RaggedTensorToTensor", kCpu, MakeToTensor).HostArgs({"shape"});
}

}  // namespace weir
