#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/waiter_queue.h"
#include "weir/kernels/sparse/sparse_kernels.h"

// A map from numbers to sparse tensors, so that queues and batches, which hold dense tensors only,
// can carry sparse tensors.
namespace weir {

namespace {

class SparseTensorsMap final : public Resource {
 public:
  explicit SparseTensorsMap(std::string name) : name_(std::move(name)) {}

  std::string Describe() const override { return "map of sparse tensors '" + name_ + "'"; }
  void Clear() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_.clear();
  }

  // `value` owns its memory.
  int64_t Add(SparseValue value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    values_.emplace(next_, std::move(value));
    return next_++;
  }
  // Removes and returns a tensor: each number can be requested once.
  absl::StatusOr<SparseValue> Take(int64_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = values_.find(handle);
    if (it == values_.end())
      return InvalidArgument("Unable to find SparseTensor: ", handle, " in map: ", name_);
    SparseValue value = std::move(it->second);
    values_.erase(it);
    return value;
  }

 private:
  const std::string name_;
  std::mutex mutex_;
  int64_t next_ = 0;
  std::unordered_map<int64_t, SparseValue> values_;
};

absl::StatusOr<std::shared_ptr<SparseTensorsMap>> FindMap(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const ResourceName name, NameSharedByNode(init.node));
  return name.SelectMap(init.resources)
      .LookupOrCreate<SparseTensorsMap>(
          name.container, name.name, [&] { return std::make_shared<SparseTensorsMap>(name.name); });
}

absl::StatusOr<SparseValue> ReadOwn(const KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(SparseValue x, ReadSparse(c, 0));
  WEIR_ASSIGN_OR_RETURN(x.indices, c.Own(x.indices));
  WEIR_ASSIGN_OR_RETURN(x.values, c.Own(x.values));
  return x;
}

absl::StatusOr<Kernel> MakeAdd(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<SparseTensorsMap> map, FindMap(init));
  return Kernel([map](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(SparseValue x, ReadOwn(c));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape()));
    *out->data<int64_t>() = map->Add(std::move(x));
    return absl::OkStatus();
  });
}

// Non-empty rows get their numbers first.
absl::Status AddRows(KernelContext& c, SparseTensorsMap& map) {
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadSparse(c, 0));
  if (x.rank() < 2) {
    return InvalidArgument("Rank of input SparseTensor should be > 1, but saw rank: ", x.rank());
  }
  WEIR_RETURN_IF_ERROR(CheckIndices(x, true));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({x.dims[0]})));
  const absl::Span<int64_t> handles = out->flat<int64_t>();
  constexpr int64_t kNone = -1;
  std::fill(handles.begin(), handles.end(), kNone);
  for (int64_t begin = 0, end; begin < x.count(); begin = end) {
    const int64_t r = x.row(begin)[0];
    for (end = begin; end < x.count() && x.row(end)[0] == r;) ++end;
    handles[r] = map.Add(SparseRow(x, begin, end));
  }
  const SparseValue empty = SparseRow(x, 0, 0);
  for (int64_t& handle : handles) {
    if (handle == kNone) handle = map.Add(empty);
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeAddMany(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<SparseTensorsMap> map, FindMap(init));
  return Kernel([map](KernelContext& c) -> absl::Status { return AddRows(c, *map); });
}

absl::Status Take(KernelContext& c, SparseTensorsMap& map, DataType type) {
  const Tensor& handles = c.input(0);
  if (handles.rank() != 1) {
    return InvalidArgument("sparse_handles should be a vector but received shape ",
                           handles.shape().ToString());
  }
  if (handles.num_elements() == 0) {
    return InvalidArgument(
        "Must have at least 1 serialized SparseTensor, but input matrix has 0 rows");
  }
  std::vector<SparseValue> parts;
  for (const int64_t handle : handles.flat<int64_t>()) {
    WEIR_ASSIGN_OR_RETURN(parts.emplace_back(), map.Take(handle));
    if (parts.back().values.dtype() == type) continue;
    return InvalidArgument("Requested SparseTensor of type ", DataTypeName(type),
                           " but SparseTensor[", parts.size() - 1,
                           "].values.dtype() == ", DataTypeName(parts.back().values.dtype()));
  }
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, StackSparse(parts, type));
  return OutputSparse(c, x);
}

absl::StatusOr<Kernel> MakeTakeMany(const KernelInit& init) {
  const DataType type = init.attr<DataType>("dtype");
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<SparseTensorsMap> map, FindMap(init));
  return Kernel([map, type](KernelContext& c) -> absl::Status { return Take(c, *map, type); });
}

}  // namespace

void AddSparseMapKernels(KernelRegistry* r) {
  r->Add("AddSparseToTensorsMap", kCpu, MakeAdd);
  r->Add("AddManySparseToTensorsMap", kCpu, MakeAddMany);
  r->Add("TakeManySparseFromTensorsMap", kCpu, MakeTakeMany);
  AddSparseSerializeKernels(r);
}

}  // namespace weir
