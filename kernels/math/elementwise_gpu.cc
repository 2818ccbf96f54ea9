#include <algorithm>
#include <vector>

#include "weir/kernels/gpu/gpu_kernels.h"
#include "weir/kernels/math/cast.h"
#include "weir/kernels/math/elementwise_loops.h"

// Elementwise GPU kernels. They accept the same inputs and return the same error messages as the
// CPU kernels (elementwise_loops.cc, select_cpu.cc, bias_cpu.cc, cast_cpu.cc).
namespace weir {

namespace gpu {

namespace {

struct UnaryKernel {
  Unary run;
  double p;
  absl::Status operator()(KernelContext& c) const {
    const Tensor& x = c.input(0);
    WEIR_ASSIGN_OR_RETURN(Tensor* const y, c.AllocateOutput(0, x.shape()));
    run(c.device().stream(), x.raw(), y->raw(), x.num_elements(), p);
    return absl::OkStatus();
  }
};

absl::Status RunBinary(KernelContext& c, Binary run, double p, const Shape& shape) {
  const Tensor &x = c.input(0), &y = c.input(1);
  const Shape* const shapes[] = {&x.shape(), &y.shape()};
  WEIR_ASSIGN_OR_RETURN(const GridIndex<2> grid, BroadcastGrid<2>(shape, shapes));
  WEIR_ASSIGN_OR_RETURN(Tensor* const z, c.AllocateOutput(0, shape));
  run(c.device().stream(), grid, x.raw(), y.raw(), z->raw(), p);
  return absl::OkStatus();
}

struct BinaryKernel {
  Binary run;
  double p;
  bool broadcasts;
  absl::Status operator()(KernelContext& c) const {
    const Tensor &x = c.input(0), &y = c.input(1);
    if (!broadcasts && x.shape() != y.shape()) {
      return InvalidArgument("Inputs must have the same shape, but are ", x.shape().ToString(),
                             " and ", y.shape().ToString());
    }
    WEIR_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(x.shape(), y.shape()));
    return RunBinary(c, run, p, shape);
  }
};

// Equal and NotEqual; see compare_cpu.cc.
struct EqualityKernel {
  Binary run;
  bool not_equal, refuses;
  absl::Status operator()(KernelContext& c) const {
    const absl::StatusOr<Shape> shape = BroadcastShapes(c.input(0).shape(), c.input(1).shape());
    if (shape.ok()) return RunBinary(c, run, 0, *shape);
    if (refuses) return shape.status();
    WEIR_ASSIGN_OR_RETURN(Tensor* const z, c.AllocateOutput(0, Shape()));
    Fill(c.device().stream(), 1, {not_equal ? uint64_t{1} : uint64_t{0}, 0}, z->raw(), 1);
    return absl::OkStatus();
  }
};

double ParamOf(const char* param, const Node& node) {
  return param == nullptr ? 0 : node.attr_or<float>(param, 0);
}

// Parameters, and whether an op broadcasts, are declared with the CPU functions.
void AddUnaries(KernelRegistry* r) {
  for (const Elementwise<Unary>& e : Unaries()) {
    const UnaryLoop* const loop = ElementwiseLoops().FindUnary(e.op, e.in);
    const char* const param = loop == nullptr ? nullptr : loop->param;
    KernelDef& def =
        r->Add(e.op, kGpu, e.in == DT_BOOL ? TypeConstraints{} : TypeConstraints{{"T", e.in}},
               [run = e.run, param](const KernelInit& init) -> absl::StatusOr<Kernel> {
                 return Kernel(UnaryKernel{run, ParamOf(param, init.node)});
               });
    if (e.in == e.out) def.InPlace({0});
  }
}

void AddBinaries(KernelRegistry* r) {
  for (const Elementwise<Binary>& e : Binaries()) {
    const BinaryLoop* const loop = ElementwiseLoops().FindBinary(e.op, e.in);
    if (loop == nullptr || e.in == DT_INT32) continue;  // int32 stays on the host
    const absl::string_view op = e.op;
    if (op == "Equal" || op == "NotEqual") {
      r->Add(op, kGpu, e.in,
             [run = e.run,
              not_equal = op == "NotEqual"](const KernelInit& init) -> absl::StatusOr<Kernel> {
               return Kernel(EqualityKernel{
                   run, not_equal, init.node.attr_or<bool>("incompatible_shape_error", true)});
             });
      continue;
    }
    const bool typed = op != "LogicalAnd" && op != "LogicalOr";
    KernelDef& def = r->Add(
        op, kGpu, typed ? TypeConstraints{{"T", e.in}} : TypeConstraints{},
        [run = e.run, loop](const KernelInit& init) -> absl::StatusOr<Kernel> {
          return Kernel(BinaryKernel{run, ParamOf(loop->param, init.node), loop->broadcasts});
        });
    if (e.in == e.out) def.InPlace({0, 1});
  }
}

// ---- BiasAdd: the bias is broadcast along the channels

absl::Status RunBiasAdd(KernelContext& c, Binary add, bool channels_first) {
  const Tensor &value = c.input(0), &bias = c.input(1);
  if (value.rank() < 2)
    return InvalidArgument("Input tensor must be at least 2D: ", value.shape().ToString());
  if (bias.rank() != 1) return InvalidArgument("Biases must be 1D: ", bias.shape().ToString());
  const int dim = channels_first ? 1 : value.rank() - 1;
  const int64_t channels = value.dim(dim);
  if (bias.dim(0) != channels) {
    return InvalidArgument(
        "Must provide as many biases as the last dimension of the input tensor: ",
        bias.shape().ToString(), " vs. ", value.shape().ToString(),
        channels_first ? " (NCHW: as dimension 1)" : "");
  }
  WEIR_ASSIGN_OR_RETURN(Tensor* const y, c.AllocateOutput(0, value.shape()));
  const int64_t outer = value.shape().Sub(0, dim).num_elements();
  const int64_t inner = value.shape().Sub(dim + 1).num_elements();
  GridIndex<2> grid;
  grid.Add(outer, {channels * inner, 0});
  grid.Add(channels, {inner, 1});
  grid.Add(inner, {1, 0});
  add(c.device().stream(), grid, value.raw(), bias.raw(), y->raw(), 0);
  return absl::OkStatus();
}

void AddBiasAdd(KernelRegistry* r, DataType type) {
  const Binary add = FindBinary("AddV2", type);
  if (add == nullptr || type == DT_INT32) return;
  for (const char* op : {"BiasAdd", "BiasAddV1"}) {
    r->Add(op, kGpu, type, [add](const KernelInit& init) -> absl::StatusOr<Kernel> {
       const bool first = init.node.attr_or<std::string>("data_format", "NHWC") == "NCHW";
       return Kernel([add, first](KernelContext& c) { return RunBiasAdd(c, add, first); });
     }).InPlace({0});
  }
}

// ---- AddN, ClipByValue

absl::Status RunAddN(KernelContext& c) {
  const Tensor& first = c.input(0);
  std::vector<const void*> terms;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).shape() != first.shape()) {
      return InvalidArgument(
          "Inputs to operation ", c.node().name(), " of type ", c.node().op_name(),
          " must have the same size and shape. Input 0: ", first.shape().ToString(), " != input ",
          i, ": ", c.input(i).shape().ToString());
    }
    terms.push_back(c.input(i).raw());
  }
  if (terms.size() == 1) {
    c.SetOutput(0, first);
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, first.shape()));
  AddAll(c.device().stream(), first.dtype(), terms.data(), static_cast<int>(terms.size()),
         out->raw(), out->num_elements());
  return absl::OkStatus();
}

struct ClipKernel {
  Binary minimum, maximum;
  absl::Status operator()(KernelContext& c) const {
    const Tensor &t = c.input(0), &low = c.input(1), &high = c.input(2);
    for (const Tensor* bound : {&low, &high}) {
      if (bound->rank() != 0 && bound->shape() != t.shape()) {
        return InvalidArgument(
            "clip_value_min and clip_value_max must be either of the same shape as input, or a "
            "scalar. input shape: ",
            t.shape().ToString(), " clip_value_min shape: ", low.shape().ToString(),
            " clip_value_max shape: ", high.shape().ToString());
      }
    }
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, t.shape()));
    const auto grid = [&](const Tensor& bound) {
      GridIndex<2> g;
      g.Add(t.num_elements(), {1, bound.num_elements() == 1 ? 0 : 1});
      return g;
    };
    void* const stream = c.device().stream();
    minimum(stream, grid(high), t.raw(), high.raw(), out->raw(), 0);
    maximum(stream, grid(low), out->raw(), low.raw(), out->raw(), 0);
    return absl::OkStatus();
  }
};

void AddSums(KernelRegistry* r, DataType type) {
  if (FindBinary("AddV2", type) == nullptr || type == DT_INT32) return;
  for (const char* op : {"AddN", "AccumulateNV2"}) {
    r->Add(op, kGpu, type, RunAddN).InPlace({0, 1});
  }
  r->Add("ClipByValue", kGpu, type, [type](const KernelInit&) -> absl::StatusOr<Kernel> {
     return Kernel(ClipKernel{FindBinary("Minimum", type), FindBinary("Maximum", type)});
   }).InPlace({0});
}

// ---- Select

absl::Status RunChoice(KernelContext& c, const Shape& condition, const Shape& shape) {
  const Tensor &t = c.input(1), &e = c.input(2);
  const Shape* const shapes[] = {&condition, &t.shape(), &e.shape()};
  WEIR_ASSIGN_OR_RETURN(const GridIndex<3> grid, BroadcastGrid<3>(shape, shapes));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  Choose(c.device().stream(), ElementSize(out->dtype()), grid, c.input_data<bool>(0), t.raw(),
         e.raw(), out->raw());
  return absl::OkStatus();
}

// A vector of conditions, one per row of the tensor, is a column.
absl::Status RunSelect(KernelContext& c) {
  const Shape &condition = c.input(0).shape(), &t = c.input(1).shape(), &e = c.input(2).shape();
  if (t != e) {
    return InvalidArgument("'then' and 'else' must have the same size, but received: ",
                           t.ToString(), " vs. ", e.ToString());
  }
  if (condition.rank() == 0 || condition == t) return RunChoice(c, condition, t);
  if (condition.rank() != 1 || t.rank() == 0) {
    return InvalidArgument(
        "'cond' must be a scalar, a vector, or of the size of 'then', but received: ",
        condition.ToString(), " vs. ", t.ToString());
  }
  if (condition.dim(0) != t.dim(0)) {
    return InvalidArgument("Number of batches of 'then' must match size of 'cond', but received: ",
                           t.dim(0), " vs. ", condition.dim(0));
  }
  Shape column(std::vector<int64_t>(t.rank(), 1));
  column.set_dim(0, condition.dim(0));
  return RunChoice(c, column, t);
}

absl::Status RunSelectV2(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape values,
                        BroadcastShapes(c.input(1).shape(), c.input(2).shape()));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(c.input(0).shape(), values));
  return RunChoice(c, c.input(0).shape(), shape);
}

KernelFactory Same(absl::Status (*run)(KernelContext&)) { return run; }

// ---- Cast

absl::StatusOr<Kernel> MakeCast(const KernelInit& init) {
  const DataType from = init.attr<DataType>("SrcT"), to = init.attr<DataType>("DstT");
  int dropped_bits = 0;
  const bool wide = from == DT_FLOAT || from == DT_DOUBLE;
  if (init.attr<bool>("Truncate") && wide && MantissaBits(to) > 0)
    dropped_bits = std::max(0, MantissaBits(from) - MantissaBits(to));
  return Kernel([=](KernelContext& c) -> absl::Status {
    const Tensor& x = c.input(0);
    WEIR_ASSIGN_OR_RETURN(Tensor* const y, c.AllocateOutput(0, x.shape()));
    Cast(c.device().stream(), from, to, dropped_bits, x.raw(), y->raw(), x.num_elements());
    return absl::OkStatus();
  });
}

// Casts between two different types; a cast to the same type shares the CPU implementation.
void AddCasts(KernelRegistry* r) {
  const DataTypes types = DataTypesOf(CastTypes());
  for (const DataType from : types) {
    for (const DataType to : types) {
      if (from == to) continue;
      KernelDef& def =
          r->Add("Cast", kGpu, TypeConstraints{{"SrcT", from}, {"DstT", to}}, MakeCast);
      if (ElementSize(from) == ElementSize(to)) def.InPlace({0});
    }
  }
}

}  // namespace

}  // namespace gpu

void AddElementwiseGpu(KernelRegistry* r) {
  gpu::AddUnaries(r);
  gpu::AddBinaries(r);
  gpu::AddCasts(r);
  for (int t = DT_FLOAT; t <= DT_UINT64; ++t) {
    const DataType type = static_cast<DataType>(t);
    gpu::AddBiasAdd(r, type);
    gpu::AddSums(r, type);
    if (!IsPlain(type) || type == DT_INT32) continue;
    r->Add("Select", kGpu, type, gpu::Same(gpu::RunSelect)).InPlace({1, 2});
    r->Add("SelectV2", kGpu, type, gpu::Same(gpu::RunSelectV2)).InPlace({1, 2});
  }
}

}  // namespace weir
