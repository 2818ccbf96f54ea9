#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "absl/functional/function_ref.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/sparse/sparse_kernels.h"

namespace weir {

namespace {

using Elements = JoinLists<List<bool>, Numbers, List<std::string>>;

// The Levenshtein distance: the least number of insertions, deletions and replacements of single
// elements that turn one sequence into the other (V. Levenshtein, "Binary codes capable of
// correcting deletions, insertions, and reversals", 1966).
//
// Let d(i, j) be the distance between the first i elements of a and the first j of b. If i or j is
// 0, it is the other one, and otherwise the minimum of
//
//   d(i - 1, j) + 1                       a's last element is deleted,
//   d(i, j - 1) + 1                       b's last element is inserted,
//   d(i - 1, j - 1) + (a[i-1] != b[j-1])  one replaces the other, at no cost if they are equal
//
// (R. Wagner and M. Fischer, "The string-to-string correction problem", 1974). Row i of the matrix
// depends only on row i - 1, so one row is stored: before cell j is overwritten it holds d(i - 1,
// j), and `diagonal` holds the previous value of cell j - 1, d(i - 1, j - 1). Time |a| * |b|,
// memory |b|.
int64_t EditDistance(absl::Span<const int64_t> a, absl::Span<const int64_t> b,
                     absl::FunctionRef<bool(int64_t, int64_t)> equal) {
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), int64_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    ThrowIfCancelled();
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t replaced = diagonal + (equal(a[i - 1], b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// Groups the elements into sequences along the last dimension, keyed by their index in the result.
using Sequences = std::unordered_map<int64_t, std::vector<int64_t>>;

absl::StatusOr<Sequences> ReadSequences(const SparseValue& x, const Shape& groups) {
  Sequences sequences;
  for (int64_t i = 0; i < x.count(); ++i) {
    ThrowIfCancelledAt(i);
    uint64_t at = 0;  // overflows for indices that are far out of range
    int outside = -1;
    for (int d = 0; d < groups.rank(); ++d) {
      const int64_t index = x.row(i)[d];
      if (index < 0 || index >= groups.dim(d)) outside = d;
      at = at * static_cast<uint64_t>(groups.dim(d)) + static_cast<uint64_t>(index);
    }
    const int64_t place = static_cast<int64_t>(at);
    if (outside >= 0) {
      return Internal("Got an inner product ", place,
                      " which would require writing to outside of the buffer for the output "
                      "tensor (index ",
                      x.row(i)[outside], " of dimension ", outside, ", which has ",
                      groups.dim(outside), ")");
    }
    sequences[place].push_back(i);
  }
  return sequences;
}

// The maximum of both shapes' extents, without the last dimension.
absl::StatusOr<Shape> GroupsOf(const SparseValue& hypothesis, const SparseValue& truth) {
  if (hypothesis.rank() < 2 || truth.rank() < 2) {
    return InvalidArgument(
        "Input SparseTensors must have rank at least 2, but truth_shape rank is: ", truth.rank(),
        " and hypothesis_shape rank is: ", hypothesis.rank());
  }
  if (hypothesis.rank() != truth.rank()) {
    return InvalidArgument("Expected truth and hypothesis to have matching ranks, but they are: ",
                           truth.rank(), " and ", hypothesis.rank());
  }
  Dims groups;
  for (int d = 0; d + 1 < truth.rank(); ++d)
    groups.push_back(std::max(truth.dims[d], hypothesis.dims[d]));
  return CheckedShape(groups);
}

float Normalized(int64_t distance, size_t truth_length) {
  if (truth_length > 0) return static_cast<float>(distance) / static_cast<float>(truth_length);
  return distance > 0 ? std::numeric_limits<float>::infinity() : 0;
}

absl::Status RunEditDistance(KernelContext& c, bool normalize) {
  WEIR_ASSIGN_OR_RETURN(const SparseValue hypothesis, ReadSparse(c, 0));
  WEIR_ASSIGN_OR_RETURN(const SparseValue truth, ReadSparse(c, 3));
  WEIR_ASSIGN_OR_RETURN(const Shape groups, GroupsOf(hypothesis, truth));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, groups));
  float* const distances = out->data<float>();
  std::fill_n(distances, out->num_elements(), 0.0f);
  WEIR_ASSIGN_OR_RETURN(Sequences ours, ReadSequences(hypothesis, groups));
  WEIR_ASSIGN_OR_RETURN(Sequences theirs, ReadSequences(truth, groups));
  for (const auto& [at, sequence] : ours) theirs[at];
  DispatchType(truth.values.dtype(), Elements{}, [&]<class T>() {
    const T *const h = hypothesis.values.data<T>(), *const t = truth.values.data<T>();
    const auto equal = [h, t](int64_t i, int64_t j) { return h[i] == t[j]; };
    for (const auto& [at, sequence] : theirs) {
      const int64_t distance = EditDistance(ours[at], sequence, equal);
      distances[at] =
          normalize ? Normalized(distance, sequence.size()) : static_cast<float>(distance);
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeEditDistance(const KernelInit& init) {
  const DataType type = init.attr<DataType>("T");
  if (!DispatchType(type, Elements{}, []<class T>() {})) {
    return Unimplemented("EditDistance is not supported for type ", DataTypeName(type));
  }
  const bool normalize = init.attr<bool>("normalize");
  return Kernel(
      [normalize](KernelContext& c) -> absl::Status { return RunEditDistance(c, normalize); });
}

}  // namespace

void AddEditDistanceCpu(KernelRegistry* r) { r->Add("EditDistance", kCpu, MakeEditDistance); }

}  // namespace weir
