#include "weir/session/runtime/functions.h"

#include <algorithm>
#include <set>

#include "weir/core/graph/scope.h"
#include "weir/kernels/lib/resumable.h"
#include "weir/proto/function.pb.h"
#include "weir/session/plan/make_kernels.h"
#include "weir/session/runtime/gradient_body.h"
#include "weir/session/runtime/prepared_step.h"

// How functions run. A body is a graph of its own, whose arguments are fed and whose results are
// fetched. A call runs its plan within the step of the caller: with the same step id, cancellation
// and time limit. A body is specialized for the shapes it is called with, as a step is for its
// feeds. Recursion, branches and data sets need this; a function that can be inlined into the
// caller's plan is inlined, and never called (inline_functions.cc).
//
// Bodies are found by name and attributes, so a function that calls itself finds itself. Compiling
// a plan creates kernels, which look their callees up but do not compile them: so no plan is
// compiled inside of another, and a function that is never called is never compiled.
namespace weir {

namespace {

// Each level of a call takes a few hundred bytes to some kilobytes of the thread's stack.
constexpr int kMaxCallDepth = 400;
constexpr size_t kMaxKeyLength = 65536;
constexpr char kSymbolicGradient[] = "SymbolicGradient";

// Returns the functions that attributes of a node name, and the one it calls as its op.
std::vector<FunctionRef> CalleesOf(const Node& node) {
  std::vector<FunctionRef> callees;
  if (node.op().is_function())
    callees.push_back({node.op_name(), std::make_shared<AttrMap>(node.attrs())});
  for (const auto& [name, value] : node.attrs()) {
    if (const auto* function = value.get_if<FunctionRef>()) callees.push_back(*function);
    if (const auto* list = value.get_if<std::vector<FunctionRef>>())
      callees.insert(callees.end(), list->begin(), list->end());
  }
  return callees;
}

// Whether the variable's value stays as it is.
bool OnlyReads(VariableUse use) {
  switch (use) {
    case VariableUse::kDeclares:
    case VariableUse::kReads:
    case VariableUse::kReadsPart:
    case VariableUse::kReadsShape:
    case VariableUse::kTests:
      return true;
    default:
      return false;
  }
}

// Whether other calls may see what the node does. Nodes that only call functions do nothing
// themselves, and a container belongs to the call that made it.
bool ChangesState(const Node& node) {
  const OpTraits& traits = node.op().traits();
  if (traits.container.kind != ContainerUse::Kind::kNone) return false;
  if (traits.effect == Effect::kMutates || traits.writes_variables()) return true;
  if (traits.effect == Effect::kChecks || traits.effect == Effect::kObserves) return false;
  return node.op().stateful() && CalleesOf(node).empty() && !OnlyReads(traits.variable_use);
}

}  // namespace

PlanRequest MakePlanRequest(const FunctionBody& body, std::vector<int>* passed) {
  PlanRequest request{.feeds = body.args, .targets = body.effects};
  passed->clear();
  for (const Output& result : body.results) {
    const auto arg = std::find(body.args.begin(), body.args.end(), result);
    const bool is_arg = arg != body.args.end();
    passed->push_back(is_arg ? static_cast<int>(arg - body.args.begin()) : -1);
    if (!is_arg) request.fetches.push_back(result);
  }
  return request;
}

class SessionFunctions::Body final : public Function {
 public:
  Body(FunctionBody body, const PlanEnvironment& env, SessionFunctions* functions)
      : body_(std::move(body)),
        placement_(*body_.graph, env.kernels, env.devices, env.options),
        env_{*body_.graph, env.graph_mutex, env.kernels, env.devices, env.resources,
             env.pool,     env.options,     placement_,  functions} {
    for (const Output& arg : body_.args) arg_types_.push_back(arg.dtype());
    for (const Output& result : body_.results) result_types_.push_back(result.dtype());
    body_.graph->AddToCollection(kFunctionNameCollection, body_.name);
  }

  const DataTypes& arg_types() const override { return arg_types_; }
  const DataTypes& result_types() const override { return result_types_; }
  bool may_wait() const override { return may_wait_; }
  State state() const override { return state_; }
  bool is_analyzed() const { return is_analyzed_; }
  void SetAnalysis(bool may_wait, State state) {
    may_wait_ = may_wait;
    state_ = state;
    is_analyzed_ = true;
  }
  const Graph& graph() const { return *body_.graph; }

  absl::Status Call(const StepInfo& step, const Node& caller, absl::Span<const Tensor> args,
                    Tensors* results) override {
    if (step.call != nullptr && step.call->depth >= kMaxCallDepth) {
      return absl::ResourceExhaustedError(absl::StrCat("function calls are nested ", kMaxCallDepth,
                                                       " deep: '", body_.name,
                                                       "' seems to recurse without end"));
    }
    if (step.cancellation != nullptr && step.cancellation->cancelled())
      return step.cancellation->status();
    WEIR_RETURN_IF_ERROR(CheckCount(args));
    WEIR_ASSIGN_OR_RETURN(PreparedStep * prepared, GetPrepared(args));
    WEIR_RETURN_IF_ERROR(prepared->CheckFeeds(args));
    Tensors fetched;
    WEIR_RETURN_IF_ERROR(prepared->Run(
        args, [&](Executor& executor) { return executor.Call(step, caller, args, &fetched); }));
    Tensors values;  // `args` may alias `results`
    values.reserve(body_.results.size());
    size_t next = 0;
    for (const int arg : passed_) values.push_back(arg >= 0 ? args[arg] : fetched[next++]);
    *results = std::move(values);
    return absl::OkStatus();
  }

  void Forget() {
    const MutexLock lock(mutex_);
    if (prepared_ != nullptr) prepared_->Forget();
  }

 private:
  // Created at the first call, which shows the devices of the captured variables.
  absl::StatusOr<PreparedStep*> GetPrepared(absl::Span<const Tensor> args) {
    PreparedStep* ready = ready_.load(std::memory_order_acquire);
    if (ready == nullptr) {
      const MutexLock lock(mutex_);
      if (prepared_ == nullptr) {
        PlanRequest request = MakePlanRequest(body_, &passed_);
        if (env_.devices.size() > 1) AssignDevices(args);
        WEIR_ASSIGN_OR_RETURN(prepared_, PreparedStep::Make(std::move(request), env_));
        ready_.store(prepared_.get(), std::memory_order_release);
      }
      ready = prepared_.get();
    }
    if (env_.devices.size() > 1) WEIR_RETURN_IF_ERROR(CheckDevices(args));
    return ready;
  }

  absl::Status CheckCount(absl::Span<const Tensor> args) const {
    if (args.size() == body_.args.size()) return absl::OkStatus();
    return InvalidArgument("Function '", body_.name, "' takes ", body_.args.size(),
                           " arguments but got ", args.size());
  }

  void AssignDevices(absl::Span<const Tensor> args) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    devices_.clear();
    for (size_t i = 0; i < args.size(); ++i) {
      devices_.push_back(DeviceOf(args[i]));
      if (!devices_[i].empty()) body_.graph->SetDevice(body_.args[i].node, devices_[i]);
    }
  }

  static std::string DeviceOf(const Tensor& arg) {
    const bool is_handle = arg.dtype() == DT_RESOURCE && arg.num_elements() == 1;
    return is_handle ? arg.data<ResourceHandle>()->device : "";
  }

  absl::Status CheckDevices(absl::Span<const Tensor> args) const {
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].dtype() != DT_RESOURCE || DeviceOf(args[i]) == devices_[i]) continue;
      return InvalidArgument("Function '", body_.name, "' was called with a resource of ",
                             devices_[i], " as argument ", i, " and now with one of ",
                             DeviceOf(args[i]), ": they must be on one device");
    }
    return absl::OkStatus();
  }

  const FunctionBody body_;
  Placement placement_;
  const PlanEnvironment env_;
  DataTypes arg_types_, result_types_;
  bool may_wait_ = false, is_analyzed_ = false;
  State state_ = State::kAny;
  Mutex mutex_;
  std::unique_ptr<PreparedStep> prepared_ ABSL_GUARDED_BY(mutex_);
  // Never change once ready_ is set.
  std::vector<int> passed_;           // as set by MakePlanRequest
  std::vector<std::string> devices_;  // by argument: the device of a resource
  std::atomic<PreparedStep*> ready_{nullptr};
};

SessionFunctions::SessionFunctions(const PlanEnvironment& env) : env_(env) {}
SessionFunctions::~SessionFunctions() = default;

absl::StatusOr<Function*> SessionFunctions::Find(const FunctionRef& function) {
  const ReaderLock graph_lock(env_.graph_mutex);
  const MutexLock lock(mutex_);
  WEIR_RETURN_IF_ERROR(MergeGraphLibrary());
  WEIR_ASSIGN_OR_RETURN(Body * body, FindBody(function));
  if (!body->is_analyzed()) {
    const Callees called = CalledBy(*body);
    body->SetAnalysis(MayWait(called), StateOf(called));
  }
  return body;
}

absl::StatusOr<FunctionBody> SessionFunctions::MakeBody(const FunctionRef& function,
                                                        absl::string_view prefix) {
  const ReaderLock graph_lock(env_.graph_mutex);
  const MutexLock lock(mutex_);
  WEIR_RETURN_IF_ERROR(MergeGraphLibrary());
  return Instantiate(Normalized(function), prefix);
}

absl::Status SessionFunctions::MergeGraphLibrary() {
  if (env_.graph.functions() == graph_library_) return absl::OkStatus();
  graph_library_ = env_.graph.functions();
  return MergeLibrary(graph_library_);
}

// Keeps only the attributes that the function's signature has: nodes that call a function have
// others too.
FunctionRef SessionFunctions::Normalized(const FunctionRef& function) const {
  if (function.attrs == nullptr || library_ == nullptr) return function;
  const absl::StatusOr<const OpSpec*> op = library_->FindOp(function.name);
  auto attrs = std::make_shared<AttrMap>();
  for (const auto& [name, value] : *function.attrs) {
    const bool counts =
        op.ok() ? (*op)->FindAttr(name) != nullptr : name == "f" || name == "Tin" || name == "Tout";
    if (counts) attrs->emplace(name, value);
  }
  if (attrs->empty()) attrs = nullptr;
  return FunctionRef{function.name, std::move(attrs)};
}

absl::StatusOr<SessionFunctions::Body*> SessionFunctions::FindBody(const FunctionRef& function) {
  const FunctionRef normalized = Normalized(function);
  const std::string key = FunctionKey(normalized);
  if (key.size() > kMaxKeyLength)
    return InvalidArgument("The attributes of function '", function.name, "' are longer than ",
                           kMaxKeyLength, " bytes");
  if (const auto it = bodies_.find(key); it != bodies_.end()) return it->second.get();
  WEIR_ASSIGN_OR_RETURN(FunctionBody body, Instantiate(normalized));
  return (bodies_[key] = std::make_unique<Body>(std::move(body), env_, this)).get();
}

absl::StatusOr<FunctionBody> SessionFunctions::Instantiate(const FunctionRef& function,
                                                           absl::string_view prefix) {
  const Graph& graph = env_.graph;
  if (function.name != kSymbolicGradient)
    return InstantiateFunction(library_, function, graph.ops(), graph.versions(), prefix);
  const auto attr = [&](absl::string_view name) -> const AttrValue* {
    if (function.attrs == nullptr) return nullptr;
    const auto it = function.attrs->find(name);
    return it == function.attrs->end() ? nullptr : &it->second;
  };
  const FunctionRef* f = attr("f") == nullptr ? nullptr : attr("f")->get_if<FunctionRef>();
  if (f == nullptr) return InvalidArgument("SymbolicGradient is missing attr: f");
  const std::string own = library_ == nullptr ? "" : library_->GradientOf(f->name);
  if (!own.empty()) return Instantiate(FunctionRef{own, f->attrs});
  WEIR_ASSIGN_OR_RETURN(FunctionBody body, Instantiate(*f));
  const auto types = [&](absl::string_view name) {
    const DataTypes* list = attr(name) == nullptr ? nullptr : attr(name)->get_if<DataTypes>();
    return list == nullptr ? DataTypes() : *list;
  };
  WEIR_RETURN_IF_ERROR(MakeGradientBody(types("Tin"), types("Tout"), &body));
  WEIR_RETURN_IF_ERROR(MergeLibrary(body.graph->functions()));
  return body;
}

absl::Status SessionFunctions::MergeLibrary(const std::shared_ptr<const FunctionLibrary>& library) {
  if (library == nullptr || library == library_) return absl::OkStatus();
  if (library_ == nullptr) {
    library_ = library;
    return absl::OkStatus();
  }
  proto::FunctionDefLibrary def;
  library->ToProto(&def);
  WEIR_ASSIGN_OR_RETURN(library_, FunctionLibrary::Extend(library_, def));
  return absl::OkStatus();
}

// A search that gets too long is abandoned.
SessionFunctions::Callees SessionFunctions::CalledBy(Body& body) {
  constexpr size_t kMaxBodies = 1000;
  Callees called{.bodies = {&body}};
  std::set<const Body*> visited = {&body};
  for (size_t i = 0; i < called.bodies.size(); ++i) {
    if (called.bodies.size() >= kMaxBodies) return called;
    for (const auto& node : called.bodies[i]->graph().nodes()) {
      for (const FunctionRef& callee : CalleesOf(*node)) {
        const absl::StatusOr<Body*> found = FindBody(callee);
        if (found.ok() && visited.insert(*found).second) called.bodies.push_back(*found);
      }
    }
  }
  called.complete = true;
  return called;
}

// Returns whether one of the bodies has an asynchronous kernel. Such kernels belong to stateful
// nodes; they are created here only to find out.
bool SessionFunctions::MayWait(const Callees& called) const {
  if (!called.complete) return true;
  for (const Body* body : called.bodies) {
    for (const auto& node : body->graph().nodes()) {
      const KernelDef* def = env_.kernels.Find(*node, kCpu);
      if (!node->op().stateful() || def == nullptr || !CalleesOf(*node).empty()) continue;
      const std::vector<Shape> shapes(node->num_inputs(), Shape::UnknownRank());
      const absl::StatusOr<Kernel> kernel = MakeHostKernel(*def, *node, shapes, env_);
      if (kernel.ok() && kernel->is_async()) return true;
    }
  }
  return false;
}

// A random node draws at most once in a call if it is in the function's own body, not in a callee
// (which may be called several times), and not in a loop.
Function::State SessionFunctions::StateOf(const Callees& called) {
  if (!called.complete) return Function::State::kAny;
  bool draws = false, loops = false;
  for (const Body* body : called.bodies) {
    for (const auto& node : body->graph().nodes()) {
      loops |= node->op().traits().control_flow == ControlFlow::kEnter;
      if (!ChangesState(*node)) continue;
      const bool is_draw = node->op().traits().effect == Effect::kDraws;
      if (!is_draw || body != called.bodies[0]) return Function::State::kAny;
      draws = true;
    }
  }
  if (!draws) return Function::State::kNone;
  return loops ? Function::State::kAny : Function::State::kRandomStreams;
}

absl::Status SessionFunctions::CheckDevice(absl::string_view name) const {
  WEIR_ASSIGN_OR_RETURN(const DeviceName wanted, DeviceName::Parse(name));
  const bool found = std::any_of(
      env_.devices.begin(), env_.devices.end(),
      [&](const std::unique_ptr<Device>& device) { return wanted.Matches(device->name()); });
  if (found) return absl::OkStatus();
  return InvalidArgument("'", name, "' is not a device of this session");
}

// A thread that compiles a plan holds the lock of its PreparedStep while it looks functions up, so
// this must not take the locks in the opposite order.
void SessionFunctions::Forget() {
  std::vector<Body*> bodies;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, body] : bodies_) bodies.push_back(body.get());
  }
  for (Body* body : bodies) body->Forget();
}

}  // namespace weir
