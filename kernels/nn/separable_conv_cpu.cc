#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/linalg/epilogue.h"
#include "weir/kernels/linalg/gemm.h"
#include "weir/kernels/linalg/matmul.h"
#include "weir/kernels/nn/conv.h"
#include "weir/kernels/nn/depthwise.h"
#include "weir/kernels/nn/packed_weight_cache.h"
#include "weir/kernels/nn/separable_conv.h"

// Depthwise separable convolutions: a depthwise convolution followed by a 1x1 convolution, and
// often preceded by a 1x1 convolution to several times as many channels (M. Sandler et al.,
// "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018). The intermediate tensors are
// several times as large as the input and the output: writing them to memory and reading them back,
// twice, takes longer than computing them. But only a few rows of them are needed at a time. So
// each thread computes rows of the result in bands that fit the L2 cache. For each band it expands
// the rows of the image that the band's filters read and that it has not expanded yet, into a ring
// buffer of rows; applies the depthwise filters; and multiplies the filtered rows by the last
// filters into the result. At the boundaries of its part, a thread computes rows that a neighboring
// thread computes too.
//
// Small images have few rows and many channels, so it is the filters that do not fit the cache. In
// this case threads split the channels of the intermediate tensor, so that each reads its own part
// of the filters, and then the channels of the result.
namespace weir {
namespace {

// The maximum size of a band's rows: three eighths of an L2 cache of 512 KB.
constexpr int64_t kBandFloats = 48 << 10;
constexpr double kMinPieceNs = 20e3, kFlopsPerNs = 80;

// Packed 1x1 filters and their epilogue.
struct Pointwise {
  Tensor packed;
  gemm::Epilogue epilogue = {};
};

struct Problem {
  int64_t in_channels = 0, out_channels = 0;
  ConvShape depthwise;  // the depthwise convolution, with one group per channel
  bool expands = false;
  const float *input = nullptr, *filter = nullptr, *addend = nullptr;
  Pointwise expand, project;
  gemm::Epilogue epilogue;  // of the depthwise convolution
  float* output = nullptr;

  int64_t channels() const { return depthwise.in_channels; }
  double flops() const {
    const double expanded = expands ? static_cast<double>(depthwise.in_elements()) : 0;
    return 2 * expanded * static_cast<double>(in_channels) + depthwise.flops() +
           2 * static_cast<double>(depthwise.out_elements()) * static_cast<double>(out_channels);
  }
  // Scratch space of a matrix product, per thread.
  int64_t ScratchFloats() const {
    const int64_t rows = depthwise.batch * std::max(depthwise.in_pixels(), depthwise.out_pixels());
    return std::max(gemm::ScratchFloats({nullptr, in_channels, 1}, rows, in_channels),
                    gemm::ScratchFloats({nullptr, channels(), 1}, rows, channels()));
  }
};

// The bands of the filtered tensor, for channels [first, end) of one image after the other,
// from top to bottom.
class Bands {
 public:
  Bands(const Problem& p, int64_t first, int64_t end)
      : p_(p),
        s_(p.depthwise),
        first_(first),
        channels_(end - first),
        row_(s_.in[2] * channels_),
        in_(static_cast<size_t>(s_.kernel[1])) {
    const int64_t out_row = s_.out[2] * channels_;
    while (rows_ < s_.out[1] &&
           NumInputRows(rows_ + 1) * row_ + (rows_ + 1) * out_row <= kBandFloats)
      ++rows_;
    slots_ = std::min(NumInputRows(rows_), s_.in[1]);
    geometry_ = {.kernel_height = s_.kernel[1],
                 .kernel_width = s_.kernel[2],
                 .stride = s_.stride[2],
                 .dilation = s_.dilation[2],
                 .pad = s_.pad_before[2],
                 .in_width = s_.in[2],
                 .out_width = s_.out[2],
                 .channels = channels_,
                 .in_pixel = p.expands ? channels_ : p.in_channels,
                 .tap = p.channels()};
  }

  // The number of rows of the result in a band.
  int64_t rows() const { return rows_; }
  int64_t ring_floats() const { return p_.expands ? slots_ * row_ : 0; }

  // `ring` has ring_floats() floats; `scratch` is scratch space for matrix products.
  void Begin(int64_t image, float* ring, float* scratch) {
    image_ = p_.input + image * s_.in_pixels() * p_.in_channels;
    ring_ = ring;
    scratch_ = scratch;
    expanded_ = 0;
  }

  // Computes rows [first, end) of the depthwise convolution, which follow the previous call's rows.
  // Pixels of `out` are `pixel` floats apart.
  void Filter(int64_t first, int64_t end, int64_t pixel, float* out) {
    if (p_.expands) {
      Expand(std::max({FirstInputRow(first), expanded_, int64_t{0}}),
             std::min(FirstInputRow(first) + NumInputRows(end - first), s_.in[1]));
    }
    geometry_.out_pixel = pixel;
    for (int64_t y = first; y < end; ++y) {
      for (int64_t i = 0; i < s_.kernel[1]; ++i) {
        const int64_t row = FirstInputRow(y) + i * s_.dilation[1];
        in_[i] = row < 0 || row >= s_.in[1] ? nullptr : Row(row);
      }
      depthwise::MultiplyRow(geometry_, in_.data(), p_.filter + first_, p_.epilogue.At(first_),
                             out + (y - first) * s_.out[2] * pixel);
    }
  }

 private:
  // FirstInputRow is the first image row that row y reads; NumInputRows is the number of image rows
  // that `rows` rows read.
  int64_t FirstInputRow(int64_t y) const { return y * s_.stride[1] - s_.pad_before[1]; }
  int64_t NumInputRows(int64_t rows) const {
    return (rows - 1) * s_.stride[1] + (s_.kernel[1] - 1) * s_.dilation[1] + 1;
  }
  const float* Row(int64_t row) const {
    return p_.expands ? ring_ + row % slots_ * row_
                      : image_ + row * s_.in[2] * p_.in_channels + first_;
  }
  void Expand(int64_t first, int64_t end) {
    const int64_t depth = p_.in_channels;
    const float* const packed = p_.expand.packed.data<float>() + first_ * depth;
    while (first < end) {
      const int64_t slot = first % slots_, n = std::min(end - first, slots_ - slot);
      gemm::Multiply({image_ + first * s_.in[2] * depth, depth, 1}, n * s_.in[2], depth, packed,
                     channels_, false, ring_ + slot * row_, channels_, scratch_,
                     p_.expand.epilogue.At(first_));
      first += n;
      expanded_ = first;
    }
  }

  const Problem& p_;
  const ConvShape& s_;
  const int64_t first_, channels_;
  const int64_t row_;  // floats per expanded row
  int64_t rows_ = 1, slots_ = 0;
  depthwise::Geometry geometry_;
  std::vector<const float*> in_;
  const float* image_ = nullptr;
  float *ring_ = nullptr, *scratch_ = nullptr;
  int64_t expanded_ = 0;  // rows before this one are expanded
};

// Computes channels [first, end) of the result's `pixels` pixels from `pixel` on.
void Project(const Problem& p, const float* filtered, int64_t pixel, int64_t pixels, int64_t first,
             int64_t end, float* scratch) {
  const int64_t at = pixel * p.out_channels + first, depth = p.channels();
  if (p.addend != nullptr) {
    for (int64_t i = 0; i < pixels * p.out_channels; i += p.out_channels)
      std::copy_n(p.addend + at + i, end - first, p.output + at + i);
  }
  gemm::Multiply({filtered, depth, 1}, pixels, depth,
                 p.project.packed.data<float>() + first * depth, end - first, p.addend != nullptr,
                 p.output + at, p.out_channels, scratch, p.project.epilogue.At(first));
}

absl::Status RunByRows(KernelContext& ctx, const Problem& p, int64_t pieces) {
  const ConvShape& s = p.depthwise;
  const Bands like(p, 0, p.channels());
  const int64_t ring_floats = like.ring_floats();
  const int64_t filtered_floats = like.rows() * s.out[2] * p.channels();
  const int64_t floats = ring_floats + filtered_floats + p.ScratchFloats();
  WEIR_ASSIGN_OR_RETURN(Tensor memory, ctx.AllocateTemp(DT_FLOAT, Shape({pieces, floats})));
  const int64_t rows = s.batch * s.out[1];
  ctx.pool().ForEach(static_cast<int>(pieces), [&](int piece) {
    Bands bands(p, 0, p.channels());
    float* const ring = memory.data<float>() + piece * floats;
    float* const filtered = ring + ring_floats;
    float* const scratch = filtered + filtered_floats;
    const int64_t last = rows * (piece + 1) / pieces;
    for (int64_t row = rows * piece / pieces; row < last;) {
      const int64_t image = row / s.out[1], above = image * s.out[1];
      const int64_t end = std::min(last - above, s.out[1]);
      bands.Begin(image, ring, scratch);
      for (int64_t y = row - above; y < end; y += bands.rows()) {
        const int64_t n = std::min(bands.rows(), end - y);
        bands.Filter(y, y + n, p.channels(), filtered);
        Project(p, filtered, (above + y) * s.out[2], n * s.out[2], 0, p.out_channels, scratch);
      }
      row = above + end;
    }
  });
  return absl::OkStatus();
}

// Returns the number of pieces of the channels. NumPieces consist of whole panels; the last one
// includes the remainder, so none has fewer channels than a panel.
int64_t NumPieces(int64_t channels, int64_t most) {
  return std::clamp<int64_t>(channels / gemm::PanelColumns(), 1, most);
}
// Returns the first channel of piece i.
int64_t FirstChannel(int64_t channels, int64_t pieces, int64_t i) {
  const int64_t width = gemm::PanelColumns();
  return i == pieces ? channels : channels / width * i / pieces * width;
}

absl::Status RunByChannels(KernelContext& ctx, const Problem& p, int64_t most_pieces) {
  const ConvShape& s = p.depthwise;
  const int64_t pieces = NumPieces(p.channels(), most_pieces);
  const int64_t out_pieces = NumPieces(p.out_channels, most_pieces);
  int64_t ring_floats = 0;
  for (int64_t i = 0; i < pieces; ++i) {
    const Bands bands(p, FirstChannel(p.channels(), pieces, i),
                      FirstChannel(p.channels(), pieces, i + 1));
    ring_floats = std::max(ring_floats, bands.ring_floats());
  }
  const int64_t floats = ring_floats + p.ScratchFloats();
  WEIR_ASSIGN_OR_RETURN(Tensor memory, ctx.AllocateTemp(DT_FLOAT, Shape({most_pieces, floats})));
  const int64_t pixels = s.batch * s.out_pixels();
  WEIR_ASSIGN_OR_RETURN(Tensor filtered, ctx.AllocateTemp(DT_FLOAT, Shape({pixels, p.channels()})));
  ctx.pool().ForEach(static_cast<int>(pieces), [&](int piece) {
    const int64_t first = FirstChannel(p.channels(), pieces, piece);
    Bands bands(p, first, FirstChannel(p.channels(), pieces, piece + 1));
    float* const ring = memory.data<float>() + piece * floats;
    for (int64_t image = 0; image < s.batch; ++image) {
      bands.Begin(image, ring, ring + ring_floats);
      for (int64_t y = 0; y < s.out[1]; y += bands.rows()) {
        const int64_t pixel = image * s.out_pixels() + y * s.out[2];
        bands.Filter(y, std::min(y + bands.rows(), s.out[1]), p.channels(),
                     filtered.data<float>() + pixel * p.channels() + first);
      }
    }
  });
  ctx.pool().ForEach(static_cast<int>(out_pieces), [&](int piece) {
    Project(p, filtered.data<float>(), 0, pixels, FirstChannel(p.out_channels, out_pieces, piece),
            FirstChannel(p.out_channels, out_pieces, piece + 1),
            memory.data<float>() + piece * floats + ring_floats);
  });
  return absl::OkStatus();
}

absl::Status RunProblem(KernelContext& ctx, const Problem& p) {
  const ConvShape& s = p.depthwise;
  const auto worth = static_cast<int64_t>(std::min(1e6, p.flops() / kFlopsPerNs / kMinPieceNs));
  const int64_t pieces = std::clamp<int64_t>(worth, 1, ctx.pool().num_threads());
  const int64_t weights = (p.expands ? p.in_channels : 0) + p.out_channels;  // per channel
  if (pieces > 1 && weights > s.batch * s.in_pixels()) return RunByChannels(ctx, p, pieces);
  return RunByRows(ctx, p, std::min(pieces, s.batch * s.out[1]));
}

// ---- the kernel

struct Weights {
  PackedWeightCache expand, project;
};

class SeparableConv {
 public:
  static absl::StatusOr<Kernel> Make(const KernelInit& init) {
    SeparableConv c;
    WEIR_ASSIGN_OR_RETURN(c.attributes_, ConvAttributes::Read(init.node));
    if (c.attributes_.layout.channels_first())
      return Unimplemented("only layouts with the channels last are supported");
    const auto expand = init.attr<int64_t>("num_expand"),
               addends = init.attr<int64_t>("num_addends");
    if (expand > 1 || addends > 1)
      return InvalidArgument("num_expand and num_addends must be at most 1, got ", expand, " and ",
                             addends);
    c.expands_ = expand == 1;
    c.adds_ = addends == 1;
    const auto activations = init.attr<std::vector<std::string>>("activations");
    if (activations.size() != 3)
      return InvalidArgument("activations must have 3 entries, not ", activations.size());
    for (int i = 0; i < 3; ++i) {
      const std::optional<gemm::Epilogue> clip = Epilogue::ClampOf(activations[i]);
      if (!clip) return Unimplemented("fusing ", activations[i], " is not supported");
      c.epilogues_[i] = *clip;
    }
    for (const int i : {SeparableConv::expand(), c.project()})
      c.is_step_invariant_[i] = init.is_step_invariant(i);
    // If the number of channels is known, no such node is created.
    const Shape& filter = init.input_shapes[c.depthwise()];
    if (filter.has_rank() && filter.rank() == 4 && filter.dim(2) >= 0)
      WEIR_RETURN_IF_ERROR(CheckChannels(filter.dim(2)));
    return Kernel([c, weights = std::make_shared<Weights>()](KernelContext& ctx) {
      return c.Run(ctx, *weights);
    });
  }

 private:
  // Inputs: filters, each followed by its bias, and the addend.
  static constexpr int expand() { return 1; }
  int depthwise() const { return expands_ ? 3 : 1; }
  int project() const { return depthwise() + 2; }
  int addend() const { return depthwise() + 4; }

  static absl::Status CheckChannels(int64_t channels) {
    if (channels >= depthwise::FewestChannels()) return absl::OkStatus();
    return Unimplemented("fewer than ", depthwise::FewestChannels(), " channels are not supported");
  }
  // Checks that the shape is [1, 1, in, out].
  static absl::Status CheckPointwise(const Tensor& filter, int64_t in, int64_t out) {
    if (filter.shape() == Shape({1, 1, in, out})) return absl::OkStatus();
    return InvalidArgument("1x1 filters of ", in, " channels must have shape [1,1,", in, ",", out,
                           "], not ", filter.shape().ToString());
  }
  static absl::Status ReadBias(const Tensor& bias, int64_t channels, gemm::Epilogue* epilogue) {
    if (bias.shape() != Shape({channels})) {
      return InvalidArgument("bias must be a vector of ", channels, " floats, not ",
                             bias.Description());
    }
    epilogue->bias = bias.data<float>();
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> Packed(KernelContext& ctx, int input, PackedWeightCache& kept) const {
    const Tensor& filter = ctx.input(input);
    const auto pack = [&] {
      return PackB(ctx.pool(), {.n = filter.dim(3), .k = filter.dim(2)}, filter.data<float>());
    };
    return is_step_invariant_[input] && kept.CanCache(filter) ? kept.Get(filter, nullptr, pack)
                                                              : pack();
  }

  absl::Status Run(KernelContext& ctx, Weights& weights) const {
    const Tensor &input = ctx.input(0), &filter = ctx.input(depthwise());
    const Tensor& last = ctx.input(project());
    if (input.rank() != 4 || filter.rank() != 4 || last.rank() != 4 || filter.dim(3) != 1) {
      return InvalidArgument(
          "images and filters must have four dimensions, and each channel one depthwise ",
          "filter, but the shapes are ", input.shape().ToString(), ", ", filter.shape().ToString(),
          ", ", last.shape().ToString());
    }
    Problem p;
    p.expands = expands_;
    p.in_channels = input.dim(3);
    p.out_channels = last.dim(3);
    if (p.in_channels == 0) return InvalidArgument("images must have channels");
    Shape expanded = input.shape();
    if (expands_) {
      WEIR_RETURN_IF_ERROR(CheckPointwise(ctx.input(expand()), p.in_channels, filter.dim(2)));
      WEIR_ASSIGN_OR_RETURN(expanded,
                            Shape::Make({input.dim(0), input.dim(1), input.dim(2), filter.dim(2)}));
    }
    WEIR_ASSIGN_OR_RETURN(p.depthwise, ConvShape::Make(attributes_, expanded, filter.shape()));
    const ConvShape& s = p.depthwise;
    WEIR_RETURN_IF_ERROR(CheckPointwise(last, s.out_channels, p.out_channels));
    if (expanded.num_elements() > kMaxElements || s.out_elements() > kMaxElements)
      return absl::ResourceExhaustedError("images are too large");
    WEIR_RETURN_IF_ERROR(CheckChannels(p.channels()));
    gemm::Epilogue epilogues[3] = {epilogues_[0], epilogues_[1], epilogues_[2]};
    if (expands_)
      WEIR_RETURN_IF_ERROR(ReadBias(ctx.input(expand() + 1), p.channels(), &epilogues[0]));
    WEIR_RETURN_IF_ERROR(ReadBias(ctx.input(depthwise() + 1), p.channels(), &epilogues[1]));
    WEIR_RETURN_IF_ERROR(ReadBias(ctx.input(project() + 1), p.out_channels, &epilogues[2]));
    const Shape out({s.batch, s.out[1], s.out[2], p.out_channels});
    if (adds_) {
      const Tensor& t = ctx.input(addend());
      if (t.shape() != out) {
        return InvalidArgument("the addend must be float", out.ToString(), ", not ",
                               t.Description());
      }
      p.addend = t.data<float>();
    }
    WEIR_ASSIGN_OR_RETURN(Tensor * result, ctx.AllocateOutput(0, out));
    if (result->num_elements() == 0) return absl::OkStatus();
    p.input = input.data<float>();
    p.filter = filter.data<float>();
    p.output = result->data<float>();
    p.epilogue = epilogues[1];
    if (expands_) {
      WEIR_ASSIGN_OR_RETURN(p.expand.packed, Packed(ctx, expand(), weights.expand));
      p.expand.epilogue = epilogues[0];
    }
    WEIR_ASSIGN_OR_RETURN(p.project.packed, Packed(ctx, project(), weights.project));
    p.project.epilogue = epilogues[2];
    return RunProblem(ctx, p);
  }

  // The maximum size of the intermediate tensors, so that the scratch sizes do not overflow.
  static constexpr int64_t kMaxElements = int64_t{1} << 40;

  ConvAttributes attributes_;
  bool expands_ = false, adds_ = false;
  gemm::Epilogue epilogues_[3];
  bool is_step_invariant_[6] = {};  // by input
};

}  // namespace

int64_t FewestSeparableChannels() { return depthwise::FewestChannels(); }

void AddSeparableConvCpu(KernelRegistry* r) {
  r->Add("_FusedDepthwiseSeparableConv2D", kCpu, DT_FLOAT, SeparableConv::Make);
}

}  // namespace weir
