#include "weir/kernels/containers/composite_variant.h"

#include <string>
#include <utility>
#include <vector>

#include "weir/core/io/coding.h"
#include "weir/core/tensor/variant.h"

// Composite tensors of Python (ragged and sparse tensors, extension types) as variants: their
// component tensors, and a serialized CompositeTensorVariantMetadata that describes their type.
namespace weir {

namespace {

constexpr char kTypeName[] = "CompositeTensorVariant";

// Reads the next field of a message: its number, and its value or (of a length-delimited field) its
// bytes. Returns false at a malformed field.
bool ReadField(absl::string_view* message, uint64_t* number, uint64_t* value,
               absl::string_view* bytes) {
  uint64_t tag;
  if (!GetVarint64(message, &tag)) return false;
  *number = tag >> 3;
  *bytes = {};
  switch (tag & 7) {
    case 0:
      return GetVarint64(message, value);
    case 2:
      if (!GetVarint64(message, value) || *value > message->size()) return false;
      *bytes = message->substr(0, *value);
      message->remove_prefix(*value);
      return true;
    default:
      return false;
  }
}

// Returns the class of the type that metadata describe: field type_spec_class (1) of field
// type_spec_proto (1). Other fields are the type's own.
absl::StatusOr<uint64_t> ClassOf(absl::string_view metadata) {
  uint64_t type_class = 0, number, value;
  absl::string_view type, bytes;
  while (!metadata.empty()) {
    if (!ReadField(&metadata, &number, &value, &bytes))
      return InvalidArgument("Error parsing `metadata`");
    if (number != 1) continue;
    for (type = bytes; !type.empty();) {
      if (!ReadField(&type, &number, &value, &bytes))
        return InvalidArgument("Error parsing `metadata`");
      if (number == 1) type_class = value;
    }
  }
  return type_class;
}

absl::StatusOr<Kernel> MakeFromComponents(const KernelInit& init) {
  auto metadata = init.attr<std::string>("metadata");
  WEIR_RETURN_IF_ERROR(ClassOf(metadata).status());
  return Kernel([metadata = std::move(metadata)](KernelContext& c) -> absl::Status {
    Tensors components;
    for (int i = 0; i < c.num_inputs(); ++i) {
      // The variant may outlive the step.
      WEIR_ASSIGN_OR_RETURN(components.emplace_back(), c.Own(c.input(i)));
    }
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape()));
    *out->data<Variant>() = {
        .type_name = kTypeName, .metadata = metadata, .value = std::move(components)};
    return absl::OkStatus();
  });
}

absl::StatusOr<Kernel> MakeToComponents(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const uint64_t expected, ClassOf(init.attr<std::string>("metadata")));
  return Kernel([expected](KernelContext& c) -> absl::Status {
    const Tensor& encoded = c.input(0);
    if (encoded.num_elements() == 0) {
      return InvalidArgument("Input `encoded` must not be an empty variant tensor, but got ",
                             encoded.Description());
    }
    const Variant& variant = *encoded.data<Variant>();
    const Tensors* const components = std::any_cast<Tensors>(&variant.value);
    if (variant.type_name != kTypeName || components == nullptr) {
      return InvalidArgument(
          "The input `encoded` is not a valid CompositeTensorVariant tensor, but holds '",
          variant.type_name, "'");
    }
    WEIR_ASSIGN_OR_RETURN(const uint64_t actual, ClassOf(variant.metadata));
    if (expected != actual) {
      return InvalidArgument("Expected a type of class ", expected,
                             " (based on `type_spec`), but `encoded` contains one of class ",
                             actual, "; see TypeSpecProto.TypeSpecClass");
    }
    if (static_cast<int>(components->size()) != c.num_outputs()) {
      return InvalidArgument("Encoded value has ", components->size(),
                             " tensor components; expected ", c.num_outputs(),
                             " components based on type_spec");
    }
    for (int i = 0; i < c.num_outputs(); ++i) {
      const Tensor& component = (*components)[i];
      const DataType type = BaseType(c.node().output_type(i));
      if (component.dtype() != type) {
        return InvalidArgument("Tensor component ", i, " had dtype ",
                               DataTypeName(component.dtype()), "; expected dtype ",
                               DataTypeName(type));
      }
      c.SetOutput(i, component);
    }
    return absl::OkStatus();
  });
}

}  // namespace

void AddCompositeVariantKernels(KernelRegistry* r) {
  r->Add("CompositeTensorVariantFromComponents", kCpu, MakeFromComponents);
  r->Add("CompositeTensorVariantToComponents", kCpu, MakeToComponents);
}

}  // namespace weir
