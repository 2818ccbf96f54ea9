#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "weir/kernels/arguments.h"
#include "weir/kernels/blocks.h"
#include "weir/kernels/registry.h"
#include "weir/kernels/strided_copy.h"

// Dynamic partition and stitch, and the temporary variables of a step.
namespace weir {

namespace {

// ---- DynamicPartition

// Validates and counts the partition numbers, then copies every slice to the next position of its
// partition.
absl::Status DynamicPartition(KernelContext& c) {
  const Tensor &data = c.input(0), &partitions = c.input(1);
  const int n = c.num_outputs(), prefix = partitions.rank();
  if (data.rank() < prefix || data.shape().Sub(0, prefix) != partitions.shape()) {
    return InvalidArgument(
        "data.shape must start with partitions.shape, got data.shape = ", data.shape().ToString(),
        ", partitions.shape = ", partitions.shape().ToString());
  }
  const int32_t* of = partitions.data<int32_t>();
  std::vector<int64_t> counts(static_cast<size_t>(n));
  for (const auto [begin, end] : CancellableBlocks(partitions.num_elements())) {
    for (int64_t i = begin; i < end; ++i) {
      if (of[i] < 0 || of[i] >= n) {
        return InvalidArgument("partitions", PositionText(partitions.shape(), i), " = ", of[i],
                               " is not in [0, ", n, ")");
      }
      ++counts[static_cast<size_t>(of[i])];
    }
  }
  std::vector<Tensor*> outputs;
  for (int p = 0; p < n; ++p) {
    Shape shape({counts[static_cast<size_t>(p)]});
    for (int i = prefix; i < data.rank(); ++i) shape.AddDim(data.dim(i));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(p, shape));
    outputs.push_back(out);
  }
  if (data.num_elements() == 0) return absl::OkStatus();
  const int64_t slice = data.num_elements() / partitions.num_elements();
  std::vector<int64_t> next(static_cast<size_t>(n));
  for (const auto [begin, end] : CancellableBlocks(partitions.num_elements())) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t p = static_cast<size_t>(of[i]);
      CopyElements(data.dtype(), ElementAt(data, i * slice),
                   ElementAt(*outputs[p], next[p]++ * slice), slice);
    }
  }
  return absl::OkStatus();
}

// ---- DynamicStitch

absl::Status CheckPieces(KernelContext& c, int n, Shape* tail, int64_t* rows) {
  for (int i = 0; i < n; ++i) {
    const Tensor &indices = c.input(i), &data = c.input(n + i);
    const int prefix = indices.rank();
    if (data.rank() < prefix || data.shape().Sub(0, prefix) != indices.shape()) {
      return InvalidArgument("data[", i, "].shape = ", data.shape().ToString(),
                             " does not start with indices[", i,
                             "].shape = ", indices.shape().ToString());
    }
    const Shape own = data.shape().Sub(prefix);
    if (i == 0) *tail = own;
    if (own != *tail) {
      return InvalidArgument("Need data[0].shape[", c.input(0).rank(), ":] = data[", i, "].shape[",
                             prefix, ":], got data[0].shape = ", c.input(n).shape().ToString(),
                             ", data[", i, "].shape = ", data.shape().ToString());
    }
    for (const auto [begin, end] : CancellableBlocks(indices.num_elements())) {
      for (int64_t k = begin; k < end; ++k) {
        const int32_t index = indices.data<int32_t>()[k];
        if (index < 0)
          return InvalidArgument("indices[", i, "] is out of range: it has the element ", index);
        *rows = std::max<int64_t>(*rows, int64_t{index} + 1);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status DynamicStitch(KernelContext& c) {
  const int n = c.num_inputs() / 2;
  Shape tail;
  int64_t rows = 0;
  WEIR_RETURN_IF_ERROR(CheckPieces(c, n, &tail, &rows));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(Shape({rows}).Concatenate(tail).dims()));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  std::vector<bool> written(static_cast<size_t>(rows));
  const int64_t slice = tail.num_elements();
  int64_t left = rows;
  for (int i = 0; i < n; ++i) {
    const Tensor &indices = c.input(i), &data = c.input(n + i);
    for (const auto [begin, end] : CancellableBlocks(indices.num_elements())) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t row = indices.data<int32_t>()[k];
        CopyElements(data.dtype(), ElementAt(data, k * slice), ElementAt(*out, row * slice), slice);
        left -= written[static_cast<size_t>(row)] ? 0 : 1;
        written[static_cast<size_t>(row)] = true;
      }
    }
  }
  for (int64_t row = 0; left > 0 && row < rows; ++row) {
    ThrowIfCancelledAt(row);
    if (written[static_cast<size_t>(row)]) continue;
    --left;
    Tensor gap = out->Slice(row, row + 1);
    ClearElements(c.pool(), gap);
  }
  return absl::OkStatus();
}

// ---- temporary variables: the handle keeps a variable alive while the step needs it

// The temporary variables of the steps in flight. A step is identified by its own Cancellation.
class TemporaryVariables : public Resource {
 public:
  std::string Describe() const override { return "the temporary variables of steps"; }
  void Clear() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_.clear();
  }

  // ALREADY_EXISTS if another node has created a variable of that name in this step and it has not
  // been destroyed. The same node may create one per loop iteration.
  absl::Status Add(const KernelContext& c, const std::shared_ptr<VariableState>& variable) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(entries_, [](const auto& entry) { return entry.second.variable.expired(); });
    Entry& entry = entries_[{c.step().cancellation, variable->name()}];
    const std::shared_ptr<VariableState> other = entry.variable.lock();
    if (other != nullptr && entry.node != &c.node() && other->IsInitialized()) {
      return absl::AlreadyExistsError(absl::StrCat(
          "Resource tmp_var/", variable->name(), " already exists: node '", entry.node->name(),
          "' has created a temporary variable of this var_name in this step"));
    }
    entry = {&c.node(), variable};
    return absl::OkStatus();
  }

 private:
  struct Entry {
    const Node* node = nullptr;
    std::weak_ptr<VariableState> variable;
  };
  std::mutex mutex_;
  std::map<std::pair<const Cancellation*, std::string>, Entry> entries_;
};

absl::StatusOr<Kernel> MakeTemporaryVariable(const KernelInit& init) {
  const DataType dtype = init.attr<DataType>("dtype");
  const Shape shape = init.attr<Shape>("shape");
  if (!shape.IsFullyDefined()) {
    return InvalidArgument("the shape of a temporary variable must be fully defined, not ",
                           shape.ToString());
  }
  std::string name = init.attr<std::string>("var_name");
  if (name.empty()) name = init.node.name();
  const auto all = init.resources.LookupOrCreate<TemporaryVariables>(
      ResourceMap::kDefaultContainer, "temporary variables",
      [] { return std::make_shared<TemporaryVariables>(); });
  return Kernel([=](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(Tensor value, c.AllocateTemp(dtype, shape));
    if (value.host_accessible()) ClearElements(c.pool(), value);
    const auto variable = std::make_shared<VariableState>(name, dtype, shape);
    {
      const std::lock_guard<std::mutex> lock(variable->mutex());
      variable->Set(std::move(value));
    }
    WEIR_RETURN_IF_ERROR(all->Add(c, variable));
    ResourceHandle handle;
    handle.name = name;
    handle.resource = variable;
    c.SetOutput(0, Tensor::Scalar(std::move(handle)));
    return absl::OkStatus();
  });
}

absl::StatusOr<Kernel> MakeDestroyTemporaryVariable(const KernelInit& init) {
  const std::string name = init.attr<std::string>("var_name");
  if (name.empty()) return InvalidArgument("Missing var_name attribute");
  return Kernel([name](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<VariableState> v, c.variable(0));
    if (v->name() != name || !v->IsInitialized())
      return NotFound("Resource ", name, ", a temporary variable, does not exist.");
    WEIR_ASSIGN_OR_RETURN(Tensor value, v->Read());
    v->Clear();
    c.SetOutput(0, std::move(value));
    return absl::OkStatus();
  });
}

}  // namespace

void AddDataFlowKernels(KernelRegistry* r) {
  r->Add("DynamicPartition", kCpu, DynamicPartition);
  r->Add("DynamicStitch", kCpu, DynamicStitch);
  r->Add("ParallelDynamicStitch", kCpu, DynamicStitch);
  r->Add("TemporaryVariable", kCpu, MakeTemporaryVariable);
  r->Add("DestroyTemporaryVariable", kCpu, MakeDestroyTemporaryVariable).Writes({0});
}

}  // namespace weir
