#include <climits>
#include <memory>
#include <vector>

#include "weir/kernels/gpu/gpu_device.h"
#include "weir/kernels/gpu/gpu_kernels.h"
#include "weir/kernels/lib/device_primitives.h"
#include "weir/kernels/nn/conv.h"

// Image convolutions by cuDNN, in the form it always supports: NCHW images with equal padding on
// both sides, and filters [out_channels, in_channels, height, width]. Operands in other layouts are
// transposed into a temporary, which also holds uneven padding (SAME with an even window or a
// stride pads more after than before), and results are transposed back. cuDNN chooses the algorithm
// once per shape.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // cuDNN 9 has no other API as simple

namespace weir {

namespace gpu {

namespace {

constexpr size_t kMostWorkspace = size_t{1} << 30;

// An owned cuDNN descriptor, with its create and destroy functions.
template <class T, cudnnStatus_t (*kCreate)(T*), cudnnStatus_t (*kDestroy)(T)>
class Descriptor {
 public:
  Descriptor() { created_ = kCreate(&value_); }
  ~Descriptor() {
    if (created_ == CUDNN_STATUS_SUCCESS) kDestroy(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  cudnnStatus_t created() const { return created_; }
  T get() const { return value_; }

 private:
  T value_ = nullptr;
  cudnnStatus_t created_;
};
using TensorDescriptor =
    Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using FilterDescriptor =
    Descriptor<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvDescriptor = Descriptor<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
                                  cudnnDestroyConvolutionDescriptor>;

cudnnDataType_t DnnType(DataType type) {
  return type == DT_HALF     ? CUDNN_DATA_HALF
         : type == DT_DOUBLE ? CUDNN_DATA_DOUBLE
                             : CUDNN_DATA_FLOAT;
}

// Height and width are the last two of a ConvShape's three spatial dimensions.
struct Padding {
  int64_t h = 0, w = 0;                // padding that cuDNN adds on both sides
  int64_t before_h = 0, before_w = 0;  // padding before the image in the temporary,
  int64_t extra_h = 0, extra_w = 0;    // and total padding in the temporary
  bool any_extra() const { return extra_h > 0 || extra_w > 0; }
};

Padding PaddingOf(const ConvShape& s) {
  Padding p;
  if (s.pad_before[1] == s.pad_after[1] && s.pad_before[2] == s.pad_after[2]) {
    p.h = s.pad_before[1];
    p.w = s.pad_before[2];
  } else {
    p.before_h = s.pad_before[1];
    p.before_w = s.pad_before[2];
    p.extra_h = s.pad_before[1] + s.pad_after[1];
    p.extra_w = s.pad_before[2] + s.pad_after[2];
  }
  return p;
}

// The prepared convolution of one shape: descriptors, algorithm and workspace size.
struct CudnnConv {
  ConvShape shape;
  Padding pad;
  TensorDescriptor x, y;
  FilterDescriptor w;
  ConvDescriptor descriptor;
  int algorithm = 0;
  size_t workspace = 0;
};

bool FitsInt(const ConvShape& s, const Padding& p) {
  for (const int64_t v : {s.batch, s.in_channels, s.out_channels, s.in[1] + p.extra_h,
                          s.in[2] + p.extra_w, s.out[1], s.out[2], s.kernel[1], s.kernel[2]}) {
    if (v > INT_MAX) return false;
  }
  return true;
}

absl::Status Describe(const CudaDevice& device, DataType type, CudnnConv* conv) {
  const ConvShape& s = conv->shape;
  const Padding& p = conv->pad;
  const auto i = [](int64_t v) { return static_cast<int>(v); };
  const cudnnDataType_t data = DnnType(type);
  for (const cudnnStatus_t created :
       {conv->x.created(), conv->y.created(), conv->w.created(), conv->descriptor.created()}) {
    WEIR_RETURN_IF_ERROR(device.Check(created, "creating a descriptor"));
  }
  WEIR_RETURN_IF_ERROR(device.Check(
      cudnnSetTensor4dDescriptor(conv->x.get(), CUDNN_TENSOR_NCHW, data, i(s.batch),
                                 i(s.in_channels), i(s.in[1] + p.extra_h), i(s.in[2] + p.extra_w)),
      "cudnnSetTensor4dDescriptor"));
  WEIR_RETURN_IF_ERROR(
      device.Check(cudnnSetTensor4dDescriptor(conv->y.get(), CUDNN_TENSOR_NCHW, data, i(s.batch),
                                              i(s.out_channels), i(s.out[1]), i(s.out[2])),
                   "cudnnSetTensor4dDescriptor"));
  WEIR_RETURN_IF_ERROR(device.Check(
      cudnnSetFilter4dDescriptor(conv->w.get(), data, CUDNN_TENSOR_NCHW, i(s.out_channels),
                                 i(s.group_in()), i(s.kernel[1]), i(s.kernel[2])),
      "cudnnSetFilter4dDescriptor"));
  WEIR_RETURN_IF_ERROR(device.Check(
      cudnnSetConvolution2dDescriptor(conv->descriptor.get(), i(p.h), i(p.w), i(s.stride[1]),
                                      i(s.stride[2]), i(s.dilation[1]), i(s.dilation[2]),
                                      CUDNN_CROSS_CORRELATION,
                                      type == DT_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
      "cudnnSetConvolution2dDescriptor"));
  WEIR_RETURN_IF_ERROR(
      device.Check(cudnnSetConvolutionGroupCount(conv->descriptor.get(), i(s.groups)),
                   "cudnnSetConvolutionGroupCount"));
  // Floats are not rounded to TF32.
  return device.Check(
      cudnnSetConvolutionMathType(conv->descriptor.get(),
                                  type == DT_HALF ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH),
      "cudnnSetConvolutionMathType");
}

// Chooses the fastest algorithm that succeeds within the workspace limit. Only deterministic ones,
// so that runs are reproducible.
template <class Perf>
absl::Status Choose(absl::Span<const Perf> found, CudnnConv* conv) {
  for (const Perf& perf : found) {
    if (perf.status != CUDNN_STATUS_SUCCESS || perf.memory > kMostWorkspace ||
        perf.determinism != CUDNN_DETERMINISTIC) {
      continue;
    }
    conv->algorithm = static_cast<int>(perf.algo);
    conv->workspace = perf.memory;
    return absl::OkStatus();
  }
  return Unimplemented("cuDNN has no algorithm for this convolution");
}

absl::Status ChooseAlgorithm(const CudaDevice& device, cudnnHandle_t dnn, ConvPass pass,
                             CudnnConv* conv) {
  int count = 0;
  switch (pass) {
    case ConvPass::kForward: {
      cudnnConvolutionFwdAlgoPerf_t found[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
      WEIR_RETURN_IF_ERROR(device.Check(
          cudnnGetConvolutionForwardAlgorithm_v7(dnn, conv->x.get(), conv->w.get(),
                                                 conv->descriptor.get(), conv->y.get(),
                                                 CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &count, found),
          "cudnnGetConvolutionForwardAlgorithm_v7"));
      return Choose(absl::MakeConstSpan(found, static_cast<size_t>(count)), conv);
    }
    case ConvPass::kBackpropInput: {
      cudnnConvolutionBwdDataAlgoPerf_t found[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT];
      WEIR_RETURN_IF_ERROR(
          device.Check(cudnnGetConvolutionBackwardDataAlgorithm_v7(
                           dnn, conv->w.get(), conv->y.get(), conv->descriptor.get(), conv->x.get(),
                           CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, &count, found),
                       "cudnnGetConvolutionBackwardDataAlgorithm_v7"));
      return Choose(absl::MakeConstSpan(found, static_cast<size_t>(count)), conv);
    }
    case ConvPass::kBackpropFilter:
      break;
  }
  cudnnConvolutionBwdFilterAlgoPerf_t found[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT];
  WEIR_RETURN_IF_ERROR(
      device.Check(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                       dnn, conv->x.get(), conv->y.get(), conv->descriptor.get(), conv->w.get(),
                       CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, &count, found),
                   "cudnnGetConvolutionBackwardFilterAlgorithm_v7"));
  return Choose(absl::MakeConstSpan(found, static_cast<size_t>(count)), conv);
}

// The convolutions of one node, cached by shape. The oldest entry is evicted when the cache is
// full.
class CudnnConvCache {
 public:
  absl::StatusOr<std::shared_ptr<const CudnnConv>> For(const CudaDevice& device, cudnnHandle_t dnn,
                                                       ConvPass pass, DataType type,
                                                       const ConvShape& shape) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& conv : cache_) {
      if (conv->shape == shape) return conv;
    }
    auto conv = std::make_shared<CudnnConv>();
    conv->shape = shape;
    conv->pad = PaddingOf(shape);
    if (!FitsInt(shape, conv->pad)) return Unimplemented("a dimension does not fit in 32 bits");
    WEIR_RETURN_IF_ERROR(Describe(device, type, conv.get()));
    WEIR_RETURN_IF_ERROR(ChooseAlgorithm(device, dnn, pass, conv.get()));
    if (cache_.size() >= kMost) cache_.erase(cache_.begin());
    cache_.push_back(conv);
    return std::shared_ptr<const CudnnConv>(conv);
  }

 private:
  static constexpr size_t kMost = 16;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const CudnnConv>> cache_;
};

// ---- transposition

struct Images {
  int64_t batch, channels, height, width;
  bool channels_first;
};

// Returns the grid that copies stored images to NCHW images with a border, which adds p.extra_h
// and p.extra_w pixels in total.
GridIndex<2> TransposeImages(const Images& m, const Padding& p) {
  const int64_t pixel = m.channels_first ? 1 : m.channels;
  const int64_t plane = m.channels_first ? m.height * m.width : 1;
  const int64_t width = m.width + p.extra_w, height = m.height + p.extra_h;
  GridIndex<2> grid;
  grid.Add(m.batch, {m.channels * m.height * m.width, m.channels * height * width});
  grid.Add(m.channels, {plane, height * width});
  grid.Add(m.height, {m.width * pixel, width});
  grid.Add(m.width, {pixel, 1});
  return grid;
}

// Returns the grid that copies filters [height, width, in, out] to [out, in, height, width].
GridIndex<2> TransposeFilter(const ConvShape& s) {
  const int64_t in = s.group_in(), out = s.out_channels, taps = s.kernel[1] * s.kernel[2];
  GridIndex<2> grid;
  grid.Add(out, {1, in * taps});
  grid.Add(in, {out, taps});
  grid.Add(taps, {in * out, 1});
  return grid;
}

GridIndex<2> Inverse(const GridIndex<2>& grid) {
  GridIndex<2> inverse = grid;
  for (int d = 0; d < grid.rank; ++d) std::swap(inverse.strides[0][d], inverse.strides[1][d]);
  return inverse;
}

// An operand in cuDNN's layout: the tensor itself, or a temporary.
struct Operand {
  void* data = nullptr;
  Tensor temp;
  GridIndex<2> transpose;  // from the tensor to the temporary
  int64_t offset = 0;      // of the image in the temporary, in elements
  bool transposed() const { return temp.initialized(); }
};

int64_t ByteOffset(const Operand& o, DataType type) {
  return o.offset * static_cast<int64_t>(ElementSize(type));
}

// Returns the images of the convolution's input (with its padding) or output.
absl::StatusOr<Operand> ImageOperandFor(KernelContext& c, const Images& m, const Padding& p,
                                        const Tensor& t) {
  Operand o;
  o.data = const_cast<void*>(t.raw());
  if (m.channels_first && !p.any_extra()) return o;
  o.transpose = TransposeImages(m, p);
  o.offset = p.before_h * (m.width + p.extra_w) + p.before_w;
  WEIR_ASSIGN_OR_RETURN(o.temp,
                        c.AllocateTemp(t.dtype(), Shape({m.batch, m.channels, m.height + p.extra_h,
                                                         m.width + p.extra_w})));
  o.data = o.temp.raw();
  return o;
}

absl::StatusOr<Operand> FilterOperandFor(KernelContext& c, const ConvShape& s, const Tensor& t) {
  Operand o;
  o.transpose = TransposeFilter(s);
  WEIR_ASSIGN_OR_RETURN(o.temp, c.AllocateTemp(t.dtype(), Shape({t.num_elements()})));
  o.data = o.temp.raw();
  return o;
}

void CopyIn(KernelContext& c, const Tensor& t, const Padding& p, const Operand& o) {
  if (!o.transposed()) return;
  void* const stream = c.device().stream();
  if (p.any_extra()) {
    const uint8_t zero = 0;
    c.device().primitives()->Fill(1, &zero, o.data, static_cast<int64_t>(o.temp.num_bytes()));
  }
  CopyGrid(stream, ElementSize(t.dtype()), o.transpose, t.raw(),
           static_cast<char*>(o.data) + ByteOffset(o, t.dtype()));
}

void CopyOut(KernelContext& c, const Operand& o, Tensor* t) {
  if (!o.transposed()) return;
  CopyGrid(c.device().stream(), ElementSize(t->dtype()), Inverse(o.transpose),
           static_cast<const char*>(o.data) + ByteOffset(o, t->dtype()), t->raw());
}

// ---- execution

struct Operands {
  Operand x, w, y;
};

absl::Status Call(const CudaDevice& device, cudnnHandle_t dnn, ConvPass pass, const CudnnConv& conv,
                  const Operands& o, void* workspace, bool wide) {
  const float one_f = 1, zero_f = 0;
  const double one_d = 1, zero_d = 0;
  const void* const alpha = wide ? static_cast<const void*>(&one_d) : &one_f;
  const void* const beta = wide ? static_cast<const void*>(&zero_d) : &zero_f;
  switch (pass) {
    case ConvPass::kForward:
      return device.Check(
          cudnnConvolutionForward(dnn, alpha, conv.x.get(), o.x.data, conv.w.get(), o.w.data,
                                  conv.descriptor.get(),
                                  static_cast<cudnnConvolutionFwdAlgo_t>(conv.algorithm), workspace,
                                  conv.workspace, beta, conv.y.get(), o.y.data),
          "cudnnConvolutionForward");
    case ConvPass::kBackpropInput:
      return device.Check(
          cudnnConvolutionBackwardData(dnn, alpha, conv.w.get(), o.w.data, conv.y.get(), o.y.data,
                                       conv.descriptor.get(),
                                       static_cast<cudnnConvolutionBwdDataAlgo_t>(conv.algorithm),
                                       workspace, conv.workspace, beta, conv.x.get(), o.x.data),
          "cudnnConvolutionBackwardData");
    case ConvPass::kBackpropFilter:
      break;
  }
  return device.Check(
      cudnnConvolutionBackwardFilter(dnn, alpha, conv.x.get(), o.x.data, conv.y.get(), o.y.data,
                                     conv.descriptor.get(),
                                     static_cast<cudnnConvolutionBwdFilterAlgo_t>(conv.algorithm),
                                     workspace, conv.workspace, beta, conv.w.get(), o.w.data),
      "cudnnConvolutionBackwardFilter");
}

struct ConvKernel {
  ConvAttributes attributes;
  ConvPass pass;
  DataType type;
  std::shared_ptr<CudnnConvCache> convs;

  absl::Status operator()(KernelContext& c) const {
    WEIR_ASSIGN_OR_RETURN(const ConvArguments args, ReadConvArguments(c, attributes, pass));
    WEIR_ASSIGN_OR_RETURN(Tensor* const result, c.AllocateOutput(0, args.output));
    if (result->num_elements() == 0) return absl::OkStatus();
    const ConvShape& s = args.shape;
    if (s.in_elements() == 0 || s.filter_elements() == 0 || s.out_elements() == 0) {
      const uint8_t zero = 0;
      c.device().primitives()->Fill(1, &zero, result->raw(),
                                    static_cast<int64_t>(result->num_bytes()));
      return absl::OkStatus();
    }
    const Tensor& x = pass == ConvPass::kBackpropInput ? *result : c.input(0);
    const Tensor& w = pass == ConvPass::kBackpropFilter ? *result : c.input(1);
    const Tensor& y = pass == ConvPass::kForward ? *result : c.input(2);
    return Compute(c, s, x, w, y, result);
  }

  absl::Status Compute(KernelContext& c, const ConvShape& s, const Tensor& x, const Tensor& w,
                       const Tensor& y, Tensor* result) const {
    auto& device = static_cast<CudaDevice&>(c.device());
    const bool first = attributes.layout.channels_first();
    const Images in{s.batch, s.in_channels, s.in[1], s.in[2], first};
    const Images out{s.batch, s.out_channels, s.out[1], s.out[2], first};
    const Padding pad = PaddingOf(s), none;
    Operands o;
    WEIR_ASSIGN_OR_RETURN(o.x, ImageOperandFor(c, in, pad, x));
    WEIR_ASSIGN_OR_RETURN(o.w, FilterOperandFor(c, s, w));
    WEIR_ASSIGN_OR_RETURN(o.y, ImageOperandFor(c, out, none, y));
    if (pass != ConvPass::kBackpropInput) CopyIn(c, x, pad, o.x);
    if (pass != ConvPass::kBackpropFilter) CopyIn(c, w, none, o.w);
    if (pass != ConvPass::kForward) CopyIn(c, y, none, o.y);
    WEIR_ASSIGN_OR_RETURN(const CudaDevice::Libraries libraries, device.Dnn());
    WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const CudnnConv> conv,
                          convs->For(device, libraries.dnn, pass, type, s));
    WEIR_ASSIGN_OR_RETURN(Tensor workspace,
                          c.AllocateTemp(DT_UINT8, Shape({static_cast<int64_t>(conv->workspace)})));
    WEIR_RETURN_IF_ERROR(
        Call(device, libraries.dnn, pass, *conv, o, workspace.raw(), type == DT_DOUBLE));
    const Operand& made = pass == ConvPass::kForward         ? o.y
                          : pass == ConvPass::kBackpropInput ? o.x
                                                             : o.w;
    CopyOut(c, made, result);
    return absl::OkStatus();
  }
};

void AddConv(KernelRegistry* r, absl::string_view op, ConvPass pass,
             std::vector<std::string> host_args) {
  for (const DataType type : {DT_HALF, DT_FLOAT, DT_DOUBLE}) {
    r->Add(op, kGpu, type, [pass, type](const KernelInit& init) -> absl::StatusOr<Kernel> {
       WEIR_ASSIGN_OR_RETURN(ConvAttributes a, ConvAttributes::Read(init.node));
       return Kernel(ConvKernel{std::move(a), pass, type, std::make_shared<CudnnConvCache>()});
     }).HostArgs(host_args);
  }
}

}  // namespace

}  // namespace gpu

void AddConvGpu(KernelRegistry* r) {
  using gpu::AddConv;
  AddConv(r, "Conv2D", ConvPass::kForward, {});
  AddConv(r, "Conv2DBackpropInput", ConvPass::kBackpropInput, {"input_sizes"});
  AddConv(r, "Conv2DBackpropFilter", ConvPass::kBackpropFilter, {"filter_sizes"});
  AddConv(r, "DepthwiseConv2dNative", ConvPass::kForward, {});
  AddConv(r, "DepthwiseConv2dNativeBackpropInput", ConvPass::kBackpropInput, {"input_sizes"});
  AddConv(r, "DepthwiseConv2dNativeBackpropFilter", ConvPass::kBackpropFilter, {"filter_sizes"});
}

}  // namespace weir
