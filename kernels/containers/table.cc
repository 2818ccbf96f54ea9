#include "absl/strings/match.h"
#include "weir/kernels/containers/lookup_table.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/waiter_queue.h"

// Lookup tables, by a resource handle or a reference: both are the same scalar handle here.
namespace weir {

namespace {

using MadeTable = absl::StatusOr<std::shared_ptr<LookupTable>>;

absl::StatusOr<LookupTable::Spec> SpecOf(const Node& node, absl::string_view name) {
  LookupTable::Spec spec;
  spec.name = std::string(name);
  spec.key_type = node.attr<DataType>("key_dtype");
  spec.value_type = node.attr<DataType>("value_dtype");
  spec.value_shape = node.attr_or<Shape>("value_shape", Shape());
  if (absl::StrContains(node.op_name(), "OfTensors") && spec.value_shape.rank() != 1) {
    return InvalidArgument("Default value must be a vector, got shape ",
                           spec.value_shape.ToString());
  }
  if (!spec.value_shape.IsFullyDefined() || spec.value_shape.rank() > 1) {
    return InvalidArgument("Empty value must be a scalar or a vector, got shape ",
                           spec.value_shape.ToString());
  }
  return spec;
}

// Returns the table of this name, which `make` creates if there is none.
template <class MakeTable>
absl::StatusOr<Tensor> SharedTable(const Node& node, const Device& device, ResourceMap& resources,
                                   const MakeTable& make) {
  WEIR_ASSIGN_OR_RETURN(const ResourceName name, NameOfResource(node));
  WEIR_ASSIGN_OR_RETURN(const LookupTable::Spec spec, SpecOf(node, name.name));
  ResourceMap& home = name.SelectMap(resources);
  auto table = home.Lookup<LookupTable>(name.container, name.name);
  if (table == nullptr) {
    WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<LookupTable> made, make(spec));
    table = home.LookupOrCreate<LookupTable>(name.container, name.name, [&] { return made; });
  }
  const LookupTable::Spec& has = table->spec();
  if (has.key_type != spec.key_type || has.value_type != spec.value_type) {
    return InvalidArgument("Conflicting key/value dtypes ", DataTypeName(spec.key_type), "->",
                           DataTypeName(spec.value_type), " with ", DataTypeName(has.key_type), "-",
                           DataTypeName(has.value_type), " for table ", name.name);
  }
  return HandleTo(device, name, table);
}

// Creates a table for this run alone, which is destroyed with the last handle to it.
template <class MakeTable>
absl::StatusOr<Tensor> OwnTable(const Node& node, const Device& device, const MakeTable& make) {
  const ResourceName name{"", node.name()};
  WEIR_ASSIGN_OR_RETURN(const LookupTable::Spec spec, SpecOf(node, name.name));
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<LookupTable> table, make(spec));
  return HandleTo(device, name, table);
}

template <bool kStatic>
absl::StatusOr<Kernel> MakeHashTable(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(Tensor handle,
                        SharedTable(init.node, init.device, init.resources,
                                    [](const auto& spec) { return NewHashTable(spec, kStatic); }));
  return Kernel::Constant(std::move(handle));
}

template <bool kStatic>
absl::Status AnonymousHashTable(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(Tensor handle, OwnTable(c.node(), c.device(), [](const auto& spec) {
                          return NewHashTable(spec, kStatic);
                        }));
  c.SetOutput(0, std::move(handle));
  return absl::OkStatus();
}

MadeTable DenseTable(KernelContext& c, LookupTable::Spec spec) {
  DenseTableOptions options;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).dtype() != spec.key_type)
      return InvalidArgument("empty_key and deleted_key must have the key type");
    (i == 0 ? options.empty_key : options.deleted_key) = c.input(i).DeepCopy();
  }
  options.initial_num_buckets = c.node().attr<int64_t>("initial_num_buckets");
  options.max_load_factor = c.node().attr<float>("max_load_factor");
  spec.key_shape = options.empty_key.shape();
  return NewDenseTable(std::move(spec), std::move(options));
}

absl::Status SharedDenseTable(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(Tensor handle,
                        SharedTable(c.node(), c.device(), c.resources(),
                                    [&c](const auto& spec) { return DenseTable(c, spec); }));
  c.SetOutput(0, std::move(handle));
  return absl::OkStatus();
}

absl::Status AnonymousDenseTable(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(Tensor handle, OwnTable(c.node(), c.device(), [&c](const auto& spec) {
                          return DenseTable(c, spec);
                        }));
  c.SetOutput(0, std::move(handle));
  return absl::OkStatus();
}

// ---- operations on a table

absl::Status Find(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto table, c.resource<LookupTable>(0));
  const Tensor &keys = c.input(1), &fallback = c.input(2);
  WEIR_RETURN_IF_ERROR(table->CheckFallback(keys, fallback));
  if (fallback.num_elements() == 0 && table->ShapeOfValues(keys).num_elements() > 0)
    return InvalidArgument("default_value has no elements");
  WEIR_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(0, table->ShapeOfValues(keys)));
  return table->Find(keys, fallback, values);
}

absl::Status Insert(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto table, c.resource<LookupTable>(0));
  WEIR_RETURN_IF_ERROR(table->CheckPairs(c.input(1), c.input(2)));
  return table->Insert(c.input(1), c.input(2));
}

absl::Status Remove(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto table, c.resource<LookupTable>(0));
  WEIR_RETURN_IF_ERROR(table->CheckKeys(c.input(1)));
  return table->Remove(c.input(1));
}

absl::Status Size(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto table, c.resource<LookupTable>(0));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<int64_t>() = table->size();
  return absl::OkStatus();
}

absl::Status Export(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto table, c.resource<LookupTable>(0));
  const DataType types[] = {c.node().attr<DataType>("Tkeys"), c.node().attr<DataType>("Tvalues")};
  WEIR_RETURN_IF_ERROR(CheckTypes(types, {table->spec().key_type, table->spec().value_type}));
  WEIR_ASSIGN_OR_RETURN(auto pairs, table->Export());
  c.SetOutput(0, std::move(pairs.first));
  c.SetOutput(1, std::move(pairs.second));
  return absl::OkStatus();
}

absl::Status Import(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto table, c.resource<LookupTable>(0));
  WEIR_RETURN_IF_ERROR(table->CheckImport(c.input(1), c.input(2)));
  return table->Import(c.input(1), c.input(2));
}

absl::StatusOr<std::shared_ptr<LookupTable>> Initializable(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(auto table, c.resource<LookupTable>(0));
  if (!table->is_initializable())
    return InvalidArgument("Table ", table->spec().name, " is not initializable");
  return table;
}

absl::Status Initialize(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto table, Initializable(c));
  const Tensor &keys = c.input(1), &values = c.input(2);
  for (const Tensor* t : {&keys, &values}) {
    if (t->rank() == 1) continue;
    return InvalidArgument(t == &keys ? "Keys" : "Values", " must be a vector, but received shape",
                           t->shape().ToString());
  }
  if (keys.num_elements() != values.num_elements()) {
    return InvalidArgument("Keys and values must have the same size ", keys.num_elements(), " vs ",
                           values.num_elements());
  }
  WEIR_RETURN_IF_ERROR(table->CheckPairs(keys, values));
  return table->Import(keys, values);
}

absl::StatusOr<Kernel> MakeInitializeFromFile(const KernelInit& init) {
  TextFileColumns columns;
  columns.key = init.attr<int64_t>("key_index");
  columns.value = init.attr<int64_t>("value_index");
  columns.vocab_size = init.attr<int64_t>("vocab_size");
  columns.offset = init.node.attr_or<int64_t>("offset", 0);
  const std::string delimiter = init.attr<std::string>("delimiter");
  if (delimiter.size() != 1) return InvalidArgument("delimiter should be only 1 char");
  columns.delimiter = delimiter[0];
  return Kernel([columns](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const auto table, Initializable(c));
    if (!c.input(1).shape().IsScalar()) {
      return InvalidArgument("filename should be a single string, but got ",
                             c.input(1).shape().ToString());
    }
    const std::string& path = c.input(1).scalar<std::string>();
    if (path.empty()) return InvalidArgument("filename cannot be empty.");
    return InitializeFromTextFile(path, columns, table.get());
  });
}

}  // namespace

void AddTableKernels(KernelRegistry* r) {
  for (const char* version : {"", "V2"}) {
    const auto name = [&](const char* op) { return absl::StrCat(op, version); };
    r->Add(name("HashTable"), kCpu, MakeHashTable<true>);
    r->Add(name("MutableHashTable"), kCpu, MakeHashTable<false>);
    r->Add(name("MutableHashTableOfTensors"), kCpu, MakeHashTable<false>);
    r->Add(name("MutableDenseHashTable"), kCpu, SharedDenseTable);
    r->Add(name("InitializeTable"), kCpu, Initialize);
    r->Add(name("InitializeTableFromTextFile"), kCpu, MakeInitializeFromFile);
    r->Add(name("LookupTableFind"), kCpu, Find);
    r->Add(name("LookupTableInsert"), kCpu, Insert);
    r->Add(name("LookupTableSize"), kCpu, Size);
    r->Add(name("LookupTableExport"), kCpu, Export);
    r->Add(name("LookupTableImport"), kCpu, Import);
  }
  r->Add("LookupTableRemoveV2", kCpu, Remove);
  r->Add("AnonymousHashTable", kCpu, AnonymousHashTable<true>);
  r->Add("AnonymousMutableHashTable", kCpu, AnonymousHashTable<false>);
  r->Add("AnonymousMutableHashTableOfTensors", kCpu, AnonymousHashTable<false>);
  r->Add("AnonymousMutableDenseHashTable", kCpu, AnonymousDenseTable);
}

}  // namespace weir
