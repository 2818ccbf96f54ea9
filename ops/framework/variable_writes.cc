#include "absl/strings/str_cat.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/mirrored_variable.h"
#include "weir/ops/framework/partitioned_variable.h"
#include "weir/ops/framework/variable.h"
#include "weir/ops/framework/variable_store.h"

namespace weir {

namespace {

// Returns the value of a resource variable after `write`. For a ref variable, and without a read,
// returns the write itself.
Output AfterWrite(const Variable& v, Node* write, const WriteOptions& options) {
  if (write == nullptr) return {};
  if (!v.is_resource() || !options.read_value) return Output(write);
  const ControlDependencies after(v.graph(), {Operation(write)});
  return AddOp("ReadVariableOp", {v.handle()}, {{"dtype", v.dtype()}});
}

// A node that writes `v`: `ref_op` with its colocation and lock for a ref variable, else
// `resource_op`.
class WriteNode {
 public:
  // Writes of a cached variable run after the cached read, so that its readers see one value.
  WriteNode(const Variable& v, absl::string_view ref_op, const WriteOptions& options)
      : v_(v),
        options_(options),
        op_(v.is_resource() ? absl::StrCat("Resource", ref_op) : std::string(ref_op)),
        name_(options.name.empty() ? op_ : options.name) {
    if (v.is_resource() && v.info()->cached)
      after_.emplace(v.graph(), std::vector<Operation>{v.info()->snapshot});
  }

  WriteNode& op(absl::string_view op) {
    op_ = std::string(op);
    if (options_.name.empty()) name_ = op_;
    return *this;
  }
  WriteNode& attr(absl::string_view name, AttrValue value) {
    attrs_.emplace_back(std::string(name), std::move(value));
    return *this;
  }
  WriteNode& locking(bool fallback) {
    return attr("use_locking", options_.use_locking.value_or(fallback));
  }
  // Returns the value to write: a literal becomes "Assign/value" for a reference, "Const" for a
  // resource.
  Output Value(const TensorArg& value) {
    if (v_.is_resource() || !value.is_literal()) return value.In(v_.graph(), v_.dtype());
    // The constant uses the node's own name as a scope, so the name is made final first.
    const NameScope scope(v_.graph(), name_);
    name_ = scope.name();
    return value.In(v_.graph(), v_.dtype(), "value");
  }
  Output Build(const std::vector<Output>& inputs) {
    std::optional<PlaceWith> place;
    if (!v_.is_resource()) place.emplace(v_.graph(), v_.handle().node);
    NodeBuilder builder(v_.graph(), op_);
    builder.Name(name_).Input(v_.handle());
    for (const Output& in : inputs) {
      if (!in.valid()) return {};
      builder.Input(in);
    }
    for (auto& [name, value] : attrs_) builder.Attr(name, std::move(value));
    Node* node = builder.Build();
    place.reset();
    after_.reset();
    return AfterWrite(v_, node, options_);
  }

 private:
  const Variable& v_;
  const WriteOptions& options_;
  std::string op_, name_;
  std::vector<std::pair<std::string, AttrValue>> attrs_;
  std::optional<ControlDependencies> after_;
};

Output AssignDelta(const Variable& v, const TensorArg& delta, const WriteOptions& options,
                   absl::string_view op);

PartWriter DeltaWriter(absl::string_view op) {
  return [op](const Variable& part, const TensorArg& delta, const WriteOptions& options) {
    return AssignDelta(part, delta, options, op);
  };
}

Output AssignPart(const Variable& part, const TensorArg& value, const WriteOptions& options) {
  return part.Assign(value, options);
}

Output AssignDelta(const Variable& v, const TensorArg& delta, const WriteOptions& options,
                   absl::string_view op) {
  if (!v.valid()) return {};
  if (v.is_partitioned()) return WriteParts(v, delta, options, DeltaWriter(op));
  if (!v.replicas().empty()) return WriteReplicas(v, delta, options, DeltaWriter(op), false);
  WriteNode node(v, op, options);
  if (v.is_resource()) node.op(absl::StrCat(op, "VariableOp"));
  const Output value = node.Value(delta);
  if (!value.valid() || !CheckAssignable(v, value)) return {};
  if (!v.is_resource()) node.locking(false);
  return node.Build({value});
}

Output Scatter(const Variable& v, const IndexedSlices& rows, const WriteOptions& options,
               absl::string_view op) {
  if (!HasStorage(v, op)) return {};
  WriteNode node(v, op, options);
  if (!v.is_resource()) node.locking(false);
  return node.Build({rows.indices, rows.values});
}

Output ScatterNdWrite(const Variable& v, Output indices, Output updates,
                      const WriteOptions& options, absl::string_view op) {
  if (!HasStorage(v, op)) return {};
  return WriteNode(v, op, options).locking(true).Build({indices, updates});
}

}  // namespace

Output Variable::Assign(const TensorArg& value, const WriteOptions& options) const {
  if (!this->valid()) return {};
  if (is_partitioned()) return WriteParts(*this, value, options, AssignPart);
  if (!replicas().empty()) return WriteReplicas(*this, value, options, AssignPart, true);
  WriteNode node(*this, "Assign", options);
  if (info_->is_resource) node.op("AssignVariableOp");
  const Output tensor = node.Value(value);
  if (!tensor.valid() ||
      ((options.validate_shape || info_->is_resource) && !CheckAssignable(*this, tensor)))
    return {};
  if (info_->is_resource) {
    node.attr("validate_shape", info_->validate_shape && info_->shape.IsFullyDefined());
  } else {
    node.attr("validate_shape", options.validate_shape).locking(false);
  }
  return node.Build({tensor});
}

Output Assign(const Variable& v, const TensorArg& value, WriteOptions options) {
  if (!options.use_locking) options.use_locking = true;
  return v.Assign(value, options);
}

Output Variable::AssignAdd(const TensorArg& delta, const WriteOptions& options) const {
  return AssignDelta(*this, delta, options, "AssignAdd");
}
Output Variable::AssignSub(const TensorArg& delta, const WriteOptions& options) const {
  return AssignDelta(*this, delta, options, "AssignSub");
}

Outputs Variable::AssignParts(const std::vector<TensorArg>& values,
                              const WriteOptions& options) const {
  return WritePartByPart(*this, values, options, AssignPart);
}
Outputs Variable::AssignAddParts(const std::vector<TensorArg>& deltas,
                                 const WriteOptions& options) const {
  return WritePartByPart(*this, deltas, options, DeltaWriter("AssignAdd"));
}
Outputs Variable::AssignSubParts(const std::vector<TensorArg>& deltas,
                                 const WriteOptions& options) const {
  return WritePartByPart(*this, deltas, options, DeltaWriter("AssignSub"));
}

Output Variable::ScatterAdd(const IndexedSlices& rows, const WriteOptions& options) const {
  return Scatter(*this, rows, options, "ScatterAdd");
}
Output Variable::ScatterSub(const IndexedSlices& rows, const WriteOptions& options) const {
  return Scatter(*this, rows, options, "ScatterSub");
}
Output Variable::ScatterUpdate(const IndexedSlices& rows, const WriteOptions& options) const {
  return Scatter(*this, rows, options, "ScatterUpdate");
}
Output Variable::ScatterMul(const IndexedSlices& rows, const WriteOptions& options) const {
  return Scatter(*this, rows, options, "ScatterMul");
}
Output Variable::ScatterDiv(const IndexedSlices& rows, const WriteOptions& options) const {
  return Scatter(*this, rows, options, "ScatterDiv");
}
Output Variable::ScatterMin(const IndexedSlices& rows, const WriteOptions& options) const {
  return Scatter(*this, rows, options, "ScatterMin");
}
Output Variable::ScatterMax(const IndexedSlices& rows, const WriteOptions& options) const {
  return Scatter(*this, rows, options, "ScatterMax");
}

Output Variable::ScatterNdAdd(Output indices, Output updates, const WriteOptions& options) const {
  return ScatterNdWrite(*this, indices, updates, options, "ScatterNdAdd");
}
Output Variable::ScatterNdSub(Output indices, Output updates, const WriteOptions& options) const {
  return ScatterNdWrite(*this, indices, updates, options, "ScatterNdSub");
}
Output Variable::ScatterNdUpdate(Output indices, Output updates,
                                 const WriteOptions& options) const {
  return ScatterNdWrite(*this, indices, updates, options, "ScatterNdUpdate");
}
Output Variable::ScatterNdMax(Output indices, Output updates, const WriteOptions& options) const {
  return ScatterNdWrite(*this, indices, updates, options, "ScatterNdMax");
}
Output Variable::ScatterNdMin(Output indices, Output updates, const WriteOptions& options) const {
  return ScatterNdWrite(*this, indices, updates, options, "ScatterNdMin");
}

// Implemented as ScatterNdUpdate at full indices: the given index of the last dimension is combined
// with the positions along all other dimensions, each a range that is broadcast over the rest.
Output Variable::BatchScatterUpdate(const IndexedSlices& rows, const WriteOptions& options) const {
  if (!HasStorage(*this, "BatchScatterUpdate") || !rows.indices.valid() || !rows.values.valid())
    return {};
  Graph& g = graph();
  const int rank = rows.indices.shape().rank();
  if (rank < 1) {
    g.Fail(InvalidArgument("BatchScatterUpdate of ", name(),
                           ": the rank of indices must be known and at least 1, got ",
                           rows.indices.shape().ToString()));
    return {};
  }
  const DataType index_type = rows.indices.dtype();
  const Output shape = ShapeTensor(rows.indices);
  const Output last = ExpandDims(rows.indices, -1);
  Outputs parts;
  for (int d = 0; d + 1 < rank; ++d) {
    const Output extent = StridedSlice(shape, {Index(d)});
    Output range;
    {
      const NameScope scope(g, "Range");
      range = AddOp("Range", {Const(g, int32_t{0}, "start"), extent, Const(g, int32_t{1}, "delta")},
                    {}, scope.name());
    }
    Outputs dims(rank + 1);
    for (int i = 0; i <= rank; ++i) dims[i] = i == d ? extent : Const(g, int32_t{1});
    Output positions = Reshape(range, Stack(dims));
    if (index_type != DT_INT32) positions = AddOp("Cast", {positions}, {{"DstT", index_type}});
    parts.push_back(AddOp("Mul", {positions, OnesLike(last)}, {}, "mul"));
  }
  parts.push_back(last);
  return ScatterNdUpdate(parts.size() == 1 ? last : Concat(parts, -1), rows.values, options);
}

Output Variable::CountUpTo(int64_t limit, absl::string_view name) const {
  if (!HasStorage(*this, "CountUpTo")) return {};
  if (info_->is_resource) {
    return AddOp("ResourceCountUpTo", {info_->handle}, {{"limit", limit}, {"T", info_->dtype}},
                 name);
  }
  const PlaceWith place(graph(), info_->handle.node);
  return AddOp("CountUpTo", {info_->handle}, {{"limit", limit}}, name);
}

VariableSlice Variable::Slice(const std::vector<Index>& indices) const {
  return VariableSlice(*this, this->valid() ? StridedSlice(value(), indices) : Output());
}

// The bounds and masks are those of the slice that was read. The node is named after it,
// "strided_slice/_assign".
Output VariableSlice::Assign(const TensorArg& value, const WriteOptions& options) const {
  if (!HasStorage(variable_, "Assign of a slice") || !slice_.valid()) return {};
  const Node& read = *slice_.node;
  WriteOptions named = options;
  if (named.name.empty()) named.name = absl::StrCat(read.name(), "/_assign/");
  WriteNode node(variable_, "StridedSliceAssign", named);
  for (const char* mask :
       {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    node.attr(mask, read.attr<int64_t>(mask));
  }
  const Output tensor = node.Value(value);
  if (!tensor.valid()) return {};
  return node.Build({read.input(1), read.input(2), read.input(3), tensor});
}

}  // namespace weir
