#include <algorithm>
#include <cstring>
#include <future>
#include <optional>
#include <set>

#include "weir/core/graph/shape_context.h"
#include "weir/session/runtime/executor.h"
#include "weir/tests/session/lib/late_device.h"

// Delayed execution of a CPU kernel on the simulated accelerator.
//
// A CPU kernel does in one call what an accelerator's kernel does in two: on the host it checks,
// allocates and accesses variables; on the stream it computes. So the wrapped kernel performs the
// first part itself. It allocates the outputs in the step (with shapes from the op's shape
// function, which sees the host arguments), makes the written variables writable, under their
// locks, and records addresses. On the stream the CPU's kernel then runs in its own context: its
// inputs are views of device memory, its outputs are preallocated, and its variables are proxies
// with the recorded addresses, so that concurrent changes to tensors and variables on the host do
// not affect it. Values that the kernel returns without computing them (a Cast to the same type)
// are copied into the outputs.
namespace weir {

namespace {

// These forward tensors, or access only shapes and handles.
bool AccessesNoElements(const std::string& op) {
  static const auto* const ops = new std::set<std::string>{"Assign",
                                                           "AssignVariableOp",
                                                           "Bitcast",
                                                           "Const",
                                                           "ControlTrigger",
                                                           "DestroyTemporaryVariable",
                                                           "EnsureShape",
                                                           "Enter",
                                                           "Exit",
                                                           "ExpandDims",
                                                           "GuaranteeConst",
                                                           "Identity",
                                                           "IdentityN",
                                                           "LoopCond",
                                                           "NextIteration",
                                                           "Placeholder",
                                                           "PlaceholderV2",
                                                           "PlaceholderWithDefault",
                                                           "Rank",
                                                           "ReadVariableOp",
                                                           "RefEnter",
                                                           "RefExit",
                                                           "RefIdentity",
                                                           "RefNextIteration",
                                                           "RefSelect",
                                                           "RefSwitch",
                                                           "Reshape",
                                                           "Shape",
                                                           "ShapeN",
                                                           "Size",
                                                           "Squeeze",
                                                           "StopGradient",
                                                           "PreventGradient",
                                                           "Switch",
                                                           "TemporaryVariable"};
  return ops->contains(op);
}

bool IsHostType(DataType type) { return IsRef(type) || !IsPlain(type); }

// The proxy of a variable on the stream, and the address where its value must still be afterward.
struct VariableProxy {
  std::shared_ptr<VariableState> variable;
  const void* data = nullptr;
};

// One run of a kernel, from the call on the host to its end on the stream.
struct LateRun {
  StepInfo step;
  Tensors slots;     // inputs, then outputs
  Tensors expected;  // the same; outputs whose memory is known
  std::vector<uint8_t> dead;
  std::vector<VariableProxy> variables;
};

class LateKernel : public std::enable_shared_from_this<LateKernel> {
 public:
  LateKernel(LateDevice& device, const KernelInit& init, const KernelDef& def, Kernel kernel)
      : device_(device), node_(init.node), def_(def), kernel_(std::move(kernel)) {
    for (int i = 0; i < num_inputs(); ++i)
      host_inputs_.push_back(IsHostType(node_.input_type(i)) || IsHostArg(i, true));
    for (int i = 0; i < num_outputs(); ++i) {
      host_outputs_.push_back(IsHostType(node_.output_type(i)) || IsHostArg(i, false));
      used_outputs_.push_back(init.is_used(i));
    }
  }

  bool RunsOnHost() const {
    return AccessesNoElements(node_.op_name()) ||
           (std::all_of(host_inputs_.begin(), host_inputs_.end(), [](bool b) { return b; }) &&
            std::all_of(host_outputs_.begin(), host_outputs_.end(), [](bool b) { return b; }));
  }

  // True if the shapes of the outputs may depend on elements in device memory, or if the host needs
  // an output immediately.
  bool MustWait(absl::Span<const Shape> inputs) const {
    for (int i = 0; i < num_outputs(); ++i) {
      if (host_outputs_[i] && !IsRef(node_.output_type(i))) return true;
    }
    bool known = true, any_on_host = false;
    for (int i = 0; i < num_inputs(); ++i) {
      known = known && inputs[i].IsFullyDefined();
      any_on_host = any_on_host || host_inputs_[i];
    }
    const Tensors nothing(static_cast<size_t>(num_inputs()));
    return known && !any_on_host && !InferShapes({inputs.begin(), inputs.end()}, nothing, {});
  }

  // Enqueues the kernel; its outputs are valid in stream order.
  absl::Status Enqueue(KernelContext& c) {
    auto run = std::make_shared<LateRun>();
    std::vector<std::unique_lock<Mutex>> locks;
    WEIR_RETURN_IF_ERROR(BindInputs(c, run.get(), &locks));
    if (const auto shapes = InferShapes(c, *run); shapes.has_value()) {
      WEIR_RETURN_IF_ERROR(AllocateOutputs(c, *shapes, run.get()));
      device_.late_stream().Enqueue([self = shared_from_this(), run] {
        if (run->step.cancellation->cancelled()) return;
        const absl::Status status = self->Compute(run.get());
        if (!status.ok()) {
          run->step.cancellation->Cancel(AtNode(self->node_, self->device_, status));
        }
      });
      return absl::OkStatus();
    }
    std::promise<absl::Status> finished;
    RunAndWait(c, std::move(run), [&](absl::Status s) { finished.set_value(std::move(s)); });
    locks.clear();
    return finished.get_future().get();
  }

  // Enqueues the kernel; calls `done` when it has run.
  void EnqueueAndNotify(KernelContext& c, Kernel::Done done) {
    auto run = std::make_shared<LateRun>();
    std::vector<std::unique_lock<Mutex>> locks;
    const absl::Status status = BindInputs(c, run.get(), &locks);
    if (!status.ok()) return done(status);
    RunAndWait(c, std::move(run), std::move(done));
  }

 private:
  int num_inputs() const { return node_.num_inputs(); }
  int num_outputs() const { return node_.num_outputs(); }

  bool IsHostArg(int i, bool input) const {
    return std::any_of(def_.host_args.begin(), def_.host_args.end(), [&](const std::string& name) {
      if (name == kAllArgs) return true;
      const auto [first, last] = input ? node_.InputRange(name) : node_.OutputRange(name);
      return i >= first && i < last;
    });
  }

  // Returns a view of device memory with the stream's address.
  Tensor StreamView(const Tensor& t) const {
    return Tensor::View(t.dtype(), t.shape(), device_.memory().StreamAddress(t.raw()));
  }

  absl::Status BindInputs(KernelContext& c, LateRun* run,
                          std::vector<std::unique_lock<Mutex>>* locks) const {
    run->step = c.step();
    run->slots.resize(static_cast<size_t>(num_inputs() + num_outputs()));
    run->expected.resize(run->slots.size());
    run->dead.resize(run->slots.size());
    LockVariables(c, locks);
    for (int i = 0; i < num_inputs(); ++i) {
      const Tensor& in = c.input(i);
      run->dead[i] = c.input_is_dead(i) ? 1 : 0;
      if (run->dead[i] != 0) continue;
      if (c.variable_or_null(i) != nullptr) {
        WEIR_ASSIGN_OR_RETURN(run->slots[i], MakeProxy(c, i, run));
      } else if (host_inputs_[i]) {
        if (!in.host_accessible()) return WrongMemory(i, in);
        run->slots[i] = in.DeepCopy();
      } else {
        if (!device_.memory().Contains(in.raw())) return WrongMemory(i, in);
        run->slots[i] = StreamView(in);
      }
    }
    return absl::OkStatus();
  }

  absl::Status WrongMemory(int i, const Tensor& in) const {
    return Internal("input ", i, ", ", in.Description(), ", is in the wrong memory");
  }

  static void LockVariables(const KernelContext& c, std::vector<std::unique_lock<Mutex>>* locks) {
    std::set<VariableState*> states;
    for (int i = 0; i < c.num_inputs(); ++i) {
      if (!c.input_is_dead(i) && c.variable_or_null(i) != nullptr)
        states.insert(c.variable_or_null(i));
    }
    for (VariableState* state : states) locks->emplace_back(state->mutex());
  }

  // Returns a handle to a proxy of the variable at input i.
  absl::StatusOr<Tensor> MakeProxy(const KernelContext& c, int i, LateRun* run) const {
    ResourceHandle handle = *c.input(i).data<ResourceHandle>();
    VariableState& variable = *c.variable_or_null(i);
    for (int k = 0; k < i; ++k) {  // one proxy for a variable that occurs twice
      if (run->dead[k] == 0 && c.variable_or_null(k) == &variable) return run->slots[k];
    }
    auto twin =
        std::make_shared<VariableState>(variable.name(), variable.dtype(), variable.shape());
    const bool written = std::count(def_.writes.begin(), def_.writes.end(), i) > 0;
    if (variable.initialized()) {
      if (written) WEIR_RETURN_IF_ERROR(variable.Writable(device_).status());
      const Tensor& value = variable.value();
      if (!device_.memory().Contains(value.raw())) return WrongMemory(i, value);
      char* data = device_.memory().StreamAddress(value.raw());
      twin->Set(Tensor(value.dtype(), value.shape(),
                       BufferPtr(Buffer::Wrap(data, value.num_bytes(), nullptr, nullptr, nullptr)),
                       data));
    }
    run->variables.push_back({twin, twin->value().raw()});
    handle.resource = std::move(twin);
    return Tensor::Scalar(std::move(handle));
  }

  // ---- shapes of the outputs, before they are computed

  class HostValues : public ShapeContext::Values {
   public:
    explicit HostValues(const Tensors& inputs) : inputs_(inputs) {}
    const Tensor* value(const Node&, int i) override {
      const Tensor& t = inputs_[i];
      const bool known = t.initialized() && IsPlain(t.dtype()) && t.buffer();
      return known ? &t : nullptr;  // views of device memory have no buffer
    }
    Shape value_as_shape(const Node& node, int i) override {
      const Tensor* t = value(node, i);
      if (t == nullptr || !IsInteger(t->dtype()) || t->num_elements() > Shape::kMaxRank)
        return Shape::UnknownRank();
      std::vector<int64_t> dims;
      for (int64_t k = 0; k < t->num_elements(); ++k)
        dims.push_back(std::max<int64_t>(-1, t->IntAt(k)));
      return Shape(dims);
    }

   private:
    const Tensors& inputs_;
  };

  std::optional<std::vector<Shape>> InferShapes(std::vector<Shape> inputs, const Tensors& values,
                                                std::vector<const HandleData*> handles) const {
    std::vector<Shape> shapes;
    for (int i = 0; i < num_outputs(); ++i) shapes.push_back(node_.output_shape(i));
    if (node_.op().shape_fn()) {
      handles.resize(inputs.size());
      HostValues known(values);
      ShapeContext context(node_, inputs, handles, known);
      if (!node_.op().shape_fn()(context).ok()) return std::nullopt;
      // The shapes stated in a file may be wrong.
      shapes.assign(context.outputs().begin(), context.outputs().end());
    }
    for (int i = 0; i < num_outputs(); ++i) {
      if (!shapes[i].IsFullyDefined() && !IsRef(node_.output_type(i))) return std::nullopt;
    }
    return shapes;
  }

  std::optional<std::vector<Shape>> InferShapes(const KernelContext& c, const LateRun& run) const {
    std::vector<Shape> shapes;
    std::vector<HandleData> data(static_cast<size_t>(num_inputs()));
    std::vector<const HandleData*> handles;
    for (int i = 0; i < num_inputs(); ++i) {
      const VariableState* variable = c.variable_or_null(i);
      const bool has_value = variable != nullptr && variable->initialized();
      shapes.push_back(has_value && IsRef(node_.input_type(i)) ? variable->value().shape()
                                                               : c.input(i).shape());
      if (has_value) data[i] = {variable->dtype(), variable->value().shape()};
      handles.push_back(variable != nullptr ? &data[i] : nullptr);
    }
    return InferShapes(std::move(shapes), run.slots, std::move(handles));
  }

  // ---- outputs

  // An output reference is the same as the input reference.
  void PassReference(KernelContext& c, int output) const {
    for (int i = 0; i < num_inputs(); ++i) {
      if (IsRef(node_.input_type(i))) return c.SetOutput(output, c.input(i));
    }
  }

  absl::Status AllocateOutputs(KernelContext& c, const std::vector<Shape>& shapes,
                               LateRun* run) const {
    for (int i = 0; i < num_outputs(); ++i) {
      if (IsRef(node_.output_type(i))) {
        PassReference(c, i);
        continue;
      }
      WEIR_ASSIGN_OR_RETURN(const Tensor* out, c.AllocateOutput(i, shapes[i]));
      run->expected[num_inputs() + i] = StreamView(*out);
    }
    return absl::OkStatus();
  }

  // ---- on the stream

  absl::Status Call(LateRun* run) const {
    device_.CountRun(node_);
    static Device& host = *NewCpuDevice().release();  // the memory of temporaries
    std::vector<int32_t> positions(run->slots.size());
    for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int32_t>(i);
    KernelContext context(node_, host, run->step,
                          {.slots = run->slots.data(),
                           .planned = run->expected.data(),
                           .dead = run->dead.data(),
                           .inputs = positions.data(),
                           .outputs = positions.data() + num_inputs(),
                           .num_inputs = num_inputs(),
                           .num_outputs = num_outputs()});
    WEIR_RETURN_IF_ERROR(kernel_.run()(context));
    for (const VariableProxy& v : run->variables) {
      if (v.variable->value().raw() != v.data)
        return Internal("the kernel gave ", v.variable->Describe(), " other memory");
    }
    return absl::OkStatus();
  }

  absl::Status Compute(LateRun* run) const {
    WEIR_RETURN_IF_ERROR(Call(run));
    for (size_t i = static_cast<size_t>(num_inputs()); i < run->slots.size(); ++i) {
      const Tensor& result = run->slots[i];
      Tensor& wanted = run->expected[i];
      // A reference, or an output that the kernel need not set.
      if (!wanted.initialized() || !used_outputs_[i - num_inputs()]) continue;
      if (result.shape() != wanted.shape() || result.dtype() != wanted.dtype()) {
        return Internal("the shape rule says that output ", i - num_inputs(), " is ",
                        wanted.Description(), ", but it is ", result.Description());
      }
      if (result.raw() != wanted.raw() && result.num_bytes() > 0)
        std::memmove(wanted.raw(), result.raw(), result.num_bytes());
    }
    return absl::OkStatus();
  }

  void RunAndWait(KernelContext& c, std::shared_ptr<LateRun> run, Kernel::Done done) {
    device_.late_stream().Enqueue(
        [self = shared_from_this(), run = std::move(run), &c, done = std::move(done)] {
          if (run->step.cancellation->cancelled()) return done(run->step.cancellation->status());
          absl::Status status = self->Call(run.get());
          if (status.ok()) status = self->CopyOutputs(c, run.get());
          done(status);
        });
  }

  // The kernel's result is in host memory or is one of its inputs. It is copied to memory that is
  // allocated now, and is valid in stream order.
  absl::Status CopyOutputs(KernelContext& c, LateRun* run) const {
    for (int i = 0; i < num_outputs(); ++i) {
      const size_t position = static_cast<size_t>(num_inputs() + i);
      const Tensor& result = run->slots[position];
      if (run->dead[position] != 0) {
        c.SetOutputDead(i);
      } else if (IsRef(node_.output_type(i))) {
        PassReference(c, i);
      } else if (host_outputs_[i]) {
        c.SetOutput(i, result.DeepCopy());
      } else {
        WEIR_ASSIGN_OR_RETURN(const Tensor* out, c.AllocateOutput(i, result.shape()));
        device_.late_stream().Enqueue(
            [from = result.DeepCopy(), to = device_.memory().StreamAddress(out->raw())] {
              if (from.num_bytes() > 0) std::memcpy(to, from.raw(), from.num_bytes());
            });
      }
    }
    return absl::OkStatus();
  }

  LateDevice& device_;
  const Node& node_;
  const KernelDef& def_;
  const Kernel kernel_;
  std::vector<bool> host_inputs_, host_outputs_, used_outputs_;
};

}  // namespace

Kernel LateDevice::Wrap(const KernelInit& init, Kernel kernel) {
  const KernelDef* def = kernels().Find(init.node, kCpu);
  if (kernel.is_constant() || kernel.is_async() || def == nullptr) return kernel;
  auto late = std::make_shared<LateKernel>(*this, init, *def, kernel);
  if (late->RunsOnHost()) return kernel;
  if (late->MustWait(init.input_shapes)) {
    return Kernel([late](KernelContext& c, Kernel::Done done) {
      late->EnqueueAndNotify(c, std::move(done));
    });
  }
  return Kernel([late](KernelContext& c) -> absl::Status { return late->Enqueue(c); });
}

}  // namespace weir
