#include "weir/tests/evaluate.h"

#include <future>
#include <memory>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "weir/core/runtime/device.h"
#include "weir/core/runtime/thread_pool.h"
#include "weir/ops/lib/array.h"

namespace weir {

namespace {

// What EvaluateOn was told.
struct Elsewhere {
  Device* device = nullptr;
  const KernelRegistry* kernels = nullptr;
  std::map<std::string, int64_t> runs;
};
Elsewhere& There() {
  static Elsewhere there;
  return there;
}

absl::StatusOr<Tensor> ToHost(const Tensor& t) {
  if (t.host_accessible()) return t;
  Tensor copy(t.dtype(), t.shape());
  const auto copied = std::make_shared<std::promise<absl::Status>>();
  There().device->CopyToHost(t, copy, [copied](absl::Status s) { copied->set_value(s); });
  WEIR_RETURN_IF_ERROR(copied->get_future().get());
  return copy;
}

absl::StatusOr<Tensor> ToDevice(const Tensor& t) {
  Device& device = *There().device;
  WEIR_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(device.allocator(), t.dtype(), t.shape()));
  const auto copied = std::make_shared<std::promise<absl::Status>>();
  device.CopyFromHost(t, copy, [copied](absl::Status s) { copied->set_value(s); });
  WEIR_RETURN_IF_ERROR(copied->get_future().get());
  return copy;
}

// If it is a variable, its value goes to the host, or to the device.
absl::Status MoveVariable(const Tensor& handle, bool to_host) {
  if (handle.dtype() != DT_RESOURCE || handle.num_elements() != 1) return absl::OkStatus();
  auto v = std::dynamic_pointer_cast<VariableState>(handle.data<ResourceHandle>()->resource);
  if (v == nullptr || !IsPlain(v->dtype())) return absl::OkStatus();
  const MutexLock lock(v->mutex());
  if (!v->initialized() || v->value().host_accessible() == to_host) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(Tensor moved, to_host ? ToHost(v->value()) : ToDevice(v->value()));
  v->Set(std::move(moved));
  return absl::OkStatus();
}

bool IsHostArgument(const KernelDef& def, const Node& node, int i, bool input) {
  for (const std::string& name : def.host_args) {
    const auto [first, last] = input ? node.InputRange(name) : node.OutputRange(name);
    if (i >= first && i < last) return true;
  }
  return false;
}

// Every value that was computed or fed lies in `slots_`, an output of a node at a fixed position,
// so that kernels see the same kind of array that an executor gives them.
class Evaluator {
 public:
  Evaluator(const std::vector<std::pair<Output, Tensor>>& feeds, ResourceMap* resources)
      : device_(NewCpuDevice()), resources_(resources) {
    for (const auto& [output, tensor] : feeds) fed_[output] = tensor;
  }

  absl::Status Run(const std::vector<Node*>& wanted) {
    Sort(wanted);
    for (const Node* node : order_) {
      first_slot_[node] = static_cast<int32_t>(slots_.size());
      slots_.resize(slots_.size() + node->num_outputs());
    }
    for (const auto& [output, tensor] : fed_) {
      if (first_slot_.contains(output.node)) slots_[Slot(output)] = tensor;
    }
    // Values that references were turned into; more come while nodes run, so the array is made
    // large enough at once.
    size_t num_inputs = 0;
    for (const Node* node : order_) num_inputs += node->num_inputs();
    slots_.reserve(slots_.size() + num_inputs);
    dead_.assign(slots_.capacity(), 0);
    for (const Node* node : order_) {
      if (const absl::Status s = RunNode(*node); !s.ok()) {
        return Annotate(s, absl::StrCat(node->op_name(), " (", node->name(), "): "));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> Fetch(const Output& output) {
    if (const auto it = fed_.find(output); it != fed_.end()) return it->second;
    const Tensor& t = slots_[Slot(output)];
    return output.is_ref() ? Dereference(t) : t;
  }

 private:
  bool IsFed(const Output& output) const { return fed_.contains(output); }
  int32_t Slot(const Output& output) const { return first_slot_.at(output.node) + output.index; }

  // Depth first, without recursion: a node enters `order_` when everything before it has.
  void Sort(const std::vector<Node*>& wanted) {
    enum class Mark { kOpen, kDone };
    absl::flat_hash_map<const Node*, Mark> marks;
    std::vector<const Node*> stack(wanted.rbegin(), wanted.rend());
    while (!stack.empty()) {
      const Node* node = stack.back();
      const auto [it, fresh] = marks.emplace(node, Mark::kOpen);
      if (!fresh) {
        stack.pop_back();
        if (it->second == Mark::kOpen) order_.push_back(node);
        it->second = Mark::kDone;
        continue;
      }
      if (AllOutputsFed(*node)) continue;
      for (const Node* control : node->control_inputs()) {
        if (!marks.contains(control)) stack.push_back(control);
      }
      for (const Output& input : node->inputs()) {
        if (IsFed(input)) {
          needs_slot_.insert(input.node);
        } else if (!marks.contains(input.node)) {
          stack.push_back(input.node);
        }
      }
    }
    for (const Node* node : needs_slot_) {
      if (!marks.contains(node)) order_.insert(order_.begin(), node);
    }
  }

  bool AllOutputsFed(const Node& node) const {
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (!IsFed(node.output(i))) return false;
    }
    return node.num_outputs() > 0;
  }

  static absl::StatusOr<Tensor> Dereference(const Tensor& handle) {
    if (handle.dtype() != DT_RESOURCE) return handle;
    auto variable =
        std::dynamic_pointer_cast<VariableState>(handle.data<ResourceHandle>()->resource);
    if (variable == nullptr)
      return InvalidArgument("a reference to something that is not a variable");
    WEIR_ASSIGN_OR_RETURN(const Tensor value, variable->Read());
    return ToHost(value);
  }

  absl::Status RunNode(const Node& node) {
    for (int i = 0; i < node.num_outputs(); ++i) {
      // A node with a fed output is not run; its other outputs stay empty.
      if (IsFed(node.output(i))) return absl::OkStatus();
    }
    std::vector<int32_t> inputs, outputs;
    std::vector<Shape> input_shapes;
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Output& from = node.input(i);
      input_shapes.push_back(from.shape());
      inputs.push_back(Slot(from));
      if (from.is_ref() && !IsRef(node.input_type(i))) {
        WEIR_ASSIGN_OR_RETURN(Tensor value, Dereference(slots_[Slot(from)]));
        inputs.back() = static_cast<int32_t>(slots_.size());
        slots_.push_back(std::move(value));
      }
      if (!slots_[inputs.back()].initialized())
        return InvalidArgument("input ", i, " has no value");
    }
    for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(Slot(node.output(i)));
    if (There().device != nullptr) {
      if (const KernelDef* def = There().kernels->Find(node, There().device->place()))
        return RunThere(node, *def, input_shapes, inputs, outputs);
      for (const int32_t i : inputs)
        WEIR_RETURN_IF_ERROR(MoveVariable(slots_[i], /*to_host=*/true));
    }
    const KernelDef* def = BuiltinKernels().Find(node, kCpu);
    if (def == nullptr) return BuiltinKernels().NoKernel(node, kCpu);
    return RunKernel(node, *def, *device_, input_shapes,
                     {.slots = slots_.data(),
                      .dead = dead_.data(),
                      .inputs = inputs.data(),
                      .outputs = outputs.data(),
                      .num_inputs = static_cast<int32_t>(inputs.size()),
                      .num_outputs = static_cast<int32_t>(outputs.size())});
  }

  // On the device of EvaluateOn: what goes in is copied there, what comes out is copied back.
  absl::Status RunThere(const Node& node, const KernelDef& def,
                        const std::vector<Shape>& input_shapes, const std::vector<int32_t>& inputs,
                        const std::vector<int32_t>& outputs) {
    const int num_inputs = static_cast<int>(inputs.size());
    const int num_outputs = static_cast<int>(outputs.size());
    Tensors slots(inputs.size() + outputs.size());
    std::vector<uint8_t> dead(slots.size(), 0);
    std::vector<int32_t> positions(slots.size());
    for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int32_t>(i);
    for (int i = 0; i < num_inputs; ++i) {
      slots[i] = slots_[inputs[i]];
      WEIR_RETURN_IF_ERROR(MoveVariable(slots[i], /*to_host=*/false));
      if (IsPlain(slots[i].dtype()) && !IsHostArgument(def, node, i, true)) {
        WEIR_ASSIGN_OR_RETURN(slots[i], ToDevice(slots[i]));
      }
    }
    uint64_t host_outputs = 0;
    for (int i = 0; i < num_outputs; ++i) {
      if (IsHostArgument(def, node, i, false)) host_outputs |= uint64_t{1} << i;
    }
    const absl::Status status = RunKernel(node, def, *There().device, input_shapes,
                                          {.slots = slots.data(),
                                           .dead = dead.data(),
                                           .inputs = positions.data(),
                                           .outputs = positions.data() + num_inputs,
                                           .num_inputs = num_inputs,
                                           .num_outputs = num_outputs,
                                           .host_outputs = host_outputs});
    const absl::Status late = There().device->Synchronize();
    WEIR_RETURN_IF_ERROR(status.ok() ? late : status);
    ++There().runs[node.op_name()];
    for (int i = 0; i < num_outputs; ++i) {
      const Tensor& made = slots[num_inputs + i];
      if (made.initialized()) {
        WEIR_ASSIGN_OR_RETURN(slots_[outputs[i]], ToHost(made));
      }
    }
    return absl::OkStatus();
  }

  absl::Status RunKernel(const Node& node, const KernelDef& def, Device& device,
                         const std::vector<Shape>& input_shapes,
                         const KernelContext::Binding& binding) {
    const KernelInit init{node, device, *resources_, input_shapes};
    WEIR_ASSIGN_OR_RETURN(Kernel kernel, def.make(init));
    if (kernel.is_constant()) {
      binding.slots[binding.outputs[0]] = kernel.constant();
      return absl::OkStatus();
    }
    kernel = device.Wrap(init, std::move(kernel));
    const StepInfo step{.step_id = 1,
                        .pool = &DefaultThreadPool(),
                        .resources = resources_,
                        .cancellation = &cancellation_};
    KernelContext context(node, device, step, binding);
    if (!kernel.is_async()) return kernel.run()(context);
    const auto result = std::make_shared<std::promise<absl::Status>>();
    kernel.run_async()(context, [result](absl::Status s) { result->set_value(std::move(s)); });
    return result->get_future().get();
  }

  std::unique_ptr<Device> device_;
  ResourceMap* resources_;
  Cancellation cancellation_;
  absl::flat_hash_map<Output, Tensor> fed_;
  std::vector<const Node*> order_;
  std::set<const Node*> needs_slot_;
  absl::flat_hash_map<const Node*, int32_t> first_slot_;
  std::vector<Tensor> slots_;
  std::vector<uint8_t> dead_;
};

}  // namespace

void EvaluateOn(Device* device, const KernelRegistry* kernels) {
  There().device = device;
  There().kernels = kernels;
}

EvaluateOnCpu::EvaluateOnCpu() : device_(std::exchange(There().device, nullptr)) {}
EvaluateOnCpu::~EvaluateOnCpu() { There().device = device_; }

const std::map<std::string, int64_t>& EvaluatedThere() { return There().runs; }

absl::StatusOr<Tensors> Evaluate(const Graph& graph,
                                 const std::vector<std::pair<Output, Tensor>>& feeds,
                                 const Outputs& fetches, ResourceMap* resources) {
  WEIR_RETURN_IF_ERROR(graph.status());
  ResourceMap own;
  Evaluator evaluator(feeds, resources == nullptr ? &own : resources);
  std::vector<Node*> wanted;
  for (const Output& fetch : fetches) {
    if (!fetch.valid()) return InvalidArgument("a fetch is no output of the graph");
    wanted.push_back(fetch.node);
  }
  WEIR_RETURN_IF_ERROR(evaluator.Run(wanted));
  Tensors results;
  for (const Output& fetch : fetches) {
    WEIR_ASSIGN_OR_RETURN(Tensor value, evaluator.Fetch(fetch));
    results.push_back(std::move(value));
  }
  return results;
}

absl::StatusOr<Tensors> Evaluate(const Graph& graph, const Outputs& fetches,
                                 ResourceMap* resources) {
  return Evaluate(graph, std::vector<std::pair<Output, Tensor>>{}, fetches, resources);
}

absl::Status EvaluateTargets(const Graph& graph, const std::vector<Operation>& targets,
                             ResourceMap* resources) {
  WEIR_RETURN_IF_ERROR(graph.status());
  ResourceMap own;
  Evaluator evaluator({}, resources == nullptr ? &own : resources);
  std::vector<Node*> wanted;
  for (const Operation& target : targets) {
    if (!target.valid()) return InvalidArgument("a target is no operation of the graph");
    wanted.push_back(target.node);
  }
  return evaluator.Run(wanted);
}

absl::StatusOr<Tensors> RunFed(absl::string_view op, const Tensors& inputs, const Attrs& attrs,
                               size_t list) {
  Graph g;
  const OpSpec* const spec = BuiltinOps().Find(op);
  if (spec != nullptr && spec->deprecated_version() > 0) {
    g.versions().producer = spec->deprecated_version() - 1;
  }
  NodeBuilder builder(g, op);
  std::vector<std::pair<Output, Tensor>> feeds;
  for (const Tensor& t : inputs) feeds.emplace_back(Placeholder(g, t.dtype()), t);
  Outputs values;
  for (const auto& feed : feeds) values.push_back(feed.first);
  if (list > 0) builder.InputList(Outputs(values.begin(), values.begin() + list));
  for (size_t i = list; i < values.size(); ++i) builder.Input(values[i]);
  for (const auto& [name, value] : attrs) builder.Attr(name, value);
  Node* node = builder.Build();
  if (node == nullptr) return Internal("the graph refuses the node: ", g.status().ToString());
  Outputs fetches;
  for (int i = 0; i < node->num_outputs(); ++i) fetches.push_back(node->output(i));
  return Evaluate(g, feeds, fetches);
}

}  // namespace weir
