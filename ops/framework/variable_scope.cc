#include "weir/ops/framework/variable_scope.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "weir/core/graph/signature.h"
#include "weir/ops/framework/flow_context.h"
#include "weir/ops/framework/partitioned_variable.h"
#include "weir/ops/framework/variable_store.h"
#include "weir/ops/lib/collections.h"

namespace weir {

namespace {

std::string Join(absl::string_view prefix, absl::string_view name) {
  if (prefix.empty()) return std::string(name);
  return name.empty() ? std::string(prefix) : absl::StrCat(prefix, "/", name);
}

// The innermost getter is called first; its `next` calls the outer one.
CustomGetter Compose(const CustomGetter& inner, const CustomGetter& outer) {
  if (!inner || !outer) return inner ? inner : outer;
  return [inner, outer](const VariableGetter& next, Graph& g, absl::string_view name,
                        const VariableOptions& options) {
    const VariableGetter through_outer = [&outer, &next](Graph& g2, absl::string_view name2,
                                                         const VariableOptions& o2) {
      return outer(next, g2, name2, o2);
    };
    return inner(through_outer, g, name, options);
  };
}

void ApplyOptions(const VariableScopeOptions& options, VariableScopeInfo* scope) {
  if (options.initializer) scope->initializer = options.initializer;
  if (options.regularizer) scope->regularizer = options.regularizer;
  if (options.constraint) scope->constraint = options.constraint;
  if (options.caching_device) scope->caching_device = options.caching_device;
  if (options.partitioner) scope->partitioner = options.partitioner;
  if (options.dtype != DT_INVALID) scope->dtype = options.dtype;
  if (options.use_resource) scope->use_resource = options.use_resource;
  scope->custom_getter = Compose(options.custom_getter, scope->custom_getter);
}

// Returns the first of "d", "d_1", ... that has not been opened inside the current variable scope.
std::string UniqueScope(const VariableStore::Scopes& scopes, absl::string_view name) {
  const std::string full = Join(scopes.current->name, name);
  const auto count = [&](const std::string& key) {
    const auto it = scopes.counts.find(key);
    return it == scopes.counts.end() ? 0 : it->second;
  };
  if (count(full) == 0) return std::string(name);
  int i = 1;
  while (count(absl::StrCat(full, "_", i)) > 0) ++i;
  return absl::StrCat(name, "_", i);
}

}  // namespace

VariableScope::VariableScope(Graph& graph, absl::string_view name,
                             const VariableScopeOptions& options)
    : graph_(graph), saved_(VariableStore::ScopesOf(graph).current) {
  OpenNameScope(name, options);
  Extend(name, options);
}

VariableScope::VariableScope(Graph& graph, const VariableScopeOptions& options)
    : graph_(graph), saved_(VariableStore::ScopesOf(graph).current) {
  if (options.default_name.empty()) {
    graph.Fail(
        InvalidArgument("VariableScope: If default_name is None then name_or_scope is required"));
  } else if (options.reuse == Reuse::kReuse) {
    graph.Fail(InvalidArgument(
        "VariableScope: reuse=True cannot be used without a name_or_scope (default_name is '",
        options.default_name, "')"));
  }
  OpenNameScope(options.default_name, options);
  Extend(UniqueScope(VariableStore::ScopesOf(graph), options.default_name), options);
}

VariableScope::VariableScope(Graph& graph, const VariableScopeRef& scope,
                             const VariableScopeOptions& options)
    : graph_(graph), saved_(VariableStore::ScopesOf(graph).current), by_object_(true) {
  if (scope == nullptr) {
    graph.Fail(InvalidArgument("VariableScope: the scope to enter is null"));
    saved_counts_ = VariableStore::ScopesOf(graph).counts;
    scope_ = saved_;
    return;
  }
  const std::vector<std::string> parts = absl::StrSplit(scope->name, '/');
  OpenNameScope(parts.back(), options);
  saved_counts_ = VariableStore::ScopesOf(graph).counts;
  VariableScopeInfo info = *scope;
  if (options.reuse && *options.reuse != Reuse::kCreate) info.reuse = *options.reuse;
  Enter(std::move(info), options);
}

void VariableScope::OpenNameScope(absl::string_view name, const VariableScopeOptions& options) {
  if (options.auxiliary_name_scope && !name.empty()) name_scope_.emplace(graph_, name);
}

// Appends `name` to the enclosing scope. An inner scope can turn reuse on (kReuse, or kAuto, which
// creates absent variables even inside kReuse), but not off.
void VariableScope::Extend(absl::string_view name, const VariableScopeOptions& options) {
  VariableScopeInfo info = *saved_;
  info.name = Join(saved_->name, name);
  info.original_name_scope = graph_.name_scope();
  if (options.reuse && *options.reuse != Reuse::kCreate) info.reuse = *options.reuse;
  Enter(std::move(info), options);
}

void VariableScope::Enter(VariableScopeInfo scope, const VariableScopeOptions& options) {
  VariableStore::Scopes& scopes = VariableStore::ScopesOf(graph_);
  ApplyOptions(options, &scope);
  ++scopes.counts[scope.name];
  scope_ = std::make_shared<VariableScopeInfo>(std::move(scope));
  scopes.current = scope_;
}

// A scope opened by name resets the counts of the scopes opened inside it. A scope opened by object
// leaves all counts unchanged.
VariableScope::~VariableScope() {
  VariableStore::Scopes& scopes = VariableStore::ScopesOf(graph_);
  if (by_object_) {
    scopes.counts = std::move(saved_counts_);
  } else {
    const std::string prefix = scope_->name + "/";
    for (auto it = scopes.counts.lower_bound(prefix);
         it != scopes.counts.end() && absl::StartsWith(it->first, prefix);) {
      it = scopes.counts.erase(it);
    }
  }
  scopes.current = std::move(saved_);
}

VariableScopeRef CurrentVariableScope(Graph& graph) {
  return VariableStore::ScopesOf(graph).current;
}

VariableCreatorScope::VariableCreatorScope(Graph& graph, VariableCreator creator) : graph_(graph) {
  VariableStore::ScopesOf(graph).creators.push_back(std::move(creator));
}

VariableCreatorScope::~VariableCreatorScope() {
  VariableStore::ScopesOf(graph_).creators.pop_back();
}

namespace {

// One request, after the scopes have been applied: shares the variable of that full name, or
// creates it. `partition`: it is a part of a partitioned variable.
class VariableRequest {
 public:
  VariableRequest(Graph& g, absl::string_view name, const VariableOptions& options,
                  const CallSite& call_site, const PartitionInfo* partition = nullptr)
      : g_(g),
        name_(name),
        o_(options),
        call_site_(call_site),
        partition_(partition),
        store_(VariableStore::Of(g)) {}

  Variable Get() {
    const absl::StatusOr<Variable> variable = Find();
    if (!variable.ok()) {
      g_.Fail(variable.status());
      return {};
    }
    return *variable;
  }

 private:
  absl::StatusOr<Variable> Find() {
    const bool is_scalar = o_.shape && o_.shape->IsScalar();
    const bool shares_parts =
        !o_.partitioner && o_.reuse == Reuse::kReuse && store_.partitioned.contains(name_);
    if ((o_.partitioner && !is_scalar) || shares_parts) {
      WEIR_RETURN_IF_ERROR(CheckName());
      return GetPartitionedVariable(
          g_, name_, o_, CreatedAt(),
          [this](const std::string& name, const VariableOptions& options,
                 const PartitionInfo& partition) {
            return VariableRequest(g_, name, options, call_site_, &partition).FindOne();
          });
    }
    if (store_.variables.contains(name_ + "/part_0")) {
      return InvalidArgument("No partitioner was provided, but a partitioned version of the ",
                             "variable was found: ", name_, "/part_0. Perhaps a variable of the ",
                             "same name was already created with partitioning?");
    }
    return FindOne();
  }

  std::string CreatedAt() const { return absl::StrCat(call_site_.file, ":", call_site_.line); }

  absl::StatusOr<Variable> FindOne() {
    const Reuse reuse = o_.reuse.value_or(Reuse::kCreate);
    const auto it = store_.variables.find(name_);
    if (it == store_.variables.end()) {
      if (reuse != Reuse::kReuse) return Create();
      return NotFound("Variable ", name_,
                      " does not exist, or was not created with GetVariable. Did you mean to set ",
                      "Reuse::kAuto (AUTO_REUSE) in VariableScope?");
    }
    if (reuse == Reuse::kCreate) {
      return AlreadyExists("Variable ", name_,
                           " already exists, disallowed. Did you mean to set Reuse::kReuse or ",
                           "Reuse::kAuto (AUTO_REUSE) in VariableScope? It was created at ",
                           it->second.created_at, " as ", it->second.variable.ToString());
    }
    return Share(it->second.variable);
  }

  absl::StatusOr<Variable> Share(const Variable& found) const {
    if (o_.shape && !o_.shape->IsCompatibleWith(found.shape())) {
      return InvalidArgument("Trying to share variable ", name_, ", but specified shape ",
                             o_.shape->ToString(), " and found shape ", found.shape().ToString(),
                             ".");
    }
    if (o_.dtype != DT_INVALID && o_.dtype != found.dtype()) {
      return InvalidArgument("Trying to share variable ", name_, ", but specified dtype ",
                             DataTypeName(o_.dtype), " and found dtype ",
                             DataTypeName(found.dtype()), ".");
    }
    return found;
  }

  absl::StatusOr<Initializer> DefaultInitializer(DataType dtype) const {
    if (IsFloating(dtype)) return GlorotUniform();
    if (IsInteger(dtype) || dtype == DT_BOOL || dtype == DT_STRING) return Zeros();
    return InvalidArgument("An initializer for variable ", name_, " of ", DataTypeName(dtype),
                           " is required");
  }

  absl::Status CheckName() const {
    if (IsNodeName(name_)) return absl::OkStatus();
    return InvalidArgument("'", name_,
                           "' is not a valid root scope name, as a variable's must be. ",
                           "A root scope name has to match the following pattern: ",
                           "^[A-Za-z0-9.][A-Za-z0-9_.\\\\/>-]*$");
  }

  // Returns the initializer of the new variable, and in `options` the options to create it with.
  absl::StatusOr<Initializer> InitializerFor(VariableOptions* options) const {
    const DataType dtype = o_.dtype == DT_INVALID ? CurrentVariableScope(g_)->dtype : o_.dtype;
    Initializer start = o_.initializer;
    if (!start) {
      WEIR_ASSIGN_OR_RETURN(start, DefaultInitializer(dtype));
    }
    if (start.kind() == Initializer::Kind::kTensor && o_.shape) {
      return InvalidArgument("If initializer is a constant, do not specify shape (variable ", name_,
                             ", shape ", o_.shape->ToString(), ").");
    }
    if (start.kind() == Initializer::Kind::kTensor && !start.tensor().is_literal()) {
      const DataType given = start.tensor().In(g_).dtype();
      if (given != o_.dtype && given != DT_INVALID && o_.dtype != DT_INVALID) {
        return InvalidArgument("Initializer type '", DataTypeName(given), "' and explicit dtype '",
                               DataTypeName(o_.dtype), "' don't match (variable ", name_, ").");
      }
    }
    if (start.kind() != Initializer::Kind::kShaped) return start;
    if (!o_.shape && !o_.initializer) {
      return InvalidArgument("Variable ", name_,
                             " did not get an initializer, so its `shape` argument must be "
                             "specified.");
    }
    if (!o_.shape || !o_.shape->IsFullyDefined()) {
      return InvalidArgument("Shape of a new variable (", name_,
                             ") must be fully defined, but instead was ",
                             o_.shape ? o_.shape->ToString() : "<unknown>", ".");
    }
    options->dtype = dtype;
    if (partition_ == nullptr) return start;
    return Initializer(Initializer::Shaped(
        [make = start.shaped(), partition = *partition_](const InitializerArgs& args) {
          return make({args.graph, args.shape, args.dtype, &partition});
        }));
  }

  absl::StatusOr<Variable> Create() {
    WEIR_RETURN_IF_ERROR(CheckName());
    VariableOptions options = o_;
    WEIR_ASSIGN_OR_RETURN(const Initializer start, InitializerFor(&options));
    options.name = name_;
    const Variable variable = MakeVariable(g_, start, options);
    if (!variable.valid()) return variable;
    store_.variables[name_] = {variable, CreatedAt()};
    if (o_.regularizer) Regularize(variable);
    return variable;
  }

  void Regularize(const Variable& variable) {
    const OutsideFlow outside(g_);
    const ClearControlDependencies no_controls(g_);
    const PlaceWith place(g_, variable.handle().node);
    const NameScope scope(g_, absl::StrCat(name_, "/Regularizer/"));
    const Output loss = o_.regularizer(variable);
    if (loss.valid()) g_.AddToCollection(collections::kRegularizationLosses, loss);
  }

  Graph& g_;
  const std::string name_;
  const VariableOptions& o_;
  const CallSite& call_site_;
  const PartitionInfo* const partition_;
  VariableStore& store_;
};

}  // namespace

Variable GetVariable(Graph& graph, absl::string_view name, VariableOptions options,
                     CallSite call_site) {
  const VariableScopeRef scope = CurrentVariableScope(graph);
  if (!options.reuse) options.reuse = scope->reuse;
  if (!options.initializer) options.initializer = scope->initializer;
  if (!options.regularizer) options.regularizer = scope->regularizer;
  if (!options.constraint) options.constraint = scope->constraint;
  if (!options.caching_device) options.caching_device = scope->caching_device;
  if (!options.use_resource) options.use_resource = scope->use_resource;
  if (!options.partitioner) options.partitioner = scope->partitioner;
  const CustomGetter getter = Compose(options.custom_getter, scope->custom_getter);
  // "" is the scope's own name: "a/", which opens the name scope "a/" again and names the op "a".
  const std::string full_name =
      scope->name.empty() ? std::string(name) : absl::StrCat(scope->name, "/", name);

  const NameScope root(graph, "");
  const VariableGetter make = [call_site](Graph& g, absl::string_view full,
                                          const VariableOptions& o) {
    return VariableRequest(g, full, o, call_site).Get();
  };
  return getter ? getter(make, graph, full_name, options) : make(graph, full_name, options);
}

Variable GetVariable(Graph& graph, absl::string_view name, const Shape& shape,
                     VariableOptions options, CallSite call_site) {
  options.shape = shape;
  return GetVariable(graph, name, std::move(options), call_site);
}

Variable GetLocalVariable(Graph& graph, absl::string_view name, VariableOptions options,
                          CallSite call_site) {
  options.trainable = false;
  if (!options.collections) options.collections.emplace();
  options.collections->push_back(collections::kLocalVariables);
  return GetVariable(graph, name, std::move(options), call_site);
}

Variable GetLocalVariable(Graph& graph, absl::string_view name, const Shape& shape,
                          VariableOptions options, CallSite call_site) {
  options.shape = shape;
  return GetLocalVariable(graph, name, std::move(options), call_site);
}

}  // namespace weir
