#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "weir/core/graph/op.h"
#include "weir/kernels/lib/backend.h"
#include "weir/ops/train/training.h"

// Kernels that other devices share with the CPU. There are two kinds.
//
// Some never access an element themselves: they forward handles, compute sizes and strides on the
// host, and leave the rest to the device's loops (kernels/lib/device_primitives.h). They are the
// CPU's own kernels, registered for the device's place too.
//
// Others compute with int32, which on such a device stays in host memory (as on TensorFlow's GPUs):
// shapes, axes and sizes are int32, and the host needs their values. These kernels run on the CPU,
// with every argument declared as a host argument. So do the operations on int64 that reject a zero
// divisor or a negative exponent, which requires reading the value.
namespace weir {

namespace {

// The types whose values are in device memory.
DataTypes DeviceTypes() {
  DataTypes types = DataTypesOf(JoinLists<Numbers, List<bool>>());
  types.erase(std::find(types.begin(), types.end(), DT_INT32));
  return types;
}

// Returns the CPU's kernel of the op for this type of this attribute.
const KernelDef* CpuKernel(const KernelRegistry& r, absl::string_view op, absl::string_view attr,
                           DataType type) {
  for (const KernelDef* def : r.KernelsOf(op)) {
    if (def->place != kCpu) continue;
    const bool fits = std::all_of(
        def->constraints.begin(), def->constraints.end(),
        [&](const auto& c) { return (!c.first.empty() && c.first != attr) || c.second == type; });
    if (fits) return def;
  }
  return nullptr;
}

// Returns the constraints of a kernel plus the constraint that the attribute has this type.
TypeConstraints Constrained(const KernelDef& def, absl::string_view attr, DataType type) {
  TypeConstraints all = def.constraints;
  const bool has = std::any_of(all.begin(), all.end(),
                               [&](const auto& c) { return c.first.empty() || c.first == attr; });
  if (!has) all.emplace_back(std::string(attr), type);
  return all;
}

// The registry, which is layered over the CPU's kernels, and the place for which it gets them too.
struct Sharing {
  KernelRegistry* kernels;
  Place place;
};

KernelDef& AddLike(const Sharing& s, const KernelDef& cpu, TypeConstraints constraints,
                   KernelFactory make) {
  // The registry may reallocate while it grows, but the definitions in it do not move.
  KernelDef& def = s.kernels->Add(cpu.op, s.place, std::move(constraints), std::move(make));
  def.in_place = cpu.in_place;
  def.aliases = cpu.aliases;
  def.host_args = cpu.host_args;
  def.writes = cpu.writes;
  def.accepts_dead = cpu.accepts_dead;
  def.cost = cpu.cost;
  return def;
}

// ---- kernels that access no elements

// For one type.
void ShareType(const Sharing& s, absl::string_view op, absl::string_view attr, DataType type,
               const std::vector<std::string>& host_args = {}) {
  const KernelDef* const cpu = CpuKernel(*s.kernels, op, attr, type);
  if (cpu == nullptr) return;
  KernelDef& def = AddLike(s, *cpu, Constrained(*cpu, attr, type), cpu->make);
  def.host_args.insert(def.host_args.end(), host_args.begin(), host_args.end());
}

// For the types that are stored on the device.
void Share(const Sharing& s, std::initializer_list<const char*> ops, absl::string_view attr = "T",
           const std::vector<std::string>& host_args = {}) {
  for (const char* op : ops) {
    for (const DataType type : DeviceTypes()) ShareType(s, op, attr, type, host_args);
  }
}

// Registers every kernel that the CPU has for the op, with additional host arguments.
void ShareAll(const Sharing& s, absl::string_view op, const std::vector<std::string>& host_args) {
  for (const KernelDef* cpu : s.kernels->KernelsOf(op)) {
    if (cpu->place != kCpu) continue;
    KernelDef& def = AddLike(s, *cpu, cpu->constraints, cpu->make);
    def.host_args.insert(def.host_args.end(), host_args.begin(), host_args.end());
  }
}

// Variables of any plain type, int32 included: their values are stored on the device.
void ShareVariables(const Sharing& s) {
  Share(s,
        {"VarHandleOp", "VariableV2", "Variable", "ReadVariableOp", "AssignVariableOp",
         "ResourceGather"},
        "dtype");
  Share(s, {"Assign", "StridedSliceAssign", "ResourceStridedSliceAssign", "RefIdentity",
            "RefSwitch", "RefMerge"});
  for (const char* op :
       {"VarHandleOp", "VariableV2", "Variable", "ReadVariableOp", "AssignVariableOp"}) {
    ShareType(s, op, "dtype", DT_INT32);
  }
  ShareType(s, "Assign", "T", DT_INT32);
  // These add elements, for types that have an addition kernel.
  for (const DataType type : DataTypesOf(JoinLists<Floats, List<int32_t, int64_t>>())) {
    for (const auto& [op, attr] :
         {std::pair("AssignAdd", "T"), std::pair("AssignSub", "T"),
          std::pair("AssignAddVariableOp", "dtype"), std::pair("AssignSubVariableOp", "dtype")}) {
      ShareType(s, op, attr, type);
    }
  }
  ShareAll(s, "VarIsInitializedOp", {"is_initialized"});
  ShareAll(s, "IsVariableInitialized", {"is_initialized"});
  ShareAll(s, "VariableShape", {"output"});
  ShareAll(s, "DestroyResourceOp", {});
}

// The saved values of loop iterations. Stacks of int32 hold them in host memory, because shapes are
// pushed to them; arrays of int32 are the CPU's.
void ShareStacksAndArrays(const Sharing& s) {
  for (const char* op : {"Enter", "Exit", "NextIteration", "Switch", "Merge", "Identity"})
    ShareType(s, op, "T", DT_RESOURCE);
  Share(s, {"StackV2"}, "elem_type", {"max_size"});
  Share(s, {"StackPushV2"});
  Share(s, {"StackPopV2"}, "elem_type");
  ShareType(s, "StackV2", "elem_type", DT_INT32, {"max_size"});
  ShareType(s, "StackPushV2", "T", DT_INT32, {"elem", "output"});
  ShareType(s, "StackPopV2", "elem_type", DT_INT32, {"elem"});
  ShareAll(s, "StackCloseV2", {});
  Share(s, {"TensorArrayV3"}, "dtype", {"size"});
  Share(s, {"TensorArrayReadV3"}, "dtype", {"index"});
  Share(s, {"TensorArrayWriteV3"}, "T", {"index"});
  Share(s, {"TensorArrayGatherV3"}, "dtype", {"indices"});
  Share(s, {"TensorArrayScatterV3"}, "T", {"indices"});
  Share(s, {"TensorArrayConcatV3"}, "dtype", {"lengths"});
  Share(s, {"TensorArraySplitV3"}, "T", {"lengths"});
  ShareAll(s, "TensorArraySizeV3", {"size"});
  ShareAll(s, "TensorArrayCloseV3", {});
  ShareAll(s, "TensorArrayGradV3", {});
  ShareAll(s, "TensorArrayGradWithShape", {"shape_to_prepend"});
}

// Calls of functions, whose bodies have devices of their own: variables with captured handles may
// be stored on the device.
void ShareFunctionCalls(const Sharing& s) {
  for (const char* op :
       {"Case", "For", "If", "PartitionedCall", "RemoteCall", "StatefulPartitionedCall",
        "StatelessCase", "StatelessIf", "StatelessWhile", "SymbolicGradient", "While", "_Arg"}) {
    ShareAll(s, op, {});
  }
  for (const char* op : {"DeviceIndex", "DisableCopyOnRead"}) ShareAll(s, op, {kAllArgs});
}

// ---- CPU kernels

Device& HostDevice() {
  static Device* const device = NewCpuDevice().release();
  return *device;
}

// Runs a CPU kernel for a node of another device whose arguments are all in host memory.
absl::Status RunOnHost(const Kernel& kernel, KernelContext& c) {
  const int inputs = c.num_inputs(), outputs = c.num_outputs();
  absl::InlinedVector<Tensor, 4> slots(inputs + outputs);
  absl::InlinedVector<uint8_t, 8> dead(inputs + outputs, 0);
  absl::InlinedVector<int32_t, 8> positions(inputs + outputs);
  for (int i = 0; i < inputs + outputs; ++i) positions[i] = i;
  for (int i = 0; i < inputs; ++i) {
    slots[i] = c.input(i);
    dead[i] = c.input_is_dead(i) ? 1 : 0;
  }
  KernelContext host(c.node(), HostDevice(), c.step(),
                     {.slots = slots.data(),
                      .dead = dead.data(),
                      .inputs = positions.data(),
                      .outputs = positions.data() + inputs,
                      .num_inputs = inputs,
                      .num_outputs = outputs});
  WEIR_RETURN_IF_ERROR(kernel.run()(host));
  for (int i = 0; i < outputs; ++i) {
    if (dead[inputs + i] != 0) {
      c.SetOutputDead(i);
    } else {
      c.SetOutput(i, std::move(slots[inputs + i]));
    }
  }
  return absl::OkStatus();
}

KernelFactory OnHost(KernelFactory make) {
  return [make](const KernelInit& init) -> absl::StatusOr<Kernel> {
    const KernelInit host{.node = init.node,
                          .device = HostDevice(),
                          .resources = init.resources,
                          .input_shapes = init.input_shapes,
                          .fast_algorithms = init.fast_algorithms};
    WEIR_ASSIGN_OR_RETURN(Kernel kernel, make(host));
    if (kernel.is_constant()) return kernel;
    return Kernel([kernel](KernelContext& c) { return RunOnHost(kernel, c); });
  };
}

void ShareOnHost(const Sharing& s, std::initializer_list<const char*> ops, absl::string_view attr,
                 DataType type) {
  for (const char* op : ops) {
    const KernelDef* cpu = CpuKernel(*s.kernels, op, attr, type);
    if (cpu == nullptr) continue;
    KernelDef& def = AddLike(s, *cpu, Constrained(*cpu, attr, type), OnHost(cpu->make));
    def.in_place.clear();
    def.host_args.clear();
    const OpSpec& spec = *BuiltinOps().Find(op);
    for (const ArgSpec& arg : spec.inputs()) def.host_args.push_back(arg.name);
    for (const ArgSpec& arg : spec.outputs()) def.host_args.push_back(arg.name);
  }
}

void ShareHostKernels(const Sharing& s) {
  ShareOnHost(s, {"Abs",          "Add",
                  "AddN",         "AddV2",
                  "BroadcastTo",  "Concat",
                  "ConcatV2",     "Cumprod",
                  "Cumsum",       "DeepCopy",
                  "Div",          "DynamicStitch",
                  "EnsureShape",  "Equal",
                  "ExpandDims",   "Fill",
                  "FloorDiv",     "FloorMod",
                  "Greater",      "GreaterEqual",
                  "Identity",     "InvertPermutation",
                  "Less",         "LessEqual",
                  "ListDiff",     "Max",
                  "Maximum",      "Mean",
                  "Merge",        "Min",
                  "Minimum",      "Mod",
                  "Mul",          "Neg",
                  "NotEqual",     "OneHot",
                  "OnesLike",     "Pack",
                  "Pad",          "PadV2",
                  "Pow",          "PreventGradient",
                  "Prod",         "Rank",
                  "Reshape",      "Reverse",
                  "ReverseV2",    "Roll",
                  "Select",       "SelectV2",
                  "Shape",        "ShapeN",
                  "Sign",         "Size",
                  "Slice",        "Snapshot",
                  "Split",        "SplitV",
                  "Square",       "SquaredDifference",
                  "Squeeze",      "StopGradient",
                  "StridedSlice", "StridedSliceGrad",
                  "Sub",          "Sum",
                  "Switch",       "Tile",
                  "Transpose",    "TruncateDiv",
                  "TruncateMod",  "Unpack",
                  "ZerosLike"},
              "T", DT_INT32);
  ShareOnHost(s, {"Const", "Placeholder", "PlaceholderWithDefault", "Empty"}, "dtype", DT_INT32);
  ShareOnHost(s, {"Gather", "GatherV2"}, "Tparams", DT_INT32);
  ShareOnHost(s, {"Range"}, "Tidx", DT_INT32);
  ShareOnHost(s, {"Range"}, "Tidx", DT_INT64);
  ShareOnHost(s, {"Div", "FloorDiv", "FloorMod", "Mod", "Pow", "TruncateDiv", "TruncateMod"}, "T",
              DT_INT64);
}

}  // namespace

void AddSharedKernels(KernelRegistry* kernels, Place place) {
  const Sharing s{kernels, place};
  for (const char* op : {"NoOp", "ControlTrigger", "BroadcastArgs", "BroadcastGradientArgs",
                         "ConcatOffset", "RefSelect"}) {
    ShareAll(s, op, {});
  }
  Share(s, {"Identity", "StopGradient", "PreventGradient", "GuaranteeConst", "EnsureShape",
            "Bitcast", "Reshape", "ExpandDims", "Squeeze", "Shape", "ShapeN", "Size", "Rank",
            "Switch", "Merge", "Enter", "Exit", "NextIteration"});
  Share(s, {"Const", "Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "Empty"}, "dtype");
  Share(s, {"Transpose", "Reverse",  "ReverseV2",    "ReverseSequence",
            "Roll",      "Tile",     "BroadcastTo",  "Concat",
            "ConcatV2",  "Pack",     "Split",        "SplitV",
            "Unpack",    "Slice",    "StridedSlice", "StridedSliceGrad",
            "Pad",       "PadV2",    "MirrorPad",    "ZerosLike",
            "OnesLike",  "Snapshot", "DeepCopy"});
  Share(s, {"Gather", "GatherV2"}, "Tparams");
  for (const DataType type : DeviceTypes()) {  // to the same type: no copy
    const KernelDef* cpu = CpuKernel(*s.kernels, "Cast", "SrcT", type);
    if (cpu == nullptr) continue;
    AddLike(s, *cpu, TypeConstraints{{"SrcT", type}, {"DstT", type}}, cpu->make);
  }
  ShareVariables(s);
  ShareFunctionCalls(s);
  ShareStacksAndArrays(s);
  ShareHostKernels(s);
}

void AddSharedRandomKernels(KernelRegistry* kernels, Place place) {
  const Sharing s{kernels, place};
  for (const char* op :
       {"RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt",
        "StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal",
        "StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2",
        "StatelessRandomUniformInt", "StatelessRandomUniformIntV2", "StatelessRandomUniformFullInt",
        "StatelessRandomUniformFullIntV2"}) {
    ShareAll(s, op, {});
  }
}

// Update rules of the dense form. A rule selects its function by lr_power.
void AddSharedUpdateKernels(KernelRegistry* kernels, Place place) {
  const Sharing s{kernels, place};
  for (const UpdateRule& rule : UpdateRules()) {
    for (const char* kind : {"Apply", "ResourceApply"}) {
      const bool has_power =
          std::find(rule.inputs.begin(), rule.inputs.end(), "lr_power") != rule.inputs.end();
      ShareAll(s, absl::StrCat(kind, rule.name),
               has_power ? std::vector<std::string>{"lr_power"} : std::vector<std::string>{});
    }
  }
}

}  // namespace weir
