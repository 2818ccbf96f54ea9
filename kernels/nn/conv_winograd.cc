#include "weir/kernels/nn/conv_winograd.h"

#include <algorithm>
#include <atomic>

#include "weir/kernels/nn/winograd.h"

// The work is split into pieces for the threads: ranges of tiles if images are larger than the
// filter, otherwise ranges of output channels, so that each thread reads its own part of the
// filter. A piece processes blocks of tiles: it transforms their input once, then multiplies them
// by each of its panels of output channels. A block's tiles stay in the L2 cache together with a
// panel of the filter. Larger blocks pay off if the filter is read from memory, once per block.
namespace weir {
namespace {

using winograd::Geometry;
using winograd::kPoints;

constexpr int64_t kBlockTiles = 24, kLargeBlockTiles = 96;
constexpr int64_t kLargeFilterBytes = int64_t{8} << 20;
constexpr double kMinPieceNs = 20e3;
// The transformed tiles of more channels would not fit into any cache.
constexpr int64_t kMostChannels = 4096;

// One pass over the images, forward or backward.
struct Problem {
  Geometry g;
  winograd::Filter filter;
  const float* images = nullptr;
  winograd::Output output;

  int64_t panels() const {
    const int64_t columns = winograd::PanelColumns();
    return (g.out_channels + columns - 1) / columns;
  }
  int64_t panel_floats() const { return kPoints * g.in_channels * winograd::PanelColumns(); }
  int64_t filter_bytes() const {
    return panels() * panel_floats() * static_cast<int64_t>(sizeof(float));
  }
};

bool Supports(const ConvShape& s) {
  const int64_t unit = winograd::ChannelUnit();
  const ConvShape::Spatial one{1, 1, 1}, three{1, 3, 3};
  return unit > 0 && s.groups == 1 && s.kernel == three && s.stride == one && s.dilation == one &&
         s.in[0] == 1 && s.out[0] == 1 && s.in_channels % unit == 0 && s.out_channels % unit == 0 &&
         std::max(s.in_channels, s.out_channels) <= kMostChannels;
}

Problem MakeProblem(ConvPass pass, const ConvShape& s, const ConvOperands<float>& o) {
  const int64_t in = s.in_channels, out = s.out_channels;
  if (pass == ConvPass::kForward) {
    return {{s.in[1], s.in[2], in, s.out[1], s.out[2], out, s.pad_before[1], s.pad_before[2]},
            {o.filter_data, 3 * in * out, in * out, out, 1},
            o.input,
            {o.epilogue.bias, o.epilogue.addend, o.output}};
  }
  // The gradient of the input is the convolution of the output's gradient with the rotated filter.
  return {{s.out[1], s.out[2], out, s.in[1], s.in[2], in, 2 - s.pad_before[1], 2 - s.pad_before[2]},
          {o.filter_data + 8 * in * out, -3 * in * out, -in * out, 1, out},
          o.output,
          {nullptr, nullptr, o.input}};
}

// Times measured on one thread of an AVX2 processor; other processors keep the proportions.
double ProductsNs(const Problem& p, int64_t batch) {
  constexpr double kFlopsPerNs = 85;
  const double columns = static_cast<double>(p.panels() * winograd::PanelColumns());
  return 2.0 * kPoints * static_cast<double>(batch * p.g.tiles() * p.g.in_channels) * columns /
         kFlopsPerNs;
}

// Returns whether it takes at least a sixth less time than direct convolution.
bool Pays(const Problem& p, int64_t batch, double definition_flops, bool packs) {
  constexpr double kFlopsPerNs = 75;  // of direct convolution
  constexpr double kTransformNs = 3,
                   kPackNs = 1.5;  // per channel of a tile, per element of a filter
  const double tiles = static_cast<double>(batch * p.g.tiles());
  const double in = static_cast<double>(p.g.in_channels);
  const double out = static_cast<double>(p.g.out_channels);
  const double ns = ProductsNs(p, batch) + tiles * (in + out) * kTransformNs +
                    (packs ? in * out * kPackNs * 9 : 0);
  return ns < definition_flops / kFlopsPerNs * 5 / 6;
}

// A range of tiles of all images and a range of panels of output channels.
struct Piece {
  int64_t first_tile = 0, end_tile = 0, first_panel = 0, end_panel = 0;
};

std::vector<Piece> SplitWork(const Problem& p, int64_t batch, int threads) {
  const int64_t tiles = batch * p.g.tiles(), panels = p.panels();
  const auto worth = static_cast<int64_t>(ProductsNs(p, batch) / kMinPieceNs);
  const int64_t wanted = threads == 1 ? 1 : std::clamp<int64_t>(worth, 1, 2 * threads);
  const bool by_panels =
      batch * p.g.in_height * p.g.in_width < 9 * p.g.out_channels && panels >= threads;
  const int64_t most = by_panels ? panels : (tiles + kBlockTiles / 4 - 1) / (kBlockTiles / 4);
  const int64_t count = std::min(wanted, most);
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < count; ++i) {
    pieces.push_back(by_panels ? Piece{0, tiles, panels * i / count, panels * (i + 1) / count}
                               : Piece{tiles * i / count, tiles * (i + 1) / count, 0, panels});
  }
  return pieces;
}

int64_t BlockTiles(const Problem& p, const Piece& piece) {
  const int64_t most = p.filter_bytes() > kLargeFilterBytes ? kLargeBlockTiles : kBlockTiles;
  return std::min(most, piece.end_tile - piece.first_tile);
}

// `scratch` holds the transformed tiles and the products of a block.
void Run(const Problem& p, const Piece& piece, const float* packed, const float* zeros,
         const Epilogue& epilogue, float* scratch) {
  const int64_t most = BlockTiles(p, piece);
  float* const products = scratch + kPoints * most * winograd::RowStride(p.g.in_channels);
  const int64_t columns = winograd::PanelColumns();
  const int64_t channel = piece.first_panel * columns;
  const int64_t channels = std::min(piece.end_panel * columns, p.g.out_channels) - channel;
  for (int64_t first = piece.first_tile; first < piece.end_tile; first += most) {
    const int64_t tiles = std::min(most, piece.end_tile - first);
    winograd::TransformInput(p.g, p.images, first, tiles, zeros, scratch);
    for (int64_t panel = piece.first_panel; panel < piece.end_panel; ++panel) {
      winograd::MultiplyPanel(p.g, scratch, packed + panel * p.panel_floats(), panel, first, tiles,
                              products, p.output);
    }
    if (!epilogue.has_activation()) continue;
    for (int64_t t = first; t < first + tiles; ++t) {
      const winograd::Tile tile = winograd::Tile::At(p.g, t);
      for (int64_t r = 0; r < tile.Height(p.g); ++r) {
        for (int64_t c = 0; c < tile.Width(p.g); ++c) {
          const int64_t at = tile.Pixel(p.g, r, c) * p.g.out_channels + channel;
          epilogue.Activate(p.output.result + at, channels);
        }
      }
    }
  }
}

int64_t ScratchFloats(const Problem& p, const Piece& piece) {
  return kPoints * BlockTiles(p, piece) *
         (winograd::RowStride(p.g.in_channels) + winograd::PanelColumns());
}

bool AllFinite(ThreadPool& pool, const float* x, int64_t n) {
  std::atomic<bool> finite = true;
  pool.ParallelFor(n, 0.1, [&](int64_t begin, int64_t end) {
    if (!winograd::AllFinite(x + begin, end - begin)) finite = false;
  });
  return finite;
}

}  // namespace

WinogradConv::WinogradConv(ConvPass pass, bool step_invariant_filter, const Epilogue& epilogue)
    : pass_(pass), step_invariant_filter_(step_invariant_filter), epilogue_(epilogue) {}

absl::StatusOr<bool> WinogradConv::Run(KernelContext& ctx, const ConvShape& s,
                                       const ConvOperands<float>& o) {
  if (pass_ == ConvPass::kBackpropFilter || !Supports(s)) return false;
  const Problem p = MakeProblem(pass_, s, o);
  ThreadPool& pool = ctx.pool();
  const bool keeps = step_invariant_filter_ && packed_filter_.CanCache(*o.filter);
  if (!Pays(p, s.batch, s.flops(), !keeps)) return false;
  if (!AllFinite(pool, p.images, s.batch * p.g.in_height * p.g.in_width * p.g.in_channels))
    return false;

  const Shape packed_shape({p.panels() * p.panel_floats()});
  const auto pack = [&]() -> absl::StatusOr<Tensor> {
    WEIR_ASSIGN_OR_RETURN(Tensor packed,
                          keeps ? Tensor::Allocate(HostAllocator(), DT_FLOAT, packed_shape)
                                : ctx.AllocateTemp(DT_FLOAT, packed_shape));
    std::atomic<bool> finite = true;
    pool.ParallelFor(p.panels(), static_cast<double>(p.panel_floats()),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         float* const to = packed.data<float>() + i * p.panel_floats();
                         if (!winograd::PackPanel(p.filter, p.g, i, to)) finite = false;
                       }
                     });
    return finite ? std::move(packed) : Tensor();
  };
  WEIR_ASSIGN_OR_RETURN(const Tensor packed,
                        keeps ? packed_filter_.Get(*o.filter, nullptr, pack) : pack());
  if (!packed.initialized()) return false;

  const std::vector<Piece> pieces = SplitWork(p, s.batch, pool.num_threads());
  int64_t scratch_floats = 0;  // of the largest piece
  for (const Piece& piece : pieces)
    scratch_floats = std::max(scratch_floats, ScratchFloats(p, piece));
  const int count = static_cast<int>(pieces.size());
  const int64_t zeros = p.g.in_channels;
  WEIR_ASSIGN_OR_RETURN(Tensor scratch,
                        ctx.AllocateTemp(DT_FLOAT, Shape({zeros + count * scratch_floats})));
  float* const data = scratch.data<float>();
  std::fill_n(data, zeros, 0.0f);
  pool.ForEach(count, [&](int i) {
    weir::Run(p, pieces[i], packed.data<float>(), data, epilogue_,
              data + zeros + i * scratch_floats);
  });
  return true;
}

}  // namespace weir
