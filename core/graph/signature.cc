#include "weir/core/graph/signature.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace weir {

namespace {

template <class T>
const T* FindAs(const AttrMap& attrs, absl::string_view name) {
  const auto it = attrs.find(name);
  return it == attrs.end() ? nullptr : it->second.get_if<T>();
}

}  // namespace

int64_t ArgLength(const ArgSpec& arg, const AttrMap& attrs) {
  if (!arg.number_attr.empty()) {
    const int64_t* n = FindAs<int64_t>(attrs, arg.number_attr);
    return n == nullptr ? 0 : *n;
  }
  if (!arg.type_list_attr.empty()) {
    const DataTypes* types = FindAs<DataTypes>(attrs, arg.type_list_attr);
    return types == nullptr ? 0 : static_cast<int64_t>(types->size());
  }
  return 1;
}

absl::Status CompleteAttrs(const OpSpec& op, AttrMap* attrs, std::string* unknown) {
  size_t own = 0;
  for (const AttrSpec& spec : op.attrs()) {
    const auto it = attrs->find(spec.name);
    if (it != attrs->end()) {
      WEIR_RETURN_IF_ERROR(spec.Check(it->second));
    } else if (spec.default_value) {
      attrs->emplace(spec.name, *spec.default_value);
    } else {
      return InvalidArgument("NodeDef missing attr '", spec.name, "' from Op<", op.Signature(),
                             ">");
    }
    ++own;
  }
  if (attrs->size() == own) return absl::OkStatus();
  for (const auto& [name, value] : *attrs) {
    if (!absl::StartsWith(name, "_") && op.FindAttr(name) == nullptr) {
      if (unknown != nullptr) {
        *unknown = std::string(name);
        break;
      }
      return InvalidArgument("NodeDef mentions attr '", name, "' not in Op<", op.Signature(), ">");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<NodeTypes> ArgTypes(const OpSpec& op, absl::Span<const ArgSpec> args,
                                   const AttrMap& attrs, int64_t limit) {
  NodeTypes types;
  for (const ArgSpec& arg : args) {
    const int64_t length = ArgLength(arg, attrs);
    if (length < 0 || length > limit - static_cast<int64_t>(types.size())) {
      return InvalidArgument("Value for number_attr '", arg.number_attr, "' of ", length,
                             " is not a possible length of argument '", arg.name, "' of Op<",
                             op.Signature(), ">");
    }
    const size_t begin = types.size();
    if (!arg.type_list_attr.empty()) {
      if (const DataTypes* list = FindAs<DataTypes>(attrs, arg.type_list_attr)) {
        types.insert(types.end(), list->begin(), list->end());
      }
    } else {
      const DataType* named = FindAs<DataType>(attrs, arg.type_attr);
      types.insert(types.end(), length, named != nullptr ? *named : arg.type);
    }
    for (size_t i = begin; i < types.size(); ++i) {
      if (!IsKnown(types[i])) {
        return InvalidArgument("Argument '", arg.name, "' of Op<", op.Signature(), "> has type ",
                               DataTypeName(types[i]));
      }
      if (arg.is_ref) types[i] = MakeRef(types[i]);
    }
  }
  return types;
}

bool IsFirstNodeNameChar(char c) { return absl::ascii_isalnum(c) || c == '.'; }
bool IsNodeNameChar(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '\\' || c == '/' || c == '>' ||
         c == '-';
}

bool IsNodeName(absl::string_view name) {
  return !name.empty() && IsFirstNodeNameChar(name[0]) &&
         std::all_of(name.begin(), name.end(), IsNodeNameChar);
}

}  // namespace weir
