#include "weir/ops/containers/table.h"
#include "weir/ops/lib/ranked_internal.h"

#include <optional>

#include "weir/core/graph/scope.h"
#include "weir/ops/containers/queue_internal.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/collections.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

std::string SharedName(const TextFileTable& file) {
  std::string name = absl::StrCat("hash_table_", file.path);
  if (file.vocab_size >= 0) absl::StrAppend(&name, "_", file.vocab_size);
  absl::StrAppend(&name, "_", file.key_index, "_", file.value_index);
  if (file.offset != 0) absl::StrAppend(&name, "_", file.offset);
  return name;
}

Output StaticHandle(DataType key_type, const Output& default_value, absl::string_view shared_name,
                    absl::string_view name) {
  if (!default_value.valid()) return {};
  return Output(AddNode(default_value.graph(), "HashTableV2", {},
                        {{"shared_name", shared_name},
                         {"key_dtype", key_type},
                         {"value_dtype", default_value.dtype()}},
                        name.empty() ? "hash_table" : name));
}

Output MutableHandle(DataType key_type, const Output& default_value, absl::string_view name) {
  if (!default_value.valid()) return {};
  const bool scalar = default_value.shape().IsScalar();
  Attrs attrs = {{"use_node_name_sharing", true},
                 {"key_dtype", key_type},
                 {"value_dtype", default_value.dtype()}};
  if (!scalar) attrs.emplace_back("value_shape", default_value.shape());
  return Output(AddNode(default_value.graph(),
                        scalar ? "MutableHashTableV2" : "MutableHashTableOfTensorsV2", {}, attrs,
                        name.empty() ? "MutableHashTable" : name));
}

Output DenseHandle(const Output& default_value, const Output& empty_key, const Output& deleted_key,
                   const DenseHashTableOptions& options, absl::string_view name) {
  return AddOp("MutableDenseHashTableV2", {empty_key, deleted_key},
               {{"use_node_name_sharing", true},
                {"value_dtype", default_value.dtype()},
                {"value_shape", default_value.shape()},
                {"initial_num_buckets", options.initial_num_buckets},
                {"max_load_factor", options.max_load_factor}},
               name.empty() ? "MutableDenseHashTable" : name);
}

}  // namespace

// Adds the node in a scope that is named after the table.
Node* Table::Add(absl::string_view op, std::vector<Arg> args, absl::string_view suffix,
                 absl::string_view name, bool colocate, Attrs attrs) const {
  if (!handle_.valid()) return nullptr;
  Graph& graph = handle_.graph();
  args.insert(args.begin(), handle_);
  const NameScope scope(graph, name.empty()
                                   ? absl::StrCat(LastNameComponent(handle_.node->name()), suffix)
                                   : std::string(name));
  std::optional<ColocateWith> with_table;
  if (colocate) with_table.emplace(graph, Operation(handle_));
  return AddNode(op, args, attrs);
}

Output Table::Size(absl::string_view name) const {
  return Output(Add("LookupTableSizeV2", {}, "_Size", name, !is_static_));
}

Output Table::Find(Output keys, absl::string_view name) const {
  const Output values(Add("LookupTableFindV2", {keys, default_value_},
                          is_static_ ? "_Lookup" : "_lookup_table_find", name, !is_static_));
  if (values.valid() && is_static_) {
    Graph& graph = values.graph();
    graph.Fail(graph.RefineShape(values, keys.shape()));
  }
  return values;
}

std::pair<Output, Output> Table::Exported(DataType key_type, absl::string_view name) const {
  const Outputs out = AllOutputs(
      Add("LookupTableExportV2", {}, is_static_ ? "_Export" : "_lookup_table_export_values", name,
          !is_static_, {{"Tkeys", key_type}, {"Tvalues", default_value_.dtype()}}),
      2);
  return {out[0], out[1]};
}

StaticHashTable::StaticHashTable(Output keys, Output values, Output default_value,
                                 absl::string_view name)
    : Table(StaticHandle(keys.dtype(), default_value, "", name), default_value,
            /*is_static=*/true),
      key_type_(keys.dtype()) {
  if (!handle_.valid()) return;
  Graph& graph = handle_.graph();
  const NameScope scope(graph, "key_value_init");
  initializer_ = Operation(AddNode("LookupTableImportV2", {handle_, keys, values}));
  if (initializer_.valid()) graph.AddToCollection(collections::kTableInitializers, initializer_);
}

StaticHashTable::StaticHashTable(const TextFileTable& file, Output default_value,
                                 absl::string_view name)
    : Table(StaticHandle(file.key_type, default_value, SharedName(file), name), default_value,
            /*is_static=*/true),
      key_type_(file.key_type) {
  if (!handle_.valid()) return;
  Graph& graph = handle_.graph();
  const NameScope scope(graph, "text_file_init");
  const Output path = Const(graph, file.path, "asset_filepath");
  initializer_ = Operation(AddNode("InitializeTableFromTextFileV2", {handle_, path},
                                   {{"key_index", file.key_index},
                                    {"value_index", file.value_index},
                                    {"vocab_size", file.vocab_size},
                                    {"delimiter", std::string(1, file.delimiter)},
                                    {"offset", file.offset}}));
  if (!initializer_.valid()) return;
  graph.AddToCollection(collections::kTableInitializers, initializer_);
  graph.AddToCollection(collections::kAssetFilepaths, path);
}

MutableHashTable::MutableHashTable(DataType key_type, Output default_value, absl::string_view name)
    : MutableHashTable(MutableHandle(key_type, default_value, name), key_type, default_value) {}

Operation MutableHashTable::Insert(Output keys, Output values, absl::string_view name) const {
  return Operation(Add("LookupTableInsertV2", {keys, values}, "_lookup_table_insert", name, true));
}

Operation MutableHashTable::Remove(Output keys, absl::string_view name) const {
  return Operation(Add("LookupTableRemoveV2", {keys}, "_lookup_table_remove", name, false));
}

DenseHashTable::DenseHashTable(Output default_value, Output empty_key, Output deleted_key,
                               const DenseHashTableOptions& options, absl::string_view name)
    : MutableHashTable(DenseHandle(default_value, empty_key, deleted_key, options, name),
                       empty_key.dtype(), default_value) {}

Operation TablesInitializer(Graph& graph, absl::string_view name) {
  const auto initializers = graph.collection_as<Operation>(collections::kTableInitializers);
  const absl::string_view op_name = name.empty() ? "init_all_tables" : name;
  return initializers.empty() ? NoOp(graph, op_name) : Group(graph, initializers, op_name);
}

namespace {

// The definition of an op that creates a table. Anonymous tables have no name by which they could
// be shared.
void AddMaker(const std::string& op, const char* handle, const char* inputs, bool is_shared,
              bool has_value_shape, bool is_dense, const char* doc, OpRegistry* ops) {
  OpSpec spec(op);
  if (*inputs != '\0') spec.In(inputs);
  spec.Out(absl::StrCat("table_handle: ", handle));
  if (is_shared) {
    spec.Attr("container: string = ''")
        .Attr("shared_name: string = ''")
        .Attr("use_node_name_sharing: bool = false");
  }
  spec.Attr("key_dtype: type").Attr("value_dtype: type");
  if (has_value_shape) spec.Attr("value_shape: shape = []");
  if (is_dense) {
    spec.Attr("initial_num_buckets: int = 131072").Attr("max_load_factor: float = 0.8");
  }
  const bool is_resource = absl::string_view(handle) == "resource";
  spec.InferShape(is_resource ? Ranked("empty_key: <=1", HandleShape) : HandleShape);
  ops->Add(spec.Stateful().Has(Effect::kObserves).NotDifferentiable().Doc(doc));
}

void AddCreators(OpRegistry* ops) {
  constexpr char kStatic[] = "Creates a table of scalars that is initialized once.";
  constexpr char kMutable[] = "Creates a mutable table of scalars.";
  constexpr char kTensors[] = "Creates a mutable table whose values are vectors.";
  constexpr char kDense[] =
      "Creates a mutable table in contiguous memory. Two reserved values, which are never keys, "
      "mark empty buckets and buckets whose key was removed.";
  for (const auto& [version, handle, is_resource] : kHandleForms) {
    const auto name = [&, v = version](const char* op) { return absl::StrCat(op, v); };
    const char* const markers =
        is_resource ? "empty_key: key_dtype, deleted_key: key_dtype" : "empty_key: key_dtype";
    AddMaker(name("HashTable"), handle, "", true, false, false, kStatic, ops);
    AddMaker(name("MutableHashTable"), handle, "", true, false, false, kMutable, ops);
    AddMaker(name("MutableHashTableOfTensors"), handle, "", true, true, false, kTensors, ops);
    AddMaker(name("MutableDenseHashTable"), handle, markers, true, true, true, kDense, ops);
  }
  AddMaker("AnonymousHashTable", "resource", "", false, false, false, kStatic, ops);
  AddMaker("AnonymousMutableHashTable", "resource", "", false, false, false, kMutable, ops);
  AddMaker("AnonymousMutableHashTableOfTensors", "resource", "", false, true, false, kTensors, ops);
  AddMaker("AnonymousMutableDenseHashTable", "resource",
           "empty_key: key_dtype, deleted_key: key_dtype", false, true, true, kDense, ops);
}

OpSpec UserSpec(const char* op, const HandleForm& form, absl::string_view inputs = {}) {
  return HandleUserSpec(op, form, "table_handle", inputs);
}

void AddInitializers(const HandleForm& form, OpRegistry* ops) {
  ops->Add(UserSpec("InitializeTable", form, "keys: Tkey, values: Tval")
               .Attr("Tkey: type")
               .Attr("Tval: type")
               .InferShape(RankedIfResource(form, "table_handle: 0, keys: 1, values: 1", NoOutputs))
               .Doc("Initializes a table with the pairs of two vectors."));
  ops->Add(UserSpec("InitializeTableFromTextFile", form, "filename: string")
               .Attr("key_index: int >= -2")
               .Attr("value_index: int >= -2")
               .Attr("vocab_size: int >= -1 = -1")
               .Attr("delimiter: string = '\t'")
               .Attr("offset: int = 0")
               .InferShape(RankedIfResource(form, "table_handle: 0, filename: 0", NoOutputs))
               .Doc("Initializes a table with one pair per line of a file. Keys and values are "
                    "columns, the whole line, or the line number."));
}

void AddUsers(const HandleForm& form, OpRegistry* ops) {
  ops->Add(UserSpec("LookupTableFind", form, "keys: Tin, default_value: Tout")
               .Out("values: Tout")
               .Attr("Tin: type")
               .Attr("Tout: type")
               .Has(Effect::kObserves)
               .InferShape(RankedIfResource(form, "table_handle: 0", UnknownShape))
               .Doc("Looks up the values of the keys. Returns `default_value` for keys that are "
                    "not in the table."));
  for (const auto& [op, ranks, doc] :
       {std::tuple("LookupTableInsert", "table_handle: 0",
                   "Inserts keys and their values into a table."),
        std::tuple("LookupTableImport", "table_handle: 0, keys: 1, values: >=1",
                   "Replaces the contents of a table.")}) {
    ops->Add(UserSpec(op, form, "keys: Tin, values: Tout")
                 .Attr("Tin: type")
                 .Attr("Tout: type")
                 .InferShape(RankedIfResource(form, ranks, NoOutputs))
                 .Doc(doc));
  }
  ops->Add(UserSpec("LookupTableSize", form)
               .Out("size: int64")
               .Has(Effect::kObserves)
               .InferShape(RankedIfResource(form, "table_handle: 0", ScalarShape))
               .Doc("Returns the number of keys in a table."));
  ops->Add(UserSpec("LookupTableExport", form)
               .Out("keys: Tkeys, values: Tvalues")
               .Attr("Tkeys: type")
               .Attr("Tvalues: type")
               .Has(Effect::kObserves)
               .InferShape(RankedIfResource(form, "table_handle: 0", UnknownShape))
               .Doc("Returns all keys and values of a table."));
}

}  // namespace

void AddTableOps(OpRegistry* ops) {
  AddCreators(ops);
  for (const HandleForm& form : kHandleForms) {
    AddInitializers(form, ops);
    AddUsers(form, ops);
  }
  ops->Add(UserSpec("LookupTableRemove", kResourceForm, "keys: Tin")
               .Attr("Tin: type")
               .InferShape(Ranked("table_handle: 0, keys: >=1", NoOutputs))
               .Doc("Removes keys from a table."));
}

}  // namespace weir
