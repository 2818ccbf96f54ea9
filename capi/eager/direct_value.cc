#include "weir/capi/eager/op.h"
#include "weir/core/runtime/resource.h"

// Ops that the data of a client makes without end: constants, and variables without a name. A
// signature for each of them would never be executed again.

namespace weir::capi {

namespace {

// The shared_name by which clients ask for a variable that nobody else finds.
constexpr absl::string_view kAnonymous = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

template <class T>
const T* Find(const AttrMap& attrs, absl::string_view name) {
  const auto it = attrs.find(name);
  return it == attrs.end() ? nullptr : it->second.get_if<T>();
}

std::optional<Tensor> Constant(const AttrMap& attrs) {
  const auto* const value = Find<Tensor>(attrs, "value");
  const auto* const type = Find<DataType>(attrs, "dtype");
  if (value == nullptr || type == nullptr || value->dtype() != *type) return std::nullopt;
  return *value;
}

std::optional<Tensor> AnonymousVariable(const AttrMap& attrs, TFE_Context& context) {
  const auto* const shared_name = Find<std::string>(attrs, "shared_name");
  const auto* const type = Find<DataType>(attrs, "dtype");
  const auto* const shape = Find<Shape>(attrs, "shape");
  if (shared_name == nullptr || *shared_name != kAnonymous || type == nullptr || shape == nullptr)
    return std::nullopt;
  ResourceHandle handle;
  handle.device = kCpuName;
  handle.container = ResourceMap::kDefaultContainer;
  handle.name = absl::StrCat("anonymous_variable_", context.num_anonymous_variables.fetch_add(1));
  handle.resource = std::make_shared<VariableState>(handle.name, *type, *shape);
  return Tensor::Scalar(std::move(handle));
}

}  // namespace

// Attributes that are missing or wrong are left to the execution, which reports them.
std::optional<Tensor> DirectValue(const TFE_Op& op) {
  const bool is_constant = op.name() == "Const";
  if ((!is_constant && op.name() != "VarHandleOp") || !op.inputs.empty() ||
      !op.context->CheckDevice(op.signature.device()).ok())
    return std::nullopt;
  const AttrMap attrs = op.signature.Attrs();
  return is_constant ? Constant(attrs) : AnonymousVariable(attrs, *op.context);
}

}  // namespace weir::capi
