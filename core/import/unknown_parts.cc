#include "weir/core/import/unknown_parts.h"

#include <cstdio>

#include "absl/strings/match.h"
#include "weir/core/graph/unknown_op.h"
#include "weir/proto/graph.pb.h"

namespace weir {

absl::Status UnknownPartsChecker::AddOp(const std::string& op) const {
  // Python functions are ops of TensorFlow too.
  if (unknown_ != UnknownParts::kReject || ClientOps().Find(op) != nullptr) return absl::OkStatus();
  return ops_.Lookup(op).status();
}

absl::Status UnknownPartsChecker::AddAttr(const OpSpec& op, const std::string& name) {
  if (unknown_ == UnknownParts::kReject)
    return InvalidArgument("NodeDef mentions attr '", name, "' not in Op<", op.Signature(), ">");
  if (num_attrs_++ == 0) first_attr_ = absl::StrCat("'", name, "' of ", op.name());
  return absl::OkStatus();
}

absl::Status UnknownPartsChecker::CheckFunctions(const proto::FunctionDefLibrary& library,
                                                 const FunctionLibrary& known) {
  if (unknown_ == UnknownParts::kKeepQuietly) return absl::OkStatus();
  for (const proto::FunctionDef& function : library.function()) {
    for (const proto::NodeDef& node : function.node_def()) {
      const OpSpec* const op = ops_.Find(node.op());
      absl::Status status;
      if (op == nullptr && known.FindDef(node.op()) == nullptr) status = AddOp(node.op());
      for (const auto& [name, value] : node.attr()) {
        if (op == nullptr || absl::StartsWith(name, "_") || op->FindAttr(name) != nullptr) continue;
        status.Update(AddAttr(*op, name));
      }
      if (!status.ok()) {
        return Annotate(status, absl::StrCat("Function '", function.signature().name(), "', node '",
                                             node.name(), "' (", node.op(), ")"));
      }
    }
  }
  return absl::OkStatus();
}

void UnknownPartsChecker::Log() const {
  if (num_attrs_ == 0 || unknown_ != UnknownParts::kKeep) return;
  std::fprintf(stderr,
               "weir: kept %lld attributes that this program does not know, which have no effect; "
               "the first is %s\n",
               static_cast<long long>(num_attrs_), first_attr_.c_str());
}

}  // namespace weir
