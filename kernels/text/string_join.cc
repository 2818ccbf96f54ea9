#include "absl/algorithm/container.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/lib/string_util.h"

// Concatenation of strings: element by element, along dimensions, by segments.
namespace weir {

namespace {

constexpr double kJoinNs = 20;  // for each part of a result

// All inputs have the same shape, except scalars.
absl::StatusOr<Shape> JoinedShape(const KernelContext& c) {
  Shape shape;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Shape& each = c.input(i).shape();
    if (each.IsScalar() || each == shape) continue;
    if (!shape.IsScalar()) {
      return InvalidArgument("Input shapes do not match: ", shape.ToString(), " vs. ",
                             each.ToString());
    }
    shape = each;
  }
  return shape;
}

absl::StatusOr<Kernel> MakeJoin(const KernelInit& init) {
  const auto separator = init.attr<std::string>("separator");
  return Kernel([separator](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const Shape shape, JoinedShape(c));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    // A scalar is part of every result.
    struct Part {
      const std::string* texts;
      int64_t stride;
    };
    std::vector<Part> parts;
    for (int i = 0; i < c.num_inputs(); ++i) {
      parts.push_back({c.input_data<std::string>(i), c.input(i).shape().IsScalar() ? 0 : 1});
    }
    std::string* const texts = out->data<std::string>();
    const auto join = [&](int64_t k) {
      JoinParts(
          c.num_inputs(), separator,
          [&](int64_t i) -> const std::string& { return parts[i].texts[k * parts[i].stride]; },
          &texts[k]);
    };
    return ForEachString(c.pool(), out->num_elements(), kJoinNs * c.num_inputs(), join);
  });
}

// ---- ReduceJoin

// A subset of a tensor's dimensions; the last one varies fastest.
struct Grid {
  Dims extents, strides;
  void AddDim(int64_t extent, int64_t stride) {
    extents.push_back(extent);
    strides.push_back(stride);
  }
  int64_t size() const { return Shape(absl::MakeConstSpan(extents)).num_elements(); }
  // Returns the offset of element i.
  int64_t Offset(int64_t i) const {
    int64_t offset = 0;
    for (size_t d = extents.size(); d-- > 0; i /= extents[d]) offset += i % extents[d] * strides[d];
    return offset;
  }
};

// Normalizes negative `axes`.
absl::StatusOr<Dims> JoinedAxes(const Tensor& axes, int rank) {
  Dims all = ReadInts(axes);
  std::vector<bool> taken(static_cast<size_t>(rank));
  for (int64_t& axis : all) {
    if (axis < -rank || axis >= rank) {
      return OutOfRange("Invalid reduction dimension ", axis, " for input with ", rank,
                        " dimension(s)");
    }
    const int64_t given = axis;
    if (axis < 0) axis += rank;
    if (taken[axis]) return InvalidArgument("Duplicate reduction dimension ", given);
    taken[axis] = true;
  }
  return all;
}

absl::Status ReduceJoin(KernelContext& c, absl::string_view separator, bool keep_dims) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const Dims axes, JoinedAxes(c.input(1), in.rank()));
  const Dims strides = StridesOf(in.shape());
  Grid kept, joined;
  Shape shape;
  // The first axis varies fastest.
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    joined.AddDim(in.dim(static_cast<int>(*axis)), strides[*axis]);
  }
  for (int d = 0; d < in.rank(); ++d) {
    const bool is_joined = absl::c_linear_search(axes, d);
    if (!is_joined) kept.AddDim(in.dim(d), strides[d]);
    if (!is_joined || keep_dims) shape.AddDim(is_joined ? 1 : in.dim(d));
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  std::vector<int64_t> offsets(static_cast<size_t>(joined.size()));
  for (size_t i = 0; i < offsets.size(); ++i) {
    ThrowIfCancelledAt(static_cast<int64_t>(i));
    offsets[i] = joined.Offset(static_cast<int64_t>(i));
  }
  std::string* const texts = out->data<std::string>();
  const auto join = [&](int64_t k) {
    const std::string* const from = in.data<std::string>() + kept.Offset(k);
    JoinParts(
        static_cast<int64_t>(offsets.size()), separator,
        [&](int64_t i) -> const std::string& { return from[offsets[i]]; }, &texts[k]);
  };
  return ForEachString(c.pool(), out->num_elements(), kJoinNs * static_cast<double>(offsets.size()),
                       join);
}

absl::StatusOr<Kernel> MakeReduceJoin(const KernelInit& init) {
  return Kernel([separator = init.attr<std::string>("separator"),
                 keep_dims = init.attr<bool>("keep_dims")](KernelContext& c) -> absl::Status {
    return ReduceJoin(c, separator, keep_dims);
  });
}

// ---- UnsortedSegmentJoin

absl::StatusOr<Shape> SegmentsShape(const Tensor& in, const Tensor& ids, int64_t num_segments) {
  if (num_segments < 0) {
    return InvalidArgument("Number of segments must be non-negative but got ", num_segments);
  }
  if (ids.rank() == 0) return InvalidArgument("Segment_id cannot have rank 0");
  if (ids.rank() > in.rank()) {
    return OutOfRange("Invalid segment_id rank ", ids.rank(), " for input with ", in.rank(),
                      " dimension(s)");
  }
  if (in.shape().Sub(0, ids.rank()) != ids.shape()) {
    return InvalidArgument("segment_ids.shape must start with inputs.shape: ",
                           ids.shape().ToString(), " vs. ", in.shape().ToString());
  }
  for (int64_t i = 0; i < ids.num_elements(); ++i) {
    ThrowIfCancelledAt(i);
    if (ids.IntAt(i) < 0 || ids.IntAt(i) >= num_segments) {
      return InvalidArgument(
          "segment_ids are not allowed to exceed num_segments or to have negative values.");
    }
  }
  return CheckedShape(Shape({num_segments}).Concatenate(in.shape().Sub(ids.rank())).dims());
}

absl::Status SegmentJoin(KernelContext& c, const std::string& separator) {
  const Tensor &in = c.input(0), &ids = c.input(1);
  WEIR_ASSIGN_OR_RETURN(const int64_t num_segments, ReadInt(c.input(2), "Number of segments"));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, SegmentsShape(in, ids, num_segments));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  for (std::string& text : out->flat<std::string>()) text.clear();
  const int64_t row = ids.num_elements() == 0 ? 0 : in.num_elements() / ids.num_elements();
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    ThrowIfCancelledAt(i);
    std::string& text = out->data<std::string>()[ids.IntAt(i / row) * row + i % row];
    if (!text.empty()) text += separator;
    text += in.data<std::string>()[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeSegmentJoin(const KernelInit& init) {
  return Kernel([separator = init.attr<std::string>("separator")](
                    KernelContext& c) -> absl::Status { return SegmentJoin(c, separator); });
}

}  // namespace

void AddStringJoinKernels(KernelRegistry* r) {
  r->Add("StringJoin", kCpu, MakeJoin);
  r->Add("ReduceJoin", kCpu, MakeReduceJoin);
  r->Add("UnsortedSegmentJoin", kCpu, MakeSegmentJoin);
}

}  // namespace weir
