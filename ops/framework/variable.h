#ifndef WEIR_OPS_FRAMEWORK_VARIABLE_H_
#define WEIR_OPS_FRAMEWORK_VARIABLE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/framework/initializers.h"
#include "weir/ops/framework/partitioner.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/literal.h"

namespace weir::proto {
class VariableDef;
}

namespace WEIR_API weir {

// How the copies of a mirrored variable (mirrored_variable.h) are kept equal, and how one value is
// made of theirs. The numbers are those of TensorFlow's VariableDef.
enum class VariableSynchronization { kAuto = 0, kNone = 1, kOnWrite = 2, kOnRead = 3 };
enum class VariableAggregation { kNone = 0, kSum = 1, kMean = 2, kOnlyFirstReplica = 3 };

// The rows of a larger, partitioned variable that a variable holds, with which checkpoints store
// it.
struct SaveSliceInfo {
  std::string full_name;  // of the partitioned variable
  // Each with one number per dimension: the whole, and the part's start and size.
  std::vector<int64_t> full_shape, var_offset, var_shape;
  // "7 2 3,2:0,2": the full shape, followed by start and length of each dimension.
  std::string Spec() const;
};

class Variable;

// The state of a variable in a graph, shared by all handles to it and by its collections.
struct VariableInfo : public CollectionObject {
  VariableInfo();
  ~VariableInfo() override;
  VariableInfo(const VariableInfo& other);

  std::string op;         // "hidden/w"
  Output handle;          // the storage node's output: a reference, or a resource
  Operation initializer;  // assigns initial_value
  Output initial_value;   // invalid if unknown
  Output snapshot;        // the read that was built with the variable
  bool cached = false;    // all readers use the snapshot
  Output fetched;         // if there is no snapshot: the read shared by all fetches, once built
  std::optional<std::string> caching_device;  // where the cached read is; unset: not cached
  bool is_resource = true;                    // false: a ref variable
  DataType dtype = DT_INVALID;                // never a reference type
  Shape shape = Shape::UnknownRank();         // static
  bool trainable = true;                      // in "trainable_variables"
  bool validate_shape = true;                 // false: an assignment may change the shape
  VariableSynchronization synchronization = VariableSynchronization::kAuto;  // see VariableOptions
  VariableAggregation aggregation = VariableAggregation::kNone;              // see VariableOptions
  std::function<Output(Output)> constraint;  // applied after updates; empty: none
  std::optional<SaveSliceInfo> save_slice;   // set for the parts of a partitioned variable
  // The parts of a partitioned variable, which has no storage of its own, and the number of parts
  // along each dimension. Both are empty for other variables.
  std::vector<Variable> parts;
  std::vector<int64_t> partitions;
  // The copies of a mirrored variable (ops/framework/mirrored_variable.h). Its storage is that of
  // the first copy.
  std::vector<Variable> replicas;

  std::string name() const override { return partitions.empty() ? op + ":0" : op; }
};

// Options of the functions that write a variable. Use designated initializers: `v.AssignAdd(1,
// {.use_locking = true})`.
struct WriteOptions {
  // For ref variables: the kernel holds the lock while it writes (for resource variables it always
  // does). Default as in TensorFlow: false for Assign and Scatter, true for ScatterNd and for the
  // free function Assign.
  std::optional<bool> use_locking = {};
  // If false, the result is the writing node, without a read after it.
  bool read_value = true;
  // For Assign to a ref variable: false allows a value of a different shape, which becomes the
  // variable's shape.
  bool validate_shape = true;
  std::string name = {};
};

class VariableSlice;

// A handle to a variable of a graph: state that persists across steps. It is cheap to copy and does
// not own the state, which is stored in the session. It converts to its value wherever a tensor is
// expected. A default-constructed (or failed) handle is invalid, and so are the results of
// operations on it, without a second error. A handle whose graph is destroyed is invalid too.
//
// There are two kinds with the same functions: resource variables (VarHandleOp; each read is a
// snapshot, a new node) and ref variables (VariableV2; one read node shared by all), TensorFlow 1's
// default.
//
// A partitioned variable (GetVariable with a partitioner) is also such a handle: its name is "w"
// without ":0", its shape is the full shape, and its value is the concatenation of its parts along
// the axis on which it is partitioned. The whole can be assigned. Each part is a variable,
// "w/part_0"; collections, optimizers and checkpoints see the parts. It has no storage: handle() is
// invalid, and operations that need storage (scatters, slice assignment, CountUpTo, SparseRead,
// GatherNd) are INVALID_ARGUMENT. EmbeddingLookup accepts it.
//
// Functions that write return the value after the write (an Output, which is also an Operation).
// Errors are recorded in the graph: INVALID_ARGUMENT for a value of a different type or of an
// incompatible shape, naming the variable and both types or shapes.
class Variable : public NoTruthValue {
 public:
  Variable() = default;
  // A handle to the variable with this state; null: invalid.
  explicit Variable(std::shared_ptr<VariableInfo> info) : info_(std::move(info)) {}
  // Also false once the graph is destroyed.
  bool valid() const {
    if (info_ == nullptr || info_->partitions.empty()) return info_ && info_->handle.valid();
    return info_->parts.empty() || info_->parts[0].valid();
  }

  std::string name() const {  // "hidden/w:0"; for a partitioned variable "hidden/w"
    return info_ ? info_->name() : "";
  }
  std::string op_name() const { return info_ ? info_->op : ""; }  // "hidden/w"
  // DT_INVALID if invalid.
  DataType dtype() const { return info_ ? info_->dtype : DT_INVALID; }
  // The static shape; unknown rank if invalid. For a partitioned variable, the full shape.
  const Shape& shape() const;
  // The graph of a valid variable.
  Graph& graph() const { return storage().graph(); }
  // For a partitioned variable: the device of the first part. Empty for an invalid variable.
  const std::string& device() const;
  // The storage node's output: a reference, or a resource handle. Invalid for a partitioned
  // variable.
  Output handle() const { return info_ ? info_->handle : Output(); }
  bool is_resource() const { return info_ && info_->is_resource; }
  // The op that assigns the initial value; run it again to reset the variable. For a partitioned
  // variable: a group of its parts' initializers, built on the first call.
  Operation initializer() const;
  // The tensor that the initializer assigns, not the current value.
  Output initial_value() const { return info_ ? info_->initial_value : Output(); }
  bool trainable() const { return info_ && info_->trainable; }
  VariableSynchronization synchronization() const { return info_or_empty().synchronization; }
  VariableAggregation aggregation() const { return info_or_empty().aggregation; }
  // The function that optimizers apply to the value after an update; empty if there is none.
  const std::function<Output(Output)>& constraint() const { return info_or_empty().constraint; }
  const std::optional<SaveSliceInfo>& save_slice() const { return info_or_empty().save_slice; }
  bool is_partitioned() const { return info_ && !info_->partitions.empty(); }
  // In the order of the rows (or columns) that they hold; empty if the variable is not partitioned.
  const std::vector<Variable>& parts() const;
  // The number of parts along each dimension: {3, 1}; empty if the variable is not partitioned.
  const std::vector<int64_t>& partitions() const;
  // The copies of a mirrored variable (ops/framework/mirrored_variable.h), one per device; empty
  // for other variables.
  const std::vector<Variable>& replicas() const;
  const std::shared_ptr<VariableInfo>& info() const { return info_; }
  // Refines the static shape. INVALID_ARGUMENT on the graph if the shapes are incompatible.
  void set_shape(const Shape& shape);
  // "<tf.Variable 'hidden/w:0' shape=(784, 10) dtype=float32>"
  std::string ToString() const;

  // The value as a tensor. Ref variable: the read shared by all; resource variable: a new read in
  // the current name scope, or the cached one.
  Output value() const;
  // The value as an argument of a function: a read is named as if that function built it
  // ("mul/ReadVariableOp" for v * 2), as in TensorFlow.
  operator Output() const;
  // Builds a new read that runs after the current control dependencies.
  Output read_value() const;
  // The value if the variable is initialized at run time, else the initial value. Safe in the
  // initial values of other variables.
  Output initialized_value() const;
  // A bool scalar: whether the variable has a value.
  Output is_initialized(absl::string_view name = {}) const;
  // Gathers rows or slices of the value without reading all of it.
  Output SparseRead(Output indices, absl::string_view name = {}) const;
  Output GatherNd(Output indices, absl::string_view name = {}) const;

  // Write a value, the sum with `delta`, and the difference. The shapes are equal.
  Output Assign(const TensorArg& value, const WriteOptions& options = {}) const;
  Output AssignAdd(const TensorArg& delta, const WriteOptions& options = {}) const;
  Output AssignSub(const TensorArg& delta, const WriteOptions& options = {}) const;

  // Does the same with one value per part. Returns one result per part. (Assign with a full value
  // splits it and concatenates the parts' results.) INVALID_ARGUMENT if the number of values
  // differs from the number of parts.
  Outputs AssignParts(const std::vector<TensorArg>& values, const WriteOptions& options = {}) const;
  Outputs AssignAddParts(const std::vector<TensorArg>& deltas,
                         const WriteOptions& options = {}) const;
  Outputs AssignSubParts(const std::vector<TensorArg>& deltas,
                         const WriteOptions& options = {}) const;

  // Combines row indices[i] with values[i]. Repeated indices are all applied; for Update one of
  // them wins. INVALID_ARGUMENT at run time if an index is out of range.
  Output ScatterAdd(const IndexedSlices& rows, const WriteOptions& options = {}) const;
  Output ScatterSub(const IndexedSlices& rows, const WriteOptions& options = {}) const;
  Output ScatterUpdate(const IndexedSlices& rows, const WriteOptions& options = {}) const;
  Output ScatterMul(const IndexedSlices& rows, const WriteOptions& options = {}) const;
  Output ScatterDiv(const IndexedSlices& rows, const WriteOptions& options = {}) const;
  Output ScatterMin(const IndexedSlices& rows, const WriteOptions& options = {}) const;
  Output ScatterMax(const IndexedSlices& rows, const WriteOptions& options = {}) const;
  // The last dimension of `indices` addresses elements or slices.
  Output ScatterNdAdd(Output indices, Output updates, const WriteOptions& options = {}) const;
  Output ScatterNdSub(Output indices, Output updates, const WriteOptions& options = {}) const;
  Output ScatterNdUpdate(Output indices, Output updates, const WriteOptions& options = {}) const;
  Output ScatterNdMax(Output indices, Output updates, const WriteOptions& options = {}) const;
  Output ScatterNdMin(Output indices, Output updates, const WriteOptions& options = {}) const;
  // ScatterUpdate along the last axis of `indices`, separately for all leading dimensions.
  Output BatchScatterUpdate(const IndexedSlices& rows, const WriteOptions& options = {}) const;

  // Returns the value and then increments it by one. OUT_OF_RANGE "Reached limit of ..." at run
  // time once the limit is reached. int32 and int64.
  Output CountUpTo(int64_t limit, absl::string_view name = {}) const;

  // v.Slice({Index::Range(0, 2), 1}): part of the value with NumPy's indexing; `.Assign(x)` on it
  // writes that part.
  VariableSlice Slice(const std::vector<Index>& indices) const;

  // Converts to the wire format, with names relative to `export_scope`. Returns false if the
  // variable is outside of that scope or is partitioned (its parts have wire formats).
  bool ToProto(proto::VariableDef* def, absl::string_view export_scope = {}) const;
  // Returns a handle for nodes that are already in the graph, under `import_scope`. Adds no nodes.
  // NOT_FOUND names the missing node.
  static absl::StatusOr<Variable> FromProto(Graph& graph, const proto::VariableDef& def,
                                            absl::string_view import_scope = {});
  // The same with the serialized bytes of a VariableDef. ToBytes returns nullopt if ToProto returns
  // false. FromBytes returns INVALID_ARGUMENT for bytes that are not a VariableDef.
  std::optional<std::string> ToBytes(absl::string_view export_scope = {}) const;
  static absl::StatusOr<Variable> FromBytes(Graph& graph, absl::string_view bytes,
                                            absl::string_view import_scope = {});

  // Compares identity: the same variable of the same graph.
  friend bool operator==(const Variable& a, const Variable& b) {
    return a.handle() == b.handle() && (a.handle().valid() || a.info_ == b.info_) &&
           a.replicas().size() == b.replicas().size();
  }
  friend bool operator!=(const Variable& a, const Variable& b) { return !(a == b); }
  template <class H>
  friend H AbslHashValue(H h, const Variable& v) {
    return H::combine(std::move(h), v.handle());
  }

 private:
  const Output& storage() const { return (is_partitioned() ? parts()[0].info_ : info_)->handle; }
  // Its state; an empty state for an invalid variable.
  const VariableInfo& info_or_empty() const;

  std::shared_ptr<VariableInfo> info_;
};
// Variables in an order that the function which takes or returns them states.
using Variables = std::vector<Variable>;

// A part of a variable's value.
class VariableSlice {
 public:
  // Made by Variable::Slice.
  VariableSlice(Variable variable, Output slice) : variable_(std::move(variable)), slice_(slice) {}
  // Converts to a StridedSlice of the value.
  operator Output() const { return slice_; }
  // Writes this part. Returns the whole value after the write.
  Output Assign(const TensorArg& value, const WriteOptions& options = {}) const;

 private:
  Variable variable_;
  Output slice_;
};

// The term that a variable adds to the loss: a scalar, or an invalid Output for none. A function of
// an Output is also accepted.
using Regularizer = std::function<Output(const Variable&)>;
using Constraint = std::function<Output(Output)>;

// What GetVariable does if the variable exists or is absent.
enum class Reuse {
  kCreate,  // absent: create it; present: ALREADY_EXISTS
  kReuse,   // absent: NOT_FOUND; present: share it
  kAuto,    // absent: create it; present: share it
};

struct VariableOptions;
// A getter requests a variable by its full name. A custom getter is called with the next outer
// getter and may change the name and the options before calling it.
using VariableGetter =
    std::function<Variable(Graph&, absl::string_view name, const VariableOptions&)>;
using CustomGetter = std::function<Variable(const VariableGetter& next, Graph&,
                                            absl::string_view name, const VariableOptions&)>;

// Options of MakeVariable and GetVariable. Unset options are inherited from the variable scope,
// then from the graph.
struct VariableOptions {
  // The static shape. MakeVariable: may be less specific than that of the initial value.
  // GetVariable: the same as its argument.
  std::optional<Shape> shape = {};
  // MakeVariable: "Variable" if empty; made unique in the current name scope. GetVariable takes the
  // name as an argument.
  std::string name = {};
  // GetVariable only.
  Initializer initializer = {};
  DataType dtype = DT_INVALID;
  std::optional<bool> trainable = {};  // default true (false with kOnRead)
  // Default: {"variables"}. Trainable variables are also added to "trainable_variables".
  std::optional<std::vector<std::string>> collections = {};
  // If false, the shape of the initial value may be unknown, and later assignments may change it.
  bool validate_shape = true;
  std::optional<bool> use_resource = {};
  // The device of the read that all readers share; unset: there is no such read.
  std::optional<std::string> caching_device = {};
  // GetVariable only: called once at creation. Its result is added to "regularization_losses".
  Regularizer regularizer = {};
  // Optimizers apply it to the value after each update. Unsafe with asynchronous training.
  Constraint constraint = {};
  VariableSynchronization synchronization = VariableSynchronization::kAuto;
  VariableAggregation aggregation = VariableAggregation::kNone;
  // GetVariable only: replaces the scope's custom getter.
  CustomGetter custom_getter = {};
  // GetVariable only: partitions the variable (scalars remain whole).
  Partitioner partitioner = {};
  std::optional<Reuse> reuse = {};
  // Ignored, as in TensorFlow. For ports of programs that pass it.
  std::optional<Shape> expected_shape = {};
};

// tf.Variable: makes a new variable initialized to `initial_value`: a tensor of this graph, a
// literal, or a callable without arguments that builds the tensor (the correct form inside loops
// and branches). The default dtype is that of the value. INVALID_ARGUMENT if the value's dtype or
// shape differs from the requested one, or (for ref variables, unless validate_shape is false) its
// shape is unknown.
Variable MakeVariable(Graph& graph, const Initializer& initial_value,
                      const VariableOptions& options = {});
// Uses the graph of the value.
Variable MakeVariable(Output initial_value, const VariableOptions& options = {});

// tf.assign: v.Assign, but a ref variable is locked unless the options say otherwise.
Output Assign(const Variable& v, const TensorArg& value, WriteOptions options = {});

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_VARIABLE_H_
