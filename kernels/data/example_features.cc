#include "weir/kernels/data/example_features.h"

#include <algorithm>
#include <numeric>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/strided_copy.h"

namespace weir {

absl::StatusOr<std::vector<std::string>> ReadKeys(const KernelContext& c, absl::string_view name,
                                                  size_t count) {
  auto keys = c.node().attr_or<std::vector<std::string>>(name, {});
  const auto [first, last] = c.node().InputRange(name);
  // The other ops also accept vectors.
  const bool scalars = c.node().op_name() == "ParseSingleSequenceExample";
  for (int i = first; i < last; ++i) {
    if (scalars && c.input(i).rank() != 0) {
      return InvalidArgument("Expected ", name, "[", i - first,
                             "] to be a scalar, got shape: ", c.input(i).shape().ToString());
    }
    const auto given = c.input(i).flat<std::string>();
    keys.insert(keys.end(), given.begin(), given.end());
  }
  if (keys.size() == count) return keys;
  return InvalidArgument("Expected len(", name, ") == ", count, " but got: ", keys.size());
}

// ---- requested features

absl::StatusOr<FeatureSignature> FeatureSignature::Of(const KernelInit& init,
                                                      absl::string_view prefix,
                                                      absl::string_view dense_types,
                                                      bool is_sequence) {
  const auto types = [&](absl::string_view name) {
    return init.node.attr_or<DataTypes>(absl::StrCat(prefix, name), {});
  };
  FeatureSignature s;
  s.prefix_ = std::string(prefix);
  s.is_sequence_ = is_sequence;
  s.sparse_types_ = types("sparse_types");
  s.ragged_types_ = types("ragged_value_types");
  s.dense_types_ = init.node.attr_or<DataTypes>(dense_types, {});
  s.dense_shapes_ = init.node.attr_or<std::vector<Shape>>(absl::StrCat(prefix, "dense_shapes"), {});
  WEIR_RETURN_IF_ERROR(s.Check(init.node));
  return s;
}

absl::Status FeatureSignature::Check(const Node& node) const {
  const struct {
    const char* output;
    size_t count;
    bool optional;
  } lists[] = {
      {"sparse_indices", sparse_types_.size(), false},
      {"sparse_shapes", sparse_types_.size(), false},
      {"dense_values", dense_types_.size(), false},
      {"dense_lengths", dense_types_.size(), true},
      {"ragged_row_splits", ragged_types_.size(), true},
      {"ragged_outer_splits", ragged_types_.size(), true},
  };
  // A dataset of parsed examples has other outputs.
  const bool has_outputs = node.FindAttr("output_types") == nullptr;
  for (const auto& list : lists) {
    if (!has_outputs) break;
    const auto [first, last] = node.OutputRange(prefix_ + list.output);
    if (list.optional && first == last) continue;
    if (static_cast<size_t>(last - first) != list.count) {
      return InvalidArgument("len(", prefix_, list.output, ") is ", last - first,
                             ", but there are ", list.count, " types");
    }
  }
  if (dense_shapes_.size() != dense_types_.size()) {
    return InvalidArgument("len(", prefix_, "dense_keys) != len(", prefix_, "dense_shapes)");
  }
  for (size_t i = 0; i < dense_shapes_.size(); ++i) {
    const Shape& shape = dense_shapes_[i];
    const bool outer_may_vary = !is_sequence_ && prefix_.empty() && shape.rank() > 0;
    if (!shape.has_rank() || !shape.Sub(outer_may_vary ? 1 : 0).IsFullyDefined()) {
      return InvalidArgument("dense_shapes[", i,
                             "] has unknown rank or unknown inner dimensions: ", shape.ToString());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<DenseFeature> FeatureSignature::BeginDense(const KernelContext& c,
                                                          const std::string& key, size_t i) const {
  const Shape& shape = dense_shapes_[i];
  const bool varies = !shape.IsFullyDefined();
  WEIR_ASSIGN_OR_RETURN(Column column, Column::Make(key, dense_types_[i], is_sequence_));
  Tensor fallback;
  const auto [first, last] = c.node().InputRange(prefix_ + "dense_defaults");
  if (first + static_cast<int>(i) < last) fallback = c.input(first + static_cast<int>(i));
  if (varies && fallback.num_elements() != 1) {
    return InvalidArgument("dense_shape[", i, "] is a variable length shape: ", shape.ToString(),
                           ", therefore def_value[", i,
                           "] must contain a single element (the padding element).  But its shape "
                           "is: ",
                           fallback.shape().ToString());
  }
  if (!varies && fallback.num_elements() > 0 && fallback.shape() != shape) {
    return InvalidArgument("def_value[", i, "].shape() == ", fallback.shape().ToString(),
                           " is not compatible with dense_shapes_[", i, "] == ", shape.ToString());
  }
  return DenseFeature{.column = std::move(column),
                      .row = varies ? shape.Sub(1) : shape,
                      .row_size = (varies ? shape.Sub(1) : shape).num_elements(),
                      .several = varies || is_sequence_,
                      .fallback = fallback,
                      .required = !varies && fallback.num_elements() == 0};
}

absl::StatusOr<FeatureSet> FeatureSignature::Begin(const KernelContext& c) const {
  FeatureSet set;
  set.prefix = prefix_;
  const auto columns = [&](const char* keys_name, const DataTypes& types,
                           std::vector<Column>* out) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const auto keys, ReadKeys(c, prefix_ + keys_name, types.size()));
    for (size_t i = 0; i < types.size(); ++i) {
      WEIR_ASSIGN_OR_RETURN(Column column, Column::Make(keys[i], types[i], is_sequence_));
      out->push_back(std::move(column));
    }
    return absl::OkStatus();
  };
  WEIR_RETURN_IF_ERROR(columns("sparse_keys", sparse_types_, &set.sparse));
  WEIR_RETURN_IF_ERROR(columns("ragged_keys", ragged_types_, &set.ragged));
  WEIR_ASSIGN_OR_RETURN(const auto keys, ReadKeys(c, prefix_ + "dense_keys", dense_types_.size()));
  for (size_t i = 0; i < keys.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(DenseFeature feature, BeginDense(c, keys[i], i));
    set.dense.push_back(std::move(feature));
  }
  auto all = std::make_shared<FeatureKeys>();
  set.ForEachColumn([&](Column& column) { column.set_place(all->Add(column.key())); });
  set.keys = std::move(all);
  return set;
}

// ---- reading

namespace {

absl::Status At(const ExampleLabel& label, const Column& column, const absl::Status& status,
                absl::string_view what = "Key") {
  if (status.ok()) return status;
  return InvalidArgument("Name: ", label.name, ", ", what, ": ", column.key(),
                         ", Index: ", label.index, ".  ", status.message());
}

// Appends an example's values to a column, calling check() after each row. Returns false if the
// example has no such feature.
absl::StatusOr<bool> AddRows(const FeatureBytes& features, const ExampleLabel& label,
                             Column* column, absl::FunctionRef<absl::Status()> check) {
  const absl::string_view* const bytes = features.At(column->place());
  if (bytes == nullptr) return false;
  if (column->is_sequence()) {
    ExampleLabel frame = {label.name, 0};
    WEIR_RETURN_IF_ERROR(ForEachFrame(*bytes, [&](absl::string_view one) {
      WEIR_RETURN_IF_ERROR(At(frame, *column, column->AddFeature(one).status(), "Feature list"));
      WEIR_RETURN_IF_ERROR(At(frame, *column, check()));
      column->EndRow();
      ++frame.index;
      return absl::OkStatus();
    }));
    return true;
  }
  const absl::StatusOr<bool> found = column->AddFeature(*bytes);
  if (!found.ok()) return At(label, *column, found.status());
  if (!*found) return false;
  if (const absl::Status checked = check(); !checked.ok()) return At(label, *column, checked);
  return true;
}

// A non-sequence column has one row per example, even if it is empty.
void EndExample(Column* column) {
  if (!column->is_sequence()) column->EndRow();
  column->EndExample();
}

absl::Status CheckRow(const DenseFeature& f) {
  const int64_t size = f.column.row_size(), wanted = f.row_size;
  const bool varies = f.several && !f.column.is_sequence();
  if (!varies && size == wanted) return absl::OkStatus();
  if (varies && (wanted == 0 ? size == 0 : size % wanted == 0)) return absl::OkStatus();
  const std::string type = f.column.dtype() == DT_STRING ? "bytes" : DataTypeName(f.column.dtype());
  if (varies) {
    return InvalidArgument(
        "Number of ", type, " values is not a multiple of stride length. Saw ", size,
        " values but output shape is: ", Shape({Shape::kUnknown}).Concatenate(f.row).ToString());
  }
  return InvalidArgument("Number of ", type, " values != expected.  ",
                         f.column.is_sequence() ? "values" : "Values", " size: ", size,
                         " but output shape: ", f.row.ToString());
}

absl::Status Missing(const DenseFeature& f, const ExampleLabel& label) {
  if (f.column.is_sequence()) {
    return InvalidArgument("Name: ", label.name, ", Feature list '", f.column.key(),
                           "' is required but could not be found.  Did you mean to include it in "
                           "feature_list_dense_missing_assumed_empty or "
                           "feature_list_dense_defaults?");
  }
  return InvalidArgument("Name: ", label.name, ", Feature: ", f.column.key(),
                         " (data type: ", DataTypeName(f.column.dtype()),
                         ") is required but could not be found.");
}

}  // namespace

void FeatureSet::Reserve(int64_t examples) {
  ForEachColumn([&](Column& column) { column.Reserve(examples, 1); });
  for (DenseFeature& f : dense) {
    if (!f.several) f.column.Reserve(examples, f.row.num_elements());
  }
}

void FeatureSet::Append(const FeatureSet& more) {
  for (size_t i = 0; i < dense.size(); ++i) dense[i].column.Append(more.dense[i].column);
  for (size_t i = 0; i < sparse.size(); ++i) sparse[i].Append(more.sparse[i]);
  for (size_t i = 0; i < ragged.size(); ++i) ragged[i].Append(more.ragged[i]);
}

absl::Status FeatureSet::AddExample(const FeatureBytes& features, const ExampleLabel& label) {
  for (DenseFeature& f : dense) {
    WEIR_ASSIGN_OR_RETURN(const bool found,
                          AddRows(features, label, &f.column, [&] { return CheckRow(f); }));
    if (!found && f.required) return Missing(f, label);
    if (!found && !f.several) f.column.AddTensor(f.fallback);
    EndExample(&f.column);
  }
  for (std::vector<Column>* columns : {&sparse, &ragged}) {
    for (Column& column : *columns) {
      WEIR_RETURN_IF_ERROR(
          AddRows(features, label, &column, [] { return absl::OkStatus(); }).status());
      EndExample(&column);
    }
  }
  return absl::OkStatus();
}

// ---- writing

namespace {

// Writes a vector of 0 followed by `ends`; without elements if `empty`.
absl::Status WriteSplits(const FeatureOutputs& to, int output, absl::Span<const int64_t> ends,
                         bool empty) {
  const auto size = static_cast<int64_t>(empty ? 0 : ends.size() + 1);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, to.allocate(output, Shape({size})));
  for (int64_t i = 0; i < size; ++i) out->SetIntAt(i, i == 0 ? 0 : ends[i - 1]);
  return absl::OkStatus();
}

absl::Status WriteValues(const FeatureOutputs& to, int output, const Column& column) {
  WEIR_ASSIGN_OR_RETURN(Tensor * out, to.allocate(output, Shape({column.num_values()})));
  column.CopyTo(0, column.num_values(), out, 0);
  return absl::OkStatus();
}

// An index is (example, row in the example, value in the row). A single example has no first
// component, and non-sequence columns, which have one row per example, no second one.
absl::Status WriteSparse(const FeatureOutputs& to, const Column& column, bool single, int indices,
                         int values, int shape) {
  const int64_t rank = 1 + (single ? 0 : 1) + (column.is_sequence() ? 1 : 0);
  WEIR_RETURN_IF_ERROR(WriteValues(to, values, column));
  WEIR_ASSIGN_OR_RETURN(Tensor * index, to.allocate(indices, Shape({column.num_values(), rank})));
  int64_t* out = index->data<int64_t>();
  int64_t most_rows = 0, most_values = 0;
  for (int64_t example = 0; example < column.num_examples(); ++example) {
    ThrowIfCancelledAt(example);
    const int64_t begin = column.ExampleBegin(example),
                  rows = column.example_ends()[example] - begin;
    most_rows = std::max(most_rows, rows);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t count = column.row_ends()[begin + row] - column.RowBegin(begin + row);
      most_values = std::max(most_values, count);
      for (int64_t k = 0; k < count; ++k) {
        if (!single) *out++ = example;
        if (column.is_sequence()) *out++ = row;
        *out++ = k;
      }
    }
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * dense_shape, to.allocate(shape, Shape({rank})));
  int64_t* extent = dense_shape->data<int64_t>();
  if (!single) *extent++ = column.num_examples();
  if (column.is_sequence()) *extent++ = most_rows;
  *extent = most_values;
  return absl::OkStatus();
}

absl::Status WriteDense(ThreadPool& pool, const FeatureOutputs& to, const DenseFeature& f,
                        bool single, int output) {
  const Column& column = f.column;
  int64_t most_rows = 0;
  for (int64_t e = 0; f.several && e < column.num_examples(); ++e) {
    ThrowIfCancelledAt(e);
    most_rows = std::max(most_rows, f.NumRows(e));
  }
  Shape shape;
  if (!single) shape.AddDim(column.num_examples());
  if (f.several) shape.AddDim(most_rows);
  WEIR_ASSIGN_OR_RETURN(shape, CheckedShape(shape.Concatenate(f.row).dims()));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, to.allocate(output, shape));
  if (!f.several) {
    column.CopyTo(0, column.num_values(), out, 0);
    return absl::OkStatus();
  }
  if (f.fallback.num_elements() == 1) {
    FillElements(pool, out->dtype(), f.fallback.raw(), out->raw(), out->num_elements());
  } else {
    ClearElements(pool, *out);
  }
  for (int64_t e = 0; e < column.num_examples(); ++e) {
    ThrowIfCancelledAt(e);
    const int64_t begin = column.ExampleBegin(e), end = column.example_ends()[e];
    if (begin == end) continue;
    column.CopyTo(column.RowBegin(begin), column.row_ends()[end - 1], out,
                  e * most_rows * f.row.num_elements());
  }
  return absl::OkStatus();
}

// Writes the number of rows of each example.
absl::Status WriteLengths(const FeatureOutputs& to, const DenseFeature& f, bool single,
                          int output) {
  const Shape shape = single ? Shape() : Shape({f.column.num_examples()});
  WEIR_ASSIGN_OR_RETURN(Tensor * out, to.allocate(output, shape));
  for (int64_t e = 0; e < f.column.num_examples(); ++e) out->data<int64_t>()[e] = f.NumRows(e);
  return absl::OkStatus();
}

}  // namespace

int64_t DenseFeature::NumRows(int64_t example) const {
  const int64_t begin = column.ExampleBegin(example), end = column.example_ends()[example];
  if (column.is_sequence()) return end - begin;
  const int64_t values = column.row_ends()[begin] - column.RowBegin(begin);
  return values == 0 ? 0 : values / row.num_elements();
}

absl::Status FeatureSet::WriteOutputs(KernelContext& c, bool single) const {
  const auto first = [&](const char* name) {
    const auto [begin, end] = c.node().OutputRange(prefix + name);
    return begin == end ? -1 : begin;
  };
  const auto allocate = [&](int output, const Shape& shape) {
    return c.AllocateOutput(output, shape);
  };
  const FeatureOutputs outputs = {.sparse_indices = first("sparse_indices"),
                                  .sparse_values = first("sparse_values"),
                                  .sparse_shapes = first("sparse_shapes"),
                                  .dense_values = first("dense_values"),
                                  .dense_lengths = first("dense_lengths"),
                                  .ragged_values = first("ragged_values"),
                                  .row_splits = first("ragged_row_splits"),
                                  .outer_splits = first("ragged_outer_splits"),
                                  .inner_splits = first("ragged_inner_splits"),
                                  .allocate = allocate};
  return WriteOutputs(c.pool(), outputs, single);
}

absl::Status FeatureSet::WriteOutputs(ThreadPool& pool, const FeatureOutputs& to,
                                      bool single) const {
  for (int i = 0; i < static_cast<int>(sparse.size()); ++i) {
    WEIR_RETURN_IF_ERROR(WriteSparse(to, sparse[i], single, to.sparse_indices + i,
                                     to.sparse_values + i, to.sparse_shapes + i));
  }
  for (int i = 0; i < static_cast<int>(dense.size()); ++i) {
    WEIR_RETURN_IF_ERROR(WriteDense(pool, to, dense[i], single, to.dense_values + i));
    if (to.dense_lengths < 0) continue;
    WEIR_RETURN_IF_ERROR(WriteLengths(to, dense[i], single, to.dense_lengths + i));
  }
  for (int i = 0; i < static_cast<int>(ragged.size()); ++i) {
    const Column& column = ragged[i];
    WEIR_RETURN_IF_ERROR(WriteValues(to, to.ragged_values + i, column));
    if (column.is_sequence()) {
      WEIR_RETURN_IF_ERROR(WriteSplits(to, to.outer_splits + i, column.example_ends(), single));
      WEIR_RETURN_IF_ERROR(WriteSplits(to, to.inner_splits + i, column.row_ends(), false));
    } else {
      WEIR_RETURN_IF_ERROR(WriteSplits(to, to.row_splits + i, column.row_ends(), single));
    }
  }
  return absl::OkStatus();
}

}  // namespace weir
