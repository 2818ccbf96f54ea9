#include "weir/core/import/definitions.h"

#include <algorithm>

#include "weir/core/graph/signature.h"
#include "weir/core/graph/unknown_op.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/op_def.pb.h"

namespace weir {

OpDefinitions::OpDefinitions(absl::string_view op_list) : bytes_(op_list) {}
OpDefinitions::~OpDefinitions() = default;

std::optional<OpDefinition> OpDefinitions::Find(absl::string_view name, int64_t* budget) {
  if (const OpSpec* op = ClientOps().Find(name)) return OpDefinition{*op};
  if (list_ == nullptr) {
    list_ = std::make_unique<proto::OpList>();
    if (!ParseBytes(bytes_, list_.get()).ok()) list_->Clear();
  }
  const auto def = std::find_if(list_->op().begin(), list_->op().end(),
                                [&](const proto::OpDef& op) { return op.name() == name; });
  if (def == list_->op().end()) return std::nullopt;
  absl::StatusOr<OpSpec> spec = OpFromProto(*def);
  if (!spec.ok()) return std::nullopt;
  OpDefinition found{*std::move(spec)};
  for (const auto& attr : def->attr()) {
    if (!attr.has_default_value()) continue;
    absl::StatusOr<AttrValue> value = AttrFromProto(attr.default_value(), budget);
    if (value.ok()) found.defaults.emplace(attr.name(), *std::move(value));
  }
  return found;
}

std::optional<SignatureTypes> TypesByDefinition(const OpDefinition& definition,
                                                const AttrMap& attrs,
                                                absl::Span<const Output> inputs,
                                                int64_t max_outputs) {
  const OpSpec& op = definition.spec;
  AttrMap all = attrs;
  for (const auto& [name, value] : definition.defaults) all.emplace(name, value);
  if (!CompleteAttrs(op, &all).ok()) return std::nullopt;
  absl::StatusOr<NodeTypes> in = ArgTypes(op, op.inputs(), all, kMaxNodeArity);
  absl::StatusOr<NodeTypes> out = ArgTypes(op, op.outputs(), all, max_outputs);
  if (!in.ok() || !out.ok() || in->size() != inputs.size()) return std::nullopt;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const DataType given = inputs[k].node->output_type(inputs[k].index);
    if (given != DT_INVALID && !AcceptsType((*in)[k], given)) return std::nullopt;
  }
  return SignatureTypes{*std::move(in), *std::move(out)};
}

}  // namespace weir
