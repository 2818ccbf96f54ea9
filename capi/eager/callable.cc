#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "weir/capi/eager/program.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/signature.h"
#include "weir/core/runtime/kernel.h"

// How an op is executed by itself: as a cached step of one node.
//
// The session compiles graphs, so an op becomes a node whose inputs are placeholders, in a graph
// that the context keeps. The step that feeds them and fetches all outputs is prepared once for
// each signature: the op, its attributes, device and types of inputs. A context finds it by the
// signature, and a step compiles a plan for each shape that it is fed, as any step does. So the
// second execution of an op looks up two tables and runs one kernel, and there is one
// implementation of types, attributes, placement, functions, errors and kernels.
//
// All nodes are in one graph and one session, whose resources the ops share: the handle of a
// variable is a value, which is fed to the op that reads the variable. A kernel that keeps state of
// its own, such as a random stream, keeps it with the node, and so from one execution to the next.
//
// The graph only grows: nodes are bounded by the number of signatures, which a client's code
// determines. Where its data does, in constants, nothing is added to the graph (direct_value.cc).
// While it grows, steps wait to be prepared, but those that run do not notice (Session::Extend).

namespace weir::capi {

namespace {

// Attributes of calls that TensorFlow's runtime reads, and functions do not have.
constexpr absl::string_view kCallAttrs[] = {"executor_type", "config_proto"};

// Prepares a signature.
class Preparation {
 public:
  explicit Preparation(const Signature& signature) : signature_(signature), op_(*signature.op()) {}

  // Completes the attributes, and checks them and the types of the inputs.
  absl::Status Check(absl::Span<const std::string> devices, bool allow_soft_placement) {
    attrs_ = signature_.Attrs();
    if (op_.is_function()) DropCallAttrs();
    WEIR_RETURN_IF_ERROR(CompleteAttrs(op_, &attrs_));
    WEIR_ASSIGN_OR_RETURN(const NodeTypes types,
                          ArgTypes(op_, op_.inputs(), attrs_, kMaxNodeArity));
    if (types.size() != signature_.types().size()) {
      return InvalidArgument("expected ", types.size(), " inputs, got ", signature_.types().size());
    }
    for (size_t i = 0; i < types.size(); ++i) {
      if (IsRef(types[i])) {
        return Unimplemented("input #", i, "(zero-based) of ", op_.name(), " is a reference to a ",
                             "variable; ops that are executed by themselves take resources");
      }
      if (types[i] == signature_.types()[i]) continue;
      return InvalidArgument("cannot compute ", op_.name(), " as input #", i,
                             "(zero-based) was expected to be a ", DataTypeName(types[i]),
                             " tensor but is a ", DataTypeName(signature_.types()[i]), " tensor");
    }
    return CheckDevice(devices, allow_soft_placement);
  }

  // Adds the node.
  absl::StatusOr<Node*> Build(Graph& graph, const Outputs& inputs) const {
    const std::string name = graph.UniqueName(op_.name());
    if (op_.is_function()) return BuildCall(graph, name, inputs);
    NodeBuilder builder(graph, op_.name());
    builder.Name(name + "/").Verbatim();
    size_t begin = 0;
    for (const ArgSpec& arg : op_.inputs()) {
      const auto length = static_cast<size_t>(ArgLength(arg, attrs_));
      const auto values = absl::MakeConstSpan(inputs).subspan(begin, length);
      IsListArg(arg) ? builder.InputList(values) : builder.Input(values[0]);
      begin += length;
    }
    for (const auto& [attr, value] : attrs_) builder.Attr(attr, value);
    if (!signature_.device().empty()) builder.Device(signature_.device());
    Node* const node = builder.Build();
    if (node == nullptr) return graph.TakeStatus();
    return node;
  }

 private:
  void DropCallAttrs() {
    AttrMap kept;
    for (const auto& [name, value] : attrs_) {
      if (!absl::c_linear_search(kCallAttrs, name)) kept.emplace(name, value);
    }
    attrs_ = std::move(kept);
  }

  absl::Status CheckDevice(absl::Span<const std::string> devices, bool allow_soft) const {
    if (signature_.device().empty() || allow_soft) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(const DeviceName wanted, DeviceName::Parse(signature_.device()));
    for (const std::string& name : devices) {
      const absl::StatusOr<DeviceName> device = DeviceName::Parse(name);
      if (device.ok() && wanted.Matches(*device)) return absl::OkStatus();
    }
    return InvalidArgument("Could not satisfy device specification '", signature_.device(),
                           "'. enable_soft_placement=0. Supported device types [CPU]. All ",
                           "available devices [", absl::StrJoin(devices, ", "), "].");
  }

  absl::StatusOr<Node*> BuildCall(Graph& graph, const std::string& name,
                                  const Outputs& inputs) const {
    TF_OperationDescription call{.op = op_.name(), .name = name, .device = signature_.device()};
    for (const Output& input : inputs) call.arguments.push_back({{HandleOf(input)}, false});
    for (const auto& [attr, value] : attrs_) call.attrs.emplace(attr, value);
    return AddCall(call, graph);
  }

  const Signature& signature_;
  const OpSpec& op_;
  AttrMap attrs_;
};

// Returns, for each input, whether the node's kernel may write an output over it.
std::vector<bool> Overwritable(const Node& node, const KernelRegistry& kernels) {
  std::vector<bool> may_overwrite(static_cast<size_t>(node.num_inputs()), false);
  const KernelDef* const kernel = kernels.Find(node, kCpu);
  if (kernel == nullptr) return may_overwrite;
  for (const int input : kernel->in_place) {
    if (input < node.num_inputs()) may_overwrite[static_cast<size_t>(input)] = true;
  }
  return may_overwrite;
}

}  // namespace

absl::StatusOr<Outputs> Program::Arguments(Graph& graph, absl::Span<const DataType> types) {
  Outputs arguments;
  std::map<DataType, size_t> used;
  for (const DataType type : types) {
    Outputs& known = placeholders_[type];
    const size_t i = used[type]++;
    if (i == known.size()) {
      known.push_back(NodeBuilder(graph, "Placeholder")
                          .Verbatim()
                          .Name("arg")
                          .Attr("dtype", type)
                          .BuildOutput());
      if (!known.back().valid()) {
        known.pop_back();
        return graph.TakeStatus();
      }
    }
    arguments.push_back(known[i]);
  }
  return arguments;
}

absl::StatusOr<std::shared_ptr<const Callable>> Program::Prepare(
    const std::shared_ptr<Program>& self, const Signature& signature) {
  Preparation preparation(signature);
  WEIR_RETURN_IF_ERROR(preparation.Check(self->DeviceNames(), self->allow_soft_placement_));
  Outputs arguments, outputs;
  Node* node = nullptr;
  WEIR_RETURN_IF_ERROR(self->graph_->Change([&](Graph& graph) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(arguments, self->Arguments(graph, signature.types()));
    WEIR_ASSIGN_OR_RETURN(node, preparation.Build(graph, arguments));
    return absl::OkStatus();
  }));
  auto callable = std::make_shared<Callable>();
  callable->op = node->op_name();
  for (int i = 0; i < node->num_outputs(); ++i) {
    outputs.push_back(node->output(i));
    callable->output_types.push_back(BaseType(node->output_type(i)));
  }
  callable->may_overwrite = Overwritable(*node, *self->kernels_);
  WEIR_ASSIGN_OR_RETURN(callable->step,
                        self->session_->session->Prepare(arguments, outputs, {Operation(node)}));
  callable->program = self;
  return callable;
}

}  // namespace weir::capi
