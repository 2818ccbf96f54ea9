#include "weir/kernels/inplace.h"
#include "weir/kernels/registry.h"
#include "weir/kernels/row_update.h"
#include "weir/kernels/variable_access.h"

// Scatters into variables: rows (ScatterX), or slices addressed by vectors of indices (ScatterNdX).
// All indices are checked before anything is written.
namespace weir {

namespace {

struct ScatterConfig {
  RowOp op;
  DataType dtype;
  bool is_ref;
};

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
  WEIR_ASSIGN_OR_RETURN(Tensor * value, locked.Writable(c, 0));
  CombineRows(c.pool(), config.op, value, rows, shape.Sub(1).num_elements(), updates, scalar);
  if (config.is_ref) c.SetOutput(0, c.input(0));
  return absl::OkStatus();
}

absl::Status ScatterSlices(const ScatterConfig& config, KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const LockedVariables locked, LockedVariables::Lock(c, 1, config.dtype));
  WEIR_RETURN_IF_ERROR(locked.CheckInitialized(c, 0));
  const Shape shape = locked[0].value().shape();
  const Tensor& indices = c.input(1);
  const Tensor& updates = c.input(2);
  WEIR_ASSIGN_OR_RETURN(const Shape wanted, SlicesShape(indices, shape));
  if (updates.shape() != wanted) {
    return InvalidArgument(
        "Must have updates.shape = indices.shape[:-1] + params.shape[indices.shape[-1]:], got ",
        "updates.shape ", updates.shape().ToString(), ", indices.shape ",
        indices.shape().ToString(), ", params.shape ", shape.ToString());
  }
  int64_t width = 0;
  WEIR_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, SliceOffsets(indices, shape, &width));
  WEIR_ASSIGN_OR_RETURN(Tensor * value, locked.Writable(c, 0));
  CombineSlices(c.pool(), config.op, value, offsets, width, updates);
  if (config.is_ref) c.SetOutput(0, c.input(0));
  return absl::OkStatus();
}

using Scatter = absl::Status (*)(const ScatterConfig&, KernelContext&);

template <Scatter kScatter>
KernelFactory Factory(RowOp op, absl::string_view type_attr, bool is_ref) {
  return [op, type_attr = std::string(type_attr),
          is_ref](const KernelInit& init) -> absl::StatusOr<Kernel> {
    const ScatterConfig config{op, init.attr<DataType>(type_attr), is_ref};
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
