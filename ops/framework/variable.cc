#include "weir/ops/framework/variable.h"

#include <cstdio>

#include "absl/strings/str_join.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/flow_context.h"
#include "weir/ops/framework/mirrored_variable.h"
#include "weir/ops/framework/partitioned_variable.h"
#include "weir/ops/framework/variable_store.h"
#include "weir/ops/lib/collections.h"
#include "weir/ops/lib/math.h"

namespace weir {

PlaceWith::PlaceWith(Graph& graph, const Node* node, bool ignore_existing) : ContextScope(graph) {
  Graph::Context& context = graph.context();
  context.devices.clear();
  if (ignore_existing) context.colocations.clear();
  if (node == nullptr) return;
  std::erase_if(context.attrs, [](const auto& attr) { return attr.first == "_class"; });
  std::vector<std::string> names = node->colocations();
  if (names.empty()) names.push_back(node->name());
  for (const std::string& name : names) context.colocations.push_back(absl::StrCat("loc:@", name));
}

namespace {

std::vector<std::string> LocationOf(absl::string_view op_name) {
  return {absl::StrCat("loc:@", op_name)};
}

// Creates a variable step by step. Each step returns false and records the error in `g` if it
// fails.
class VariableBuilder {
 public:
  VariableBuilder(Graph& g, const Initializer& initial_value, const VariableOptions& options)
      : g_(g),
        initial_value_(initial_value),
        o_(options),
        info_(std::make_shared<VariableInfo>()) {}

  Variable Make() {
    if (!CheckOptions()) return {};
    if (initial_value_.kind() == Initializer::Kind::kTensor &&
        !initial_value_.tensor().is_literal() && IsInFlow(initial_value_.tensor().output())) {
      Fail(
          "the initial value is built in a branch or a loop, which may not run when the variable "
          "is initialized; pass a callable that builds it");
      return {};
    }
    const OutsideFlow outside(g_);
    const ClearControlDependencies no_controls(g_);
    const bool was_ok = g_.status().ok();
    const NameScope scope(g_, o_.name.empty() ? "Variable" : o_.name);
    if (was_ok && !g_.status().ok()) return {};  // invalid name
    scope_ = scope.name();
    info_->op = scope_.substr(0, scope_.size() - 1);
    info_->is_resource = o_.use_resource.value_or(g_.options().use_resource);
    if (!MakeInitialValue() || !ResolveShape() || !MakeStorage()) return {};
    if (!(info_->is_resource ? FinishResource() : FinishRef())) return {};
    VariableStore::Of(g_).by_storage[info_->handle.node] = info_;
    std::shared_ptr<CollectionObject> item = info_;
    g_.AddToCollections(collections_, item);
    return Variable(info_);
  }

 private:
  // Records the error and returns false.
  bool Fail(absl::string_view why) {
    const std::string asked_for =
        absl::StrCat(g_.name_scope(), o_.name.empty() ? "Variable" : o_.name);
    g_.Fail(InvalidArgument("Variable '", info_->op.empty() ? asked_for : info_->op, "': ", why));
    return false;
  }

  bool CheckOptions();
  bool MakeInitialValue();
  bool ResolveShape();
  bool MakeStorage();
  bool FinishRef();
  bool FinishResource();

  Graph& g_;
  const Initializer& initial_value_;
  const VariableOptions& o_;
  std::shared_ptr<VariableInfo> info_;
  std::vector<std::string> collections_;
  std::string scope_;  // "a/w/"
};

bool VariableBuilder::CheckOptions() {
  if (!initial_value_) {
    return Fail("initial_value must be specified; a variable needs one, or a VariableDef");
  }
  const int synchronization = static_cast<int>(o_.synchronization),
            aggregation = static_cast<int>(o_.aggregation);
  if (synchronization < 0 || synchronization > 3) {
    return Fail(absl::StrCat("Invalid variable synchronization mode: ", synchronization));
  }
  if (aggregation < 0 || aggregation > 3) {
    return Fail(absl::StrCat("Invalid variable aggregation mode: ", aggregation));
  }
  const bool on_read = o_.synchronization == VariableSynchronization::kOnRead;
  if (on_read && o_.trainable.value_or(false)) {
    return Fail("Synchronization value can be set to kOnRead only for non-trainable variables");
  }
  info_->trainable = o_.trainable.value_or(!on_read);
  info_->synchronization = o_.synchronization;
  info_->aggregation = o_.aggregation;
  info_->constraint = o_.constraint;
  info_->validate_shape = o_.validate_shape;
  info_->caching_device = o_.caching_device;
  collections_ = o_.collections.value_or(std::vector<std::string>{collections::kGlobalVariables});
  if (info_->trainable) {
    if (collections_ == std::vector<std::string>{collections::kLocalVariables}) {
      std::fprintf(stderr,
                   "weir: variable '%s' is trainable, but only in the collection local_variables\n",
                   o_.name.c_str());
    }
    collections_.push_back(collections::kTrainableVariables);
  }
  return true;
}

// The nodes built here are colocated with the variable, which does not exist yet, so they receive
// the colocation as an attribute. A plain tensor is used unchanged. A literal of a ref variable
// becomes "w/initial_value", without the attribute, as in TensorFlow.
bool VariableBuilder::MakeInitialValue() {
  Output& value = info_->initial_value;
  const bool callable = initial_value_.kind() != Initializer::Kind::kTensor;
  if (!callable && !info_->is_resource) {
    value = initial_value_.tensor().In(g_, o_.dtype, "initial_value");
  } else {
    const AttrScope mark(g_, "_class", LocationOf(info_->op));
    const NameScope inner(g_, "Initializer");
    const DeviceScope anywhere(g_, "");
    if (initial_value_.kind() == Initializer::Kind::kCallable) {
      value = TensorArg(initial_value_.callable()()).In(g_, o_.dtype);
    } else if (initial_value_.kind() == Initializer::Kind::kShaped) {
      if (!o_.shape) {
        return Fail("the initializer requires a shape: set options.shape, or pass a tensor");
      }
      const DataType dtype = o_.dtype == DT_INVALID ? DT_FLOAT : o_.dtype;
      value = initial_value_.shaped()({g_, *o_.shape, dtype});
    } else {
      value = initial_value_.tensor().In(g_, o_.dtype, "initial_value");
    }
  }
  if (!value.valid()) {
    if (g_.status().ok()) Fail("the initializer returned an invalid tensor");
    return false;
  }
  info_->dtype = value.dtype();
  return true;
}

bool VariableBuilder::ResolveShape() {
  const Shape& given = info_->initial_value.shape();
  if (o_.shape) {
    if (!o_.shape->IsCompatibleWith(given)) {
      return Fail(absl::StrCat("the initial value's shape ", given.ToString(),
                               " is not compatible with the explicitly supplied `shape` argument ",
                               o_.shape->ToString()));
    }
    info_->shape = *o_.shape;
  } else {
    info_->shape = info_->is_resource || o_.validate_shape ? given : Shape::UnknownRank();
  }
  if (o_.validate_shape && !info_->is_resource && !given.IsFullyDefined()) {
    return Fail(absl::StrCat(
        "initial_value must have a shape specified: ", info_->initial_value.name(), " has shape ",
        given.ToString(), "; give it a static shape, or set validate_shape to false"));
  }
  return true;
}

bool VariableBuilder::MakeStorage() {
  std::optional<AttrScope> mark;
  if (info_->is_resource || initial_value_.kind() != Initializer::Kind::kTensor) {
    mark.emplace(g_, "_class", LocationOf(info_->op));
  }
  Attrs attrs = {{"dtype", info_->dtype}, {"shape", info_->shape}};
  if (info_->is_resource) {
    attrs.emplace_back("shared_name", info_->op);
    attrs.emplace_back("debug_name", scope_);
  }
  Node* node = AddNode(g_, info_->is_resource ? "VarHandleOp" : "VariableV2", {}, attrs, scope_);
  if (node == nullptr) return false;
  info_->handle = node->output();
  return true;
}

bool VariableBuilder::FinishRef() {
  Node* storage = info_->handle.node;
  const Output start = GuardInitialValue(info_->initial_value, scope_);
  if (!start.valid()) return false;
  {
    const PlaceWith place(g_, storage);
    info_->initializer =
        AddNode("Assign", {info_->handle, start}, {{"validate_shape", o_.validate_shape}});
  }
  if (o_.caching_device) {
    const DeviceScope cache(g_, *o_.caching_device);
    info_->snapshot = AddOp("Identity", {info_->handle}, {}, "read");
    info_->cached = true;
  } else {
    const PlaceWith place(g_, storage);
    info_->snapshot = AddOp("Identity", {info_->handle}, {}, "read");
  }
  return info_->initializer.valid() && info_->snapshot.valid();
}

bool VariableBuilder::FinishResource() {
  Node* storage = info_->handle.node;
  {
    const NameScope inner(g_, "IsInitialized");
    AddOp("VarIsInitializedOp", {info_->handle});
  }
  const Output start = GuardInitialValue(info_->initial_value, scope_);
  if (!start.valid()) return false;
  {
    const PlaceWith nothing(g_, nullptr, true);
    info_->initializer = NodeBuilder(g_, "AssignVariableOp")
                             .Name("Assign")
                             .Input(info_->handle)
                             .Input(start)
                             .Device(storage->device())
                             .Build();
  }
  const NameScope inner(g_, "Read");
  info_->snapshot = NodeBuilder(g_, "ReadVariableOp")
                        .Input(info_->handle)
                        .Attr("dtype", info_->dtype)
                        .Device(storage->device())
                        .BuildOutput();
  if (o_.caching_device && info_->snapshot.valid()) {
    const PlaceWith nothing(g_, nullptr, true);
    const DeviceScope cache(g_, *o_.caching_device);
    info_->snapshot = AddOp("Identity", {info_->snapshot});
    info_->cached = true;
  }
  return info_->initializer.valid() && info_->snapshot.valid();
}

}  // namespace

Variable MakeVariable(Graph& graph, const Initializer& initial_value,
                      const VariableOptions& options) {
  // Creators are called from the innermost to the outermost; the last step creates the variable.
  const std::vector<VariableCreator> creators = VariableStore::ScopesOf(graph).creators;
  if (creators.empty()) return VariableBuilder(graph, initial_value, options).Make();
  std::function<Variable(size_t, Graph&, const Initializer&, const VariableOptions&)> ask =
      [&](size_t left, Graph& g, const Initializer& value, const VariableOptions& o) -> Variable {
    if (left == 0) return VariableBuilder(g, value, o).Make();
    const VariableMaker next = [&ask, left](Graph& g2, const Initializer& v2,
                                            const VariableOptions& o2) {
      return ask(left - 1, g2, v2, o2);
    };
    return creators[left - 1](next, g, value, o);
  };
  return ask(creators.size(), graph, initial_value, options);
}

Variable MakeVariable(Output initial_value, const VariableOptions& options) {
  if (!initial_value.valid()) return {};
  return MakeVariable(initial_value.graph(), initial_value, options);
}

VariableInfo::VariableInfo() = default;
VariableInfo::~VariableInfo() = default;
VariableInfo::VariableInfo(const VariableInfo& other) = default;

Initializer::Initializer() = default;
Initializer::~Initializer() = default;
Initializer::Initializer(const Initializer& other) = default;
Initializer::Initializer(Initializer&& other) noexcept = default;
Initializer& Initializer::operator=(const Initializer& other) = default;
Initializer& Initializer::operator=(Initializer&& other) noexcept = default;

// A resource variable is read among the new variable's nodes. The shared read of a ref variable is
// reused.
Initializer::Initializer(const Variable& variable) {
  if (variable.is_resource()) {
    value_ = Callable([variable] { return variable.value(); });
  } else {
    value_ = TensorArg(variable.value());
  }
}

std::string SaveSliceInfo::Spec() const {
  std::vector<std::string> ranges;
  for (size_t i = 0; i < var_offset.size(); ++i)
    ranges.push_back(absl::StrCat(var_offset[i], ",", var_shape[i]));
  return absl::StrCat(absl::StrJoin(full_shape, " "), " ", absl::StrJoin(ranges, ":"));
}

const VariableInfo& Variable::info_or_empty() const {
  static const VariableInfo* const none = new VariableInfo;
  return info_ ? *info_ : *none;
}

const std::string& Variable::device() const {
  static const std::string* const none = new std::string;
  return valid() ? storage().node->device() : *none;
}

const Shape& Variable::shape() const {
  static const Shape* const unknown = new Shape(Shape::UnknownRank());
  return info_ ? info_->shape : *unknown;
}

void Variable::set_shape(const Shape& shape) {
  if (!this->valid()) return;
  absl::StatusOr<Shape> merged = info_->shape.MergeWith(shape);
  if (!merged.ok()) {
    graph().Fail(Annotate(merged.status(), absl::StrCat("set_shape of variable ", name(), ": ")));
    return;
  }
  if (is_partitioned()) return;  // its full shape is already known
  info_->shape = *merged;
  graph().Fail(graph().RefineShape(info_->snapshot, *merged));
  if (!info_->is_resource) graph().Fail(graph().RefineShape(info_->handle, *merged));
}

namespace {

// Returns "(2, 3)", as Python prints shapes.
std::string PythonTuple(const Shape& shape) {
  if (!shape.has_rank()) return "<unknown>";
  std::vector<std::string> dims;
  for (const int64_t d : shape.dims()) dims.push_back(d < 0 ? "None" : absl::StrCat(d));
  return absl::StrCat("(", absl::StrJoin(dims, ", "), dims.size() == 1 ? ",)" : ")");
}

}  // namespace

bool CheckAssignable(const Variable& v, Output value) {
  if (v.shape().IsCompatibleWith(value.shape())) return true;
  v.graph().Fail(InvalidArgument("Cannot assign to variable ", v.name(), " due to variable shape ",
                                 PythonTuple(v.shape()), " and value shape ",
                                 PythonTuple(value.shape()), " are incompatible"));
  return false;
}

std::string Variable::ToString() const {
  if (!info_) return "<tf.Variable: invalid>";
  const absl::string_view dtype = info_->dtype == DT_FLOAT    ? "float32"
                                  : info_->dtype == DT_DOUBLE ? "float64"
                                  : info_->dtype == DT_HALF   ? "float16"
                                                              : "";
  const std::string parts =
      is_partitioned() ? absl::StrCat(" parts=", info_->parts.size()) : std::string();
  return absl::StrCat("<tf.", parts.empty() ? "" : "Partitioned", "Variable '", name(),
                      "' shape=", PythonTuple(info_->shape),
                      " dtype=", dtype.empty() ? DataTypeName(info_->dtype) : dtype,
                      info_->is_resource ? "" : "_ref", parts, ">");
}

Output Variable::value() const {
  const Output read = *this;
  if (read.valid()) graph().NameHere(read);
  return read;
}

Variable::operator Output() const {
  if (!this->valid())
    return is_partitioned() ? parts()[0].handle() : handle();  // expired or invalid
  if (!info_->replicas.empty())
    return ReadReplicas(*this, [](const Variable& copy) { return copy.value(); });
  if (is_partitioned()) {
    const ClearControlDependencies no_controls(graph());
    return ConcatParts(*this, [](const Variable& part) { return part.value(); });
  }
  if ((!info_->is_resource || info_->cached) && info_->snapshot.valid()) return info_->snapshot;
  if (!info_->is_resource) return read_value();
  if (graph().finalized() && info_->snapshot.valid())
    return info_->snapshot;  // a finalized graph takes no new read
  const PlaceWith nothing(graph(), nullptr, true);
  return NodeBuilder(graph(), "ReadVariableOp")
      .Input(info_->handle)
      .Attr("dtype", info_->dtype)
      .NamedAfterUser()
      .BuildOutput();
}

Output Variable::read_value() const {
  if (!this->valid()) return {};
  if (!info_->replicas.empty())
    return ReadReplicas(*this, [](const Variable& copy) { return copy.read_value(); });
  if (is_partitioned())
    return ConcatParts(*this, [](const Variable& part) { return part.read_value(); });
  if (!info_->is_resource) return AddOp("Identity", {info_->handle}, {}, "read");
  Output read;
  {
    const NameScope scope(graph(), "Read");
    read = AddOp("ReadVariableOp", {info_->handle}, {{"dtype", info_->dtype}});
  }
  return AddOp("Identity", {read});
}

Output Variable::is_initialized(absl::string_view name) const {
  if (!this->valid()) return {};
  if (is_partitioned() || !replicas().empty()) {
    Outputs all;
    for (const Variable& part : is_partitioned() ? parts() : replicas())
      all.push_back(part.is_initialized());
    return ReduceAll(Stack(all), {0}, false, name);
  }
  if (info_->is_resource) return AddOp("VarIsInitializedOp", {info_->handle}, {}, name);
  const PlaceWith place(graph(), info_->handle.node);
  return AddOp("IsVariableInitialized", {info_->handle}, {}, name);
}

Output Variable::SparseRead(Output indices, absl::string_view name) const {
  if (!HasStorage(*this, "SparseRead") || !indices.valid()) return {};
  if (!info_->is_resource) return Gather(value(), indices, {}, name);
  return AddOp("ResourceGather", {info_->handle, indices}, {{"dtype", info_->dtype}},
               name.empty() ? "Gather" : name);
}

Output Variable::GatherNd(Output indices, absl::string_view name) const {
  if (!HasStorage(*this, "GatherNd") || !indices.valid()) return {};
  if (!info_->is_resource) return weir::GatherNd(value(), indices, name);
  return AddOp("Identity", {AddOp("ResourceGatherNd", {info_->handle, indices},
                                  {{"dtype", info_->dtype}}, name.empty() ? "GatherNd" : name)});
}

}  // namespace weir
