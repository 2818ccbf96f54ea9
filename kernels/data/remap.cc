#include "weir/kernels/data/remap.h"

#include <unordered_map>

#include "weir/core/io/bundle.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/text_lines.h"

// Warm starts of a model from the weights of a model with another vocabulary: the mapping from new
// ids to old ids, and a checkpoint's matrix with its rows and columns in the new order.
namespace weir {

namespace {

absl::StatusOr<std::string> FileName(const KernelContext& c, int i, absl::string_view argument) {
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(i), 0, argument));
  std::string name = c.input(i).scalar<std::string>();
  if (name.empty()) return InvalidArgument(argument, " filename cannot be empty.");
  return name;
}

// Maps each line of a vocabulary to its number, for the first `size` lines (-1: all).
absl::StatusOr<std::unordered_map<std::string, int64_t>> ReadIds(const std::string& path,
                                                                 int64_t size) {
  WEIR_ASSIGN_OR_RETURN(std::vector<std::string> lines, ReadLines(path));
  const int64_t count = static_cast<int64_t>(lines.size());
  if (size > count) {
    return InvalidArgument("Invalid vocab_size in ", path, ": expected ", size, " but got ", count);
  }
  if (size >= 0) lines.resize(size);
  std::unordered_map<std::string, int64_t> ids;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto [it, is_new] = ids.emplace(lines[i], static_cast<int64_t>(i));
    if (is_new) continue;
    return FailedPrecondition("HashTable has different value for same key. Key ", lines[i], " has ",
                              it->second, " and trying to add value ", i);
  }
  return ids;
}

struct VocabOptions {
  int64_t offset = 0, count = 0, old_size = -1;
};

absl::Status RunVocab(KernelContext& c, const VocabOptions& o) {
  WEIR_ASSIGN_OR_RETURN(const std::string new_path, FileName(c, 0, "new_vocab_file"));
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> words, ReadLines(new_path));
  const int64_t available = static_cast<int64_t>(words.size());
  if (o.offset > available || o.count > available - o.offset) {
    return InvalidArgument("lookup table size must be larger than last new vocab entry's line");
  }
  WEIR_ASSIGN_OR_RETURN(const std::string old_path, FileName(c, 1, "old_vocab_file"));
  WEIR_ASSIGN_OR_RETURN(const auto ids, ReadIds(old_path, o.old_size));
  WEIR_ASSIGN_OR_RETURN(Tensor * remapping, c.AllocateOutput(0, Shape({o.count})));
  WEIR_ASSIGN_OR_RETURN(Tensor * present, c.AllocateOutput(1, Shape()));
  int32_t found = 0;
  for (int64_t i = 0; i < o.count; ++i) {
    const auto it = ids.find(words[o.offset + i]);
    if (it != ids.end()) ++found;
    remapping->data<int64_t>()[i] = it == ids.end() ? -1 : it->second;
  }
  *present->data<int32_t>() = found;
  return absl::OkStatus();
}

// A map from old ids to new ids. New ids without an old id are not in it.
struct Remapping {
  std::unordered_map<int64_t, int64_t> to_new;
  std::vector<bool> present;
  int64_t first = -1, last = -1;  // range of the old ids

  static absl::StatusOr<Remapping> Of(absl::Span<const int64_t> old_ids) {
    Remapping m;
    m.present.assign(old_ids.size(), false);
    for (size_t i = 0; i < old_ids.size(); ++i) {
      const int64_t old_id = old_ids[i];
      if (old_id < 0) continue;
      const auto [it, is_new] = m.to_new.emplace(old_id, static_cast<int64_t>(i));
      if (!is_new) {
        return Unimplemented("Old ID ", old_id, " is mapped to both new ID ", it->second, " and ",
                             i, ", which is not supported.");
      }
      m.present[i] = true;
      m.first = m.first < 0 ? old_id : std::min(m.first, old_id);
      m.last = std::max(m.last, old_id);
    }
    return m;
  }
};

struct MatrixOptions {
  int64_t rows = 0, columns = 0, rows_in_memory = -1;
};

// Copies the columns of an old row, in their new order.
void CopyRow(const float* from, int64_t old_columns, const Remapping* columns, float* to) {
  if (columns == nullptr) {
    std::copy_n(from, old_columns, to);
    return;
  }
  for (const auto& [old_column, new_column] : columns->to_new) {
    if (old_column < old_columns) to[new_column] = from[old_column];
  }
}

// Copies the rows in the mapping, reading a few rows at a time.
absl::Status CopyRows(CheckpointReader& reader, const std::string& name, const Shape& shape,
                      const MatrixOptions& o, const Remapping& rows, const Remapping* columns,
                      float* out) {
  if (rows.last >= shape.dim(0)) {
    return InvalidArgument("row_remapping has old row ", rows.last, ", but tensor ", name, " has ",
                           shape.dim(0), " rows");
  }
  for (int64_t row = rows.first; row >= 0 && row <= rows.last;) {
    const int64_t left = rows.last - row + 1;
    const int64_t count = o.rows_in_memory <= 0 ? left : std::min(left, o.rows_in_memory);
    TensorSlice slice = TensorSlice::Full(2);
    slice.extents[0] = {row, count};
    WEIR_ASSIGN_OR_RETURN(const Tensor part, reader.ReadSlice(name, slice));
    for (int64_t i = 0; i < count; ++i, ++row) {
      const auto it = rows.to_new.find(row);
      if (it == rows.to_new.end()) continue;
      CopyRow(part.data<float>() + i * shape.dim(1), shape.dim(1), columns,
              out + it->second * o.columns);
    }
  }
  return absl::OkStatus();
}

// Elements without an old element get the given values, in order.
absl::Status FillMissing(const MatrixOptions& o, const Remapping& rows, const Remapping* columns,
                         absl::Span<const float> values, float* out) {
  size_t used = 0;
  for (int64_t i = 0; i < o.rows; ++i) {
    for (int64_t j = 0; j < o.columns; ++j) {
      if (rows.present[i] && (columns == nullptr || columns->present[j])) continue;
      if (used == values.size()) {
        return InvalidArgument("initializing_values contained ", values.size(),
                               " elements, but more missing values remain.");
      }
      out[i * o.columns + j] = values[used++];
    }
  }
  if (used == values.size()) return absl::OkStatus();
  return InvalidArgument("initializing_values contained ", values.size(), " elements, but only ",
                         used, " elements were used to fill in missing values.");
}

absl::StatusOr<Shape> CheckMatrix(CheckpointReader& reader, const std::string& name) {
  WEIR_ASSIGN_OR_RETURN(const CheckpointTensor found, reader.Find(name));
  if (found.dtype != DT_FLOAT) {
    return InvalidArgument("Tensor ", name, " has invalid type ", DataTypeName(found.dtype),
                           " instead of expected type float");
  }
  if (found.shape.rank() != 2) {
    return InvalidArgument("Tensor ", name, " has shape ", found.shape.ToString(),
                           " of invalid rank ", found.shape.rank(),
                           " instead of expected shape of rank 2.");
  }
  return found.shape;
}

absl::Status CheckRemapping(const Tensor& t, absl::string_view argument) {
  if (t.rank() == 1) return absl::OkStatus();
  return InvalidArgument("The `", argument, "` tensor must be 1-D, got a tensor of shape ",
                         t.shape().ToString());
}

absl::Status RunMatrix(KernelContext& c, const MatrixOptions& o) {
  const Tensor &old_rows = c.input(2), &old_columns = c.input(3);
  WEIR_RETURN_IF_ERROR(CheckRemapping(old_rows, "row_remapping"));
  WEIR_RETURN_IF_ERROR(CheckRemapping(old_columns, "col_remapping"));
  if (old_rows.dim(0) != o.rows) {
    return InvalidArgument("Size of row_remapping is ", old_rows.dim(0),
                           " instead of being equal to num_rows=", o.rows);
  }
  const bool remaps_columns = old_columns.dim(0) > 0;
  if (remaps_columns && old_columns.dim(0) != o.columns) {
    return InvalidArgument("Provided col_remapping, but its size is ", old_columns.dim(0),
                           " instead of being equal to num_cols=", o.columns);
  }
  WEIR_ASSIGN_OR_RETURN(const Remapping rows, Remapping::Of(old_rows.flat<int64_t>()));
  WEIR_ASSIGN_OR_RETURN(const Remapping columns, Remapping::Of(old_columns.flat<int64_t>()));
  WEIR_ASSIGN_OR_RETURN(const std::string path, ReadOneString(c.input(0), "ckpt_path"));
  WEIR_ASSIGN_OR_RETURN(const std::string name, ReadOneString(c.input(1), "old_tensor_name"));
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                        CheckpointReader::Open(path));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckMatrix(*reader, name));
  if (!remaps_columns && shape.dim(1) != o.columns) {
    return InvalidArgument("Tensor ", name, " has shape ", shape.ToString(),
                           ", where the size of its 2nd dimension is ", shape.dim(1),
                           " instead of being equal to num_cols=", o.columns);
  }
  WEIR_ASSIGN_OR_RETURN(const Shape result, CheckedShape({o.rows, o.columns}));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, result));
  float* const to = out->data<float>();
  std::fill_n(to, out->num_elements(), 0.0f);
  const Remapping* by_column = remaps_columns ? &columns : nullptr;
  WEIR_RETURN_IF_ERROR(CopyRows(*reader, name, shape, o, rows, by_column, to));
  return FillMissing(o, rows, by_column, c.input(4).flat<float>(), to);
}

absl::StatusOr<Kernel> MakeVocab(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int offset, NarrowAttr(init.node, "new_vocab_offset"));
  WEIR_ASSIGN_OR_RETURN(const int num_new, NarrowAttr(init.node, "num_new_vocab"));
  WEIR_ASSIGN_OR_RETURN(const int old_size, NarrowAttr(init.node, "old_vocab_size"));
  const VocabOptions o = {offset, num_new, old_size};
  return Kernel([o](KernelContext& c) { return RunVocab(c, o); });
}

absl::StatusOr<Kernel> MakeMatrix(const KernelInit& init) {
  const MatrixOptions o = {init.attr<int64_t>("num_rows"), init.attr<int64_t>("num_cols"),
                           init.attr<int64_t>("max_rows_in_memory")};
  return Kernel([o](KernelContext& c) { return RunMatrix(c, o); });
}

}  // namespace

void AddRemapKernels(KernelRegistry* r) {
  r->Add("GenerateVocabRemapping", kCpu, MakeVocab);
  r->Add("LoadAndRemapMatrix", kCpu, MakeMatrix);
}

}  // namespace weir
