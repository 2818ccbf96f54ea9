#include <utility>

#include "weir/kernels/containers/lookup_table.h"
#include "weir/kernels/data/dataset_files.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// The initialization of a lookup table from the elements of a dataset: pairs of keys and values.
namespace weir {

namespace {

// The elements of tensors of one type, in a new vector.
absl::StatusOr<Tensor> Flattened(const Tensors& parts, DataType dtype) {
  int64_t count = 0;
  for (const Tensor& part : parts) count += part.num_elements();
  WEIR_ASSIGN_OR_RETURN(Tensor all, Tensor::Allocate(HostAllocator(), dtype, Shape({count})));
  int64_t at = 0;
  for (const Tensor& part : parts) {
    CopyElements(dtype, part.raw(), ElementAt(all, at), part.num_elements());
    at += part.num_elements();
  }
  return all;
}

absl::Status InitializeTable(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto table, c.resource<LookupTable>(0));
  const LookupTable::Spec& spec = table->spec();
  if (!table->is_initializable())
    return InvalidArgument("Table ", spec.name, " is not initializable");
  Tensors keys, values;
  const auto add = [&](const DatasetContext&, const Tensors& pair) -> absl::Status {
    if (pair.size() != 2 || pair[0].dtype() != spec.key_type ||
        pair[1].dtype() != spec.value_type || pair[0].num_elements() != pair[1].num_elements()) {
      return InvalidArgument("Expected two inputs to dataset iterator: keys of type ",
                             DataTypeName(spec.key_type), " and as many values of type ",
                             DataTypeName(spec.value_type), "; got ", pair.size(), " components",
                             pair.empty() ? "" : ", the first of them ",
                             pair.empty() ? "" : pair[0].Description());
    }
    keys.push_back(pair[0]);
    values.push_back(pair[1]);
    return absl::OkStatus();
  };
  WEIR_RETURN_IF_ERROR(ForEachElement(c, 1, add));
  WEIR_ASSIGN_OR_RETURN(const Tensor all_keys, Flattened(keys, spec.key_type));
  WEIR_ASSIGN_OR_RETURN(const Tensor all_values, Flattened(values, spec.value_type));
  WEIR_RETURN_IF_ERROR(table->CheckPairs(all_keys, all_values));
  return table->Import(all_keys, all_values);
}

}  // namespace

void AddDatasetTableKernels(KernelRegistry* r) {
  r->Add("InitializeTableFromDataset", kCpu, InitializeTable);
}

}  // namespace weir
