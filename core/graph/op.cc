#include "weir/core/graph/op.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weir/core/graph/closest_names.h"
#include "weir/core/graph/families.h"

namespace weir {

namespace {

[[noreturn]] void Die(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

// Parses "x: T", "x: N * T", "x: Ref(T)", "x: float". A name that is not a type is resolved when
// the record is complete (ResolveArg), because attributes may be declared after the arguments that
// use them.
absl::StatusOr<ArgSpec> ParseArg(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  ArgSpec arg;
  arg.name = std::string(absl::StripAsciiWhitespace(parts.first));
  absl::string_view type = absl::StripAsciiWhitespace(parts.second);
  if (arg.name.empty() || type.empty())
    return InvalidArgument("Bad argument \"", text, "\": expected '<name>: <type>'");
  if (absl::ConsumePrefix(&type, "Ref(")) {
    if (!absl::ConsumeSuffix(&type, ")"))
      return InvalidArgument("Bad argument \"", text, "\": expected ')'");
    arg.is_ref = true;
  }
  if (const size_t star = type.find('*'); star != absl::string_view::npos) {
    arg.number_attr = std::string(absl::StripAsciiWhitespace(type.substr(0, star)));
    type = type.substr(star + 1);
  }
  type = absl::StripAsciiWhitespace(type);
  arg.type = DataTypeFromName(type);
  if (arg.type == DT_INVALID) arg.type_attr = std::string(type);
  return arg;
}

// Checks the attributes that an argument names, and distinguishes types from lists of types.
absl::Status ResolveArg(const OpSpec& op, ArgSpec* arg) {
  if (!arg->number_attr.empty()) {
    const AttrSpec* number = op.FindAttr(arg->number_attr);
    if (number == nullptr || number->kind != AttrSpec::Kind::kInt || number->is_list) {
      return InvalidArgument("Argument '", arg->name, "' needs an int attribute '",
                             arg->number_attr, "'");
    }
  }
  if (arg->type_attr.empty()) return absl::OkStatus();
  const AttrSpec* type = op.FindAttr(arg->type_attr);
  if (type == nullptr || type->kind != AttrSpec::Kind::kType) {
    return InvalidArgument("Argument '", arg->name, "' needs a type attribute '", arg->type_attr,
                           "'");
  }
  if (!type->is_list) return absl::OkStatus();
  if (!arg->number_attr.empty()) {
    return InvalidArgument("Argument '", arg->name, "' has a number and a list of types");
  }
  arg->type_list_attr = std::exchange(arg->type_attr, "");
  return absl::OkStatus();
}

std::string ArgText(const ArgSpec& arg) {
  std::string type = !arg.type_list_attr.empty() ? arg.type_list_attr
                     : !arg.type_attr.empty()    ? arg.type_attr
                                                 : DataTypeName(arg.type);
  if (!arg.number_attr.empty()) type = absl::StrCat(arg.number_attr, " * ", type);
  if (arg.is_ref) type = absl::StrCat("Ref(", type, ")");
  return absl::StrCat(arg.name, ": ", type);
}

std::string ArgsText(const std::vector<ArgSpec>& args) {
  return absl::StrJoin(args, ", ", [](std::string* out, const ArgSpec& a) { *out += ArgText(a); });
}

std::string AttrText(const AttrSpec& attr) {
  std::string allowed;
  if (!attr.allowed_types.empty()) {
    allowed = absl::StrJoin(attr.allowed_types, ", ",
                            [](std::string* out, DataType t) { *out += DataTypeName(t); });
  } else if (!attr.allowed_strings.empty()) {
    allowed = absl::StrCat("'", absl::StrJoin(attr.allowed_strings, "', '"), "'");
  }
  std::string type = attr.TypeName();
  if (!allowed.empty())
    type = attr.is_list ? absl::StrCat("list({", allowed, "})") : absl::StrCat("{", allowed, "}");
  std::string text = absl::StrCat(attr.name, ": ", type);
  if (attr.minimum) absl::StrAppend(&text, " >= ", *attr.minimum);
  if (attr.default_value) absl::StrAppend(&text, " = ", attr.default_value->ToString());
  return text;
}

std::string HostName() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "this machine";
}

// Passes rely on the inputs that a trait is about.
absl::Status CheckTraits(const OpSpec& op) {
  const OpTraits& traits = op.traits();
  const size_t inputs = op.inputs().size(), outputs = op.outputs().size();
  if (traits.neutral && inputs != 2)
    return InvalidArgument("An op with a neutral element has two inputs, not ", inputs);
  if (traits.involution && (inputs != 1 || outputs != 1))
    return InvalidArgument("An involution has one input and one output");
  if (traits.movement == Movement::kIdentity && inputs < outputs)
    return InvalidArgument("Each output of an identity is an input, but there are ", outputs,
                           " outputs and ", inputs, " inputs");
  if (traits.identity_if_same_shape && inputs == 0)
    return InvalidArgument("An op that may be an identity has an input");
  if (traits.repeated_input >= static_cast<int>(inputs))
    return InvalidArgument("Input ", static_cast<int>(traits.repeated_input),
                           " is repeated, but there are ", inputs, " inputs");
  return absl::OkStatus();
}

}  // namespace

void OpSpec::ParseArgs(absl::string_view text, std::vector<ArgSpec>* out) {
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    absl::StatusOr<ArgSpec> arg = ParseArg(part);
    if (arg.ok()) {
      out->push_back(*std::move(arg));
    } else {
      status_.Update(arg.status());
    }
  }
}

OpSpec::OpSpec(absl::string_view name) : name_(name) {}
OpSpec::~OpSpec() = default;
OpSpec::OpSpec(const OpSpec& other) = default;
OpSpec::OpSpec(OpSpec&& other) noexcept = default;

OpSpec& OpSpec::In(absl::string_view args) {
  ParseArgs(args, &inputs_);
  return *this;
}

OpSpec& OpSpec::Out(absl::string_view args) {
  ParseArgs(args, &outputs_);
  return *this;
}

OpSpec& OpSpec::Attr(absl::string_view attr) {
  absl::StatusOr<AttrSpec> spec = AttrSpec::Parse(attr);
  if (spec.ok()) {
    attrs_.push_back(*std::move(spec));
  } else {
    status_.Update(spec.status());
  }
  return *this;
}

OpSpec& OpSpec::Stateful() {
  stateful_ = true;
  return *this;
}

OpSpec& OpSpec::Commutative() {
  commutative_ = true;
  return *this;
}

OpSpec& OpSpec::Function() {
  is_function_ = true;
  return *this;
}

OpSpec& OpSpec::Aggregate() {
  aggregate_ = true;
  return *this;
}

OpSpec& OpSpec::AllowsUninitializedInput() {
  allows_uninitialized_input_ = true;
  return *this;
}

OpSpec& OpSpec::Deprecated(int version, absl::string_view explanation) {
  deprecated_version_ = version;
  deprecation_ = std::string(explanation);
  return *this;
}

OpSpec& OpSpec::Moves(Movement movement) {
  traits_.movement = movement;
  return *this;
}

OpSpec& OpSpec::Elementwise() {
  traits_.elementwise = true;
  return *this;
}

OpSpec& OpSpec::Reduction() {
  traits_.reduction = true;
  return *this;
}

OpSpec& OpSpec::Involution() {
  traits_.involution = true;
  return *this;
}

OpSpec& OpSpec::Neutral(NeutralElement element) {
  traits_.neutral = element;
  return *this;
}

OpSpec& OpSpec::IdentityIfSameShape() {
  traits_.identity_if_same_shape = true;
  return *this;
}

OpSpec& OpSpec::Repeats(int input) {
  traits_.repeated_input = static_cast<int8_t>(input);
  return *this;
}

OpSpec& OpSpec::IsPlaceholder() {
  traits_.placeholder = true;
  return *this;
}

OpSpec& OpSpec::Flow(ControlFlow kind) {
  traits_.control_flow = kind;
  return *this;
}

OpSpec& OpSpec::Has(Effect effect) {
  traits_.effect = effect;
  return *this;
}

OpSpec& OpSpec::CrossesTasks() {
  traits_.crosses_tasks = true;
  return *this;
}

OpSpec& OpSpec::Waits(WaitsFor what) {
  traits_.waits = what;
  return *this;
}

OpSpec& OpSpec::Uses(VariableUse use) {
  traits_.variable_use = use;
  return *this;
}

OpSpec& OpSpec::Rows(RowRule rule) {
  traits_.rows = rule;
  return *this;
}

OpSpec& OpSpec::Uses(ContainerUse use) {
  traits_.container = use;
  return *this;
}

OpSpec& OpSpec::Calls(const FunctionCalls* calls) {
  traits_.calls = calls;
  return *this;
}

OpSpec& OpSpec::Flops(CostFn flops) {
  traits_.flops = flops;
  return *this;
}

OpSpec& OpSpec::Bytes(CostFn bytes) {
  traits_.bytes = bytes;
  return *this;
}

OpSpec& OpSpec::ShapeValue(ShapeValueFn fn) {
  traits_.shape_value = fn;
  return *this;
}

OpSpec& OpSpec::InferShape(ShapeFn fn) {
  shape_fn_ = std::move(fn);
  return *this;
}

OpSpec& OpSpec::Gradient(GradientFn fn) {
  gradient_fn_ = std::move(fn);
  return *this;
}

OpSpec& OpSpec::NotDifferentiable() {
  not_differentiable_ = true;
  return *this;
}

OpSpec& OpSpec::Doc(absl::string_view text) {
  doc_ = std::string(text);
  return *this;
}

const AttrSpec* OpSpec::FindAttr(absl::string_view name) const {
  for (const AttrSpec& attr : attrs_) {
    if (attr.name == name) return &attr;
  }
  return nullptr;
}

std::string OpSpec::Signature() const {
  std::string text = absl::StrCat(name_, "(", ArgsText(inputs_), ") -> (", ArgsText(outputs_), ")");
  for (const AttrSpec& attr : attrs_) absl::StrAppend(&text, "; ", AttrText(attr));
  return text;
}

const absl::Status& OpSpec::Resolve() {
  absl::flat_hash_set<absl::string_view> names;
  for (const AttrSpec& attr : attrs_) {
    if (!names.insert(attr.name).second) {
      status_.Update(InvalidArgument("Attribute '", attr.name, "' is declared twice"));
    }
  }
  for (ArgSpec& arg : inputs_) status_.Update(ResolveArg(*this, &arg));
  for (ArgSpec& arg : outputs_) status_.Update(ResolveArg(*this, &arg));
  status_.Update(CheckTraits(*this));
  return status_;
}

OpRegistry::OpRegistry(const OpRegistry* base) : base_(base) {}
OpRegistry::OpRegistry(std::unique_ptr<const Families<OpRegistry>> families)
    : base_(nullptr), families_(std::move(families)) {}
OpRegistry::~OpRegistry() = default;

void OpRegistry::Add(OpSpec spec) {
  std::string name = spec.name();
  absl::Status status = spec.Resolve();
  if (Find(name) != nullptr) status.Update(AlreadyExists("It is already registered"));
  if (!status.ok()) Die(Annotate(status, absl::StrCat("OpRegistry::Add: op '", name, "'")));
  ops_.emplace(std::move(name), std::make_unique<const OpSpec>(std::move(spec)));
}

const OpSpec* OpRegistry::Find(absl::string_view name) const {
  const auto it = ops_.empty() ? ops_.end() : ops_.find(name);  // hashes the name once
  if (it != ops_.end()) return it->second.get();
  const OpSpec* found = nullptr;
  if (families_ != nullptr) {
    families_->ForEachWith(name, [&](const OpRegistry& family) {
      found = family.Find(name);
      return found != nullptr;
    });
  }
  const OpRegistry* const below = base();
  return found != nullptr || below == nullptr ? found : below->Find(name);
}

const OpTraits& OpRegistry::TraitsOf(absl::string_view name) const {
  static const OpTraits* const none = new OpTraits;
  const OpSpec* const spec = Find(name);
  return spec == nullptr ? *none : spec->traits();
}

absl::StatusOr<const OpSpec*> OpRegistry::Lookup(absl::string_view name) const {
  if (const OpSpec* spec = Find(name)) return spec;
  constexpr size_t kMaxNameLength = 100;
  std::vector<std::string> names;
  for (const OpSpec* spec : All()) names.push_back(spec->name());
  const std::vector<std::string> close = ClosestNames(name, names);
  const std::string hint =
      close.empty() ? "" : absl::StrCat(" Did you mean '", absl::StrJoin(close, "' or '"), "'?");
  return NotFound("Op type not registered '", name.substr(0, kMaxNameLength),
                  "' in binary running on ", HostName(), ".", hint);
}

std::vector<const OpSpec*> OpRegistry::All() const {
  std::vector<const OpSpec*> all;
  const auto add = [&](const OpRegistry& registry) {
    for (const auto& [name, spec] : registry.ops_) all.push_back(spec.get());
  };
  for (const OpRegistry* registry = this; registry != nullptr; registry = registry->base()) {
    add(*registry);
    if (registry->families_ == nullptr) continue;
    for (const OpRegistry* family : registry->families_->All()) add(*family);
  }
  std::sort(all.begin(), all.end(),
            [](const OpSpec* a, const OpSpec* b) { return a->name() < b->name(); });
  return all;
}

}  // namespace weir
