#include "weir/ops/framework/partitioned_variable.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/framework/variable_store.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"

namespace weir {

namespace {

std::string ListText(absl::Span<const int64_t> list) {
  return absl::StrCat("[", absl::StrJoin(list, ", "), "]");
}

// Returns the axis along which a variable is partitioned: the first axis if there is only one part.
int SliceDim(const std::vector<int64_t>& partitions) {
  for (size_t i = 0; i < partitions.size(); ++i) {
    if (partitions[i] > 1) return static_cast<int>(i);
  }
  return 0;
}

absl::Status CheckPartitions(const Shape& shape, const std::vector<int64_t>& partitions) {
  if (static_cast<int>(partitions.size()) != shape.rank()) {
    return InvalidArgument(
        "Partitioner returned a partition list that does not match the Variable's rank: ",
        ListText(partitions), " vs. ", shape.ToString());
  }
  if (std::any_of(partitions.begin(), partitions.end(), [](int64_t n) { return n < 1; })) {
    return InvalidArgument("Partitioner returned zero partitions for some axes: ",
                           ListText(partitions));
  }
  if (std::count_if(partitions.begin(), partitions.end(), [](int64_t n) { return n > 1; }) > 1) {
    return InvalidArgument("Can only slice a variable along one dimension: shape: ",
                           shape.ToString(), ", partitioning: ", ListText(partitions));
  }
  // The first part that would be out of bounds.
  std::vector<int64_t> offset(shape.rank(), 0);
  const int dim = SliceDim(partitions);
  if (partitions[dim] > shape.dim(dim)) offset[dim] = shape.dim(dim);
  for (int i = 0; i < shape.rank(); ++i) {
    if (offset[i] < shape.dim(i)) continue;
    return InvalidArgument("Expected 0 <= offset < shape but found offset=", offset[i],
                           ", shape=", shape.dim(i), " for var_offset=", ListText(offset),
                           ", full_shape=", ListText(shape.dims()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> CallPartitioner(const Partitioner& partitioner,
                                                     const Shape& shape, DataType dtype) {
  if (!shape.IsFullyDefined()) {
    return InvalidArgument(
        "Shape of a new partitioned variable must be fully defined, but instead was ",
        shape.ToString(), ".");
  }
  if (shape.rank() < 1) {
    return InvalidArgument("A partitioned Variable must have rank at least 1, shape: ",
                           shape.ToString());
  }
  WEIR_ASSIGN_OR_RETURN(std::vector<int64_t> partitions, partitioner(shape, dtype));
  WEIR_RETURN_IF_ERROR(CheckPartitions(shape, partitions));
  return partitions;
}

// A request for a partitioned variable as a whole.
class PartitionedRequest {
 public:
  PartitionedRequest(Graph& graph, const std::string& name, const VariableOptions& options,
                     const PartGetter& get_part)
      : g_(graph),
        name_(name),
        o_(options),
        reuse_(options.reuse.value_or(Reuse::kCreate)),
        dtype_(options.dtype == DT_INVALID ? CurrentVariableScope(graph)->dtype : options.dtype),
        get_part_(get_part),
        store_(VariableStore::Of(graph)) {}

  absl::StatusOr<Variable> Get(const std::string& created_at) {
    if (store_.variables.contains(name_)) {
      return InvalidArgument(
          "A partitioner was provided, but an unpartitioned version of the variable was found: ",
          name_, ". Perhaps a variable of the same name was already created without partitioning?");
    }
    WEIR_RETURN_IF_ERROR(ResolveShape());
    if (o_.partitioner) {
      WEIR_ASSIGN_OR_RETURN(partitions_, CallPartitioner(o_.partitioner, shape_, dtype_));
    }
    const auto it = store_.partitioned.find(name_);
    if (it != store_.partitioned.end()) return Share(it->second);
    if (reuse_ == Reuse::kReuse) {
      return NotFound("PartitionedVariable ", name_,
                      " does not exist, or was not created with GetVariable. Did you mean to set ",
                      "Reuse::kCreate or Reuse::kAuto (AUTO_REUSE) in VariableScope?");
    }
    WEIR_RETURN_IF_ERROR(CheckExistingParts());
    WEIR_ASSIGN_OR_RETURN(const Variable variable, Create());
    if (variable.valid()) store_.partitioned[name_] = {variable, created_at};
    return variable;
  }

 private:
  // The shape is also known from an initial value that is a tensor or literal.
  absl::Status ResolveShape() {
    shape_ = o_.shape.value_or(Shape::UnknownRank());
    if (o_.initializer.kind() != Initializer::Kind::kTensor) return absl::OkStatus();
    const TensorArg& value = o_.initializer.tensor();
    const Shape& own = value.is_literal() ? value.literal().shape() : value.output().shape();
    absl::StatusOr<Shape> merged = shape_.MergeWith(own);
    if (!merged.ok()) {
      return InvalidArgument("Variable ", name_, ": shape ", shape_.ToString(),
                             " is not compatible with that of the initial value, ", own.ToString());
    }
    shape_ = *merged;
    return absl::OkStatus();
  }

  absl::StatusOr<Variable> Share(const VariableStore::Entry& entry) const {
    const Variable& found = entry.variable;
    if (reuse_ == Reuse::kCreate) {
      return AlreadyExists("Partitioned variable with name ", name_,
                           " already exists. Did you mean to set Reuse::kReuse or Reuse::kAuto ",
                           "(AUTO_REUSE) in VariableScope? It was created at ", entry.created_at,
                           " as ", found.ToString());
    }
    if (!shape_.IsCompatibleWith(found.shape())) {
      return InvalidArgument("Trying to reuse partitioned variable ", name_,
                             ", but specified shape ", shape_.ToString(), " and found shape ",
                             found.shape().ToString(), ".");
    }
    if (o_.dtype != DT_INVALID && o_.dtype != found.dtype()) {
      return InvalidArgument("Trying to reuse partitioned variable ", name_,
                             ", but specified dtype ", DataTypeName(o_.dtype), " and found dtype ",
                             DataTypeName(found.dtype()), ".");
    }
    if (!partitions_.empty() && partitions_ != found.partitions()) {
      return InvalidArgument("Trying to reuse partitioned variable ", name_,
                             ", but specified partitions ", ListText(partitions_),
                             " and found partitions ", ListText(found.partitions()), ".");
    }
    return found;
  }

  std::string PartName(int64_t i) const { return absl::StrCat(name_, "/part_", i); }

  // Variables that were made individually under the parts' names are accepted only if all parts
  // exist.
  absl::Status CheckExistingParts() const {
    const auto has = [&](int64_t i) { return store_.variables.contains(PartName(i)); };
    if (!has(0)) return absl::OkStatus();
    const int64_t count = partitions_[SliceDim(partitions_)];
    const bool too_few = !has(count - 1);
    if (!too_few && !has(count)) return absl::OkStatus();
    return InvalidArgument(
        "Partitioner returned a different partitioning than what was already found. Partitioner "
        "returned ",
        count, " shards, and shard ", PartName(0), " was found, but ",
        too_few ? absl::StrCat(PartName(count - 1), " was not.")
                : absl::StrCat("so was the extra shard ", PartName(count), "."));
  }

  // The extents of the parts differ by at most one row, and the larger parts come first. Returns a
  // null variable if the graph has an error.
  absl::StatusOr<Variable> Create() {
    const int dim = SliceDim(partitions_);
    const int64_t count = partitions_[dim], rows = shape_.dim(dim);
    auto info = std::make_shared<VariableInfo>();
    SaveSliceInfo slice{.full_name = name_,
                        .full_shape = {shape_.dims().begin(), shape_.dims().end()},
                        .var_offset = std::vector<int64_t>(shape_.rank(), 0),
                        .var_shape = {shape_.dims().begin(), shape_.dims().end()}};
    for (int64_t i = 0; i < count; ++i) {
      slice.var_shape[dim] = rows / count + (i < rows % count ? 1 : 0);
      WEIR_ASSIGN_OR_RETURN(const Variable part, MakePart(i, slice));
      if (!part.valid()) return Variable();
      part.info()->save_slice = slice;
      info->parts.push_back(part);
      slice.var_offset[dim] += slice.var_shape[dim];
    }
    const VariableInfo& first = *info->parts[0].info();
    info->op = name_;
    info->is_resource = first.is_resource;
    info->dtype = first.dtype;
    info->shape = shape_;
    info->trainable = first.trainable;
    info->synchronization = first.synchronization;
    info->aggregation = first.aggregation;
    info->constraint = first.constraint;
    info->partitions = partitions_;
    return Variable(std::move(info));
  }

  absl::StatusOr<Variable> MakePart(int64_t i, const SaveSliceInfo& slice) {
    const NameScope root(g_, "");
    VariableOptions options = o_;
    options.partitioner = nullptr;
    options.shape = Shape(slice.var_shape);
    options.dtype = dtype_;
    if (o_.initializer.kind() == Initializer::Kind::kCallable) {
      return InvalidArgument("Variable ", name_,
                             ": an initializer without arguments cannot initialize ",
                             "the parts of a partitioned variable; pass one that takes a shape");
    }
    if (o_.initializer.kind() == Initializer::Kind::kTensor) {
      const ClearControlDependencies no_controls(g_);
      const NameScope scope(g_, absl::StrCat(PartName(i), "/PartitionedInitializer"));
      const TensorArg& value = o_.initializer.tensor();
      const Output full = value.is_literal() ? value.In(g_, dtype_) : value.output();
      const Output cut = Slice(full, Ints(slice.var_offset), Ints(slice.var_shape));
      if (!cut.valid()) return Variable();
      options.initializer = cut;
      options.shape.reset();
      options.dtype = cut.dtype();
    } else {
      const NameScope scope(g_, absl::StrCat(PartName(i), "/PartitionedInitializer"));
    }
    return get_part_(PartName(i), options, {shape_, slice.var_offset});
  }

  Graph& g_;
  const std::string& name_;
  const VariableOptions& o_;
  const Reuse reuse_;
  const DataType dtype_;
  const PartGetter& get_part_;
  VariableStore& store_;
  Shape shape_;
  std::vector<int64_t> partitions_;  // empty if there is no partitioner
};

// Splits a full value into the values of the parts.
Outputs SplitValue(const Variable& v, const TensorArg& value) {
  Graph& g = v.graph();
  const int dim = SliceDim(v.partitions());
  std::vector<int64_t> sizes;
  for (const Variable& part : v.parts()) sizes.push_back(part.shape().dim(dim));
  const Output lengths = Ints(sizes).In(g, "Const");
  const NameScope scope(g, "split");
  const Output full = value.In(g, v.dtype(), "value");
  if (!full.valid() || !CheckAssignable(v, full)) return {};
  Node* split = AddNode("SplitV", {full, lengths, Const(g, static_cast<int32_t>(dim), "split_dim")},
                        {{"num_split", static_cast<int64_t>(sizes.size())}}, scope.name());
  Outputs shares;
  for (size_t i = 0; split != nullptr && i < sizes.size(); ++i) shares.push_back(split->output(i));
  return shares;
}

}  // namespace

absl::StatusOr<Variable> GetPartitionedVariable(Graph& graph, const std::string& name,
                                                const VariableOptions& options,
                                                const std::string& created_at,
                                                const PartGetter& get_part) {
  return PartitionedRequest(graph, name, options, get_part).Get(created_at);
}

bool HasStorage(const Variable& v, absl::string_view op) {
  if (!v.valid()) return false;
  if (v.is_partitioned()) {
    v.graph().Fail(InvalidArgument(op, " is not supported for partitioned variable '", v.name(),
                                   "' of shape ", v.shape().ToString(), " in ", v.parts().size(),
                                   " parts; apply it to its parts()"));
  } else if (!v.replicas().empty()) {
    v.graph().Fail(InvalidArgument(op, " is not supported for mirrored variable '", v.name(),
                                   "' with ", v.replicas().size(),
                                   " copies; apply it to its replicas()"));
  } else {
    return true;
  }
  return false;
}

Output ConcatParts(const Variable& v, const std::function<Output(const Variable&)>& read) {
  Graph& g = v.graph();
  if (v.parts().size() == 1) {
    const NameScope root(g, "");
    const NameScope scope(g, v.name());
    return AddOp("Identity", {read(v.parts()[0])}, {}, scope.name());
  }
  Output joined;
  {
    const NameScope absolute(g, absl::StrCat(v.name(), "/ConcatPartitions/"));
    const NameScope scope(g, "concat");
    Outputs values;
    for (const Variable& part : v.parts()) values.push_back(read(part));
    const Output axis = Const(g, static_cast<int32_t>(SliceDim(v.partitions())), "axis");
    joined = AddOp("ConcatV2", {values, axis}, {}, scope.name());
  }
  const NameScope root(g, "");
  return Identity(joined, v.name());
}

Output WriteParts(const Variable& v, const TensorArg& value, const WriteOptions& options,
                  const PartWriter& write) {
  const Outputs shares = SplitValue(v, value);
  if (shares.empty()) return {};
  const Outputs written =
      WritePartByPart(v, std::vector<TensorArg>(shares.begin(), shares.end()), options, write);
  if (std::any_of(written.begin(), written.end(), [](const Output& o) { return !o.valid(); }))
    return {};
  if (!options.read_value) {
    return GroupOps(v.graph(), std::vector<Operation>(written.begin(), written.end())).node;
  }
  size_t i = 0;
  return ConcatParts(v, [&](const Variable&) { return written[i++]; });
}

Outputs WritePartByPart(const Variable& v, const std::vector<TensorArg>& values,
                        const WriteOptions& options, const PartWriter& write) {
  if (!v.valid()) return Outputs(values.size());
  const Variables parts = v.is_partitioned() ? v.parts() : Variables{v};
  if (values.size() != parts.size()) {
    v.graph().Fail(InvalidArgument("Cannot assign to variable '", v.name(), "': it has ",
                                   parts.size(), " parts, but ", values.size(),
                                   " values are given"));
    return Outputs(parts.size());
  }
  Outputs written;
  for (size_t i = 0; i < parts.size(); ++i) {
    WriteOptions part_options = options;
    // The name of a scope can be used only once.
    if (i > 0 && absl::EndsWith(options.name, "/"))
      part_options.name = absl::StrCat(options.name, "part_", i, "/");
    written.push_back(write(parts[i], values[i], part_options));
  }
  return written;
}

Variables FlattenParts(const Variables& variables) {
  Variables flat;
  for (const Variable& v : variables) {
    if (v.is_partitioned()) {
      flat.insert(flat.end(), v.parts().begin(), v.parts().end());
    } else {
      flat.push_back(v);
    }
  }
  return flat;
}

const std::vector<Variable>& Variable::parts() const {
  static const Variables* const none = new Variables();
  return info_ ? info_->parts : *none;
}

const std::vector<int64_t>& Variable::partitions() const {
  static const std::vector<int64_t>* const none = new std::vector<int64_t>();
  return info_ ? info_->partitions : *none;
}

const std::vector<Variable>& Variable::replicas() const {
  static const Variables* const none = new Variables();
  return info_ ? info_->replicas : *none;
}

Operation Variable::initializer() const {
  if (!this->valid()) return {};
  if (info_->initializer.valid() || !is_partitioned()) return info_->initializer;
  Graph& g = graph();
  const ClearControlDependencies no_controls(g);
  const NameScope root(g, "");
  std::vector<Operation> all;
  for (const Variable& part : parts()) all.push_back(part.initializer());
  return info_->initializer = GroupOps(g, all, absl::StrCat(op_name(), "/init"));
}

}  // namespace weir
