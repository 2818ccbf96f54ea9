#ifndef WEIR_CORE_KERNEL_H_
#define WEIR_CORE_KERNEL_H_

#include <algorithm>
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
#include "weir/core/cancellation.h"
#include "weir/core/device.h"
#include "weir/core/graph.h"
#include "weir/core/resource.h"
#include "weir/core/thread_pool.h"

namespace weir {

template <class Registry>
class Families;
class Functions;
class KernelContext;

// A call of a function in progress: the node that calls, and the call that it is in itself.
struct FunctionCall {
  const Node* node = nullptr;
  const FunctionCall* outer = nullptr;
  int depth = 1;
};

// What kernels of one step share.
struct StepInfo {
  int64_t step_id = 0;
  ThreadPool* pool = nullptr;
  ResourceMap* resources = nullptr;
  Cancellation* cancellation = nullptr;
  const FunctionCall* call = nullptr;  // null outside of functions
  // When the step is given up, if at all, and how long it may take.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::chrono::milliseconds timeout{0};
};

// What a kernel factory sees, once, when a Plan is made.
struct KernelInit {
  const Node& node;
  Device& device;
  ResourceMap& resources;
  // Shapes of the inputs as far as the Plan knows them: a kernel may prepare for them, but must
  // check at run time.
  absl::Span<const Shape> input_shapes;
  // What the kernel may call (core/function.h); null where there is no session.
  Functions* functions = nullptr;
  // By input, or empty if nothing is known: it is probably the same in each step, and stays as it
  // is for as long as somebody holds the tensor. So are constants, and the variables of a step
  // that writes to none; what is fed is not.
  absl::Span<const bool> step_invariant_inputs = {};
  // Whether it may take an algorithm with fewer operations that rounds otherwise than the
  // definition, like Winograd's for convolutions (SessionOptions::disable).
  bool fast_algorithms = true;

  bool is_step_invariant(int input) const {
    return input < static_cast<int>(step_invariant_inputs.size()) && step_invariant_inputs[input];
  }

  template <class T>
  T attr(absl::string_view name) const {
    return node.attr<T>(name);
  }
};

// A computation ready to run: a closure made once from a node's attributes, run once a step. It has
// one of three forms:
//
// clang-format off
//   form          type                                  what it does
//   synchronous   absl::Status(KernelContext&)          computes (or enqueues on the device's stream), returns
//   asynchronous  void(KernelContext&, Done)            may return early; calls done once, from any thread; for
//                                                       kernels that wait (queues, remote calls): no thread is held
//   constant      Tensor                                never runs: the output is known (Const, VarHandleOp)
// clang-format on
//
// A closure may be run by several steps at once; what it remembers must allow that.
class Kernel {
 public:
  using Done = std::function<void(absl::Status)>;
  using Run = std::function<absl::Status(KernelContext&)>;
  using RunAsync = std::function<void(KernelContext&, Done)>;

  Kernel() = default;
  template <class F,
            std::enable_if_t<std::is_invocable_r_v<absl::Status, F&, KernelContext&>, int> = 0>
  Kernel(F run) : form_(Run(std::move(run))) {}
  template <class F,
            std::enable_if_t<std::is_invocable_r_v<void, F&, KernelContext&, Done>, int> = 0,
            class = void>
  Kernel(F run) : form_(RunAsync(std::move(run))) {}
  static Kernel Constant(Tensor value);

  // What the kernel has in this form; empty if it is of another one.
  const Run& run() const& { return As<Run>(); }
  const RunAsync& run_async() const& { return As<RunAsync>(); }
  const Tensor& constant() const { return As<Tensor>(); }
  Run run() && { return Take<Run>(); }
  RunAsync run_async() && { return Take<RunAsync>(); }
  bool is_async() const { return std::holds_alternative<RunAsync>(form_); }
  bool is_constant() const { return constant().initialized(); }

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

// One run of a kernel: its inputs, its outputs, and where it runs. Valid until the kernel returns
// (or calls done).
class KernelContext {
 public:
  // Where a node's values lie: `slots` is an array of values, `inputs` and `outputs` the positions
  // of this node's. `planned` (may be null) holds, at the position of an output, the memory that
  // the Plan has laid out for it.
  struct Binding {
    Tensor* slots = nullptr;
    const Tensor* planned = nullptr;
    uint8_t* dead = nullptr;
    const int32_t* inputs = nullptr;
    const int32_t* outputs = nullptr;
    int32_t num_inputs = 0, num_outputs = 0;
    // Bit i: output i stays in host memory (a shape, a handle) although the device has memory of
    // its own.
    uint64_t host_outputs = 0;
    // Outputs may share an input's memory even if that is a step's arena: the Plan knows and keeps
    // it alive.
    bool aliases = false;
    // Positions of inputs that nobody needs after this kernel, which may write over them (InPlace):
    // an output takes the memory of one of these, rather than new memory.
    const int32_t* last_uses = nullptr;
    int32_t num_last_uses = 0;
  };
  KernelContext(const Node& node, Device& device, const StepInfo& step, const Binding& b)
      : node_(&node), device_(&device), step_(&step), b_(b) {}

  const Node& node() const { return *node_; }
  Device& device() const { return *device_; }
  ThreadPool& pool() const { return *step_->pool; }
  ResourceMap& resources() const { return *step_->resources; }
  const StepInfo& step() const { return *step_; }
  Cancellation* cancellation() const { return step_->cancellation; }

  int num_inputs() const { return b_.num_inputs; }
  int num_outputs() const { return b_.num_outputs; }
  const Tensor& input(int i) const { return b_.slots[b_.inputs[i]]; }
  template <class T>
  const T* input_data(int i) const {
    return input(i).template data<T>();
  }
  // True for the output of a branch not taken. Only kernels registered with AcceptsDead meet one.
  bool input_is_dead(int i) const { return b_.dead[b_.inputs[i]] != 0; }
  // Nobody in the step needs the value after this kernel, which is registered InPlace for it.
  bool is_last_use(int i) const {
    const int32_t* const end = b_.last_uses + b_.num_last_uses;
    return std::find(b_.last_uses, end, b_.inputs[i]) != end;
  }

  // The tensor to write output i into: the planned memory if the shape is as planned, else new
  // memory. Its elements are uninitialized; for kernels registered InPlace it may be an input's
  // memory, element for element.
  absl::StatusOr<Tensor*> AllocateOutput(int i, const Shape& shape);
  // The planned memory of output i if it is of this shape, else null (then AllocateOutput): for
  // kernels so small that a StatusOr counts.
  Tensor* PlannedOutput(int i, const Shape& shape) {
    if (b_.planned == nullptr) return nullptr;
    Tensor& slot = b_.slots[b_.outputs[i]];
    const Tensor& planned = b_.planned[b_.outputs[i]];
    if (!planned.initialized()) return nullptr;
    if (slot.raw() == planned.raw() && slot.shape() == shape) return &slot;  // as a step ago
    if (planned.shape() != shape) return nullptr;
    slot = planned;
    return &slot;
  }
  // Gives output i a tensor that exists already, without copying: an input (perhaps reshaped), a
  // variable's value.
  void SetOutput(int i, Tensor value);
  // Output i belongs to a branch not taken.
  void SetOutputDead(int i) { b_.dead[b_.outputs[i]] = 1; }
  // Memory for intermediate results, on this device.
  absl::StatusOr<Tensor> AllocateTemp(DataType dtype, const Shape& shape);

  // The variable at input i: a resource handle, or a reference. FAILED_PRECONDITION if the handle
  // is to nothing.
  absl::StatusOr<std::shared_ptr<VariableState>> variable(int i) const;
  // The same without the counted pointer, for the fast path; lives at least as long as this run.
  VariableState* variable_or_null(int i) const;
  // The resource of type T at input i; INVALID_ARGUMENT if it is of another type.
  template <class T>
  absl::StatusOr<std::shared_ptr<T>> resource(int i) const {
    const Tensor& handle = input(i);
    if (handle.dtype() != DT_RESOURCE || handle.num_elements() != 1) return WrongResource(i);
    auto typed = std::dynamic_pointer_cast<T>(handle.template data<ResourceHandle>()->resource);
    if (typed == nullptr) return WrongResource(i);
    return typed;
  }
  // The tensor itself if it may be kept beyond the step, else a copy of it: for kernels that store
  // values (assign, push).
  absl::StatusOr<Tensor> Own(const Tensor& value) const;

  // InvalidArgument and the like with "op (node name): " in front come from the executor; kernels
  // return plain messages.

 private:
  absl::Status WrongResource(int i) const;
  bool host_output(int i) const { return i < 64 && (b_.host_outputs >> i & 1) != 0; }

  const Node* node_;
  Device* device_;
  const StepInfo* step_;
  Binding b_;
};

// Makes a kernel for a node, from its attributes; or, for an op whose kernel needs none, is the
// kernel: a plain function.
class KernelFactory : public std::function<absl::StatusOr<Kernel>(const KernelInit&)> {
 public:
  using function::function;
  KernelFactory(absl::Status (*run)(KernelContext&));
};
// In KernelDef::host_args: all arguments.
inline constexpr char kAllArgs[] = "*";

using TypeConstraints = std::vector<std::pair<std::string, DataType>>;

// One kernel of an op for one place, and what a Plan must know to use it well.
struct KernelDef {
  KernelDef();
  ~KernelDef();

  std::string op;
  Place place = kCpu;
  TypeConstraints constraints;  // attribute -> type; attributes not named may have any
  KernelFactory make;

  // Inputs (by position) whose memory an output of the same byte size may take over: the kernel
  // reads element i of them no later than it writes element i of the output.
  std::vector<int> in_place;
  // Output i may be a view of input aliases[i] (Identity, Reshape); -1 for none. Shorter: none.
  std::vector<int> aliases;
  // Output i may be a view of input i, however many there are (IdentityN).
  bool aliases_each = false;
  // Arguments (by name) that stay in host memory on an accelerator: shapes, axes, handles.
  std::vector<std::string> host_args;
  // The kernel writes the variables at these inputs: the Plan runs it after other readers of theirs
  // where it may.
  std::vector<int> writes;
  // Runs even if inputs are dead (Merge).
  bool accepts_dead = false;
  // Estimated nanoseconds on one thread; null: from the bytes that go in and out.
  double (*cost)(const KernelInit&) = nullptr;

  // Set them, and return *this.
  KernelDef& InPlace(absl::Span<const int> inputs);
  KernelDef& Aliases(absl::Span<const int> inputs);
  KernelDef& AliasesEach();
  KernelDef& HostArgs(std::vector<std::string> names);
  KernelDef& Writes(absl::Span<const int> inputs);
  KernelDef& AcceptsDead();
  KernelDef& Cost(double (*fn)(const KernelInit&));

  // The input whose memory output i may be a view of; -1 if there is none.
  int AliasedInput(int output) const {
    if (aliases_each) return output;
    return output < static_cast<int>(aliases.size()) ? aliases[output] : -1;
  }
  bool has_aliases() const { return aliases_each || !aliases.empty(); }
};

// Kernels by op and place. Filled by plain functions from one list (kernels/registry.cc); a user's
// registry is layered over the built-in one. Not changed once a session uses it; look-ups are
// thread-safe.
//
//   r->Add("MatMul", kCpu, DT_FLOAT, MakeMatMul).Cost(MatMulCost);
//   r->Add("Shape", kCpu, Shape).HostArgs({"output"});
class KernelRegistry {
 public:
  explicit KernelRegistry(const KernelRegistry* base = nullptr);
  // With records that are made when they are first looked up.
  explicit KernelRegistry(std::unique_ptr<const Families<KernelRegistry>> families);
  ~KernelRegistry();
  KernelRegistry(const KernelRegistry&) = delete;
  KernelRegistry& operator=(const KernelRegistry&) = delete;

  // For any types.
  KernelDef& Add(absl::string_view op, Place place, KernelFactory make);
  // For one type of the op's attribute "T" ("dtype" where it has no T: the registry tries both).
  KernelDef& Add(absl::string_view op, Place place, DataType type, KernelFactory make);
  // The reference is good until the next Add.
  KernelDef& Add(absl::string_view op, Place place, TypeConstraints constraints,
                 KernelFactory make);

  // The kernel for this node; null if there is none. A node whose op is a function has that of
  // PartitionedCall. The constraint on "" is on "T", else "dtype".
  const KernelDef* Find(const Node& node, Place place) const;
  // Why Find gave null: INVALID_ARGUMENT, naming the node, its types, and the kernels there are.
  absl::Status NoKernel(const Node& node, Place place) const;
  // Op names with a kernel for the place, sorted.
  std::vector<std::string> Ops(Place place) const;
  // The kernels of one op, all places.
  std::vector<const KernelDef*> KernelsOf(absl::string_view op) const;

 private:
  const KernelRegistry* base_;
  const std::unique_ptr<const Families<KernelRegistry>> families_;  // may be null
  absl::flat_hash_map<std::string, std::vector<std::unique_ptr<KernelDef>>> kernels_;
};

// Every kernel that Weir ships. Defined in kernels/registry.cc, the one list of families.
const KernelRegistry& BuiltinKernels();

}  // namespace weir

#endif  // WEIR_CORE_KERNEL_H_
