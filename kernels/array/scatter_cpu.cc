#include <algorithm>

#include "weir/kernels/array/inplace.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/row_update.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/lib/variable_access.h"

// Scatters into variables: rows (ScatterX), or slices addressed by vectors of indices (ScatterNdX).
// All indices are checked before anything is written.
namespace weir {

namespace {

struct ScatterConfig {
  RowOp op;
  DataType dtype;
  bool is_ref;
  bool ignore_bad = false;
};

bool HasZero(const Tensor& t) {
  bool found = false;
  DispatchType(t.dtype(), Numbers{}, [&]<class T>() {
    found = std::find(t.data<T>(), t.data<T>() + t.num_elements(), T(0)) !=
            t.data<T>() + t.num_elements();
  });
  return found;
}

absl::Status ScatterRows(const ScatterConfig& config, KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const LockedVariables locked, LockedVariables::Lock(c, 1, config.dtype));
  WEIR_RETURN_IF_ERROR(locked.CheckInitialized(c, 0));
  const Shape shape = locked[0].value().shape();
  const Tensor& indices = c.input(1);
  const Tensor& updates = c.input(2);
  if (shape.rank() < 1) return InvalidArgument("params must be at least 1-D, got shape []");
  const bool scalar = updates.rank() == 0;
  const Shape wanted = indices.shape().Concatenate(shape.Sub(1));
  if (!scalar && updates.shape() != wanted) {
    return InvalidArgument(
        "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got ",
        "updates.shape ", updates.shape().ToString(), ", indices.shape ",
        indices.shape().ToString(), ", params.shape ", shape.ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const std::vector<int64_t> rows, RowIndices(indices, shape.dim(0)));
  WEIR_RETURN_IF_ERROR(CheckDivisor(config.op, updates));
  if (config.op == RowOp::kDiv && !config.is_ref && HasZero(updates))
    return InvalidArgument("updates must not contain 0");
  WEIR_ASSIGN_OR_RETURN(Tensor * value, locked.Writable(c, 0));
  CombineRows(c.pool(), config.op, value, rows, shape.Sub(1).num_elements(), updates, scalar);
  if (config.is_ref) c.SetOutput(0, c.input(0));
  return absl::OkStatus();
}

// Removes the slices of `width` elements whose offset is -1.
absl::StatusOr<Tensor> DropBadIndices(KernelContext& c, const Tensor& slices, int64_t width,
                                      std::vector<int64_t>* offsets) {
  std::vector<int64_t> good;
  for (size_t i = 0; i < offsets->size(); ++i) {
    if ((*offsets)[i] >= 0) good.push_back(static_cast<int64_t>(i));
  }
  const auto count = static_cast<int64_t>(good.size());
  WEIR_ASSIGN_OR_RETURN(Tensor kept, c.AllocateTemp(slices.dtype(), Shape({count, width})));
  for (int64_t k = 0; k < count; ++k) {
    CopyElements(slices.dtype(), ElementAt(slices, good[k] * width), ElementAt(kept, k * width),
                 width);
    (*offsets)[k] = (*offsets)[good[k]];
  }
  offsets->resize(good.size());
  return kept;
}

absl::Status ScatterSlices(const ScatterConfig& config, KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const LockedVariables locked, LockedVariables::Lock(c, 1, config.dtype));
  WEIR_RETURN_IF_ERROR(locked.CheckInitialized(c, 0));
  const Shape shape = locked[0].value().shape();
  const Tensor& indices = c.input(1);
  const Tensor& updates = c.input(2);
  // TensorFlow interprets a vector as one index per slice, and then applies only the first update.
  if (indices.rank() == 1) {
    return InvalidArgument(
        "indices must have at least rank 2, a vector for each slice, but have shape ",
        indices.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const Shape wanted, SlicesShape(indices, shape));
  if (updates.shape() != wanted) {
    return InvalidArgument(
        "Must have updates.shape = indices.shape[:-1] + params.shape[indices.shape[-1]:], got ",
        "updates.shape ", updates.shape().ToString(), ", indices.shape ",
        indices.shape().ToString(), ", params.shape ", shape.ToString());
  }
  int64_t width = 0;
  WEIR_ASSIGN_OR_RETURN(std::vector<int64_t> offsets,
                        SliceOffsets(indices, shape, &width, config.ignore_bad));
  Tensor slices = updates;
  if (config.ignore_bad) {
    WEIR_ASSIGN_OR_RETURN(slices, DropBadIndices(c, updates, width, &offsets));
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * value, locked.Writable(c, 0));
  CombineSlices(c.pool(), config.op, value, offsets, width, slices);
  if (config.is_ref) c.SetOutput(0, c.input(0));
  return absl::OkStatus();
}

using Scatter = absl::Status (*)(const ScatterConfig&, KernelContext&);

template <Scatter kScatter>
KernelFactory Factory(RowOp op, absl::string_view type_attr, bool is_ref) {
  return [op, type_attr = std::string(type_attr),
          is_ref](const KernelInit& init) -> absl::StatusOr<Kernel> {
    WEIR_ASSIGN_OR_RETURN(const bool ignore_bad, IgnoresBadIndices(init.node));
    const ScatterConfig config{op, init.attr<DataType>(type_attr), is_ref, ignore_bad};
    if (!RowOpSupports(op, config.dtype)) {
      return Unimplemented("No OpKernel for ", init.node.Label(), " with ", type_attr, "=",
                           DataTypeName(config.dtype));
    }
    return Kernel([config](KernelContext& c) -> absl::Status { return kScatter(config, c); });
  };
}

}  // namespace

void AddScatterCpu(KernelRegistry* r) {
  AddInplaceCpu(r);
  const std::pair<absl::string_view, RowOp> ops[] = {
      {"Add", RowOp::kAdd}, {"Sub", RowOp::kSub}, {"Mul", RowOp::kMul},      {"Div", RowOp::kDiv},
      {"Min", RowOp::kMin}, {"Max", RowOp::kMax}, {"Update", RowOp::kUpdate}};
  for (const auto& [name, op] : ops) {
    r->Add(absl::StrCat("Scatter", name), kCpu, Factory<ScatterRows>(op, "T", true)).Writes({0});
    r->Add(absl::StrCat("ResourceScatter", name), kCpu, Factory<ScatterRows>(op, "dtype", false))
        .Writes({0});
    if (op == RowOp::kMul || op == RowOp::kDiv) continue;
    r->Add(absl::StrCat("ScatterNd", name), kCpu, Factory<ScatterSlices>(op, "T", true))
        .Writes({0});
    r->Add(absl::StrCat("ResourceScatterNd", name), kCpu, Factory<ScatterSlices>(op, "T", false))
        .Writes({0});
  }
}

}  // namespace weir
