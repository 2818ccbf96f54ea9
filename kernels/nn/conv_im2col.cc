#include "weir/kernels/nn/conv_im2col.h"

#include <algorithm>
#include <optional>

#include "weir/kernels/linalg/gemm.h"
#include "weir/kernels/linalg/matmul.h"
#include "weir/kernels/nn/winograd.h"

// im2col: a convolution is the product of a patch matrix, with one row per output pixel that holds
// the pixel's receptive field, and the filters, which are a matrix in memory already. Where filters
// overlap, the patch matrix repeats each pixel for every tap, and a direct kernel is faster. But
// the strided filters that downsample images in networks read each pixel about twice (3x3, stride
// 2) or less than once (1x1, the shortcuts of residual networks), so copying costs little. And
// oneDNN's kernels for them are slow when a single image is split between two threads: 56x56 pixels
// of 128 channels, downsampled by 2, take oneDNN 2.3 ms and the matrix product 1.8; 256 channels to
// 512 by 1x1 filters take 3.2 and 1.6.
//
// Output pixels are processed in blocks, so that the copied patches are read from the cache.
// Patches contain zeros for padding, with which an infinite weight would produce NaNs along the
// edge: a filter that has one is left to other algorithms.
namespace weir {
namespace {

// oneDNN is faster on AVX-512.
constexpr int64_t kPanelColumns = 16;
// With fewer channels, copying takes longer than multiplying.
constexpr int64_t kFewestChannels = 16;
constexpr int64_t kPatchFloats = int64_t{1} << 20;

// The taps of one dimension at a position: taps [first, end) are inside the image.
struct Taps {
  Taps(const ConvShape& s, int dim, int64_t out)
      : from(out * s.stride[dim] - s.pad_before[dim]), step(s.dilation[dim]) {
    const int64_t size = s.kernel[dim], in = s.in[dim];
    while (first < size && from + first * step < 0) ++first;
    end = first;
    while (end < size && from + end * step < in) ++end;
  }
  int64_t At(int64_t tap) const { return from + tap * step; }
  int64_t from, step, first = 0, end = 0;
};

// Copies the receptive field of one output pixel, with zeros for padding.
void CopyPatch(const ConvShape& s, const float* input, int64_t pixel, float* to) {
  const int64_t row = pixel / s.out[2], image = row / (s.out[0] * s.out[1]);
  const Taps z(s, 0, row / s.out[1] % s.out[0]), y(s, 1, row % s.out[1]), x(s, 2, pixel % s.out[2]);
  const int64_t channels = s.in_channels, line = s.kernel[2] * channels;
  for (int64_t i = 0; i < s.kernel[0]; ++i) {
    for (int64_t j = 0; j < s.kernel[1]; ++j, to += line) {
      const bool inside = i >= z.first && i < z.end && j >= y.first && j < y.end;
      const int64_t first = inside ? x.first : 0, end = inside ? x.end : 0;
      std::fill(to, to + first * channels, 0.f);
      std::fill(to + end * channels, to + line, 0.f);
      if (first == end) continue;
      const float* const from =
          input + ((image * s.in[0] + z.At(i)) * s.in[1] + y.At(j)) * s.in[2] * channels;
      if (x.step == 1) {
        std::copy_n(from + x.At(first) * channels, (end - first) * channels, to + first * channels);
        continue;
      }
      for (int64_t k = first; k < end; ++k)
        std::copy_n(from + x.At(k) * channels, channels, to + k * channels);
    }
  }
}

}  // namespace

Im2colConv::Im2colConv(ConvPass pass, bool step_invariant_filter, const Epilogue& epilogue)
    : applies_(pass == ConvPass::kForward && step_invariant_filter &&
               gemm::PanelColumns() == kPanelColumns),
      epilogue_(epilogue) {}

bool Im2colConv::IsFor(const ConvShape& s) const {
  const int64_t skips = s.stride[0] * s.stride[1] * s.stride[2];
  return applies_ && s.groups == 1 && skips > 1 && s.taps() > 0 && s.taps() < 4 * skips &&
         s.out_elements() > 0 && s.in_channels >= kFewestChannels &&
         s.out_channels >= kPanelColumns;
}

absl::StatusOr<bool> Im2colConv::Run(KernelContext& ctx, const ConvShape& s,
                                     const ConvOperands<float>& o) {
  if (!IsFor(s) || !packed_filter_.CanCache(*o.filter)) return false;
  const std::optional<gemm::Epilogue> epilogue = epilogue_.AsGemmEpilogue(o.epilogue);
  if (!epilogue) return false;
  const int64_t depth = s.taps() * s.in_channels, pixels = s.batch * s.out_pixels();
  ThreadPool& pool = ctx.pool();
  WEIR_ASSIGN_OR_RETURN(const Tensor packed,
                        packed_filter_.Get(*o.filter, nullptr, [&]() -> absl::StatusOr<Tensor> {
                          if (!winograd::AllFinite(o.filter_data, s.filter_elements()))
                            return Tensor();
                          return PackB(pool, {.n = s.out_channels, .k = depth}, o.filter_data);
                        }));
  if (!packed.initialized()) return false;
  const bool adds = o.epilogue.addend != nullptr;
  if (adds && o.epilogue.addend != o.output)
    std::copy_n(o.epilogue.addend, pixels * s.out_channels, o.output);

  const int64_t at_once = std::clamp<int64_t>(kPatchFloats / depth, 1, pixels);
  WEIR_ASSIGN_OR_RETURN(Tensor patches, ctx.AllocateTemp(DT_FLOAT, Shape({at_once, depth})));
  float* const to = patches.data<float>();
  for (int64_t first = 0; first < pixels; first += at_once) {
    const int64_t some = std::min(at_once, pixels - first);
    pool.ParallelFor(some, 0.1 * static_cast<double>(depth), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) CopyPatch(s, o.input, first + i, to + i * depth);
    });
    WEIR_RETURN_IF_ERROR(MultiplyPacked(pool, {.m = some, .n = s.out_channels, .k = depth}, to,
                                        packed, o.output + first * s.out_channels, adds,
                                        {.tiles = epilogue}));
  }
  return true;
}

}  // namespace weir
