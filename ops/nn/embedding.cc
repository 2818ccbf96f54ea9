#include <numeric>

#include "weir/core/graph/scope.h"
#include "weir/ops/containers/data_flow.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/framework/variable.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/math/clip.h"
#include "weir/ops/nn/nn.h"

// tf.nn.embedding_lookup. With several tables, the ids are flattened and partitioned by table with
// DynamicPartition, each table gathers its rows on its own device, and ParallelDynamicStitch
// restores the order of the ids. Nodes and names are TensorFlow's.
namespace weir {

namespace {

Output TableOf(const Variable& v) { return v.is_resource() ? v.handle() : v.value(); }

const Shape& TableShape(const Output& table) {
  const HandleData* handle = table.dtype() == DT_RESOURCE ? table.handle_data() : nullptr;
  return handle != nullptr ? handle->shape : table.shape();
}

Output DynamicShape(const Output& table) {
  return table.dtype() == DT_RESOURCE ? VariableShape(table) : ShapeTensor(table);
}

// Gathers the rows of `table` at `ids`. `name` is the name of a scope, or empty.
Output GatherRows(const Output& table, const Output& ids, absl::string_view name) {
  Graph& g = table.graph();
  if (table.dtype() != DT_RESOURCE) {
    const NameScope scope(g, name.empty() ? "GatherV2" : name);
    return AddOp("GatherV2", {table, ids, Const<int32_t>(g, 0, "axis")}, {}, scope.name());
  }
  const HandleData* handle = table.handle_data();
  const DataType type = handle != nullptr ? handle->dtype : DT_INVALID;
  return AddOp("ResourceGather", {table, ids}, {{"dtype", type}}, name.empty() ? "Gather" : name);
}

// Returns the rank as a number if it is static and not 0, otherwise as a tensor.
Ints RankOf(const Output& x) {
  return x.shape().rank() > 0 ? Ints(x.shape().rank()) : Ints(Rank(x));
}

// Clips each row to `max_norm`. The axes of a row follow those of the ids.
Output Clip(const Output& rows, const Output& ids, const std::optional<double>& max_norm) {
  if (!max_norm || !rows.valid()) return rows;
  const Ints first = RankOf(ids), limit = RankOf(rows);
  Ints axes;
  if (first.is_tensor() || limit.is_tensor()) {
    axes = RangeOp(rows.graph(), first, limit, 1);
  } else {
    std::vector<int64_t> list(std::max<int64_t>(limit.values()[0] - first.values()[0], 0));
    std::iota(list.begin(), list.end(), first.values()[0]);
    axes = Ints(std::move(list));
  }
  return ClipByNorm(rows, *max_norm, &axes);
}

// The table of each id and the row in that table, as vectors of the dtype of the ids.
struct RowLocations {
  Output table, row;
};

RowLocations LocateByMod(const Output& ids, int64_t count) {
  RowLocations places;
  places.table = ids % count;
  places.row = FloorDiv(ids, count, "floordiv");
  return places;
}

// Returns the total number of rows in all tables, in the dtype of the ids.
Output CountRows(const Outputs& tables, DataType type) {
  Graph& g = tables[0].graph();
  int64_t sum = 0;
  Outputs counts;  // invalid if the number is static
  bool known = true;
  for (const Output& table : tables) {
    const Shape& shape = TableShape(table);
    const int64_t rows = shape.rank() > 0 ? shape.dim(0) : Shape::kUnknown;
    counts.emplace_back();
    sum += rows;
    if (rows >= 0) continue;
    known = false;
    const ColocateWith place(g, table.node);
    counts.back() = StridedSlice(DynamicShape(table), {0});
  }
  if (known) return ConstOf(g, type, sum);
  Output all;
  {
    const NameScope scope(g, "stack");
    for (size_t i = 0; i < tables.size(); ++i) {
      if (!counts[i].valid())
        counts[i] = Const(g, static_cast<int32_t>(TableShape(tables[i]).dim(0)), absl::StrCat(i));
    }
    all = Stack(counts, 0, scope.name());
  }
  return ReduceSum(Cast(all, type));
}

// RowLocations contiguous ranges of ids: the first `extras` tables have one row more than the
// others.
RowLocations LocateByDiv(const Output& ids, const Outputs& tables) {
  const int64_t count = static_cast<int64_t>(tables.size());
  const Output total = CountRows(tables, ids.dtype());
  const Output each = FloorDiv(total, count, "floordiv");
  const Output extras = total % count;
  const Output among_bigger = FloorDiv(ids, each + 1, "floordiv");
  const Output past_bigger = ids - extras;
  RowLocations places;
  places.table = Maximum(among_bigger, FloorDiv(past_bigger, each, "floordiv"));
  const Output is_bigger = places.table < extras;
  const Output row_in_bigger = ids % (each + 1);
  const Output from_extras = ids - extras;
  places.row = Select(is_bigger, row_in_bigger, from_extras % each);
  return places;
}

// Returns the static shape of a row, as far as known. INVALID_ARGUMENT if the tables contradict
// each other.
absl::StatusOr<Shape> RowShape(const Outputs& tables) {
  Shape row = Shape::UnknownRank();
  for (const Output& table : tables) {
    const Shape& shape = TableShape(table);
    if (!shape.has_rank()) continue;
    if (shape.rank() == 0)
      return InvalidArgument("a table must have rank 1 or more, but is a scalar");
    WEIR_ASSIGN_OR_RETURN(row, row.MergeWith(shape.Sub(1)));
  }
  return row;
}

Output LookupInParts(const Outputs& tables, const Output& ids, const Shape& row_shape,
                     PartitionStrategy strategy, const NameScope& scope) {
  Graph& g = ids.graph();
  const int64_t count = static_cast<int64_t>(tables.size());
  const Output flat = Reshape(ids, {-1});
  const Output positions = RangeOp(g, 0, Size(flat), 1);
  const RowLocations places =
      strategy == PartitionStrategy::kMod ? LocateByMod(flat, count) : LocateByDiv(flat, tables);
  const Output owner = Cast(places.table, DT_INT32);
  if (!owner.valid() || !places.row.valid()) return {};
  const Outputs rows_of = DynamicPartition(places.row, owner, count);
  const Outputs positions_of = DynamicPartition(positions, owner, count);
  Outputs found;
  for (size_t i = 0; i < tables.size(); ++i) {
    const ColocateWith place(g, tables[i].node);
    found.push_back(GatherRows(tables[i], rows_of[i], ""));
    if (!found.back().valid()) return {};
  }
  const Output stitched = AddOp("ParallelDynamicStitch", {positions_of, found}, {}, scope.name());
  Output row_dims;
  if (!row_shape.IsFullyDefined()) {
    {
      const ColocateWith place(g, tables[0].node);
      row_dims = DynamicShape(tables[0]);
    }
    row_dims = StridedSlice(row_dims, {Index::Range(1, std::nullopt)});
  }
  const Output id_dims = ShapeTensor(ids);
  Output shape;
  {
    const NameScope concat(g, "concat");
    if (!row_dims.valid()) row_dims = Ints(row_shape).In(g, "values_1");
    shape = AddOp("ConcatV2", {Outputs{id_dims, row_dims}, Const<int32_t>(g, 0, "axis")}, {},
                  concat.name());
  }
  const Output rows = Reshape(stitched, shape);
  if (rows.valid() && ids.shape().has_rank() && row_shape.has_rank())
    g.Fail(g.RefineShape(rows, ids.shape().Concatenate(row_shape)));
  return rows;
}

}  // namespace

EmbeddingTables::EmbeddingTables(const Variable& variable) {
  if (!variable.is_partitioned()) {
    tables = {TableOf(variable)};
    return;
  }
  const std::vector<int64_t>& cuts = variable.partitions();
  if (cuts[0] != static_cast<int64_t>(variable.parts().size())) {
    variable.graph().Fail(InvalidArgument(
        "EmbeddingLookup: partitioned variable '", variable.name(), "' of shape ",
        variable.shape().ToString(),
        " is not partitioned along axis 0, so its parts do not contain whole rows"));
    tables = {Output()};
    return;
  }
  for (const Variable& part : variable.parts()) tables.push_back(TableOf(part));
}

EmbeddingTables::EmbeddingTables(const std::vector<Variable>& variables) {
  for (const Variable& v : variables) tables.push_back(TableOf(v));
}

Output EmbeddingLookup(const EmbeddingTables& params, Output ids,
                       const EmbeddingLookupOptions& options, absl::string_view name) {
  const Outputs& tables = params.tables;
  if (!ids.valid()) return {};
  Graph& g = ids.graph();
  if (tables.empty()) {
    g.Fail(InvalidArgument("EmbeddingLookup of ", ids.name(),
                           ": Length of params is currently 0. Need at least one param."));
    return {};
  }
  for (const Output& table : tables) {
    if (!table.valid()) return {};
  }
  const absl::StatusOr<Shape> row_shape = RowShape(tables);
  if (!row_shape.ok()) {
    g.Fail(
        Annotate(row_shape.status(), absl::StrCat("EmbeddingLookup in ", tables[0].name(), ": ")));
    return {};
  }
  const NameScope scope(g, name.empty() ? "embedding_lookup" : name);
  if (tables.size() > 1) {
    const Output rows = LookupInParts(tables, ids, *row_shape, options.partition_strategy, scope);
    return Clip(rows, ids, options.max_norm);
  }
  Output rows;
  {
    const ColocateWith place(g, tables[0].node);
    rows = Clip(GatherRows(tables[0], ids, scope.name()), ids, options.max_norm);
  }
  return Identity(rows);
}

}  // namespace weir
