#include "absl/strings/str_join.h"
#include "weir/capi/objects.h"

// Ops as TensorFlow's messages have them.

namespace weir::capi {

std::string Summary(const OpSpec& op, absl::string_view name, const AttrMap& attrs,
                    absl::Span<const Output> inputs) {
  const std::string given =
      absl::StrJoin(attrs, ", ", [](std::string* out, const AttrMap::value_type& attr) {
        absl::StrAppend(out, attr.first, "=", attr.second.ToString());
      });
  const std::string from = absl::StrJoin(inputs, ", ", [](std::string* out, const Output& input) {
    *out += input.index == 0 ? input.node->name() : input.name();
  });
  return absl::StrCat("{{node ", name, "}} = ", op.name(), "[", given, "](", from, ")");
}

namespace {

std::string ArgsText(const std::vector<ArgSpec>& args) {
  return absl::StrJoin(args, ", ", [](std::string* out, const ArgSpec& arg) {
    const std::string number = arg.number_attr.empty() ? "" : arg.number_attr + "*";
    std::string type = arg.type_attr.empty() ? arg.type_list_attr : arg.type_attr;
    if (arg.type != DT_INVALID) type = DataTypeName(arg.type);
    absl::StrAppend(out, arg.name, ":", arg.is_ref ? "Ref(" : "", number, type,
                    arg.is_ref ? ")" : "");
  });
}

std::string AttrText(const AttrSpec& attr) {
  std::string text = absl::StrCat("; attr=", attr.name, ":", attr.TypeName());
  if (attr.default_value) absl::StrAppend(&text, ",default=", attr.default_value->ToString());
  if (attr.minimum) absl::StrAppend(&text, ",min=", *attr.minimum);
  if (!attr.allowed_types.empty())
    absl::StrAppend(&text, ",allowed=", AttrValue(attr.allowed_types).ToString());
  if (!attr.allowed_strings.empty())
    absl::StrAppend(&text, ",allowed=", AttrValue(attr.allowed_strings).ToString());
  return text;
}

}  // namespace

std::string Summary(const OpSpec& op) {
  std::string text = absl::StrCat("Op<name=", op.name(), "; signature=", ArgsText(op.inputs()),
                                  " -> ", ArgsText(op.outputs()));
  for (const AttrSpec& attr : op.attrs()) text += AttrText(attr);
  if (op.commutative()) text += "; is_commutative=true";
  if (op.aggregate()) text += "; is_aggregate=true";
  if (op.stateful()) text += "; is_stateful=true";
  if (op.allows_uninitialized_input()) text += "; allows_uninitialized_input=true";
  return text + ">";
}

}  // namespace weir::capi
