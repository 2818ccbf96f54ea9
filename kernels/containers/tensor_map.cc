#include <algorithm>
#include <memory>
#include <string>

#include "weir/kernels/containers/composite_variant.h"
#include "weir/kernels/containers/stored_values.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/lib/summarize.h"

// Maps from tensors to tensors, as values: every op that modifies a map creates a new one.
namespace weir {

namespace {

absl::StatusOr<const TensorMap*> InputMap(const KernelContext& c) {
  const Tensor& t = c.input(0);
  if (t.dtype() != DT_VARIANT || t.rank() != 0)
    return InvalidArgument("Input map must be a scalar. Saw: ", t.shape().ToString());
  if (const TensorMap* map = VariantAs<TensorMap>(*t.data<Variant>())) return map;
  return InvalidArgument("Input handle is not a map. Saw: '", t.data<Variant>()->type_name, "'");
}

absl::Status NoKey(absl::string_view verb, const Tensor& key) {
  return InvalidArgument("Trying to ", verb, ". Could not find key \"", Summarize(key, 100), "\".");
}

absl::Status Empty(KernelContext& c) {
  c.SetOutput(0, VariantScalar(TensorMap()));
  return absl::OkStatus();
}

absl::Status Size(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorMap* map, InputMap(c));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<int32_t>() = static_cast<int32_t>(map->entries->size());
  return absl::OkStatus();
}

absl::Status Lookup(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorMap* map, InputMap(c));
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, MapKey(c.input(1)));
  const auto it = map->entries->find(bytes);
  if (it == map->entries->end()) return NoKey("lookup non-existent key", c.input(1));
  const DataType want = BaseType(c.node().output_type(0));
  if (it->second.value.dtype() != want) {
    return InvalidArgument("TensorMapLookup requests a value of type ", DataTypeName(want),
                           ", but the key has a value of type ",
                           DataTypeName(it->second.value.dtype()));
  }
  c.SetOutput(0, it->second.value);
  return absl::OkStatus();
}

absl::Status HasKey(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorMap* map, InputMap(c));
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, MapKey(c.input(1)));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<bool>() = map->entries->contains(bytes);
  return absl::OkStatus();
}

void OutputMap(KernelContext& c, int depth, TensorMap::Entries entries) {
  TensorMap map;
  map.depth = depth;
  map.entries = std::make_shared<const TensorMap::Entries>(std::move(entries));
  c.SetOutput(0, VariantScalar(std::move(map)));
}

absl::Status Insert(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorMap* map, InputMap(c));
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, MapKey(c.input(1)));
  WEIR_ASSIGN_OR_RETURN(const int depth, NestingDepth(c.input(2)));
  TensorMap::Entries entries = *map->entries;
  TensorMap::Entry& entry = entries[bytes];
  WEIR_ASSIGN_OR_RETURN(entry.key, c.Own(c.input(1)));
  WEIR_ASSIGN_OR_RETURN(entry.value, c.Own(c.input(2)));
  OutputMap(c, std::max(map->depth, depth + 1), std::move(entries));
  return absl::OkStatus();
}

absl::Status Erase(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorMap* map, InputMap(c));
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, MapKey(c.input(1)));
  TensorMap::Entries entries = *map->entries;
  if (entries.erase(bytes) == 0) return NoKey("erase non-existent item", c.input(1));
  OutputMap(c, map->depth, std::move(entries));
  return absl::OkStatus();
}

absl::Status StackKeys(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorMap* map, InputMap(c));
  if (map->entries->empty())
    return InvalidArgument("TensorMapStackKeys cannot be called on empty map.");
  const Tensor& first = map->entries->begin()->second.key;
  for (const auto& [bytes, entry] : *map->entries) {
    if (entry.key.dtype() != BaseType(c.node().output_type(0)))
      return InvalidArgument("Key does not match requested dtype.");
    if (entry.key.shape() != first.shape())
      return InvalidArgument("Keys must all have the same shape.");
  }
  Shape shape = first.shape();
  shape.InsertDim(0, static_cast<int64_t>(map->entries->size()));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  int64_t at = 0;
  for (const auto& [bytes, entry] : *map->entries) {
    CopyElements(out->dtype(), entry.key.raw(), ElementAt(*out, at), entry.key.num_elements());
    at += entry.key.num_elements();
  }
  return absl::OkStatus();
}

}  // namespace

void AddTensorMapKernels(KernelRegistry* r) {
  AddCompositeVariantKernels(r);
  r->Add("EmptyTensorMap", kCpu, Empty);
  r->Add("TensorMapSize", kCpu, Size);
  r->Add("TensorMapLookup", kCpu, Lookup);
  r->Add("TensorMapHasKey", kCpu, HasKey);
  r->Add("TensorMapInsert", kCpu, Insert);
  r->Add("TensorMapErase", kCpu, Erase);
  r->Add("TensorMapStackKeys", kCpu, StackKeys);
}

}  // namespace weir
