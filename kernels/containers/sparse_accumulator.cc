#include <algorithm>

#include "weir/kernels/containers/accumulator.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Accumulators of sparse gradients, which have only some of the rows.
namespace weir {

namespace {

int64_t WidthOf(const Tensor& rows) { return rows.shape().Sub(1).num_elements(); }

absl::Status CheckExtents(const Shape& want, const Shape& got, absl::string_view what) {
  for (int d = 1; d < want.rank(); ++d) {
    if (want.dim(d) == Shape::kUnknown || want.dim(d) == got.dim(d)) continue;
    return InvalidArgument("Shape mismatch: expected ", what, " dim ", d, " to be ", want.dim(d),
                           ", got ", got.dim(d));
  }
  return absl::OkStatus();
}

}  // namespace

void SparseAccumulator::ClearSum() {
  rows_.clear();
  counts_.clear();
  sum_ = Tensor();
}

absl::Status SparseAccumulator::Check(const Tensors& gradient, bool is_first) const {
  const Tensor &rows = gradient[0], &values = gradient[1];
  if (rows.rank() != 1) {
    return InvalidArgument("Input indices should be vector but received shape: ",
                           rows.shape().ToString());
  }
  if (values.rank() < 1) return InvalidArgument("Values cannot be 0-dimensional.");
  if (values.dim(0) != rows.dim(0)) {
    return InvalidArgument("Expected ", rows.dim(0), " non-empty input values, got ",
                           values.dim(0));
  }
  if (gradient.size() > 2) {
    const Dims told = ReadInts(gradient[2]);
    if (shape().rank() > static_cast<int>(told.size())) {
      return InvalidArgument("Shape mismatch: expected shape rank at least ", shape().rank(),
                             ", got ", told.size());
    }
    for (int d = 0; d < shape().rank(); ++d) {
      if (shape().dim(d) == Shape::kUnknown || shape().dim(d) == told[d]) continue;
      return InvalidArgument("Shape mismatch: expected shape dim ", d, " to be ", shape().dim(d),
                             ", got ", told[d]);
    }
  }
  const int64_t limit = shape().rank() > 0 ? shape().dim(0) : Shape::kUnknown;
  for (int64_t i = 0; limit != Shape::kUnknown && i < rows.dim(0); ++i) {
    if (rows.data<int64_t>()[i] < limit) continue;
    return InvalidArgument("Shape mismatch: index of slice ", i,
                           " exceeded limits of shape; index is ", rows.data<int64_t>()[i],
                           " exceeded ", limit);
  }
  const Shape& want = is_first ? shape() : sum_.shape();
  if (is_first ? want.rank() > values.rank() : want.rank() != values.rank()) {
    return InvalidArgument("Shape mismatch: expected values rank ", is_first ? "at least " : "",
                           want.rank(), ", got ", values.rank());
  }
  return CheckExtents(want, values.shape(), "values");
}

// Merges two sorted lists of rows; rows in both are added.
absl::Status SparseAccumulator::Add(const Tensors& gradient, bool is_first) {
  WEIR_RETURN_IF_ERROR(Check(gradient, is_first));
  const absl::Span<const int64_t> rows = gradient[0].flat<int64_t>();
  const Tensor& values = gradient[1];
  const int64_t width = WidthOf(values);
  if (is_first) {
    ClearSum();
    Shape none = values.shape();
    none.set_dim(0, 0);
    sum_ = Tensor(dtype(), none);
  }
  std::vector<int64_t> merged, counts;
  std::vector<std::pair<int64_t, int64_t>> sources;  // rows of the sum and of the gradient, or -1
  for (size_t i = 0, j = 0; i < rows_.size() || j < rows.size();) {
    const bool ours = j == rows.size() || (i < rows_.size() && rows_[i] <= rows[j]);
    const bool theirs = i == rows_.size() || (j < rows.size() && rows[j] <= rows_[i]);
    merged.push_back(ours ? rows_[i] : rows[j]);
    counts.push_back((ours ? counts_[i] : 0) + (theirs ? 1 : 0));
    sources.emplace_back(ours ? static_cast<int64_t>(i) : -1,
                         theirs ? static_cast<int64_t>(j) : -1);
    i += ours ? 1 : 0;
    j += theirs ? 1 : 0;
  }
  Shape shape = values.shape();
  shape.set_dim(0, static_cast<int64_t>(merged.size()));
  WEIR_ASSIGN_OR_RETURN(Tensor sum, Tensor::Allocate(HostAllocator(), dtype(), shape));
  for (size_t k = 0; k < sources.size(); ++k) {
    const auto [i, j] = sources[k];
    void* const to = ElementAt(sum, static_cast<int64_t>(k) * width);
    const void* const from = i >= 0 ? ElementAt(sum_, i * width) : ElementAt(values, j * width);
    CopyElements(dtype(), from, to, width);
    if (i >= 0 && j >= 0) AddGradient(dtype(), ElementAt(values, j * width), to, width);
  }
  sum_ = std::move(sum);
  rows_ = std::move(merged);
  counts_ = std::move(counts);
  return absl::OkStatus();
}

absl::StatusOr<Tensors> SparseAccumulator::TakeSum(int64_t /*count*/, bool mean) {
  const int64_t width = WidthOf(sum_);
  for (size_t k = 0; mean && k < counts_.size(); ++k)
    DivideGradient(dtype(), counts_[k], ElementAt(sum_, static_cast<int64_t>(k) * width), width);
  Dims dims(sum_.shape().dims().begin(), sum_.shape().dims().end());
  dims[0] = shape().rank() > 0 ? shape().dim(0) : Shape::kUnknown;
  Tensors out = {Tensor::Vector<int64_t>(rows_), std::move(sum_), Tensor::Vector<int64_t>(dims)};
  ClearSum();
  return out;
}

namespace {

absl::StatusOr<Kernel> MakeApply(const KernelInit& init) {
  const bool has_known_shape = init.attr<bool>("has_known_shape");
  return Kernel([has_known_shape](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const auto state, c.resource<SparseAccumulator>(0));
    WEIR_ASSIGN_OR_RETURN(const int64_t step, ReadInt(c.input(1), "local_step"));
    if (c.input(3).dtype() != state->dtype()) {
      return InvalidArgument("Expected gradient of type ", DataTypeName(state->dtype()),
                             " but got ", DataTypeName(c.input(3).dtype()));
    }
    Tensors gradient = {c.input(2), c.input(3)};
    if (has_known_shape) gradient.push_back(c.input(4));
    return state->Apply(step, gradient);
  });
}

}  // namespace

void AddSparseAccumulatorKernels(KernelRegistry* r) {
  r->Add("SparseConditionalAccumulator", kCpu, MakeAccumulator<SparseAccumulator>);
  r->Add("SparseAccumulatorApplyGradient", kCpu, MakeApply);
  r->Add("SparseAccumulatorTakeGradient", kCpu, MakeTakeGradient<SparseAccumulator>);
}

}  // namespace weir
