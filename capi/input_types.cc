#include "weir/capi/input_types.h"

#include "absl/strings/str_join.h"
#include "weir/core/graph/signature.h"

namespace weir::capi {

namespace {

class InputChecker {
 public:
  InputChecker(const TF_OperationDescription& desc, const OpSpec& op) : desc_(desc), op_(op) {}

  absl::Status Check(const std::vector<Outputs>& inputs) {
    const size_t count = inputs.size(), wanted = op_.inputs().size();
    for (size_t i = 0; i < count; ++i) {
      if (i >= wanted) {
        Add("More Input() calls than the ", wanted, " input_args");
      } else if (desc_.arguments[i].is_list) {
        CheckList(op_.inputs()[i], inputs[i]);
      } else {
        CheckSingle(op_.inputs()[i], inputs[i][0]);
      }
    }
    if (count < wanted) Add(count, " inputs specified of ", wanted, " inputs in Op");
    if (mistakes_.empty()) return absl::OkStatus();
    const std::string where =
        absl::StrCat(" while building NodeDef '", desc_.name, "' using ", Summary(op_));
    if (mistakes_.size() == 1) return InvalidArgument(mistakes_[0], where);
    return InvalidArgument(mistakes_.size(), " errors", where, ":\n",
                           absl::StrJoin(mistakes_, "\n"));
  }

 private:
  template <class... Parts>
  void Add(const Parts&... parts) {
    mistakes_.push_back(absl::StrCat(parts...));
  }

  void CheckSingle(const ArgSpec& arg, const Output& input) {
    if (IsListArg(arg)) return Add("Single tensor passed to '", arg.name, "', expected list");
    CheckType(arg, arg.type, input);
    if (!arg.type_attr.empty()) Deduce(arg.type_attr, input.dtype());
  }

  void CheckList(const ArgSpec& arg, const Outputs& inputs) {
    if (!IsListArg(arg))
      return Add("List provided to input '", arg.name, "' when single Tensor expected");
    if (!arg.number_attr.empty()) Deduce(arg.number_attr, static_cast<int64_t>(inputs.size()));
    DataType type = arg.type;
    if (!arg.type_attr.empty() && !inputs.empty()) {
      type = inputs[0].dtype();
      Deduce(arg.type_attr, type);
    }
    for (const Output& input : inputs) CheckType(arg, type, input);
  }

  // Checks one tensor of an argument of this type, DT_INVALID for any.
  void CheckType(const ArgSpec& arg, DataType type, const Output& input) {
    const DataType given = input.node->output_type(input.index);
    if (arg.is_ref && !IsRef(given) && type == DT_INVALID)
      return Add("Input '", arg.name, "' passed ", DataTypeName(given), " expected ref type");
    const DataType wanted = arg.is_ref ? MakeRef(type) : type;
    if (type == DT_INVALID || given == wanted || BaseType(given) == wanted) return;
    Add("Input '", arg.name, "' passed ", DataTypeName(given), " expected ", DataTypeName(wanted));
  }

  // Takes the value of an attribute that an argument determines.
  template <class T>
  void Deduce(const std::string& attr, T value) {
    const AttrValue deduced(value);
    const auto given = desc_.attrs.find(attr);
    const AttrValue& known = given == desc_.attrs.end()
                                 ? deduced_.try_emplace(attr, deduced).first->second
                                 : given->second;
    if (known == deduced) return;
    Add("Inconsistent values for attr '", attr, "' ", known.ToString(), " vs. ",
        deduced.ToString());
  }

  const TF_OperationDescription& desc_;
  const OpSpec& op_;
  std::map<std::string, AttrValue> deduced_;
  std::vector<std::string> mistakes_;
};

}  // namespace

absl::Status CheckInputs(const TF_OperationDescription& desc, const OpSpec& op,
                         const std::vector<Outputs>& inputs) {
  return InputChecker(desc, op).Check(inputs);
}

}  // namespace weir::capi
