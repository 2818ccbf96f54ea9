#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "weir/core/op.h"
#include "weir/kernels/gpu_kernels.h"
#include "weir/ops/training.h"

// GPU kernels that are shared with the CPU. There are two kinds.
//
// Some never access an element themselves: they forward handles, compute sizes and strides on the
// host, and leave the rest to the device's stream (kernels/stream_ops.h). They are the CPU's own
// kernels, registered for the GPU too.
//
// Others compute with int32, which on a GPU stays in host memory (as in TensorFlow): shapes, axes
// and sizes are int32, and the host needs their values. These kernels run on the CPU, with every
// argument declared as a host argument. So do the operations on int64 that reject a zero divisor or
// a negative exponent, which requires reading the value.
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

KernelDef& AddLike(KernelRegistry* r, const KernelDef& cpu, TypeConstraints constraints,
                   KernelFactory make) {
  // The registry may reallocate while it grows, but the definitions in it do not move.
  KernelDef& def = r->Add(cpu.op, kGpu, std::move(constraints), std::move(make));
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
void ShareType(KernelRegistry* r, absl::string_view op, absl::string_view attr, DataType type,
               const std::vector<std::string>& host_args = {}) {
  const KernelDef* const cpu = CpuKernel(*r, op, attr, type);
  if (cpu == nullptr) return;
  KernelDef& def = AddLike(r, *cpu, Constrained(*cpu, attr, type), cpu->make);
  def.host_args.insert(def.host_args.end(), host_args.begin(), host_args.end());
}

// For the types that are stored on the device.
void Share(KernelRegistry* r, std::initializer_list<const char*> ops, absl::string_view attr = "T",
           const std::vector<std::string>& host_args = {}) {
  for (const char* op : ops) {
    for (const DataType type : DeviceTypes()) ShareType(r, op, attr, type, host_args);
  }
}

// Registers every kernel that the CPU has for the op, with additional host arguments.
void ShareAll(KernelRegistry* r, absl::string_view op, const std::vector<std::string>& host_args) {
  for (const KernelDef* cpu : r->KernelsOf(op)) {
    if (cpu->place != kCpu) continue;
    KernelDef& def = AddLike(r, *cpu, cpu->constraints, cpu->make);
    def.host_args.insert(def.host_args.end(), host_args.begin(), host_args.end());
  }
}

// Variables of any plain type, int32 included: their values are stored on the device.
void ShareVariables(KernelRegistry* r) {
  Share(r,
        {"VarHandleOp", "VariableV2", "Variable", "ReadVariableOp", "AssignVariableOp",
         "ResourceGather"},
        "dtype");
  Share(r, {"Assign", "StridedSliceAssign", "ResourceStridedSliceAssign", "RefIdentity",
            "RefSwitch", "RefMerge"});
  for (const char* op :
       {"VarHandleOp", "VariableV2", "Variable", "ReadVariableOp", "AssignVariableOp"}) {
    ShareType(r, op, "dtype", DT_INT32);
  }
  ShareType(r, "Assign", "T", DT_INT32);
  // These add elements, for types that have an addition kernel.
  for (const DataType type : DataTypesOf(JoinLists<Floats, List<int32_t, int64_t>>())) {
    for (const auto& [op, attr] :
         {std::pair("AssignAdd", "T"), std::pair("AssignSub", "T"),
          std::pair("AssignAddVariableOp", "dtype"), std::pair("AssignSubVariableOp", "dtype")}) {
      ShareType(r, op, attr, type);
    }
  }
  ShareAll(r, "VarIsInitializedOp", {"is_initialized"});
  ShareAll(r, "IsVariableInitialized", {"is_initialized"});
  ShareAll(r, "VariableShape", {"output"});
  ShareAll(r, "DestroyResourceOp", {});
}

// The saved values of loop iterations. Stacks of int32 hold them in host memory, because shapes are
// pushed to them; arrays of int32 are the CPU's.
void ShareStacksAndArrays(KernelRegistry* r) {
  for (const char* op : {"Enter", "Exit", "NextIteration", "Switch", "Merge", "Identity"})
    ShareType(r, op, "T", DT_RESOURCE);
  Share(r, {"StackV2"}, "elem_type", {"max_size"});
  Share(r, {"StackPushV2"});
  Share(r, {"StackPopV2"}, "elem_type");
  ShareType(r, "StackV2", "elem_type", DT_INT32, {"max_size"});
  ShareType(r, "StackPushV2", "T", DT_INT32, {"elem", "output"});
  ShareType(r, "StackPopV2", "elem_type", DT_INT32, {"elem"});
  ShareAll(r, "StackCloseV2", {});
  Share(r, {"TensorArrayV3"}, "dtype", {"size"});
  Share(r, {"TensorArrayReadV3"}, "dtype", {"index"});
  Share(r, {"TensorArrayWriteV3"}, "T", {"index"});
  Share(r, {"TensorArrayGatherV3"}, "dtype", {"indices"});
  Share(r, {"TensorArrayScatterV3"}, "T", {"indices"});
  Share(r, {"TensorArrayConcatV3"}, "dtype", {"lengths"});
  Share(r, {"TensorArraySplitV3"}, "T", {"lengths"});
  ShareAll(r, "TensorArraySizeV3", {"size"});
  ShareAll(r, "TensorArrayCloseV3", {});
  ShareAll(r, "TensorArrayGradV3", {});
  ShareAll(r, "TensorArrayGradWithShape", {"shape_to_prepend"});
}

// Update rules of the dense form. A rule selects its function by lr_power.
void ShareUpdates(KernelRegistry* r) {
  for (const UpdateRule& rule : UpdateRules()) {
    for (const char* kind : {"Apply", "ResourceApply"}) {
      const bool has_power =
          std::find(rule.inputs.begin(), rule.inputs.end(), "lr_power") != rule.inputs.end();
      ShareAll(r, absl::StrCat(kind, rule.name),
               has_power ? std::vector<std::string>{"lr_power"} : std::vector<std::string>{});
    }
  }
}

// ---- CPU kernels

Device& HostDevice() {
  static Device* const device = NewCpuDevice().release();
  return *device;
}

// Runs a CPU kernel for a GPU node whose arguments are all in host memory.
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

void ShareOnHost(KernelRegistry* r, std::initializer_list<const char*> ops, absl::string_view attr,
                 DataType type) {
  for (const char* op : ops) {
    const KernelDef* cpu = CpuKernel(*r, op, attr, type);
    if (cpu == nullptr) continue;
    KernelDef& def = AddLike(r, *cpu, Constrained(*cpu, attr, type), OnHost(cpu->make));
    def.in_place.clear();
    def.host_args.clear();
    const OpSpec& spec = *BuiltinOps().Find(op);
    for (const ArgSpec& arg : spec.inputs()) def.host_args.push_back(arg.name);
    for (const ArgSpec& arg : spec.outputs()) def.host_args.push_back(arg.name);
  }
}

void ShareHostKernels(KernelRegistry* r) {
  ShareOnHost(r, {"Abs",          "Add",
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
  ShareOnHost(r, {"Const", "Placeholder", "PlaceholderWithDefault", "Empty"}, "dtype", DT_INT32);
  ShareOnHost(r, {"Gather", "GatherV2"}, "Tparams", DT_INT32);
  ShareOnHost(r, {"Range"}, "Tidx", DT_INT32);
  ShareOnHost(r, {"Range"}, "Tidx", DT_INT64);
  ShareOnHost(r, {"Div", "FloorDiv", "FloorMod", "Mod", "Pow", "TruncateDiv", "TruncateMod"}, "T",
              DT_INT64);
}

}  // namespace

void AddSharedGpu(KernelRegistry* r) {
  for (const char* op : {"NoOp", "ControlTrigger", "BroadcastArgs", "BroadcastGradientArgs",
                         "ConcatOffset", "RefSelect"}) {
    ShareAll(r, op, {});
  }
  for (const char* op :
       {"RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt",
        "StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal",
        "StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2",
        "StatelessRandomUniformInt", "StatelessRandomUniformIntV2", "StatelessRandomUniformFullInt",
        "StatelessRandomUniformFullIntV2"}) {
    ShareAll(r, op, {});
  }
  Share(r, {"Identity", "StopGradient", "PreventGradient", "GuaranteeConst", "EnsureShape",
            "Bitcast", "Reshape", "ExpandDims", "Squeeze", "Shape", "ShapeN", "Size", "Rank",
            "Switch", "Merge", "Enter", "Exit", "NextIteration"});
  Share(r, {"Const", "Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "Empty"}, "dtype");
  Share(r, {"Transpose", "Reverse",  "ReverseV2",    "ReverseSequence",
            "Roll",      "Tile",     "BroadcastTo",  "Concat",
            "ConcatV2",  "Pack",     "Split",        "SplitV",
            "Unpack",    "Slice",    "StridedSlice", "StridedSliceGrad",
            "Pad",       "PadV2",    "MirrorPad",    "ZerosLike",
            "OnesLike",  "Snapshot", "DeepCopy"});
  Share(r, {"Gather", "GatherV2"}, "Tparams");
  for (const DataType type : DeviceTypes()) {  // to the same type: no copy
    const KernelDef* cpu = CpuKernel(*r, "Cast", "SrcT", type);
    AddLike(r, *cpu, TypeConstraints{{"SrcT", type}, {"DstT", type}}, cpu->make);
  }
  ShareVariables(r);
  ShareUpdates(r);
  ShareStacksAndArrays(r);
  ShareHostKernels(r);
}

void AddLoopKernels(KernelRegistry* r) {
  AddElementwiseGpu(r);
  AddArrayGpu(r);
  AddReduceGpu(r);
  AddSoftmaxGpu(r);
  AddPoolGpu(r);
  AddBatchNormGpu(r);
  AddSharedGpu(r);
}

}  // namespace weir
