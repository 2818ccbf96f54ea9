#include <cstring>
#include <memory>
#include <type_traits>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/linalg/epilogue.h"
#include "weir/kernels/linalg/matmul_bfloat16.h"
#include "weir/kernels/nn/conv.h"
#include "weir/kernels/nn/conv_dnnl.h"
#include "weir/kernels/nn/conv_im2col.h"
#include "weir/kernels/nn/conv_plain.h"
#include "weir/kernels/nn/conv_winograd.h"
#include "weir/kernels/nn/image_operand.h"
#include "weir/kernels/nn/padded_images.h"
#include "weir/ops/nn/conv_general.h"

namespace weir {
namespace {

// The optimized convolution algorithms of one node, tried in order.
class OptimizedConv {
 public:
  OptimizedConv(const KernelInit& init, ConvPass pass, const Epilogue& epilogue = {})
      : OptimizedConv(pass, pass != ConvPass::kBackpropFilter && init.is_step_invariant(1),
                      init.fast_algorithms, epilogue) {}

  // Returns false, without side effects, if the convolution must be computed in float or by the
  // reference loops.
  template <class C>
  absl::StatusOr<bool> Run(KernelContext& ctx, const ConvShape& s,
                           const ConvOperands<C>& operands) {
    if constexpr (std::is_same_v<C, float>) {
      if (fast_) {
        WEIR_ASSIGN_OR_RETURN(const bool done, winograd_.Run(ctx, s, operands));
        if (done) return true;
      }
      WEIR_ASSIGN_OR_RETURN(const bool done, im2col_.Run(ctx, s, operands));
      if (done) return true;
      return dnnl_float_.Run(ctx, s, operands);
    } else if constexpr (std::is_same_v<C, bfloat16>) {
      return dnnl_bfloat16_.Run(ctx, s, operands);
    } else {
      return false;
    }
  }

 private:
  OptimizedConv(ConvPass pass, bool step_invariant_filter, bool fast, const Epilogue& epilogue)
      : fast_(fast),
        winograd_(pass, step_invariant_filter, epilogue),
        im2col_(pass, step_invariant_filter, epilogue),
        dnnl_float_(pass, step_invariant_filter, epilogue),
        dnnl_bfloat16_(pass, step_invariant_filter) {}

  const bool fast_;
  WinogradConv winograd_;
  Im2colConv im2col_;
  DnnlConv<float> dnnl_float_;
  DnnlConv<bfloat16> dnnl_bfloat16_;
};

template <class C>
void ComputeReference(KernelContext& ctx, ConvPass pass, const ConvShape& s, C* input, C* filter,
                      C* output) {
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
}

// Converts operands of type T to type C and computes the pass; `result` is the operand that it
// writes. Returns false, without side effects, if another C is required.
template <class T, class C>
absl::StatusOr<bool> ComputeAs(KernelContext& ctx, ConvPass pass, const ConvShape& s, bool turned,
                               OptimizedConv& fast, const Tensor& input, const Tensor& filter,
                               const Tensor& output, Tensor& result) {
  ImageOperand<T, C> x, w, y;
  if (pass == ConvPass::kBackpropInput) {
    WEIR_RETURN_IF_ERROR(x.Prepare(ctx, result, turned));
  } else {
    WEIR_RETURN_IF_ERROR(x.Read(ctx, input, turned, s.batch, s.in_channels));
  }
  if (pass == ConvPass::kBackpropFilter) {
    WEIR_RETURN_IF_ERROR(w.Prepare(ctx, result, false));
  } else {
    WEIR_RETURN_IF_ERROR(w.Read(ctx, filter, false, 1, 1));
  }
  if (pass == ConvPass::kForward) {
    WEIR_RETURN_IF_ERROR(y.Prepare(ctx, result, turned));
  } else {
    WEIR_RETURN_IF_ERROR(y.Read(ctx, output, turned, s.batch, s.out_channels));
  }
  WEIR_ASSIGN_OR_RETURN(const bool done,
                        fast.Run(ctx, s, ConvOperands<C>{&filter, x.data(), w.data(), y.data()}));
  if (!done) {
    if constexpr (kIsNarrowFloat<C>) {
      return false;
    } else {
      ComputeReference<C>(ctx, pass, s, x.data(), w.data(), y.data());
    }
  }
  switch (pass) {
    case ConvPass::kForward:
      WEIR_RETURN_IF_ERROR(y.Write(ctx, result, turned, s.batch, s.out_channels));
      break;
    case ConvPass::kBackpropInput:
      WEIR_RETURN_IF_ERROR(x.Write(ctx, result, turned, s.batch, s.in_channels));
      break;
    case ConvPass::kBackpropFilter:
      WEIR_RETURN_IF_ERROR(w.Write(ctx, result, false, 1, 1));
      break;
  }
  return true;
}

template <class T>
absl::Status Compute(KernelContext& ctx, ConvPass pass, const ConvShape& s, bool turned,
                     OptimizedConv& fast, const Tensor& input, const Tensor& filter,
                     const Tensor& output, Tensor& result) {
  // Sums of nothing; the algorithms divide by sizes.
  if (input.num_elements() == 0 || filter.num_elements() == 0 || output.num_elements() == 0) {
    std::memset(result.raw(), 0, result.num_bytes());
    return absl::OkStatus();
  }
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (HasBfloat16Products()) {
      WEIR_ASSIGN_OR_RETURN(const bool done, (ComputeAs<T, T>(ctx, pass, s, turned, fast, input,
                                                              filter, output, result)));
      if (done) return absl::OkStatus();
    }
  }
  return ComputeAs<T, Wide<T>>(ctx, pass, s, turned, fast, input, filter, output, result).status();
}

template <class T>
absl::Status RunConv(KernelContext& ctx, const ConvAttributes& a, ConvPass pass,
                     OptimizedConv& fast) {
  WEIR_ASSIGN_OR_RETURN(const ConvArguments args, ReadConvArguments(ctx, a, pass));
  WEIR_ASSIGN_OR_RETURN(Tensor * result, ctx.AllocateOutput(0, args.output));
  if (result->num_elements() == 0) return absl::OkStatus();
  const Tensor& input = pass == ConvPass::kBackpropInput ? *result : ctx.input(0);
  const Tensor& filter = pass == ConvPass::kBackpropFilter ? *result : ctx.input(1);
  const Tensor& output = pass == ConvPass::kForward ? *result : ctx.input(2);
  return Compute<T>(ctx, pass, args.shape, a.layout.channels_first(), fast, input, filter, output,
                    *result);
}

template <class T>
KernelFactory Factory(ConvPass pass) {
  return [pass](const KernelInit& init) -> absl::StatusOr<Kernel> {
    WEIR_ASSIGN_OR_RETURN(const ConvAttributes attributes, ConvAttributes::Read(init.node));
    const auto fast = std::make_shared<OptimizedConv>(init, pass);
    return Kernel([attributes, pass, fast](KernelContext& ctx) -> absl::Status {
      return RunConv<T>(ctx, attributes, pass, *fast);
    });
  };
}

// The forward pass followed by the epilogue.
absl::Status RunFused(KernelContext& ctx, const ConvAttributes& a, const Epilogue& epilogue,
                      OptimizedConv& fast) {
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
                          Epilogue::PreserveOperand(ctx, Shape({s.out_channels}), &operands.bias));
  }
  ImageOperand<float> input, output;
  WEIR_RETURN_IF_ERROR(input.Read(ctx, ctx.input(0), turned, s.batch, s.in_channels));
  WEIR_RETURN_IF_ERROR(output.Prepare(ctx, *result, turned));
  const Tensor& filter = ctx.input(1);
  float* const weights = const_cast<float*>(filter.data<float>());
  bool done = false;
  if (ctx.input(0).num_elements() > 0 && filter.num_elements() > 0) {
    WEIR_ASSIGN_OR_RETURN(done, fast.Run(ctx, s,
                                         ConvOperands<float>{&filter, input.data(), weights,
                                                             output.data(), operands}));
  }
  if (!done) {
    if (operands.addend == output.data()) {
      WEIR_ASSIGN_OR_RETURN(kept_addend,
                            Epilogue::PreserveOperand(ctx, args.output, &operands.addend));
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
    return Unimplemented("only the filter format HWIO is supported");
  const auto fast = std::make_shared<OptimizedConv>(init, ConvPass::kForward, epilogue);
  return Kernel([attributes, epilogue, fast](KernelContext& ctx) {
    return RunFused(ctx, attributes, epilogue, *fast);
  });
}

// A forward pass whose input may have any number of batch dimensions, including none.
template <class T>
absl::Status RunGeneral(KernelContext& ctx, const GeneralConvAttributes& a, OptimizedConv& fast) {
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
  const bool turned = a.conv.layout.channels_first();
  Tensor out = result->Reshaped(shape);
  return Compute<T>(ctx, ConvPass::kForward, s, turned, fast, ctx.input(0).Reshaped(flat), filter,
                    out, out);
}

template <class T>
absl::StatusOr<Kernel> MakeGeneral(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const GeneralConvAttributes a, GeneralConvAttributes::Read(init.node));
  const auto fast = std::make_shared<OptimizedConv>(init, ConvPass::kForward);
  return Kernel([a, fast](KernelContext& ctx) { return RunGeneral<T>(ctx, a, *fast); });
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

// A forward pass whose images are resized and padded first.
template <class T>
absl::Status RunPadded(KernelContext& ctx, const ConvAttributes& a, const PaddedImageOptions& o,
                       OptimizedConv& fast) {
  WEIR_ASSIGN_OR_RETURN(const Tensor images, ReadPaddedImages<T>(ctx, o));
  const Tensor& filter = ctx.input(o.filter_input());
  if (filter.rank() != 4) {
    return InvalidArgument("filter must be 4-dimensional: ", filter.shape().ToString());
  }
  if (images.dim(3) != filter.dim(2)) {
    return InvalidArgument("input and filter must have the same depth: ", images.dim(3), " vs ",
                           filter.dim(2));
  }
  WEIR_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(a, images.shape(), filter.shape()));
  const Shape shape = s.OutputShape(a.layout);
  if (shape.num_elements() == 0) return InvalidArgument("Output tensor can't be empty");
  WEIR_ASSIGN_OR_RETURN(Tensor * result, ctx.AllocateOutput(0, shape));
  return Compute<T>(ctx, ConvPass::kForward, s, false, fast, images, filter, *result, *result);
}

template <class T>
absl::StatusOr<Kernel> MakePadded(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const ConvAttributes a, ConvAttributes::Read(init.node));
  const PaddedImageOptions o = PaddedImageOptions::Read(init.node);
  // The algorithms keep what they compute from a step-invariant input 1, which is no filter here.
  KernelInit nothing_invariant = init;
  nothing_invariant.step_invariant_inputs = {};
  const auto fast = std::make_shared<OptimizedConv>(nothing_invariant, ConvPass::kForward);
  return Kernel([a, o, fast](KernelContext& ctx) { return RunPadded<T>(ctx, a, o, *fast); });
}

template <class T>
void AddPadded(KernelRegistry* r) {
  r->Add("FusedPadConv2D", kCpu, DataTypeOf<T>::value, MakePadded<T>).HostArgs({"paddings"});
  if constexpr (!std::is_same_v<T, bfloat16>) {
    r->Add("FusedResizeAndPadConv2D", kCpu, DataTypeOf<T>::value, MakePadded<T>)
        .HostArgs({"size", "paddings"});
  }
}

// Conv3D's gradients in old graphs.
template <class T>
void AddOldGradients(KernelRegistry* r) {
  r->Add("Conv3DBackpropInput", kCpu, DataTypeOf<T>::value, Factory<T>(ConvPass::kBackpropInput))
      .Cost(ConvCost);
  r->Add("Conv3DBackpropFilter", kCpu, DataTypeOf<T>::value, Factory<T>(ConvPass::kBackpropFilter))
      .Cost(ConvCost);
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
  AddPadded<half>(r);
  AddPadded<bfloat16>(r);
  AddPadded<float>(r);
  AddPadded<double>(r);
  AddOldGradients<half>(r);
  AddOldGradients<float>(r);
  AddOldGradients<double>(r);
  for (const char* op : {"_FusedConv2D", "_FusedDepthwiseConv2dNative"})
    r->Add(op, kCpu, DT_FLOAT, MakeFused).InPlace({2, 3}).Cost(ConvCost);
  r->Add("Conv", kCpu, DT_HALF, MakeGeneral<half>);
  r->Add("Conv", kCpu, DT_BFLOAT16, MakeGeneral<bfloat16>);
  r->Add("Conv", kCpu, DT_FLOAT, MakeGeneral<float>);
  r->Add("Conv", kCpu, DT_DOUBLE, MakeGeneral<double>);
  r->Add("Conv", kCpu, DT_INT32, MakeGeneral<int32_t>);
}

}  // namespace weir
