#include "weir/kernels/conv_pointwise.h"

#include <algorithm>
#include <optional>

#include "weir/kernels/gemm.h"
#include "weir/kernels/matmul.h"

// A 1x1 filter that skips pixels, as the shortcuts of residual networks do, makes a convolution a
// product of the pixels that it takes: a fourth of the image, or less, which are copied to lie side
// by side. oneDNN does so too, for a block of channels at a time, and then cuts a single image by
// rows: 56x56 pixels of 256 channels, every fourth of them, to 512 channels take it 3.2 ms on two
// threads where the product takes 1.6. Filters that take all pixels are left to oneDNN, which is as
// fast as the product.
namespace weir {
namespace {

// On AVX-512 oneDNN's are faster.
constexpr int64_t kPanelColumns = 16;

}  // namespace

PointwiseConv::PointwiseConv(ConvPass pass, bool lasting_filter, const Epilogue& epilogue)
    : applies_(pass == ConvPass::kForward && lasting_filter &&
               gemm::PanelColumns() == kPanelColumns),
      epilogue_(epilogue) {}

absl::StatusOr<bool> PointwiseConv::Run(KernelContext& ctx, const ConvShape& s,
                                        const ConvOperands<float>& o) {
  const ConvShape::Spatial one{1, 1, 1}, none{0, 0, 0};
  if (!applies_ || s.groups != 1 || s.kernel != one || s.stride == one || s.pad_before != none ||
      s.pad_after != none || s.out_channels < kPanelColumns || !kept_.CanKeep(*o.filter)) {
    return false;
  }
  const std::optional<gemm::Finish> finish = epilogue_.AsFinish(o.epilogue);
  if (!finish) return false;
  ThreadPool& pool = ctx.pool();
  const int64_t pixels = s.batch * s.out_pixels(), depth = s.in_channels;
  const MatMulArgs product = {.m = pixels, .n = s.out_channels, .k = depth};
  WEIR_ASSIGN_OR_RETURN(const Tensor packed, kept_.Get(*o.filter, nullptr, [&] {
    return PackB(pool, product, o.filter_data);
  }));

  WEIR_ASSIGN_OR_RETURN(Tensor taken, ctx.AllocateTemp(DT_FLOAT, Shape({pixels, depth})));
  float* const to = taken.data<float>();
  const double cost = 0.05 * static_cast<double>(s.out[2] * depth);
  pool.ParallelFor(pixels / s.out[2], cost, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t image = row / (s.out[0] * s.out[1]);
      const int64_t z = row / s.out[1] % s.out[0] * s.stride[0];
      const int64_t y = row % s.out[1] * s.stride[1];
      const float* const in = o.input + ((image * s.in[0] + z) * s.in[1] + y) * s.in[2] * depth;
      for (int64_t x = 0; x < s.out[2]; ++x)
        std::copy_n(in + x * s.stride[2] * depth, depth, to + (row * s.out[2] + x) * depth);
    }
  });
  const bool adds = o.epilogue.addend != nullptr;
  if (adds && o.epilogue.addend != o.output)
    std::copy_n(o.epilogue.addend, pixels * s.out_channels, o.output);
  WEIR_RETURN_IF_ERROR(
      MultiplyPacked(pool, product, to, packed, o.output, adds, {.tiles = finish}));
  return true;
}

}  // namespace weir
