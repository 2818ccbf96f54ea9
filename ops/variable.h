#ifndef WEIR_OPS_VARIABLE_H_
#define WEIR_OPS_VARIABLE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/gradient.h"
#include "weir/core/graph.h"
#include "weir/ops/array.h"
#include "weir/ops/initializers.h"
#include "weir/ops/literal.h"
#include "weir/ops/partitioner.h"

namespace weir::proto {
class VariableDef;
}

namespace weir {

enum class VariableSynchronization { kAuto = 0, kNone = 1, kOnWrite = 2, kOnRead = 3 };
enum class VariableAggregation { kNone = 0, kSum = 1, kMean = 2, kOnlyFirstReplica = 3 };

// Which rows of a bigger, partitioned variable a variable holds; what checkpoints store it under.
struct SaveSliceInfo {
  std::string full_name;
  std::vector<int64_t> full_shape, var_offset, var_shape;
  // "7 2 3,2:0,2": the full shape, then start and length of each dimension.
  std::string Spec() const;
};

class Variable;

// What is known of a variable in a graph. Shared by all handles to it, and by the collections it is
// in.
struct VariableInfo : public CollectionObject {
  VariableInfo();
  ~VariableInfo() override;
  VariableInfo(const VariableInfo& other);

  std::string op;  // "hidden/w"
  Output handle;   // the storage node's output: a reference, or a resource
  Operation initializer;
  Output initial_value;  // invalid if unknown
  Output snapshot;       // the read made with the variable
  bool cached = false;   // every reader uses the snapshot
  Output fetched;        // where there is no snapshot: the read that all fetches share, once made
  std::optional<std::string> caching_device;
  bool is_resource = true;
  DataType dtype = DT_INVALID;
  Shape shape = Shape::UnknownRank();
  bool trainable = true;
  bool validate_shape = true;
  VariableSynchronization synchronization = VariableSynchronization::kAuto;
  VariableAggregation aggregation = VariableAggregation::kNone;
  std::function<Output(Output)> constraint;
  std::optional<SaveSliceInfo> save_slice;
  // A partitioned variable has no storage of its own, but parts, and how many there are along each
  // dimension. Others have neither.
  std::vector<Variable> parts;
  std::vector<int64_t> partitions;
  // The copies of a mirrored variable (ops/mirrored_variable.h); its storage is the first one's.
  std::vector<Variable> replicas;

  std::string name() const override { return partitions.empty() ? op + ":0" : op; }
};

// Options of the functions that write a variable. Designated initializers: `v.AssignAdd(1,
// {.use_locking = true})`.
struct WriteOptions {
  // Reference variables: the kernel holds the lock while it writes (resource variables always do).
  // Unset: as TensorFlow has it, which is false for Assign and Scatter, true for ScatterNd and for
  // the free function Assign.
  std::optional<bool> use_locking = {};
  // False: the result is the writing node, without a read after it.
  bool read_value = true;
  // Assign to a reference variable: false lets the value have another shape, which the variable
  // then takes.
  bool validate_shape = true;
  std::string name = {};
};

class VariableSlice;

// A handle to a variable of a graph: state that outlives a run. A cheap value; it does not own the
// state, which lives in the session. Converts to its value wherever a tensor is taken. A
// default-constructed (or failed) handle is invalid, and what is made of it is invalid too, without
// a second error; so is one whose graph is gone.
//
// Two kinds, with the same functions: resource variables (VarHandleOp; each read is a snapshot, a
// new node) and reference variables (VariableV2; one read node shared by all), as TensorFlow 1 had
// them by default.
//
// A partitioned variable (GetVariable with a partitioner) is such a handle too: name "w" without
// ":0", the full shape, a value that is its parts' joined along the axis it is cut on. The whole
// can be assigned, and each part is a variable of its own, "w/part_0": collections, optimizers and
// checkpoints see the parts. It has no storage: handle() is invalid, and what would need one
// (scatters, slice assignment, CountUpTo, SparseRead, GatherNd) is INVALID_ARGUMENT;
// EmbeddingLookup takes it.
//
// Functions that write return the value after the write (an Output, which is also an Operation);
// errors stick to the graph: INVALID_ARGUMENT for a value of another type or of a shape that can
// never fit, naming the variable and both.
class Variable : public NoTruthValue {
 public:
  Variable() = default;
  explicit Variable(std::shared_ptr<VariableInfo> info) : info_(std::move(info)) {}
  // False once its graph is gone, too.
  bool valid() const {
    if (info_ == nullptr || info_->partitions.empty()) return info_ && info_->handle.valid();
    return info_->parts.empty() || info_->parts[0].valid();
  }

  std::string name() const {  // "hidden/w:0", of a partitioned one "hidden/w"
    return info_ ? info_->name() : "";
  }
  std::string op_name() const { return info_ ? info_->op : ""; }  // "hidden/w"
  DataType dtype() const { return info_ ? info_->dtype : DT_INVALID; }
  const Shape& shape() const;
  Graph& graph() const { return storage().graph(); }
  // Of a partitioned variable: the first part's. Empty for an invalid one.
  const std::string& device() const;
  // The storage node's output: a reference, or a resource handle. Invalid if partitioned.
  Output handle() const { return info_ ? info_->handle : Output(); }
  bool is_resource() const { return info_ && info_->is_resource; }
  // The op that gives it its initial value; run it again to start over. Of a partitioned variable:
  // a group of its parts' initializers, made when it is first asked for.
  Operation initializer() const;
  // The tensor the initializer assigns; not the current value.
  Output initial_value() const { return info_ ? info_->initial_value : Output(); }
  bool trainable() const { return info_ && info_->trainable; }
  VariableSynchronization synchronization() const { return facts().synchronization; }
  VariableAggregation aggregation() const { return facts().aggregation; }
  // What optimizers pass the value through after an update; empty for none.
  const std::function<Output(Output)>& constraint() const { return facts().constraint; }
  const std::optional<SaveSliceInfo>& save_slice() const { return facts().save_slice; }
  bool is_partitioned() const { return info_ && !info_->partitions.empty(); }
  // In the order of the rows (or columns) that they hold; empty if it is not partitioned.
  const std::vector<Variable>& parts() const;
  // How many parts there are along each dimension: {3, 1}; empty if it is not partitioned.
  const std::vector<int64_t>& partitions() const;
  // The copies of a mirrored variable (ops/mirrored_variable.h), one a device; empty for others.
  const std::vector<Variable>& replicas() const;
  const std::shared_ptr<VariableInfo>& info() const { return info_; }
  // Sharpens the static shape; INVALID_ARGUMENT on the graph if it contradicts.
  void set_shape(const Shape& shape);
  // "<tf.Variable 'hidden/w:0' shape=(784, 10) dtype=float32>"
  std::string ToString() const;

  // The value as a tensor. Reference: the one read that all share; resource: a new read in the
  // current name scope, or the cached one.
  Output value() const;
  // The same for an argument of a function: a read is named as if that function made it
  // ("mul/ReadVariableOp" for v * 2), as TensorFlow has it.
  operator Output() const;
  // A new read that runs after the current control dependencies.
  Output read_value() const;
  // The value if there is one by then, else the initial value: safe in other variables' initial
  // values.
  Output initialized_value() const;
  // A bool scalar.
  Output is_initialized(absl::string_view name = {}) const;
  // Rows, or slices, of the value without reading all of it.
  Output SparseRead(Output indices, absl::string_view name = {}) const;
  Output GatherNd(Output indices, absl::string_view name = {}) const;

  Output Assign(const TensorArg& value, const WriteOptions& options = {}) const;
  Output AssignAdd(const TensorArg& delta, const WriteOptions& options = {}) const;
  Output AssignSub(const TensorArg& delta, const WriteOptions& options = {}) const;

  // The same with one value a part; one result a part. (A full value is split, and the parts'
  // results are joined.) INVALID_ARGUMENT for another number of values than parts.
  Outputs AssignParts(const std::vector<TensorArg>& values, const WriteOptions& options = {}) const;
  Outputs AssignAddParts(const std::vector<TensorArg>& deltas,
                         const WriteOptions& options = {}) const;
  Outputs AssignSubParts(const std::vector<TensorArg>& deltas,
                         const WriteOptions& options = {}) const;

  // Row indices[i] is combined with values[i]. Repeated indices all count; for Update one of them
  // wins. INVALID_ARGUMENT from the step if an index is out of range.
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

  // Returns the value, then adds one; OUT_OF_RANGE "Reached limit of ..." from the step at the
  // limit. int32 and int64.
  Output CountUpTo(int64_t limit, absl::string_view name = {}) const;

  // v.Slice({Index::Range(0, 2), 1}): part of the value, as NumPy indexes; `.Assign(x)` on it
  // writes that part.
  VariableSlice Slice(const std::vector<Index>& indices) const;

  // The wire form; names without `export_scope`. False if the variable lies outside that scope, or
  // is partitioned: its parts have wire forms.
  bool ToProto(proto::VariableDef* def, absl::string_view export_scope = {}) const;
  // A handle onto nodes that the graph has already, under `import_scope`; adds no node. NOT_FOUND
  // naming what is missing.
  static absl::StatusOr<Variable> FromProto(Graph& graph, const proto::VariableDef& def,
                                            absl::string_view import_scope = {});
  // The same with a VariableDef's serialized bytes: none where ToProto is false; INVALID_ARGUMENT
  // for bytes that are no VariableDef.
  std::optional<std::string> ToBytes(absl::string_view export_scope = {}) const;
  static absl::StatusOr<Variable> FromBytes(Graph& graph, absl::string_view bytes,
                                            absl::string_view import_scope = {});

  // Identity: the same variable of the same graph.
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
  // What is known of it; of an invalid one nothing.
  const VariableInfo& facts() const;

  std::shared_ptr<VariableInfo> info_;
};
using Variables = std::vector<Variable>;

// Part of a variable's value.
class VariableSlice {
 public:
  VariableSlice(Variable variable, Output slice) : variable_(std::move(variable)), slice_(slice) {}
  // A StridedSlice of the value.
  operator Output() const { return slice_; }
  // Writes that part. Returns the whole value after the write.
  Output Assign(const TensorArg& value, const WriteOptions& options = {}) const;

 private:
  Variable variable_;
  Output slice_;
};

// What a variable adds to the loss: a scalar of it, or an invalid Output for nothing. A function of
// an Output will do.
using Regularizer = std::function<Output(const Variable&)>;
using Constraint = std::function<Output(Output)>;

// What GetVariable does when the variable exists, or not.
enum class Reuse {
  kCreate,  // absent: make it; present: ALREADY_EXISTS
  kReuse,   // absent: NOT_FOUND; present: share it
  kAuto,    // absent: make it; present: share it
};

// Asks for a variable by its full name. A custom getter gets the next one outwards, and may change
// name and options before it calls it.
struct VariableOptions;
using VariableGetter =
    std::function<Variable(Graph&, absl::string_view name, const VariableOptions&)>;
using CustomGetter = std::function<Variable(const VariableGetter& next, Graph&,
                                            absl::string_view name, const VariableOptions&)>;

// Options of MakeVariable and GetVariable. What is not set comes from the variable scope, then from
// the graph.
struct VariableOptions {
  // The static shape. MakeVariable: may be less specific than the initial value's. GetVariable:
  // same as its argument.
  std::optional<Shape> shape = {};
  // MakeVariable: "Variable" if empty; made unique in the current name scope. GetVariable has it as
  // an argument.
  std::string name = {};
  // GetVariable only.
  Initializer initializer = {};
  DataType dtype = DT_INVALID;
  std::optional<bool> trainable = {};  // default true (false with kOnRead)
  // Default {"variables"}. Trainable ones go to "trainable_variables" besides.
  std::optional<std::vector<std::string>> collections = {};
  // False: the initial value's shape may be unknown, and later assignments may change it.
  bool validate_shape = true;
  std::optional<bool> use_resource = {};
  // Where the read is placed that all readers share; unset: no such read.
  std::optional<std::string> caching_device = {};
  // GetVariable only: called once at creation; its result joins "regularization_losses".
  Regularizer regularizer = {};
  // Optimizers pass the value through it after each update. Unsafe with asynchronous training.
  Constraint constraint = {};
  VariableSynchronization synchronization = VariableSynchronization::kAuto;
  VariableAggregation aggregation = VariableAggregation::kNone;
  // GetVariable only: in place of the scope's.
  CustomGetter custom_getter = {};
  // GetVariable only: cuts the variable into parts (scalars stay whole).
  Partitioner partitioner = {};
  std::optional<Reuse> reuse = {};
  // Ignored, as TensorFlow ignores it: for ports of what passes it.
  std::optional<Shape> expected_shape = {};
};

// tf.Variable: a new variable that starts as `initial_value`: a tensor of this graph, a literal, or
// a callable without arguments that builds the tensor (the right form inside loops and branches).
// The dtype is the value's unless given.
// INVALID_ARGUMENT if the value has another dtype or shape than asked for, or (reference variables,
// unless validate_shape is false) an unknown shape.
Variable MakeVariable(Graph& graph, const Initializer& initial_value,
                      const VariableOptions& options = {});
// The graph is that of the value.
Variable MakeVariable(Output initial_value, const VariableOptions& options = {});

// tf.assign: v.Assign, but a reference variable is locked unless the options say otherwise.
Output Assign(const Variable& v, const TensorArg& value, WriteOptions options = {});

}  // namespace weir

#endif  // WEIR_OPS_VARIABLE_H_
