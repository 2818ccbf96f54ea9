#include <cstring>
#include <memory>
#include <type_traits>

#include "weir/kernels/conv.h"
#include "weir/kernels/conv_dnnl.h"
#include "weir/kernels/conv_plain.h"
#include "weir/kernels/conv_winograd.h"
#include "weir/kernels/epilogue.h"
#include "weir/kernels/image_operand.h"
#include "weir/kernels/registry.h"
#include "weir/ops/conv_general.h"

namespace weir {
namespace {

// What a node keeps for convolutions of floats.
class FloatConv {
 public:
  FloatConv(const KernelInit& init, ConvPass pass, const Epilogue& epilogue = {})
      : FloatConv(pass, pass != ConvPass::kBackpropFilter && init.is_lasting(1),
                  init.fast_algorithms, epilogue) {}

  // False, and nothing has been done, where the plain loops have to do it.
  absl::StatusOr<bool> Run(KernelContext& ctx, const ConvShape& s, const ConvOperands& operands) {
    if (fast_) {
      WEIR_ASSIGN_OR_RETURN(const bool done, winograd_.Run(ctx, s, operands));
      if (done) return true;
    }
    return dnnl_.Run(ctx, s, operands);
  }

 private:
  FloatConv(ConvPass pass, bool lasting_filter, bool fast, const Epilogue& epilogue)
      : fast_(fast),
        winograd_(pass, lasting_filter, epilogue),
        dnnl_(pass, lasting_filter, epilogue) {}

  const bool fast_;
  WinogradConv winograd_;
  DnnlConv dnnl_;
};

template <class C>
absl::Status Compute(KernelContext& ctx, ConvPass pass, const ConvShape& s, FloatConv& floats,
                     const Tensor* filter_tensor, C* input, C* filter, C* output) {
  if constexpr (std::is_same_v<C, float>) {
    WEIR_ASSIGN_OR_RETURN(const bool done,
                          floats.Run(ctx, s, {filter_tensor, input, filter, output}));
    if (done) return absl::OkStatus();
  }
  switch (pass) {
    case ConvPass::kForward:
      PlainConv<C>(ctx.pool(), s, input, filter, output);
      break;
    case ConvPass::kBackpropInput:
      PlainConvBackpropInput<C>(ctx.pool(), s, filter, output, input);
      break;
    case ConvPass::kBackpropFilter:
      if constexpr (!std::is_integral_v<C>)
        PlainConvBackpropFilter<C>(ctx.pool(), s, input, output, filter);
      break;
  }
  return absl::OkStatus();
}

template <class T>
absl::Status RunConv(KernelContext& ctx, const ConvAttributes& a, ConvPass pass,
                     FloatConv& floats) {
  WEIR_ASSIGN_OR_RETURN(const ConvArguments args, ReadConvArguments(ctx, a, pass));
  const ConvShape& s = args.shape;
  WEIR_ASSIGN_OR_RETURN(Tensor * result, ctx.AllocateOutput(0, args.output));
  if (result->num_elements() == 0) return absl::OkStatus();
  const bool forward = pass == ConvPass::kForward, to_input = pass == ConvPass::kBackpropInput;
  const Tensor& first = forward || !to_input ? ctx.input(0) : ctx.input(1);
  const Tensor& second = forward ? ctx.input(1) : ctx.input(2);
  if (first.num_elements() == 0 || second.num_elements() == 0) {
    std::memset(result->raw(), 0, result->num_bytes());
    return absl::OkStatus();
  }
  const bool turned = a.layout.channels_first();
  ImageOperand<T> input, filter, output;
  if (to_input) {
    WEIR_RETURN_IF_ERROR(input.Prepare(ctx, *result, turned));
  } else {
    WEIR_RETURN_IF_ERROR(input.Read(ctx, ctx.input(0), turned, s.batch, s.in_channels));
  }
  if (pass == ConvPass::kBackpropFilter) {
    WEIR_RETURN_IF_ERROR(filter.Prepare(ctx, *result, false));
  } else {
    WEIR_RETURN_IF_ERROR(filter.Read(ctx, ctx.input(1), false, 1, 1));
  }
  if (forward) {
    WEIR_RETURN_IF_ERROR(output.Prepare(ctx, *result, turned));
  } else {
    WEIR_RETURN_IF_ERROR(output.Read(ctx, ctx.input(2), turned, s.batch, s.out_channels));
  }
  WEIR_RETURN_IF_ERROR(
      Compute(ctx, pass, s, floats, &ctx.input(1), input.data(), filter.data(), output.data()));
  switch (pass) {
    case ConvPass::kForward:
      return output.Write(ctx, *result, turned, s.batch, s.out_channels);
    case ConvPass::kBackpropInput:
      return input.Write(ctx, *result, turned, s.batch, s.in_channels);
    case ConvPass::kBackpropFilter:
      return filter.Write(ctx, *result, false, 1, 1);
  }
  return absl::OkStatus();
}

template <class T>
KernelFactory Factory(ConvPass pass) {
  return [pass](const KernelInit& init) -> absl::StatusOr<Kernel> {
    WEIR_ASSIGN_OR_RETURN(const ConvAttributes attributes, ConvAttributes::Read(init.node));
    const auto floats = std::make_shared<FloatConv>(init, pass);
    return Kernel([attributes, pass, floats](KernelContext& ctx) -> absl::Status {
      return RunConv<T>(ctx, attributes, pass, *floats);
    });
  };
}

// The forward pass, and what the epilogue does to its result.
absl::Status RunFused(KernelContext& ctx, const ConvAttributes& a, const Epilogue& epilogue,
                      FloatConv& floats) {
  WEIR_ASSIGN_OR_RETURN(const ConvArguments args, ReadConvArguments(ctx, a, ConvPass::kForward));
  const ConvShape& s = args.shape;
  const bool turned = a.layout.channels_first();
  if (turned && epilogue.add)
    return Unimplemented("fusing Add with channels first is not supported");
  WEIR_ASSIGN_OR_RETURN(Epilogue::Operands operands,
                        epilogue.ReadOperands(ctx, args.output, s.out_channels));
  WEIR_ASSIGN_OR_RETURN(Tensor * result, ctx.AllocateOutput(0, args.output));
  if (result->num_elements() == 0) return absl::OkStatus();
  Tensor kept_bias, kept_addend;
  if (operands.bias == result->data<float>()) {
    WEIR_ASSIGN_OR_RETURN(kept_bias,
                          Epilogue::PutAside(ctx, Shape({s.out_channels}), &operands.bias));
  }
  ImageOperand<float> input, output;
  WEIR_RETURN_IF_ERROR(input.Read(ctx, ctx.input(0), turned, s.batch, s.in_channels));
  WEIR_RETURN_IF_ERROR(output.Prepare(ctx, *result, turned));
  const Tensor& filter = ctx.input(1);
  float* const weights = const_cast<float*>(filter.data<float>());
  bool done = false;
  if (ctx.input(0).num_elements() > 0 && filter.num_elements() > 0) {
    WEIR_ASSIGN_OR_RETURN(
        done, floats.Run(ctx, s, {&filter, input.data(), weights, output.data(), operands}));
  }
  if (!done) {
    if (operands.addend == output.data()) {
      WEIR_ASSIGN_OR_RETURN(kept_addend, Epilogue::PutAside(ctx, args.output, &operands.addend));
    }
    PlainConv<float>(ctx.pool(), s, input.data(), weights, output.data());
    epilogue.Apply(output.data(), operands, s.batch * s.out_pixels(), s.out_channels,
                   s.out_channels);
  }
  return output.Write(ctx, *result, turned, s.batch, s.out_channels);
}

absl::StatusOr<Kernel> MakeFused(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const ConvAttributes attributes, ConvAttributes::Read(init.node));
  WEIR_ASSIGN_OR_RETURN(const Epilogue epilogue, Epilogue::Read(init.node));
  if (init.node.attr_or<int64_t>("num_host_args", 0) != 0)
    return Unimplemented("fused convolutions with host_args are not supported");
  if (init.node.attr_or<std::string>("filter_format", "HWIO") != "HWIO")
    return Unimplemented("filters are taken in the format HWIO alone");
  const auto floats = std::make_shared<FloatConv>(init, ConvPass::kForward, epilogue);
  return Kernel([attributes, epilogue, floats](KernelContext& ctx) {
    return RunFused(ctx, attributes, epilogue, *floats);
  });
}

// A forward pass whose input may have several batch dimensions, or none.
template <class T>
absl::Status RunGeneral(KernelContext& ctx, const GeneralConvAttributes& a, FloatConv& floats) {
  const Tensor& filter = ctx.input(1);
  if (filter.num_elements() == 0) {
    return InvalidArgument(
        "filter must not have zero elements (i.e. all dimensions must be non-zero)");
  }
  WEIR_ASSIGN_OR_RETURN(const Shape flat, a.WithOneBatchDim(ctx.input(0).shape()));
  WEIR_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(a.conv, flat, filter.shape()));
  if (s.groups != 1) {
    return InvalidArgument("Input depth must be equal to filter depth: ", s.in_channels, " vs ",
                           filter.dim(-2));
  }
  const Shape shape = s.OutputShape(a.conv.layout);
  WEIR_ASSIGN_OR_RETURN(Tensor * result,
                        ctx.AllocateOutput(0, a.WithAllBatchDims(ctx.input(0).shape(), shape)));
  if (result->num_elements() == 0) return absl::OkStatus();
  if (flat.num_elements() == 0) {
    std::memset(result->raw(), 0, result->num_bytes());
    return absl::OkStatus();
  }
  const bool turned = a.conv.layout.channels_first();
  Tensor out = result->Reshaped(shape);
  ImageOperand<T> input, weights, output;
  WEIR_RETURN_IF_ERROR(
      input.Read(ctx, ctx.input(0).Reshaped(flat), turned, s.batch, s.in_channels));
  WEIR_RETURN_IF_ERROR(weights.Read(ctx, filter, false, 1, 1));
  WEIR_RETURN_IF_ERROR(output.Prepare(ctx, out, turned));
  WEIR_RETURN_IF_ERROR(Compute(ctx, ConvPass::kForward, s, floats, &filter, input.data(),
                               weights.data(), output.data()));
  return output.Write(ctx, out, turned, s.batch, s.out_channels);
}

template <class T>
absl::StatusOr<Kernel> MakeGeneral(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const GeneralConvAttributes a, GeneralConvAttributes::Read(init.node));
  const auto floats = std::make_shared<FloatConv>(init, ConvPass::kForward);
  return Kernel([a, floats](KernelContext& ctx) { return RunGeneral<T>(ctx, a, *floats); });
}

struct Family {
  const char* ops[3];  // in the order of ConvPass
};
constexpr Family kFamilies[] = {
    {{"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"}},
    {{"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
      "DepthwiseConv2dNativeBackpropFilter"}},
    {{"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"}},
};

template <class T>
void AddConvs(KernelRegistry* r, const Family& f) {
  r->Add(f.ops[0], kCpu, DataTypeOf<T>::value, Factory<T>(ConvPass::kForward)).Cost(ConvCost);
  r->Add(f.ops[1], kCpu, DataTypeOf<T>::value, Factory<T>(ConvPass::kBackpropInput))
      .HostArgs({"input_sizes"})
      .Cost(ConvCost);
  if constexpr (!std::is_integral_v<T>) {
    r->Add(f.ops[2], kCpu, DataTypeOf<T>::value, Factory<T>(ConvPass::kBackpropFilter))
        .HostArgs({"filter_sizes"})
        .Cost(ConvCost);
  }
}

}  // namespace

void AddConvCpu(KernelRegistry* r) {
  for (const Family& f : kFamilies) {
    AddConvs<half>(r, f);
    AddConvs<bfloat16>(r, f);
    AddConvs<float>(r, f);
    AddConvs<double>(r, f);
  }
  AddConvs<int32_t>(r, kFamilies[0]);
  for (const char* op : {"_FusedConv2D", "_FusedDepthwiseConv2dNative"})
    r->Add(op, kCpu, DT_FLOAT, MakeFused).InPlace({2, 3}).Cost(ConvCost);
  r->Add("Conv", kCpu, DT_HALF, MakeGeneral<half>);
  r->Add("Conv", kCpu, DT_BFLOAT16, MakeGeneral<bfloat16>);
  r->Add("Conv", kCpu, DT_FLOAT, MakeGeneral<float>);
  r->Add("Conv", kCpu, DT_DOUBLE, MakeGeneral<double>);
  r->Add("Conv", kCpu, DT_INT32, MakeGeneral<int32_t>);
}

}  // namespace weir
