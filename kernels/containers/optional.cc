#include <algorithm>

#include "weir/kernels/containers/stored_values.h"
#include "weir/kernels/lib/registry.h"

// Optional values: several tensors of any types, or nothing.
namespace weir {

namespace {

absl::StatusOr<const Optional*> InputOptional(const KernelContext& c) {
  const Tensor& t = c.input(0);
  if (t.dtype() != DT_VARIANT || t.rank() != 0) {
    return InvalidArgument("Input to an optional op must be a scalar tensor containing an ",
                           "OptionalVariant object, but has shape ", t.shape().ToString());
  }
  if (const Optional* optional = VariantAs<Optional>(*t.data<Variant>())) return optional;
  return InvalidArgument("Input is not an OptionalVariant object. Saw: '",
                         t.data<Variant>()->type_name, "'");
}

absl::Status None(KernelContext& c) {
  c.SetOutput(0, VariantScalar(Optional()));
  return absl::OkStatus();
}

absl::Status FromValue(KernelContext& c) {
  Optional optional;
  optional.has_value = true;
  for (int i = 0; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const int depth, NestingDepth(c.input(i)));
    WEIR_ASSIGN_OR_RETURN(Tensor value, c.Own(c.input(i)));
    optional.depth = std::max(optional.depth, depth + 1);
    optional.values.push_back(std::move(value));
  }
  c.SetOutput(0, VariantScalar(std::move(optional)));
  return absl::OkStatus();
}

absl::Status HasValue(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Optional* optional, InputOptional(c));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<bool>() = optional->has_value;
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeGetValue(const KernelInit& init) {
  const auto shapes = init.attr<std::vector<Shape>>("output_shapes");
  const auto types = init.attr<DataTypes>("output_types");
  if (shapes.size() != types.size()) {
    return InvalidArgument("output_types and output_shapes must be same length, got:\n",
                           "output_types: ", types.size(), "\noutput_shapes: ", shapes.size());
  }
  return Kernel([shapes, types](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const Optional* optional, InputOptional(c));
    if (!optional->has_value) return InvalidArgument("The given optional does not have a value.");
    if (optional->values.size() != types.size()) {
      return InvalidArgument("The given optional has ", optional->values.size(),
                             " components, expected ", types.size());
    }
    for (size_t i = 0; i < types.size(); ++i) {
      const Tensor& value = optional->values[i];
      if (value.dtype() != types[i]) {
        return InvalidArgument("The given optional does not match the expected type for component ",
                               i, ". Expected: ", DataTypeName(types[i]),
                               ". Actual: ", DataTypeName(value.dtype()), ".");
      }
      if (!shapes[i].IsCompatibleWith(value.shape())) {
        return InvalidArgument(
            "The given optional does not match the expected shape for component ", i,
            ". Expected: ", shapes[i].ToString(), ". Actual: ", value.shape().ToString(), ".");
      }
      c.SetOutput(static_cast<int>(i), value);
    }
    return absl::OkStatus();
  });
}

}  // namespace

void AddOptionalKernels(KernelRegistry* r) {
  r->Add("OptionalNone", kCpu, None);
  r->Add("OptionalFromValue", kCpu, FromValue);
  r->Add("OptionalHasValue", kCpu, HasValue);
  r->Add("OptionalGetValue", kCpu, MakeGetValue);
}

}  // namespace weir
