#include "weir/ops/lib/strided_slice.h"

#include <algorithm>
#include <bit>

namespace weir {

namespace {

constexpr int kMaxIndices = 32;  // number of bits in a mask

// Resolves a slice specification. The specification is sparse: an ellipsis stands for any number of
// dimensions, a new axis for none. Spread() makes it dense, with one index per dimension of the
// input, and records in `gather` how the result's shape is composed: the number of an input
// dimension, kNewAxis, or kDropped. Bound() then clips each range to its dimension as NumPy does: a
// missing or out-of-range bound becomes the end at which the stride starts or stops, a negative
// bound counts from the end, and a range in the wrong direction is empty.
class Resolver {
 public:
  Resolver(const Shape& input, const StridedSliceOptions& masks) : input_(input), masks_(masks) {}

  absl::Status Spread(KnownBounds begin, KnownBounds end, absl::Span<const int64_t> strides);
  absl::Status Bound(int i, ResolvedSlice* out) const;
  absl::StatusOr<ResolvedSlice> Finish() const;

 private:
  static constexpr int kNewAxis = -1, kDropped = -2;
  struct Range {
    int64_t begin = 0, end = 0, stride = 1;
    bool begin_known = true, end_known = true, open_begin = true, open_end = true, is_index = false;
  };
  static bool Bit(int64_t mask, int i) { return ((mask >> i) & 1) != 0; }

  const Shape& input_;
  const StridedSliceOptions& masks_;
  absl::InlinedVector<Range, 6> ranges_;
  absl::InlinedVector<int, 8> gather_;
};

absl::Status Resolver::Spread(KnownBounds begin, KnownBounds end,
                              absl::Span<const int64_t> strides) {
  const int n = static_cast<int>(strides.size()), rank = input_.rank();
  int ellipsis = -1, new_after = 0;
  for (int i = 0; i < n; ++i) {
    if (Bit(masks_.ellipsis_mask, i)) {
      ellipsis = i;
    } else if (ellipsis >= 0 && Bit(masks_.new_axis_mask, i)) {
      ++new_after;
    }
  }
  for (int i = 0; i < n; ++i) {
    const int dim = static_cast<int>(ranges_.size());
    if (i == ellipsis) {
      const int next = std::min(rank - (n - i) + 1 + new_after, rank);
      for (int k = dim; k < next; ++k) {
        gather_.push_back(k);
        ranges_.emplace_back();
      }
    } else if (Bit(masks_.new_axis_mask, i)) {
      gather_.push_back(kNewAxis);
    } else {
      if (dim == rank) {
        return InvalidArgument("Index out of range using input dim ", dim, "; input has only ",
                               rank, " dims");
      }
      Range r;
      r.stride = strides[i];
      r.begin_known = begin.has_value();
      r.end_known = end.has_value();
      if (begin.has_value()) r.begin = (*begin)[i];
      if (end.has_value()) r.end = (*end)[i];
      r.is_index = Bit(masks_.shrink_axis_mask, i);
      r.open_begin = !r.is_index && Bit(masks_.begin_mask, i);
      r.open_end = !r.is_index && Bit(masks_.end_mask, i);
      gather_.push_back(r.is_index ? kDropped : dim);
      ranges_.push_back(r);
    }
  }
  while (static_cast<int>(ranges_.size()) < rank) {
    gather_.push_back(static_cast<int>(ranges_.size()));
    ranges_.emplace_back();
  }
  return absl::OkStatus();
}

absl::Status Resolver::Bound(int i, ResolvedSlice* out) const {
  const Range& r = ranges_[i];
  const int64_t extent = input_.dim(i);
  if (r.stride == 0) return InvalidArgument("strides[", i, "] must be non-zero");
  if (r.is_index && r.stride < 0)
    return InvalidArgument("only stride 1 allowed on non-range indexing.");
  int64_t begin = 0, size = Shape::kUnknown;
  if (r.is_index) {
    size = 1;
    begin = r.begin < 0 && extent >= 0 ? r.begin + extent : r.begin;
    if (r.begin_known && extent >= 0 && (begin < 0 || begin >= extent)) {
      return InvalidArgument("slice index ", r.begin, " of dimension ", i, " out of bounds.");
    }
  } else if (extent >= 0 && (r.begin_known || r.open_begin) && (r.end_known || r.open_end)) {
    const int64_t low = r.stride > 0 ? 0 : -1, high = r.stride > 0 ? extent : extent - 1;
    const auto clip = [&](int64_t x) { return std::clamp(x < 0 ? x + extent : x, low, high); };
    begin = r.open_begin ? (r.stride > 0 ? low : high) : clip(r.begin);
    const int64_t end = r.open_end ? (r.stride > 0 ? high : low) : clip(r.end);
    const int64_t length = end - begin;
    size = length == 0 || (length < 0) != (r.stride < 0)
               ? 0
               : length / r.stride + (length % r.stride != 0 ? 1 : 0);
  }
  out->begin.push_back(begin);
  // A single element has no successor. Dropping its stride avoids multiplying a stride beyond the
  // dimension.
  out->stride.push_back(size == 1 ? 1 : r.stride);
  out->size.push_back(size);
  return absl::OkStatus();
}

absl::StatusOr<ResolvedSlice> Resolver::Finish() const {
  ResolvedSlice out;
  for (int i = 0; i < input_.rank(); ++i) WEIR_RETURN_IF_ERROR(Bound(i, &out));
  for (int g : gather_) {
    if (g != kDropped) out.final_shape.AddDim(g == kNewAxis ? 1 : out.size[g]);
  }
  return out;
}

}  // namespace

absl::StatusOr<ResolvedSlice> ResolveSlice(const Shape& input, KnownBounds begin, KnownBounds end,
                                           absl::Span<const int64_t> strides,
                                           const StridedSliceOptions& masks) {
  if (strides.size() > kMaxIndices) {
    return InvalidArgument("at most ", kMaxIndices, " indices are supported, but got ",
                           strides.size());
  }
  if ((begin.has_value() && begin->size() != strides.size()) ||
      (end.has_value() && end->size() != strides.size())) {
    return InvalidArgument("Expected begin, end, and strides to be 1D equal size tensors, but got ",
                           begin.has_value() ? begin->size() : strides.size(), ", ",
                           end.has_value() ? end->size() : strides.size(), " and ", strides.size(),
                           " elements");
  }
  const std::pair<absl::string_view, int64_t> all[] = {
      {"begin_mask", masks.begin_mask},
      {"end_mask", masks.end_mask},
      {"ellipsis_mask", masks.ellipsis_mask},
      {"new_axis_mask", masks.new_axis_mask},
      {"shrink_axis_mask", masks.shrink_axis_mask}};
  for (const auto& [name, mask] : all) WEIR_RETURN_IF_ERROR(CheckInt32Attr(name, mask));
  // Bits beyond the number of indices also count.
  if (std::popcount(static_cast<uint32_t>(masks.ellipsis_mask)) > 1)
    return InvalidArgument("Multiple ellipses in slice spec not allowed");
  Resolver resolver(input, masks);
  WEIR_RETURN_IF_ERROR(resolver.Spread(begin, end, strides));
  return resolver.Finish();
}

StridedSliceOptions SliceMasks(const Node& node) {
  return {node.attr<int64_t>("begin_mask"), node.attr<int64_t>("end_mask"),
          node.attr<int64_t>("ellipsis_mask"), node.attr<int64_t>("new_axis_mask"),
          node.attr<int64_t>("shrink_axis_mask")};
}

}  // namespace weir
