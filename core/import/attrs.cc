#include "weir/core/import/attrs.h"

#include "absl/strings/strip.h"
#include "weir/core/graph/signature.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/graph.pb.h"

namespace weir {

namespace {

constexpr absl::string_view kColocationAttr = "_class";
constexpr absl::string_view kColocationPrefix = "loc:@";
constexpr absl::string_view kConstValueAttr = "value";
constexpr absl::string_view kValueErrorAttr = "_value_error";

// The only op that import knows by name. As in TensorFlow, a constant with damaged bytes fails the
// steps that need it, not the import; that takes a kernel that looks for `_value_error`.
bool IsConst(const OpSpec& op) { return op.name() == "Const"; }

}  // namespace

absl::StatusOr<AttrMap> ImportAttrs(const proto::NodeDef& def, const OpSpec& op, int64_t* budget,
                                    std::string* unknown) {
  AttrMap attrs;
  attrs.reserve(def.attr_size() + 1);
  std::string value_error;
  for (const auto* const attribute : SortedAttrs(def.attr())) {
    const auto& [name, value] = *attribute;
    if (name == kOutputShapesAttr) continue;
    absl::StatusOr<AttrValue> attr = AttrFromProto(value, budget);
    if (absl::IsInvalidArgument(attr.status()) && name == kConstValueAttr && value.has_tensor() &&
        IsConst(op)) {
      value_error = std::string(attr.status().message());
      attr = AttrValue(Tensor());
    }
    if (!attr.ok()) return Annotate(attr.status(), absl::StrCat("attr '", name, "'"));
    attrs.emplace(name, *std::move(attr));
  }
  if (!value_error.empty()) attrs.emplace(kValueErrorAttr, value_error);
  WEIR_RETURN_IF_ERROR(CompleteAttrs(op, &attrs, unknown));
  return attrs;
}

AttrMap ReadableAttrs(const proto::NodeDef& def, int64_t* budget) {
  AttrMap attrs;
  for (const auto* const attribute : SortedAttrs(def.attr())) {
    const auto& [name, value] = *attribute;
    if (name == kOutputShapesAttr) continue;
    absl::StatusOr<AttrValue> attr = AttrFromProto(value, budget);
    if (attr.ok()) attrs.emplace(name, *std::move(attr));
  }
  return attrs;
}

bool HasDamagedValue(const Node& node) {
  const AttrValue* value = IsConst(node.op()) ? node.FindAttr(kConstValueAttr) : nullptr;
  const Tensor* tensor = value == nullptr ? nullptr : value->get_if<Tensor>();
  return tensor != nullptr && !tensor->initialized();
}

absl::Status PrefixColocations(absl::string_view node, absl::string_view prefix,
                               const NodePositions& positions, const Graph& graph, AttrMap* attrs) {
  const auto found = attrs->find(kColocationAttr);
  if (found == attrs->end()) return absl::OkStatus();
  const auto* given = found->second.get_if<std::vector<std::string>>();
  if (given == nullptr) return absl::OkStatus();
  std::vector<std::string> marks = *given;
  for (std::string& text : marks) {
    absl::string_view other = text;
    if (!absl::ConsumePrefix(&other, kColocationPrefix)) continue;
    const bool is_here = positions.contains(other);
    if (!is_here && prefix.empty() && graph.FindNode(other) != nullptr) continue;
    if (!is_here) {
      return InvalidArgument("Node '", node, "' expects to be colocated with unknown node '", other,
                             "'");
    }
    text = absl::StrCat(kColocationPrefix, prefix, other);
  }
  attrs->insert_or_assign(kColocationAttr, AttrValue(std::move(marks)));
  return absl::OkStatus();
}

}  // namespace weir
