#ifndef WEIR_CORE_GRAPH_OP_TRAITS_H_
#define WEIR_CORE_GRAPH_OP_TRAITS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/dtype.h"
#include "weir/core/tensor/shape.h"

// What the runtime may assume of an op beyond its signature. Passes, cost models and profiles read
// these traits, never the op's name, so a user's op is treated as a built-in one is. An op states
// its traits in its record (OpSpec); the defaults assume nothing.
namespace WEIR_API weir {

class Node;
struct Output;

// How the outputs of an op relate to the memory of its inputs.
enum class Movement : uint8_t {
  kComputes,    // The outputs are new values.
  kIdentity,    // Output i is input i: Identity, StopGradient.
  kReshape,     // Output 0 has the elements of input 0, in order, in another shape: Reshape.
  kForward,     // Output 0 may share the memory of input 0: Enter, Switch, Bitcast.
  kRearrange,   // Each element of the outputs is an element of an input: Concat, Transpose.
  kGather,      // The same; reads no more of input 0 than it writes: Slice, Gather.
  kReadsShape,  // Reads the shapes of its inputs, not their elements: Shape, ZerosLike.
  kCopy,        // Copies a value to another device.
  kStored,      // Returns memory that exists already and that is no input: Const, ReadVariableOp.
};

// The ops of v1 control flow. Their forms for references ("RefEnter") have the same kind.
enum class ControlFlow : uint8_t {
  kNone,
  kSwitch,
  kMerge,
  kEnter,
  kExit,
  kNextIteration,
  kLoopCond,
};

// The side effects of an op.
enum class Effect : uint8_t {
  kByState,  // A stateful op has an effect, any other has none.
  kMutates,  // Has an effect, although it is not declared stateful: TensorArrayWrite.
  kChecks,   // No effect, but it runs for the values that it refuses: CheckNumerics.
  // Of stateful ops. Calls of a function at the same time need no order for:
  kObserves,  // Changes nothing that another node or call sees: RangeDataset, LookupTableFindV2.
  kDraws,  // Only advances the random stream of its node, as StepInfo::draws says: RandomUniform.
};

// What an op does with the variables whose handles or references it takes.
enum class VariableUse : uint8_t {
  kNone,
  kDeclares,    // Returns the handle of a variable, or a reference to it: VarHandleOp, VariableV2.
  kReads,       // Returns its value: ReadVariableOp.
  kReadsPart,   // Returns a part of its value: ResourceGather.
  kReadsShape,  // VariableShape.
  kTests,       // Whether it has a value: VarIsInitializedOp.
  kUpdates,     // Reads the old value and writes a new one: AssignAdd, ResourceApplyAdam.
  kReplaces,    // Ignores the old value: Assign.
  kDestroys,    // DestroyResourceOp.
};

// How an op works on a batch, whose rows are the entries of dimension 0. Each kind says when row i
// of output 0 depends on row i of the batched inputs and on nothing else of them.
enum class RowRule : uint8_t {
  kNone,
  kWindows,   // Each image by itself; filters, sizes and axes are other inputs: Conv2D, MaxPool.
  kChannels,  // Elements, with a value for their channel: BiasAdd.
  kNorm,      // The same in inference (attribute is_training is false): FusedBatchNorm.
  kReduce,    // A reduction over axes other than 0: Mean.
  kSoftmax,   // A reduction over the last axis.
  kMatMul,    // A row of a matrix product, unless transpose_a.
  kReshape,   // Input 1 is a shape and counts the rows.
  kSqueeze,   // Squeezed dimensions are named and are not dimension 0.
  kPad,       // Nothing is padded in dimension 0.
  kConcat,    // Concatenation along an axis other than 0, which is the last input.
};

// What a call waits for, beyond its inputs, when it waits for what another step or thread does.
enum class WaitsFor : uint8_t {
  kByKernel,  // An asynchronous kernel waits for a value, any other for nothing.
  kValue,     // For a value that is put somewhere: IteratorGetNext.
  kRoom,      // For room, where a value is put: QueueEnqueue.
};

// What an op does with a container of values of one step: a stack, a tensor array, a tensor list.
struct ContainerUse {
  // What the op does with the container.
  enum class Kind : uint8_t {
    kNone,
    kMakes,     // Output 0 is a new, empty container.
    kPuts,      // Puts input `value` into it.
    kPutsRows,  // Puts each row of input `value` into it.
    kTakes,     // One of its values is the output that has the container's element type.
    kObserves,  // Neither puts a value nor returns one.
  };
  // The kind of container.
  enum class Type : uint8_t {
    kStack,
    kArray,
    kList,  // A list is a value: output 0 is the list after the operation.
  };
  Kind kind = Kind::kNone;   // what the op does
  Type type = Type::kStack;  // with which container
  int value = 0;             // the input with the values that are put
};

// The functions that an op calls, and which of its inputs are their arguments.
struct FunctionCalls {
  std::vector<const char*> functions;  // Attributes of kind func, or list(func).
  const char* types = "Tin";           // The attribute with the types of the arguments.
  int first_argument = 0;              // The input that is the first argument.
  bool is_loop = false;                // The outputs are the final values of the arguments.
  bool takes_index = false;            // The functions take an index before the arguments.
};

// The element e for which op(x, e) = x, and op(e, x) = x if `either_side`.
struct NeutralElement {
  double value = 0;  // e
  bool either_side = false;
  bool in_floating_point = false;  // Holds bit for bit in floating point too (x + 0 does not).
};

// A call of an op whose costs are asked for: `inputs` and `outputs`, and `fused_ops`, the ops that
// a fused node performs, in order. `node` may be null, if only shapes are known.
struct OpCall {
  // An input or output of the call.
  struct Value {
    DataType dtype = DT_INVALID;  // DT_INVALID: a dead value.
    Shape shape;                  // fully defined
    double elements() const;      // 0 for strings, handles and variants.
    double bytes() const;         // of the elements in memory
  };
  absl::Span<const Value> inputs, outputs;
  const Node* node = nullptr;
  absl::Span<const std::string> fused_ops;

  // An empty value beyond the end.
  const Value& input(size_t i) const;
  const Value& output(size_t i) const;
  // By bytes; an empty value if there are no inputs.
  const Value& largest_input() const;
};
// Floating-point operations, or bytes moved to and from memory. A multiplication and an addition
// are two operations; an elementwise function of an element is one. Negative: not known.
using CostFn = double (*)(const OpCall& call);

// Evaluates ops on small integer vectors while a graph is built (shape_context.h): shapes are
// computed by short sequences of such ops. -1 marks an unknown element.
class ShapeValueContext {
 public:
  virtual ~ShapeValueContext() = default;
  // The node whose value is asked for.
  virtual const Node& node() const = 0;
  // The value of input i as far as it is known; nothing if too little is.
  virtual std::optional<std::vector<int64_t>> Input(int i) = 0;
};
// Returns output 0 of such an op, a vector or scalar of integers; nothing if it is not known.
using ShapeValueFn = std::optional<std::vector<int64_t>> (*)(ShapeValueContext& c);

// The traits of an op.
struct OpTraits {
  // See the enumerations above.
  Movement movement = Movement::kComputes;
  ControlFlow control_flow = ControlFlow::kNone;
  Effect effect = Effect::kByState;
  WaitsFor waits = WaitsFor::kByKernel;
  VariableUse variable_use = VariableUse::kNone;
  RowRule rows = RowRule::kNone;
  ContainerUse container;
  // Element i of output 0 depends on element i of each input; inputs broadcast.
  bool elementwise = false;
  // Reduces input 0 (over the axes that input 1 names, if it has one) with one operation for each
  // element.
  bool reduction = false;
  // f(f(x)) = x.
  bool involution = false;
  // Is the identity of input 0 if output 0 has its shape: Reshape, BroadcastTo, Slice.
  bool identity_if_same_shape = false;
  // Output 0 is this input, repeated along some dimensions: 0 for Tile and BroadcastTo, 1 for Fill.
  int8_t repeated_input = -1;
  // A placeholder for what is fed.
  bool placeholder = false;
  // Sends a value to another part of the step, or receives one, under a key with the loop's frame
  // and iteration (KernelContext::frame): _Send, _Recv. What it receives may be dead.
  bool crosses_tasks = false;
  std::optional<NeutralElement> neutral;
  const FunctionCalls* calls = nullptr;  // Null: calls none. Lives as long as the program.
  // Null: two for each element of each variable if it writes variables, one for each element of
  // output 0 if elementwise, or of input 0 if a reduction; none if it moves values; else not known.
  CostFn flops = nullptr;
  CostFn bytes = nullptr;  // Null: inputs and outputs once each, as `movement` says.
  // Null: the output's elements are not known while a graph is built.
  ShapeValueFn shape_value = nullptr;

  // Moves values and computes nothing.
  bool only_moves() const {
    return movement != Movement::kComputes && movement != Movement::kReadsShape;
  }
  // Whether it writes the variables at its inputs.
  bool writes_variables() const {
    return variable_use == VariableUse::kUpdates || variable_use == VariableUse::kReplaces;
  }
  // Output 0 may share memory with input 0.
  bool forwards() const {
    return movement == Movement::kIdentity || movement == Movement::kReshape ||
           movement == Movement::kForward;
  }
};

// The operations of one call as `traits` says; negative if they are not known.
double Flops(const OpTraits& traits, const OpCall& call);
// The bytes of a call that writes variables, and reads them before if it updates them. The value of
// a variable behind a handle is no input: it is taken to be as large as the largest input.
double VariableWriteBytes(const OpTraits& traits, const OpCall& call);

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_OP_TRAITS_H_
