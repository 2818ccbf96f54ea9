#include "weir/core/graph/unknown_op.h"

namespace weir {

bool IsUnknownOp(const Node& node) {
  return !node.op().is_function() && node.graph().ops().Find(node.op_name()) == nullptr;
}

const UnknownOp& UnknownOpOf(const Node& node) { return static_cast<const UnknownOp&>(node.op()); }

bool HasOpenOutputs(const Node& node) {
  return IsUnknownOp(node) && !UnknownOpOf(node).has_signature();
}

DataType TypeFromAttrs(const Node& node, int output) {
  static constexpr absl::string_view kLists[] = {"Tout",          "Toutputs",  "output_types",
                                                 "output_dtypes", "out_types", "dtypes"};
  static constexpr absl::string_view kTypes[] = {"Tout", "output_type", "out_type", "dtype", "T"};
  for (const absl::string_view name : kLists) {
    const auto list = node.attr_or<DataTypes>(name, {});
    if (output < static_cast<int>(list.size())) return list[output];
  }
  for (const absl::string_view name : kTypes) {
    const auto type = node.attr_or<DataType>(name, DT_INVALID);
    if (type != DT_INVALID) return type;
  }
  return DT_INVALID;
}

const OpRegistry& ClientOps() {
  static const auto* const ops = [] {
    auto* registry = new OpRegistry;
    const auto python = [](absl::string_view name) {
      return OpSpec(name)
          .In("input: Tin")
          .Out("output: Tout")
          .Attr("token: string")
          .Attr("Tin: list(type) >= 0")
          .Attr("Tout: list(type) >= 0");
    };
    registry->Add(python("PyFunc").Stateful().NotDifferentiable());
    registry->Add(python("PyFuncStateless").NotDifferentiable());
    registry->Add(python("EagerPyFunc").Attr("is_async: bool = false").Stateful());
    return registry;
  }();
  return *ops;
}

absl::Status UnknownOpError(const Node& node) {
  const absl::Status missing = node.graph().ops().Lookup(node.op_name()).status();
  if (ClientOps().Find(node.op_name()) == nullptr) {
    return NotFound(missing.message(), " Steps that do not need node '", node.name(),
                    "' run; this one needs the op and a kernel for it (OpRegistry, "
                    "KernelRegistry), or a feed of the node's outputs.");
  }
  return NotFound(missing.message(), " Python functions live in the client's process: only the ",
                  "program that made the function '", node.attr_or<std::string>("token", ""),
                  "' of node '", node.name(),
                  "' can call it. Steps that do not need the node run; feed its outputs, or write "
                  "the function as ops of the graph.");
}

}  // namespace weir
