#include "weir/kernels/math/reduce.h"

#include <algorithm>

#include "weir/kernels/gpu/gpu_kernels.h"

// Reductions on a GPU. The reduced elements are divided into as many splits as it takes to keep the
// GPU busy: a thread for each (result, split) accumulates every splits-th element, so that
// neighboring threads read neighboring elements, and stores its accumulator to memory. The
// accumulators are then reduced in the same way, until one thread per result computes it. With at
// least 32 elements per thread there are few passes (four for 10^6 elements), and no thread waits
// for another: the result depends on the sizes alone, and is the same in every run.
namespace weir {

namespace gpu {

namespace {

constexpr int64_t kBusy = int64_t{1} << 16;  // threads
constexpr int64_t kWork = 32;                // minimum elements per thread

int64_t SplitsFor(int64_t results, int64_t elements) {
  const int64_t by_work = (elements + kWork - 1) / kWork;
  return std::max<int64_t>(1, std::min(by_work, kBusy / results));
}

GridIndex<1> Stepping(int64_t count, int64_t stride) {
  GridIndex<1> grid;
  grid.Add(count, {stride});
  return grid;
}

}  // namespace

absl::Status Reduce(KernelContext& c, const Reduction& r, const void* in, void* out) {
  const int64_t results = r.kept.count;
  if (results == 0) return absl::OkStatus();
  ReducePass pass{.in = in,
                  .reduced_inside = r.reduced_inside,
                  .count = r.count,
                  .kept = r.kept,
                  .reduced = r.reduced};
  Tensor partials;
  for (;;) {
    pass.splits = SplitsFor(results, pass.reduced.count);
    pass.to_results = pass.splits == 1;
    if (pass.to_results) {
      pass.out = out;
      r.reducer->run(c.device().stream(), pass);
      return absl::OkStatus();
    }
    const int64_t bytes = results * pass.splits * static_cast<int64_t>(r.reducer->acc_size);
    WEIR_ASSIGN_OR_RETURN(Tensor next, c.AllocateTemp(DT_UINT8, Shape({bytes})));
    pass.out = next.raw();
    r.reducer->run(c.device().stream(), pass);
    partials = std::move(
        next);  // frees the input of this pass; the stream reuses its memory only after the pass
    pass.in = partials.raw();
    pass.from_partials = true;
    pass.kept = Stepping(results, r.reduced_inside ? pass.splits : 1);
    pass.reduced = Stepping(pass.splits, r.reduced_inside ? 1 : results);
  }
}

absl::Status ReduceRows(KernelContext& c, const Reducer& reducer, int64_t rows, int64_t columns,
                        const void* in, void* out) {
  return Reduce(c, {&reducer, Stepping(rows, columns), Stepping(columns, 1), columns, true}, in,
                out);
}

namespace {

// Splits the dimensions of a layout into kept and reduced ones.
absl::StatusOr<Reduction> MakeReduction(const Reducer& reducer, const ReductionLayout& layout) {
  Reduction r{.reducer = &reducer, .count = layout.count};
  int64_t stride = layout.count == 0 ? 0 : 1;
  for (const int64_t dim : layout.dims) stride *= dim;
  for (size_t i = 0; i < layout.dims.size(); ++i) {
    const int64_t dim = layout.dims[i];
    const bool reduced = layout.first_is_reduced == (i % 2 == 0);
    if (dim > 0) stride /= dim;
    if (!(reduced ? r.reduced : r.kept).Add(dim, {stride})) {
      return Unimplemented(
          "reductions with this many alternating kept and reduced dimensions are not "
          "supported on a GPU");
    }
    r.reduced_inside = reduced;
  }
  return r;
}

struct ReductionKernel {
  const Reducer* reducer;
  bool keep_dims;

  absl::Status operator()(KernelContext& c) const {
    const Tensor &x = c.input(0), &axes = c.input(1);
    WEIR_ASSIGN_OR_RETURN(const ReductionLayout layout,
                          MakeReductionLayout(x.shape(), axes, keep_dims));
    WEIR_ASSIGN_OR_RETURN(const Reduction reduction, MakeReduction(*reducer, layout));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, layout.out));
    return Reduce(c, reduction, x.raw(), out->raw());
  }
};

absl::Status RunL2Loss(KernelContext& c, const Reducer& reducer) {
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape()));
  return ReduceRows(c, reducer, 1, c.input(0).num_elements(), c.input(0).raw(), out->raw());
}

// The gradient of a bias: the sum over all dimensions except the channels.
absl::Status RunBiasAddGrad(KernelContext& c, const Reducer& sum, bool channels_first) {
  const Tensor& dy = c.input(0);
  if (dy.rank() < 2)
    return InvalidArgument("Input tensor must be at least 2D: ", dy.shape().ToString());
  const int dim = channels_first ? 1 : dy.rank() - 1;
  const int64_t channels = dy.dim(dim);
  const int64_t outer = dy.shape().Sub(0, dim).num_elements();
  const int64_t inner = dy.shape().Sub(dim + 1).num_elements();
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({channels})));
  Reduction r{.reducer = &sum, .count = outer * inner, .reduced_inside = inner > 1};
  r.kept.Add(channels, {inner});
  r.reduced.Add(outer, {channels * inner});
  r.reduced.Add(inner, {1});
  return Reduce(c, r, dy.raw(), out->raw());
}

absl::Status RunArg(KernelContext& c, const Reducer& reducer) {
  const Tensor &x = c.input(0), &dimension = c.input(1);
  if (dimension.rank() != 0) {
    return InvalidArgument("dim must be a scalar, but received tensor of shape: ",
                           dimension.shape().ToString());
  }
  const int64_t rank = x.rank(), a = dimension.IntAt(0), axis = a < 0 ? a + rank : a;
  if (rank == 0 || axis < 0 || axis >= rank) {
    return InvalidArgument("Expected dimension in the range [", -rank, ", ", rank, "), but got ",
                           a);
  }
  const int dim = static_cast<int>(axis);
  if (x.dim(dim) == 0) {
    return InvalidArgument("Reduction axis ", dim, " is empty in shape ", x.shape().ToString());
  }
  Shape shape = x.shape();
  shape.RemoveDim(dim);
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  const int64_t outer = x.shape().Sub(0, dim).num_elements();
  const int64_t inner = x.shape().Sub(dim + 1).num_elements();
  Reduction r{.reducer = &reducer, .count = x.dim(dim), .reduced_inside = inner == 1};
  r.kept.Add(outer, {x.dim(dim) * inner});
  r.kept.Add(inner, {1});
  r.reduced.Add(x.dim(dim), {inner});
  return Reduce(c, r, x.raw(), out->raw());
}

template <class Run>
KernelFactory Factory(const Reducer* reducer, Run run) {
  return [reducer, run](const KernelInit&) -> absl::StatusOr<Kernel> {
    return Kernel([reducer, run](KernelContext& c) { return run(c, *reducer); });
  };
}

void AddArgs(KernelRegistry* r, bool max, DataType type) {
  for (const DataType out : {DT_INT32, DT_INT64}) {
    const Reducer* reducer = FindArgReducer(max, type, out);
    if (reducer == nullptr) continue;
    r->Add(max ? "ArgMax" : "ArgMin", kGpu, TypeConstraints{{"T", type}, {"output_type", out}},
           Factory(reducer, RunArg))
        .HostArgs({"dimension"});
  }
}

}  // namespace

}  // namespace gpu

void AddReduceGpu(KernelRegistry* r) {
  for (int t = DT_FLOAT; t <= DT_UINT64; ++t) {
    const DataType type = static_cast<DataType>(t);
    for (const char* op : {"Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm", "All", "Any"}) {
      const gpu::Reducer* reducer = gpu::FindReducer(op, type);
      if (reducer == nullptr) continue;
      r->Add(op, kGpu, type == DT_BOOL ? TypeConstraints{} : TypeConstraints{{"T", type}},
             [reducer](const KernelInit& init) -> absl::StatusOr<Kernel> {
               return Kernel(gpu::ReductionKernel{reducer, init.attr<bool>("keep_dims")});
             })
          .HostArgs({"reduction_indices"});
    }
    gpu::AddArgs(r, true, type);
    gpu::AddArgs(r, false, type);
    if (const gpu::Reducer* reducer = gpu::FindReducer("L2Loss", type))
      r->Add("L2Loss", kGpu, type, gpu::Factory(reducer, gpu::RunL2Loss));
    if (const gpu::Reducer* sum = gpu::FindReducer("Sum", type)) {
      r->Add("BiasAddGrad", kGpu, type, [sum](const KernelInit& init) -> absl::StatusOr<Kernel> {
        const bool first = init.node.attr_or<std::string>("data_format", "NHWC") == "NCHW";
        return Kernel(
            [sum, first](KernelContext& c) { return gpu::RunBiasAddGrad(c, *sum, first); });
      });
    }
  }
}

}  // namespace weir
