#ifndef WEIR_CORE_RUNTIME_KERNEL_H_
#define WEIR_CORE_RUNTIME_KERNEL_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "weir/core/graph/graph.h"
#include "weir/core/runtime/device.h"
#include "weir/core/runtime/resource.h"
#include "weir/core/runtime/thread_pool.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/cancellation.h"

// Kernels: the functions that run nodes, what they are given, and the registry where sessions find
// them. docs/add_an_op.md writes one.
namespace WEIR_API weir {

class DrawOrder;
template <class Registry>
class Families;
class Functions;
class KernelContext;
class KernelRegistry;
class Rendezvous;
class StepTrace;

// A function call in progress: the calling `node`, the enclosing call (`outer`, null for none), and
// how many calls there are (`depth`).
struct FunctionCall {
  const Node* node = nullptr;
  const FunctionCall* outer = nullptr;
  int depth = 1;
};

// Where in the loops of a step a node runs: the frame, numbered as TensorFlow's tasks do
// (StepFrame::Inner), and its iteration. 0 and 0 outside of loops.
struct StepFrame {
  uint64_t id = 0;        // of the frame
  int64_t iteration = 0;  // of the frame's, from 0

  // The first iteration of a loop that this iteration enters; `name_hash` is the hash of its frame
  // name (kernels/lib/hash.h, MurmurHash64).
  StepFrame Inner(uint64_t name_hash) const;
};

// Shared by the kernels of one step: its number (`step_id`), the session's threads (`pool`) and
// state (`resources`), and what ends it early (`cancellation`). The session owns them; they outlive
// the step.
struct StepInfo {
  int64_t step_id = 0;
  ThreadPool* pool = nullptr;
  ResourceMap* resources = nullptr;
  Cancellation* cancellation = nullptr;
  const FunctionCall* call = nullptr;  // null outside functions
  // The deadline of the step, if any, and its time limit.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::chrono::milliseconds timeout{0};
  // Where the runtime records the kernels that run; null if the step is not traced. Opaque to
  // kernels.
  StepTrace* trace = nullptr;
  // Orders the draws of calls of a function at the same time (kernels/lib/draw_order.h); null: as
  // they come.
  DrawOrder* draws = nullptr;
  // Where the step meets its parts on other tasks; null if it has none.
  Rendezvous* rendezvous = nullptr;
};

// The input of a kernel factory, which runs once per node when a Plan is made.
struct KernelInit {
  const Node& node;        // outlives the kernel
  Device& device;          // where the kernel will run; outlives it
  ResourceMap& resources;  // the session's state
  // Input shapes as far as the Plan knows them. A kernel may specialize for them, but must check
  // the actual shapes at run time.
  absl::Span<const Shape> input_shapes;
  // The functions that the kernel may call (core/runtime/function.h); null if there is no session.
  Functions* functions = nullptr;
  // For each input, whether it is step-invariant: probably the same tensor in each step, and not
  // modified while a reference to it exists. Empty if nothing is known. Constants are
  // step-invariant, and so are the variables of a step that writes to no variable; feeds are not.
  absl::Span<const bool> step_invariant_inputs = {};
  // Whether the kernel may use an algorithm that needs fewer operations but rounds differently from
  // the definition, such as Winograd convolution (SessionOptions::disable).
  bool fast_algorithms = true;
  // The session's kernels; null where there is no session.
  const KernelRegistry* kernels = nullptr;
  // For each output, whether something uses it. A kernel need not set the others. Empty if nothing
  // is known.
  absl::Span<const bool> used_outputs = {};

  // Whether input `input` is step-invariant; false if nothing is known.
  bool is_step_invariant(int input) const {
    return input < static_cast<int>(step_invariant_inputs.size()) && step_invariant_inputs[input];
  }
  // Whether something uses output `output`; true if nothing is known.
  bool is_used(int output) const {
    return output >= static_cast<int>(used_outputs.size()) || used_outputs[output];
  }
  // The former name.
  [[deprecated("use is_step_invariant")]] bool is_lasting(int input) const {
    return is_step_invariant(input);
  }

  // Returns an attribute of the node, as Node::attr does.
  template <class T>
  T attr(absl::string_view name) const {
    return node.attr<T>(name);
  }
};

// An executable computation: a closure created once from a node's attributes and run once per step.
// It has one of three forms:
//
// clang-format off
//   form          type                                  behavior
//   synchronous   absl::Status(KernelContext&)          computes (or enqueues on the device's stream) and returns
//   asynchronous  void(KernelContext&, Done)            may return early; calls `done` once, from any thread; for kernels
//                                                       that wait (queues, remote calls) without blocking a thread
//   constant      Tensor                                never runs: the output is known (Const, VarHandleOp)
// clang-format on
//
// Several steps may run a closure concurrently, so its state must be thread-safe.
class Kernel {
 public:
  // What an asynchronous kernel calls with its status, once; and the two kinds of closures. A
  // kernel whose step is cancelled, or is beyond its time limit, must call it too
  // (StepInfo::cancellation tells it): the step's memory stays until then, and the session's
  // destructor waits.
  using Done = std::function<void(absl::Status)>;
  using Run = std::function<absl::Status(KernelContext&)>;
  using RunAsync = std::function<void(KernelContext&, Done)>;

  Kernel() = default;
  // A synchronous kernel, and an asynchronous one. The closure is copied; it owns what it needs,
  // and refers to nothing of KernelInit but `node`, `device` and `resources`.
  template <class F,
            std::enable_if_t<std::is_invocable_r_v<absl::Status, F&, KernelContext&>, int> = 0>
  Kernel(F run) : form_(Run(std::move(run))) {}
  template <class F,
            std::enable_if_t<std::is_invocable_r_v<void, F&, KernelContext&, Done>, int> = 0,
            class = void>
  Kernel(F run) : form_(RunAsync(std::move(run))) {}
  // A kernel that never runs: the node's output is `value`.
  static Kernel Constant(Tensor value);

  // The closure or value of each form; empty if the kernel has another form.
  const Run& run() const& { return As<Run>(); }
  const RunAsync& run_async() const& { return As<RunAsync>(); }
  const Tensor& constant() const { return As<Tensor>(); }
  Run run() && { return Take<Run>(); }
  RunAsync run_async() && { return Take<RunAsync>(); }
  // Whether it has the asynchronous form.
  bool is_async() const { return std::holds_alternative<RunAsync>(form_); }
  bool is_constant() const { return constant().initialized(); }  // whether it has the constant form

 private:
  template <class T>
  const T& As() const {
    static const T* const empty = new T;
    const T* form = std::get_if<T>(&form_);
    return form != nullptr ? *form : *empty;
  }
  template <class T>
  T Take() {
    T* form = std::get_if<T>(&form_);
    return form != nullptr ? std::move(*form) : T();
  }

  std::variant<Run, RunAsync, Tensor> form_;
};

// One execution of a kernel: its inputs, its outputs, and the device. Valid until the kernel
// returns (or calls `done`).
class KernelContext {
 public:
  // The locations of a node's values: `slots` is the array of all values, `inputs` and `outputs`
  // hold the slot indices of this node's `num_inputs` and `num_outputs` values. `planned` (may be
  // null) holds, at the index of an output, the memory that the Plan assigned to it. `dead` has, at
  // the index of a value, 1 for a dead tensor.
  struct Binding {
    Tensor* slots = nullptr;
    const Tensor* planned = nullptr;
    uint8_t* dead = nullptr;
    const int32_t* inputs = nullptr;
    const int32_t* outputs = nullptr;
    int32_t num_inputs = 0, num_outputs = 0;
    // Bit i: output i is in host memory (a shape, a handle) although the device has its own memory.
    uint64_t host_outputs = 0;
    // Outputs may alias an input even if its memory is a step's arena: the Plan knows the alias and
    // keeps the memory alive.
    bool aliases = false;
    // Slot indices of the inputs that this kernel uses last and may overwrite (InPlace): an output
    // reuses the memory of one of them instead of new memory.
    const int32_t* last_uses = nullptr;
    int32_t num_last_uses = 0;
    const StepFrame* frame = nullptr;  // of an op that crosses tasks (op_traits.h)
  };
  // Made by the executor. All arguments outlive the context.
  KernelContext(const Node& node, Device& device, const StepInfo& step, const Binding& b)
      : node_(&node), device_(&device), step_(&step), b_(b) {}

  // The node, its device, and what all kernels of the step share: threads, state, and what ends the
  // step early. A kernel that waits or loops for long observes `cancellation`
  // (core/tensor/cancellation.h).
  const Node& node() const { return *node_; }
  Device& device() const { return *device_; }
  ThreadPool& pool() const { return *step_->pool; }
  ResourceMap& resources() const { return *step_->resources; }
  const StepInfo& step() const { return *step_; }
  Cancellation* cancellation() const { return step_->cancellation; }

  // The node's values. An input is in the device's memory, or in the host's if HostArgs names
  // it; i < num_inputs().
  int num_inputs() const { return b_.num_inputs; }
  int num_outputs() const { return b_.num_outputs; }
  const Tensor& input(int i) const { return b_.slots[b_.inputs[i]]; }
  // The elements of an input. A type other than its dtype is fatal.
  template <class T>
  const T* input_data(int i) const {
    return input(i).template data<T>();
  }
  // Returns true for a dead tensor, the output of a branch not taken. Only kernels registered with
  // AcceptsDead see dead tensors.
  bool input_is_dead(int i) const { return b_.dead[b_.inputs[i]] != 0; }
  // The frame and iteration that the node runs in; only for ops that cross tasks (op_traits.h).
  const StepFrame& frame() const { return *b_.frame; }
  // Returns true if this kernel, which is registered InPlace for input i, is the last user of the
  // value in the step.
  bool is_last_use(int i) const {
    const int32_t* const end = b_.last_uses + b_.num_last_uses;
    return std::find(b_.last_uses, end, b_.inputs[i]) != end;
  }

  // Returns the tensor for output i: the planned memory if the shape is as planned, otherwise new
  // memory. The elements are uninitialized. For kernels registered InPlace, the memory may be that
  // of an input; elements then coincide.
  absl::StatusOr<Tensor*> AllocateOutput(int i, const Shape& shape);
  // Returns the planned memory of output i if its shape matches, otherwise null (call
  // AllocateOutput then). For kernels so small that the cost of a StatusOr matters.
  Tensor* PlannedOutput(int i, const Shape& shape) {
    if (b_.planned == nullptr) return nullptr;
    Tensor& slot = b_.slots[b_.outputs[i]];
    const Tensor& planned = b_.planned[b_.outputs[i]];
    if (!planned.initialized()) return nullptr;
    if (slot.raw() == planned.raw() && slot.shape() == shape)
      return &slot;  // unchanged since the previous step
    if (planned.shape() != shape) return nullptr;
    slot = planned;
    return &slot;
  }
  // Sets output i to an existing tensor without copying: an input (possibly reshaped), a variable's
  // value.
  void SetOutput(int i, Tensor value);
  // Marks output i as dead: it belongs to a branch not taken.
  void SetOutputDead(int i) { b_.dead[b_.outputs[i]] = 1; }
  // Allocates memory for intermediate results on this device.
  absl::StatusOr<Tensor> AllocateTemp(DataType dtype, const Shape& shape);

  // Returns the variable at input i: a resource handle, or a reference. Returns FAILED_PRECONDITION
  // if the handle refers to no resource.
  absl::StatusOr<std::shared_ptr<VariableState>> variable(int i) const;
  // Same, without reference counting, for the fast path. The variable lives at least as long as
  // this execution.
  VariableState* variable_or_null(int i) const;
  // Returns the resource at input i; INVALID_ARGUMENT if it is not of type T.
  template <class T>
  absl::StatusOr<std::shared_ptr<T>> resource(int i) const {
    const Tensor& handle = input(i);
    if (handle.dtype() != DT_RESOURCE || handle.num_elements() != 1) return WrongResource(i);
    auto typed = std::dynamic_pointer_cast<T>(handle.template data<ResourceHandle>()->resource);
    if (typed == nullptr) return WrongResource(i);
    return typed;
  }
  // Returns the tensor itself if it may outlive the step, otherwise a copy. For kernels that store
  // values (assign, push).
  absl::StatusOr<Tensor> Own(const Tensor& value) const;

  // The executor prefixes errors with "op (node name): "; kernels return plain messages.

 private:
  absl::Status WrongResource(int i) const;
  bool host_output(int i) const { return i < 64 && (b_.host_outputs >> i & 1) != 0; }

  const Node* node_;
  Device* device_;
  const StepInfo* step_;
  Binding b_;
};

// Creates a kernel from a node's attributes. For an op whose kernel needs no attributes, the
// factory can be the kernel itself: a plain function.
class KernelFactory : public std::function<absl::StatusOr<Kernel>(const KernelInit&)> {
 public:
  using function::function;
  // The kernel itself, for all nodes of the op.
  KernelFactory(absl::Status (*run)(KernelContext&));
};
// In KernelDef::host_args: all arguments.
inline constexpr char kAllArgs[] = "*";

// The function of an elementwise op, for one type: what its kernel computes for all elements, and
// what fused kernels call for a tile of elements that is in the L1 cache. `param` is the value of
// the attribute `attr`, a float, or 0.
struct ElementwiseLoop {
  DataType type = DT_INVALID;  // of the arguments and of the result
  // Computes y[i] = f(x[i]) for i in [0, n). y may be x; otherwise they do not overlap.
  void (*unary)(const void* x, void* y, int64_t n, double param) = nullptr;
  // Computes z[i] = f(x[i], y[i]). z may be x or y.
  void (*binary)(const void* x, const void* y, void* z, int64_t n, double param) = nullptr;
  const char* attr = nullptr;  // a float attribute of the op, passed as `param`; null: none
  float cost_ns = 1;           // for each element, on one thread
};

// The types of attributes, by name: {{"T", DT_FLOAT}}.
using TypeConstraints = std::vector<std::pair<std::string, DataType>>;

// The registration of a kernel: one op, one place, and the properties that the Plan uses.
struct KernelDef {
  KernelDef();
  ~KernelDef();

  std::string op;               // the op's name
  Place place = kCpu;           // where it runs
  TypeConstraints constraints;  // attribute -> type; other attributes may have any type
  KernelFactory make;           // makes the kernel of a node

  // Inputs (by position) whose memory an output of the same size in bytes may reuse. The kernel
  // must read element i of such an input no later than it writes element i of the output.
  std::vector<int> in_place;
  // Output i may alias input aliases[i] (Identity, Reshape); -1 or missing: no alias.
  std::vector<int> aliases;
  // Output i may alias input i, for any number of them (IdentityN).
  bool aliases_each = false;
  // Arguments (by name) that are in host memory on an accelerator: shapes, axes, handles.
  std::vector<std::string> host_args;
  // The kernel writes the variables at these inputs. The Plan runs it after the other readers of
  // these variables where possible.
  std::vector<int> writes;
  // Fused kernels may call it in place of the kernel.
  std::optional<ElementwiseLoop> elementwise;
  // The kernel runs even if inputs are dead (Merge).
  bool accepts_dead = false;
  // Estimates the nanoseconds on one thread; null: estimate from the size of inputs and outputs in
  // bytes.
  double (*cost)(const KernelInit&) = nullptr;

  // Setters; each returns *this.
  KernelDef& InPlace(absl::Span<const int> inputs);
  KernelDef& Aliases(absl::Span<const int> inputs);
  KernelDef& AliasesEach();
  KernelDef& HostArgs(std::vector<std::string> names);
  KernelDef& Writes(absl::Span<const int> inputs);
  KernelDef& AcceptsDead();
  KernelDef& Cost(double (*fn)(const KernelInit&));

  // Returns the input that output i may alias, or -1.
  int AliasedInput(int output) const {
    if (aliases_each) return output;
    return output < static_cast<int>(aliases.size()) ? aliases[output] : -1;
  }
  // Whether an output may alias an input.
  bool has_aliases() const { return aliases_each || !aliases.empty(); }
};

// The registered kernels, by op and place. Plain functions, listed in kernels/registry.cc, fill the
// built-in registry; a user's registry is layered over it. Must not change, but for Rebase, once a
// session uses it; lookups are thread-safe.
//
//   r->Add("MatMul", kCpu, DT_FLOAT, MakeMatMul).Cost(MatMulCost);
//   r->Add("Shape", kCpu, Shape).HostArgs({"output"});
class KernelRegistry {
 public:
  // Creates an empty registry layered over `base` (null: over none), which outlives it.
  explicit KernelRegistry(const KernelRegistry* base = nullptr);
  // Creates a registry whose records are constructed when they are first looked up.
  explicit KernelRegistry(std::unique_ptr<const Families<KernelRegistry>> families);
  ~KernelRegistry();
  KernelRegistry(const KernelRegistry&) = delete;
  KernelRegistry& operator=(const KernelRegistry&) = delete;

  // Replaces the base by one that has all of its kernels, and more, for kernels that are registered
  // while sessions use this registry. Thread-safe, also with lookups. Both bases outlive it.
  void Rebase(const KernelRegistry* base) { base_.store(base, std::memory_order_release); }

  // Registers a kernel for all types.
  KernelDef& Add(absl::string_view op, Place place, KernelFactory make);
  // Registers a kernel for one type of the op's attribute "T" ("dtype" if the op has no T: the
  // registry tries both).
  KernelDef& Add(absl::string_view op, Place place, DataType type, KernelFactory make);
  // The reference is valid until the next Add.
  KernelDef& Add(absl::string_view op, Place place, TypeConstraints constraints,
                 KernelFactory make);

  // Registers an elementwise op for the CPU: its kernel, which splits the elements over the
  // threads and writes in place, and its function for fused kernels. Arguments of a binary op have
  // one shape, or one of them is a scalar; other shapes are INVALID_ARGUMENT.
  KernelDef& AddElementwise(absl::string_view op, const ElementwiseLoop& loop);

  // Returns the kernel for this node, or null. A node whose op is a function uses the kernel of
  // PartitionedCall. The constraint on "" applies to "T", or else to "dtype".
  const KernelDef* Find(const Node& node, Place place) const;
  // Explains why Find returned null: INVALID_ARGUMENT with the node, its types, and the registered
  // kernels.
  absl::Status NoKernel(const Node& node, Place place) const;
  // Returns the ops with a kernel for the place, sorted.
  std::vector<std::string> Ops(Place place) const;
  // Returns the function of an op that a user has registered by AddElementwise, or null.
  const ElementwiseLoop* FindElementwise(absl::string_view op, DataType type,
                                         size_t num_arguments) const;
  // Returns the kernels of one op, for all places.
  std::vector<const KernelDef*> KernelsOf(absl::string_view op) const;

 private:
  const KernelRegistry* base() const { return base_.load(std::memory_order_acquire); }

  std::atomic<const KernelRegistry*> base_;
  const std::unique_ptr<const Families<KernelRegistry>> families_;  // may be null
  absl::flat_hash_map<std::string, std::vector<std::unique_ptr<KernelDef>>> kernels_;
};

// All built-in kernels. Defined in kernels/registry.cc, which lists the families.
const KernelRegistry& BuiltinKernels();

}  // namespace weir

#endif  // WEIR_CORE_RUNTIME_KERNEL_H_
