#include "weir/kernels/nn/conv_dnnl.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "weir/core/tensor/cancellation.h"
#include "weir/kernels/lib/pieces.h"
#include "weir/kernels/linalg/dnnl_status.h"

// oneDNN convolves plain NHWC images at the speed of its blocked layouts, as long as it may choose
// the layout of the filter. So only the filter is packed (a reorder, a few microseconds), and
// images are used in place. Debian builds oneDNN for OpenMP, which creates a thread team for every
// calling thread. Therefore oneDNN is limited to one thread, and the work is split into pieces for
// our own thread pool.
//
// oneDNN's rounding depends on the sizes it is given, so the split depends on sizes alone
// (pieces.h). A piece is a range of images of the batch. If there are only one or two images, a
// forward piece is a range of output rows of one image: the corresponding input rows are
// contiguous, and only the padding above and below differs between pieces. So an object holds a few
// primitives that differ in the number of images or rows and in padding, and a list of pieces, each
// with its primitive and the offsets of its operands. For a 1x1 filter, each pixel counts as a row.
//
// If the filter is larger than the image, as in the last layers of a network, each piece of an
// image would read the whole filter. Then a piece is a slice of the output channels with its own
// part of the filter. Slices are computed into scratch memory and then interleaved.
//
// A bias and an addend are part of the primitive (the addend is in the result's memory, and oneDNN
// adds to it). An activation is applied to each piece when it is computed, and pieces are then
// small enough to be still in the cache. oneDNN's own activation would turn NaNs into 0.
//
// The filter's gradient is a sum over all images: each piece has a packed accumulator, these are
// added, and the sum is unpacked. The accumulators' memory limits their number.
//
// A call of oneDNN cannot be cancelled. If pieces would take longer than kLongestPieceNs, the
// images are cut into more of them, which run one after the other in as many groups as there were
// pieces: a group checks for cancellation before each piece, and has one scratch memory and
// accumulator.
namespace weir {
namespace {

using Memory = DnnlMemory;
using Primitive = DnnlPrimitive;
using PrimitiveDesc = DnnlPrimitiveDesc;

template <class T>
constexpr dnnl_data_type_t kDnnlType = std::is_same_v<T, bfloat16> ? dnnl_bf16 : dnnl_f32;

constexpr int kMaxCachedShapes = 8;
constexpr int64_t kMaxAccumulatorBytes = int64_t{64} << 20;
constexpr double kMinSliceNs = 20e3, kLongestPieceNs = 200e6;
constexpr int64_t kSlices = 2, kFewImages = 2, kMostRowSplits = 4;
// The largest output of a piece if an activation follows.
constexpr int64_t kMaxActivatedFloats = 256 * 1024;

// Dimensions in oneDNN's order, which is channels first regardless of the memory layout.
struct Dims {
  int rank = 0;
  dnnl_dims_t at{};
  void Add(int64_t d) { at[rank++] = d; }
};

// Estimates the single-threaded run time. Kernels with few channels per group compute little per
// load.
double EstimatedNs(const ConvShape& s) {
  constexpr double kFlopsPerNs = 80, kThinFlopsPerNs = 20;
  return s.flops() / (s.group_in() < 8 && s.groups > 1 ? kThinFlopsPerNs : kFlopsPerNs);
}

// A part of a convolution: a range of images and a range of rows of their first spatial dimension.
struct Part {
  int64_t images = 0;
  int64_t in_rows = 0, out_rows = 0, pad_before = 0, pad_after = 0;
  auto Key() const { return std::make_tuple(images, in_rows, out_rows, pad_before, pad_after); }
};

bool IsVolume(const ConvShape& s) { return s.in[0] != 1 || s.kernel[0] != 1 || s.out[0] != 1; }
// The first spatial dimension, along which images are split into rows.
int RowDim(const ConvShape& s) { return IsVolume(s) ? 0 : 1; }

// Returns the descriptor of images [n, channels, spatial..] with a channels-last memory layout.
// Like FilterDesc(), returns nullopt if oneDNN rejects them.
std::optional<dnnl_memory_desc_t> ImageDesc(dnnl_data_type_t type, int64_t n, int64_t channels,
                                            const ConvShape::Spatial& size, int first) {
  Dims d;
  d.Add(n);
  d.Add(channels);
  for (int i = first; i < 3; ++i) d.Add(size[i]);
  dnnl_memory_desc_t desc;
  const dnnl_status_t status =
      dnnl::memory_desc_init_by_tag(&desc, d.rank, d.at, type, first == 0 ? dnnl_ndhwc : dnnl_nhwc);
  if (status != dnnl_success) return std::nullopt;
  return desc;
}

// Returns the descriptor of the filter. TensorFlow's layout is [spatial.., in, out]; oneDNN's
// dimensions are [group,] out, in, spatial... `slices`: the filter is one of this many equal slices
// of `out`.
std::optional<dnnl_memory_desc_t> FilterDesc(dnnl_data_type_t type, const ConvShape& s,
                                             int64_t slices, bool packed) {
  const int first = RowDim(s);
  Dims d, strides;
  const int64_t in = s.group_in(), out = s.out_channels / s.groups / slices;
  if (s.groups > 1) {
    d.Add(s.groups);
    strides.Add(out);
  }
  d.Add(out);
  strides.Add(1);
  d.Add(in);
  strides.Add(s.out_channels);
  int64_t step = s.taps() * in * s.out_channels;
  for (int i = first; i < 3; ++i) {
    step /= s.kernel[i];
    d.Add(s.kernel[i]);
    strides.Add(step);
  }
  dnnl_memory_desc_t desc;
  const dnnl_status_t status =
      packed ? dnnl::memory_desc_init_by_tag(&desc, d.rank, d.at, type, dnnl_format_tag_any)
             : dnnl::memory_desc_init_by_strides(&desc, d.rank, d.at, type, strides.at);
  if (status != dnnl_success) return std::nullopt;
  return desc;
}

// oneDNN 2.6 gathers the input of a strided 1x1 filter into the scratchpad. On AVX2 it writes eight
// channels of a pixel even if it requested space for fewer: up to a kilobyte beyond the end for
// 14x14 images of one channel.
bool OverrunsScratchpad(ConvPass pass, const ConvShape& s, absl::string_view implementation) {
  return pass == ConvPass::kBackpropFilter && absl::StartsWith(implementation, "jit_1x1:avx2") &&
         s.stride != ConvShape::Spatial{1, 1, 1} && s.group_in() % 8 != 0;
}

std::optional<dnnl_memory_desc_t> VectorDesc(int64_t size) {
  const dnnl_dims_t dims = {size};
  dnnl_memory_desc_t desc;
  if (dnnl::memory_desc_init_by_tag(&desc, 1, dims, dnnl_f32, dnnl_a) != dnnl_success)
    return std::nullopt;
  return desc;
}

struct PartPrimitive {
  Primitive primitive;
  dnnl_memory_desc_t input, filter, bias, output, scratchpad;
};

// Returns null if oneDNN has no such primitive.
std::unique_ptr<PartPrimitive> MakePrimitive(ConvPass pass, dnnl_data_type_t type,
                                             const ConvShape& s, const Part& part, int64_t slices,
                                             const dnnl_memory_desc_t& filter, bool bias,
                                             bool add) {
  const int first = RowDim(s);
  const int64_t out_channels = s.out_channels / slices;
  ConvShape::Spatial in = s.in, out = s.out, before = s.pad_before, after = s.pad_after;
  in[first] = part.in_rows;
  out[first] = part.out_rows;
  before[first] = part.pad_before;
  after[first] = part.pad_after;
  auto p = std::make_unique<PartPrimitive>();
  const auto input = ImageDesc(type, part.images, s.in_channels, in, first);
  const auto output = ImageDesc(type, part.images, out_channels, out, first);
  const auto bias_desc = VectorDesc(out_channels);
  // The gradient of a filter of another type is accumulated in float.
  const auto forward_filter = pass == ConvPass::kBackpropFilter
                                  ? FilterDesc(type, s, slices, /*packed=*/true)
                                  : std::optional(filter);
  if (!input || !output || !bias_desc || !forward_filter) return nullptr;
  p->input = *input;
  p->bias = *bias_desc;
  p->output = *output;
  Dims strides, dilations, pads_before, pads_after;
  for (int i = first; i < 3; ++i) {
    strides.Add(s.stride[i]);
    dilations.Add(s.dilation[i] - 1);
    pads_before.Add(before[i]);
    pads_after.Add(after[i]);
  }
  const auto forward = [&](dnnl_convolution_desc_t* d) {
    return dnnl::dilated_convolution_forward_desc_init(
        d, dnnl_forward_training, dnnl_convolution_direct, &p->input, &*forward_filter,
        bias ? &p->bias : nullptr, &p->output, strides.at, dilations.at, pads_before.at,
        pads_after.at);
  };
  const DnnlAttributes attr = MakeDnnlAttributes(add);
  if (attr == nullptr) return nullptr;

  dnnl_convolution_desc_t desc;
  dnnl_primitive_desc_t raw = nullptr;
  if (forward(&desc) != dnnl_success ||
      dnnl::primitive_desc_create(&raw, &desc, attr.get(), DnnlEngine(), nullptr) != dnnl_success) {
    return nullptr;
  }
  PrimitiveDesc pd(raw);
  if (pass != ConvPass::kForward) {
    const PrimitiveDesc hint = std::move(pd);
    const dnnl_status_t status =
        pass == ConvPass::kBackpropInput
            ? dnnl::dilated_convolution_backward_data_desc_init(
                  &desc, dnnl_convolution_direct, &p->input, &filter, &p->output, strides.at,
                  dilations.at, pads_before.at, pads_after.at)
            : dnnl::dilated_convolution_backward_weights_desc_init(
                  &desc, dnnl_convolution_direct, &p->input, &filter, nullptr, &p->output,
                  strides.at, dilations.at, pads_before.at, pads_after.at);
    raw = nullptr;
    if (status != dnnl_success || dnnl::primitive_desc_create(&raw, &desc, attr.get(), DnnlEngine(),
                                                              hint.get()) != dnnl_success) {
      return nullptr;
    }
    pd.reset(raw);
  }
  const dnnl_query_t query =
      pass == ConvPass::kBackpropFilter ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
  const dnnl_memory_desc_t* const packed = dnnl::primitive_desc_query_md(pd.get(), query, 0);
  const dnnl_memory_desc_t* const scratchpad =
      dnnl::primitive_desc_query_md(pd.get(), dnnl_query_scratchpad_md, 0);
  const char* name = nullptr;
  dnnl::primitive_desc_query(pd.get(), dnnl_query_impl_info_str, 0, &name);
  if (name == nullptr || packed == nullptr || scratchpad == nullptr) return nullptr;
  // Reference implementations are slow and meant for testing only.
  if (absl::StartsWith(name, "ref") || OverrunsScratchpad(pass, s, name)) return nullptr;
  p->filter = *packed;
  p->scratchpad = *scratchpad;
  dnnl_primitive_t primitive = nullptr;
  if (dnnl::primitive_create(&primitive, pd.get()) != dnnl_success) return nullptr;
  p->primitive.reset(primitive);
  return p;
}

absl::Status RunReorder(dnnl_primitive_t reorder, const dnnl_memory_desc_t& from_desc,
                        const void* from, const dnnl_memory_desc_t& to_desc, void* to) {
  WEIR_ASSIGN_OR_RETURN(const Memory source, DnnlWrap(from_desc, from));
  WEIR_ASSIGN_OR_RETURN(const Memory target, DnnlWrap(to_desc, to));
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source.get()}, {DNNL_ARG_TO, target.get()}};
  return DnnlStatus(dnnl::primitive_execute(reorder, DnnlThreadStream(), 2, args),
                    "reorder a filter");
}

// Returns the same convolution; if the filter is 1x1, each pixel becomes a row, so that images can
// be split anywhere.
ConvShape ViewPixelsAsRows(const ConvShape& s) {
  ConvShape::Spatial one{1, 1, 1}, none{0, 0, 0};
  if (s.groups != 1 || s.kernel != one || s.stride != one || s.pad_before != none ||
      s.pad_after != none)
    return s;
  ConvShape rows = s;
  rows.in = rows.out = {1, s.out_pixels(), 1};
  rows.dilation = one;
  return rows;
}

int64_t FloatsOf(const dnnl_memory_desc_t& desc) {
  return static_cast<int64_t>((dnnl::memory_desc_get_size(&desc) + sizeof(float) - 1) /
                              sizeof(float));
}

}  // namespace

template <class T>
class DnnlConvPrimitives {
 public:
  struct Piece {
    const PartPrimitive* part = nullptr;
    int64_t input_offset = 0, output_offset = 0, output_elements = 0;
    int64_t slice = 0;
  };

  // Returns null if oneDNN has no kernel for the shape.
  static std::shared_ptr<const DnnlConvPrimitives> Make(ConvPass pass, const ConvShape& shape,
                                                        bool splits, const Epilogue& epilogue) {
    if (DnnlEngine() == nullptr || DnnlThreadStream() == nullptr) return nullptr;
    const int64_t slices = splits ? Slices(pass, shape) : 1;
    const bool unpack = pass == ConvPass::kBackpropFilter;
    const auto plain = FilterDesc(kDnnlType<T>, shape, slices, /*packed=*/false);
    // The layout is "any" until the first primitive has chosen one.
    const auto packed =
        FilterDesc(unpack ? dnnl_f32 : kDnnlType<T>, shape, slices, /*packed=*/true);
    if (!plain || !packed) return nullptr;
    auto primitives = std::make_shared<DnnlConvPrimitives>(pass, shape, splits, slices, epilogue,
                                                           *plain, *packed);
    bool split = false;
    for (const int64_t least : {LeastPieces(shape), int64_t{1}}) {
      for (int64_t wanted = primitives->TargetPieces(); !split && wanted > 0; wanted /= 2) {
        primitives->Reset(*packed);
        split = primitives->Split(wanted, least);
      }
    }
    if (!split) return nullptr;
    primitives->reorder_ = unpack
                               ? MakeDnnlReorder(primitives->packed_desc_, primitives->plain_desc_)
                               : MakeDnnlReorder(primitives->plain_desc_, primitives->packed_desc_);
    if (primitives->reorder_ == nullptr) return nullptr;
    return primitives;
  }

  DnnlConvPrimitives(ConvPass pass, const ConvShape& shape, bool splits, int64_t slices,
                     const Epilogue& epilogue, const dnnl_memory_desc_t& plain,
                     const dnnl_memory_desc_t& packed)
      : pass_(pass),
        shape_(shape),
        splits_(splits),
        slices_(slices),
        epilogue_(epilogue),
        plain_desc_(plain),
        packed_desc_(packed) {}

  bool IsFor(const ConvShape& shape, bool splits) const {
    return shape_ == shape && splits_ == splits;
  }
  // The size of a packed filter: elements of T, or floats where filter gradients are accumulated.
  int64_t packed_floats() const { return slices_ * slice_floats(); }
  bool plain_is_packed() const {
    return slices_ == 1 && dnnl::memory_desc_equal(&plain_desc_, &packed_desc_) != 0;
  }
  // The pieces of group i are [GroupBegin(i), GroupBegin(i + 1)).
  int num_groups() const { return num_groups_; }
  int GroupBegin(int i) const {
    return static_cast<int>(static_cast<int64_t>(pieces_.size()) * i / num_groups_);
  }
  // Whether there are groups of several pieces.
  bool has_groups() const { return static_cast<int>(pieces_.size()) > num_groups_; }
  // The size of a group's scratch memory.
  int64_t scratch_floats() const {
    return Aligned(scratchpad_floats_) +
           (slices_ > 1 ? Aligned(shape_.out_elements() / slices_) : 0);
  }

  absl::Status Pack(const T* plain, float* packed) const {
    for (int64_t i = 0; i < slices_; ++i) {
      WEIR_RETURN_IF_ERROR(RunReorder(reorder_.get(), plain_desc_, plain + i * slice_channels(),
                                      packed_desc_, packed + i * slice_floats()));
    }
    return absl::OkStatus();
  }
  absl::Status Unpack(const float* packed, T* plain) const {
    return RunReorder(reorder_.get(), packed_desc_, packed, plain_desc_, plain);
  }

  // Computes piece i. `filter` replaces the filter of `operands`: it is packed. `scratch` has
  // scratch_floats() floats.
  absl::Status RunPiece(int i, const ConvOperands<T>& operands, void* filter,
                        float* scratch) const {
    const Piece& piece = pieces_[i];
    T* const slice =
        slices_ > 1 ? reinterpret_cast<T*>(scratch + Aligned(scratchpad_floats_)) : nullptr;
    T* const result = operands.output + piece.output_offset;
    WEIR_RETURN_IF_ERROR(
        RunPrimitive(piece, operands, filter, scratch, slice != nullptr ? slice : result));
    if (slice == nullptr) {
      Activate(result, piece.output_elements);
    } else {
      InterleaveSlice(slice, operands.output + piece.slice * slice_channels());
    }
    return absl::OkStatus();
  }

 private:
  static int64_t Aligned(int64_t floats) { return (floats + 15) / 16 * 16; }
  int64_t slice_floats() const { return Aligned(FloatsOf(packed_desc_)); }
  int64_t slice_channels() const { return shape_.out_channels / slices_; }

  // Returns the number of slices into which the output channels are split.
  static int64_t Slices(ConvPass pass, const ConvShape& s) {
    constexpr int64_t kChannelBlock = 16;  // of packed filters
    if (pass != ConvPass::kForward || s.groups != 1 || s.batch >= kFewImages ||
        EstimatedNs(s) < 2 * kMinSliceNs || EstimatedNs(s) > kSlices * kLongestPieceNs ||
        s.filter_elements() < s.in_elements()) {
      return 1;
    }
    return s.out_channels % (kSlices * kChannelBlock) == 0 ? kSlices : 1;
  }

  // Interleaves the channels of a slice into the result, starting at `to`.
  void InterleaveSlice(const T* slice, T* to) const {
    const int64_t pixels = shape_.batch * shape_.out_pixels(), channels = slice_channels();
    for (int64_t p = 0; p < pixels; ++p, slice += channels, to += shape_.out_channels) {
      if (epilogue_.add) {
        Add(to, slice, channels);
      } else {
        std::copy(slice, slice + channels, to);
      }
      Activate(to, channels);
    }
  }

  // Only float convolutions have epilogues.
  void Activate(T* data, int64_t n) const {
    if constexpr (std::is_same_v<T, float>) epilogue_.Activate(data, n);
  }
  static void Add(T* to, const T* from, int64_t n) {
    if constexpr (std::is_same_v<T, float>) Epilogue::Add(to, from, n);
  }

  absl::Status RunPrimitive(const Piece& piece, const ConvOperands<T>& operands, void* filter,
                            float* scratchpad, T* result) const {
    const float* const bias_data =
        epilogue_.bias ? operands.epilogue.bias + piece.slice * slice_channels() : nullptr;
    const dnnl_stream_t stream = DnnlThreadStream();
    if (stream == nullptr) return Internal("oneDNN cannot create a stream");
    WEIR_ASSIGN_OR_RETURN(const Memory in,
                          DnnlWrap(piece.part->input, operands.input + piece.input_offset));
    WEIR_ASSIGN_OR_RETURN(const Memory out, DnnlWrap(piece.part->output, result));
    WEIR_ASSIGN_OR_RETURN(const Memory bias, DnnlWrap(piece.part->bias, bias_data));
    WEIR_ASSIGN_OR_RETURN(
        const Memory weights,
        DnnlWrap(piece.part->filter, static_cast<float*>(filter) + piece.slice * slice_floats()));
    WEIR_ASSIGN_OR_RETURN(const Memory scratch, DnnlWrap(piece.part->scratchpad, scratchpad));
    const bool forward = pass_ == ConvPass::kForward;
    const dnnl_exec_arg_t args[] = {
        {pass_ == ConvPass::kBackpropInput ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, in.get()},
        {pass_ == ConvPass::kBackpropFilter ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS,
         weights.get()},
        {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, out.get()},
        {DNNL_ARG_SCRATCHPAD, scratch.get()},
        {DNNL_ARG_BIAS, bias.get()},
    };
    const int num_args = epilogue_.bias ? 5 : 4;
    return DnnlStatus(dnnl::primitive_execute(piece.part->primitive.get(), stream, num_args, args),
                      "run a convolution");
  }

  // Returns the number of pieces to aim for. Filter accumulators must be added up, which may cost a
  // fiftieth of the time, and need memory.
  int64_t TargetPieces() const {
    if (!splits_) return 1;
    const double ns = EstimatedNs(shape_);
    if (pass_ != ConvPass::kBackpropFilter) return NumPiecesForWork(ns);
    constexpr double kNsPerSum = 0.1;
    const double floats = static_cast<double>(std::max<int64_t>(shape_.filter_elements(), 1));
    const double by_sums = std::max(2.0, ns / 50 / (floats * kNsPerSum));
    const double by_memory = static_cast<double>(kMaxAccumulatorBytes) / (floats * sizeof(float));
    return NumPiecesForWork(
        ns, static_cast<int64_t>(std::min({by_sums, by_memory, static_cast<double>(kMaxPieces)})));
  }

  // Returns how many pieces it takes for each to be short enough.
  static int64_t LeastPieces(const ConvShape& s) {
    return static_cast<int64_t>(std::ceil(EstimatedNs(s) / kLongestPieceNs));
  }

  // Prefers a count near `wanted` that divides the rows evenly: then one primitive serves most
  // pieces.
  int64_t EvenRowSplits(int64_t wanted) const {
    const int64_t rows = shape_.out[RowDim(shape_)];
    for (int64_t more = 0; more <= wanted / 2; ++more) {
      if (rows % (wanted + more) == 0) return wanted + more;
      if (wanted - more >= 2 && rows % (wanted - more) == 0) return wanted - more;
    }
    return std::min(wanted, rows);
  }

  // Splits into about `wanted` groups and, as far as that is possible, `least` pieces. Returns
  // false if oneDNN has no kernel for one of them that accepts the filter layout of the others.
  bool Split(int64_t wanted, int64_t least) {
    const int first = RowDim(shape_);
    if (slices_ > 1) {
      for (int64_t i = 0; i < slices_; ++i) {
        if (!AddPiece(0, shape_.batch, 0, shape_.out[first])) return false;
        pieces_.back().slice = i;
      }
      num_groups_ = static_cast<int>(slices_);
      return true;
    }
    int64_t splits = std::min(wanted, shape_.batch), row_splits = 1;
    if (shape_.batch < std::min(wanted, kFewImages) && pass_ != ConvPass::kBackpropInput)
      row_splits = std::min(wanted, kMostRowSplits);
    if (wanted > 1 && epilogue_.has_activation()) {
      const int64_t image = shape_.out_elements() / shape_.batch;
      splits = std::clamp((shape_.batch * image) / kMaxActivatedFloats, splits, shape_.batch);
      row_splits = std::max(row_splits, image / kMaxActivatedFloats);
    }
    if (row_splits > 1) row_splits = EvenRowSplits(row_splits);
    num_groups_ = static_cast<int>(splits * row_splits);
    if (least > num_groups_) {
      splits = std::clamp(least, splits, shape_.batch);
      // Rows of an input's gradient overlap.
      if (least > splits && pass_ != ConvPass::kBackpropInput) {
        row_splits = std::min((least + splits - 1) / splits, shape_.out[first]);
      }
    }
    for (int64_t c = 0; c < splits; ++c) {
      const int64_t begin = shape_.batch * c / splits, end = shape_.batch * (c + 1) / splits;
      for (int64_t r = 0; r < row_splits; ++r) {
        if (!AddPiece(begin, end - begin, shape_.out[first] * r / row_splits,
                      shape_.out[first] * (r + 1) / row_splits)) {
          return false;
        }
      }
    }
    return true;
  }

  void Reset(const dnnl_memory_desc_t& any) {
    pieces_.clear();
    by_part_.clear();
    packed_desc_ = any;
    scratchpad_floats_ = 0;
  }

  // Adds images [image, image + images), output rows [begin, end). Rows are split only if a piece
  // is a single image.
  bool AddPiece(int64_t image, int64_t images, int64_t begin, int64_t end) {
    const int first = RowDim(shape_);
    Part part{images, shape_.in[first], shape_.out[first], shape_.pad_before[first],
              shape_.pad_after[first]};
    int64_t in_row = 0;
    if (end - begin < shape_.out[first]) {
      const int64_t extent = (shape_.kernel[first] - 1) * shape_.dilation[first] + 1;
      const int64_t top = begin * shape_.stride[first] - shape_.pad_before[first];
      const int64_t bottom = (end - 1) * shape_.stride[first] - shape_.pad_before[first] + extent;
      in_row = std::clamp<int64_t>(top, 0, shape_.in[first] - 1);
      const int64_t in_end = std::clamp<int64_t>(bottom, in_row + 1, shape_.in[first]);
      part = {images, in_end - in_row, end - begin, in_row - top, bottom - in_end};
    }
    auto& primitive = by_part_[part.Key()];
    if (primitive == nullptr) {
      primitive = MakePrimitive(pass_, kDnnlType<T>, shape_, part, slices_, packed_desc_,
                                epilogue_.bias, epilogue_.add && slices_ == 1);
      if (primitive == nullptr) return false;
      packed_desc_ = primitive->filter;
      scratchpad_floats_ = std::max(scratchpad_floats_, FloatsOf(primitive->scratchpad));
    }
    const int64_t in_stride = shape_.in_pixels() * shape_.in_channels;
    const int64_t out_stride = shape_.out_pixels() * shape_.out_channels;
    const int64_t out_row = out_stride / shape_.out[first];
    pieces_.push_back({primitive.get(), image * in_stride + in_row * (in_stride / shape_.in[first]),
                       image * out_stride + begin * out_row, images * (end - begin) * out_row});
    return true;
  }

  const ConvPass pass_;
  const ConvShape shape_;
  const bool splits_;  // into pieces
  const int64_t slices_;
  const Epilogue epilogue_;
  dnnl_memory_desc_t plain_desc_, packed_desc_;
  std::map<decltype(Part().Key()), std::unique_ptr<PartPrimitive>> by_part_;
  std::vector<Piece> pieces_;
  int num_groups_ = 0;
  Primitive reorder_;
  int64_t scratchpad_floats_ = 0;
};

namespace {

// Calls `run(group, piece, scratch)` for all pieces; those of a group in order, with its scratch
// memory.
template <class T, class F>
absl::Status RunPieces(KernelContext& ctx, const DnnlConvPrimitives<T>& primitives, F&& run) {
  const int n = primitives.num_groups();
  const int64_t scratch_floats = primitives.scratch_floats();
  WEIR_ASSIGN_OR_RETURN(Tensor scratch, ctx.AllocateTemp(DT_FLOAT, Shape({scratch_floats * n})));
  float* const scratch_data = scratch.data<float>();
  FirstError failure;
  const auto run_group = [&](int group) {
    for (int piece = primitives.GroupBegin(group); piece < primitives.GroupBegin(group + 1);
         ++piece) {
      ThrowIfCancelled();
      failure.Note(run(group, piece, scratch_data + group * scratch_floats));
    }
  };
  if (n == 1) {
    run_group(0);
  } else {
    ctx.pool().ForEach(n, run_group);
  }
  return failure.status();
}

}  // namespace

template <class T>
DnnlConv<T>::DnnlConv(ConvPass pass, bool step_invariant_filter, const Epilogue& epilogue)
    : pass_(pass), step_invariant_filter_(step_invariant_filter), epilogue_(epilogue) {}
template <class T>
DnnlConv<T>::~DnnlConv() = default;

template <class T>
absl::StatusOr<std::shared_ptr<const DnnlConvPrimitives<T>>> DnnlConv<T>::PrimitivesFor(
    const ConvShape& shape, bool splits) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& primitives : cache_) {
    if (primitives->IsFor(shape, splits)) return primitives;
  }
  DnnlThreadStream();  // limits oneDNN to one thread while it creates primitives
  std::shared_ptr<const DnnlConvPrimitives<T>> primitives =
      DnnlConvPrimitives<T>::Make(pass_, shape, splits, epilogue_);
  if (primitives == nullptr) return primitives;
  if (cache_.size() == kMaxCachedShapes) cache_.erase(cache_.begin());
  cache_.push_back(primitives);
  return primitives;
}

template <class T>
absl::StatusOr<Tensor> DnnlConv<T>::PackedFilter(
    KernelContext& ctx, const std::shared_ptr<const DnnlConvPrimitives<T>>& primitives,
    const ConvOperands<T>& operands) {
  const Shape shape({primitives->packed_floats()});
  const bool keeps = step_invariant_filter_ && packed_filter_.CanCache(*operands.filter);
  const auto pack = [&]() -> absl::StatusOr<Tensor> {
    WEIR_ASSIGN_OR_RETURN(Tensor packed, keeps ? Tensor::Allocate(HostAllocator(), DT_FLOAT, shape)
                                               : ctx.AllocateTemp(DT_FLOAT, shape));
    WEIR_RETURN_IF_ERROR(primitives->Pack(operands.filter_data, packed.data<float>()));
    return packed;
  };
  return keeps ? packed_filter_.Get(*operands.filter, primitives, pack) : pack();
}

template <class T>
absl::StatusOr<bool> DnnlConv<T>::Run(KernelContext& ctx, const ConvShape& requested,
                                      const ConvOperands<T>& o) {
  const ConvShape shape = ViewPixelsAsRows(requested);
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const DnnlConvPrimitives<T>> primitives,
                        PrimitivesFor(shape, !ctx.pool().is_for_tiles()));
  if (primitives == nullptr) return false;
  if (pass_ != ConvPass::kBackpropFilter) {
    if constexpr (std::is_same_v<T, float>) {
      if (epilogue_.add && o.epilogue.addend != o.output) {
        ctx.pool().ParallelFor(shape.out_elements(), 0.2, [&](int64_t begin, int64_t end) {
          std::copy(o.epilogue.addend + begin, o.epilogue.addend + end, o.output + begin);
        });
      }
    }
    Tensor packed;
    void* filter = o.filter_data;
    if (!primitives->plain_is_packed()) {
      WEIR_ASSIGN_OR_RETURN(packed, PackedFilter(ctx, primitives, o));
      filter = packed.data<float>();
    }
    WEIR_RETURN_IF_ERROR(RunPieces(ctx, *primitives, [&](int, int piece, float* scratch) {
      return primitives->RunPiece(piece, o, filter, scratch);
    }));
    return true;
  }
  const int n = primitives->num_groups();
  const int64_t floats = (primitives->packed_floats() + 15) / 16 * 16;
  // An accumulator for each group, then one for its pieces after the first.
  WEIR_ASSIGN_OR_RETURN(
      Tensor sums,
      ctx.AllocateTemp(DT_FLOAT, Shape({floats * n, primitives->has_groups() ? 2 : 1})));
  float* const data = sums.data<float>();
  const auto add_piece = [&](int group, int piece, float* scratch) -> absl::Status {
    float* const sum = data + group * floats;
    if (piece == primitives->GroupBegin(group)) {
      return primitives->RunPiece(piece, o, sum, scratch);
    }
    float* const term = data + (n + group) * floats;
    WEIR_RETURN_IF_ERROR(primitives->RunPiece(piece, o, term, scratch));
    for (int64_t i = 0; i < floats; ++i) sum[i] += term[i];
    return absl::OkStatus();
  };
  WEIR_RETURN_IF_ERROR(RunPieces(ctx, *primitives, add_piece));
  ctx.pool().ParallelFor(
      primitives->packed_floats(), 0.1 * (n - 1),
      [&](int64_t begin, int64_t end) {
        for (int piece = 1; piece < n; ++piece) {
          const float* const from = data + piece * floats;
          for (int64_t i = begin; i < end; ++i) data[i] += from[i];
        }
      },
      16);
  WEIR_RETURN_IF_ERROR(primitives->Unpack(data, o.filter_data));
  return true;
}

template class DnnlConv<float>;
template class DnnlConv<bfloat16>;

}  // namespace weir
