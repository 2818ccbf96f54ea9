#include "weir/kernels/sparse/sparse_value.h"
#include "weir/kernels/lib/blocks.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "absl/strings/str_join.h"
#include "weir/core/tensor/variant.h"

namespace weir {

namespace {

using Objects = List<std::string, ResourceHandle, Variant>;

// Calls f<U>() with a type that is copied like the elements of `type`.
template <class F>
void DispatchCopyType(DataType type, F&& f) {
  if (IsPlain(type)) {
    DispatchSize(ElementSize(type), f);
  } else {
    DispatchType(type, Objects{}, f);
  }
}

std::string RowText(const int64_t* row, int64_t n) {
  return absl::StrCat("[", absl::StrJoin(row, row + n, ","), "]");
}

std::string DimsText(const Dims& dims) { return RowText(dims.data(), dims.size()); }

// Returns the first row outside the extents; -1 if there is none.
int64_t FindOutOfBounds(const SparseValue& x) {
  for (const auto [begin, end] : CancellableBlocks(x.count())) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t* row = x.row(i);
      for (int d = 0; d < x.rank(); ++d) {
        if (row[d] < 0 || row[d] >= x.dims[d]) return i;
      }
    }
  }
  return -1;
}

// Rows of indices as single numbers of the same order: the indices, less the smallest one of their
// column, in as many bits as the largest needs. With the position of the row below they mostly fit
// 64 bits. Such words are sorted by eight bits of the key at a time, from the lowest ones up
// (Knuth, The Art of Computer Programming 3, algorithm 5.2.5R), without a comparison whose outcome
// the processor must guess.
class RowKeys {
 public:
  RowKeys(const int64_t* rows, int64_t count, int64_t rank)
      : rows_(rows), count_(count), rank_(rank), position_bits_(std::bit_width(Bits(count))) {}

  // Sorts the positions; equal rows stay in order. Returns false if the words do not fit, or are
  // too few to pay.
  bool Sort(std::vector<int64_t>* order) {
    constexpr int64_t kFew = 256;
    if (count_ < kFew || !FindColumns()) return false;
    std::vector<uint64_t> words(count_), next(count_);
    for (const auto [begin, end] : CancellableBlocks(count_)) {
      for (int64_t i = begin; i < end; ++i) words[i] = Key(i) << position_bits_ | Bits(i);
    }
    for (int shift = position_bits_; shift < position_bits_ + key_bits_; shift += kDigit) {
      SortByDigit(words, shift, &next);
      words.swap(next);
    }
    const uint64_t positions = (uint64_t{1} << position_bits_) - 1;
    for (int64_t i = 0; i < count_; ++i) (*order)[i] = static_cast<int64_t>(words[i] & positions);
    return true;
  }

 private:
  static constexpr int kDigit = 8;
  static uint64_t Bits(int64_t x) { return static_cast<uint64_t>(x); }

  // Finds the range of each column. Returns false if a word has more than 64 bits.
  bool FindColumns() {
    Dims largest(rows_, rows_ + rank_);
    smallest_ = largest;
    for (const auto [begin, end] : CancellableBlocks(count_)) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t d = 0; d < rank_; ++d) {
          smallest_[d] = std::min(smallest_[d], rows_[i * rank_ + d]);
          largest[d] = std::max(largest[d], rows_[i * rank_ + d]);
        }
      }
    }
    for (int64_t d = 0; d < rank_; ++d) {
      bits_.push_back(std::bit_width(Bits(largest[d]) - Bits(smallest_[d])));
      key_bits_ += bits_.back();
    }
    return key_bits_ + position_bits_ <= 64;
  }

  uint64_t Key(int64_t i) const {
    uint64_t key = 0;
    for (int64_t d = 0; d < rank_; ++d)
      key = key << bits_[d] | (Bits(rows_[i * rank_ + d]) - Bits(smallest_[d]));
    return key;
  }

  void SortByDigit(const std::vector<uint64_t>& words, int shift, std::vector<uint64_t>* to) const {
    constexpr uint64_t kMask = (1 << kDigit) - 1;
    int64_t next[kMask + 2] = {};
    for (const auto [begin, end] : CancellableBlocks(count_)) {
      for (int64_t i = begin; i < end; ++i) ++next[(words[i] >> shift & kMask) + 1];
    }
    std::partial_sum(next, next + kMask + 1, next);
    for (const auto [begin, end] : CancellableBlocks(count_)) {
      for (int64_t i = begin; i < end; ++i) (*to)[next[words[i] >> shift & kMask]++] = words[i];
    }
  }

  const int64_t* const rows_;
  const int64_t count_, rank_;
  const int position_bits_;
  int key_bits_ = 0;
  Dims smallest_;
  absl::InlinedVector<int, 6> bits_;
};

absl::StatusOr<Tensor> Widened(const Tensor& indices) {
  if (indices.dtype() == DT_INT64) return indices;
  WEIR_ASSIGN_OR_RETURN(Tensor wide, Tensor::Allocate(HostAllocator(), DT_INT64, indices.shape()));
  for (int64_t i = 0; i < indices.num_elements(); ++i) wide.data<int64_t>()[i] = indices.IntAt(i);
  return wide;
}

}  // namespace

absl::StatusOr<SparseValue> MakeSparse(const Tensor& indices, const Tensor& values,
                                       const Tensor& shape) {
  if (indices.rank() != 2) {
    return InvalidArgument("Input indices should be a matrix but received shape ",
                           indices.shape().ToString());
  }
  if (values.rank() != 1) {
    return InvalidArgument("Input values should be a vector but received shape ",
                           values.shape().ToString());
  }
  if (shape.rank() != 1) {
    return InvalidArgument("Input shape should be a vector but received shape ",
                           shape.shape().ToString());
  }
  if (indices.dim(0) != values.dim(0)) {
    return InvalidArgument("Number of elements in indices (", indices.dim(0), ") and values (",
                           values.dim(0), ") do not match: Dimensions ", indices.dim(0), " and ",
                           values.dim(0), " are not compatible");
  }
  if (indices.dim(1) != shape.dim(0)) {
    return InvalidArgument("Index rank (", indices.dim(1), ") and shape rank (", shape.dim(0),
                           ") do not match: Dimensions ", indices.dim(1), " and ", shape.dim(0),
                           " are not compatible");
  }
  if (shape.dim(0) > Shape::kMaxRank) {
    return InvalidArgument("Input shape has ", shape.dim(0), " dimensions, more than ",
                           Shape::kMaxRank);
  }
  SparseValue x{.values = values, .dims = ReadInts(shape)};
  for (const int64_t d : x.dims) {
    if (d < 0) return InvalidArgument("Expected shape dimensions to be non-negative, got ", d);
  }
  WEIR_ASSIGN_OR_RETURN(x.indices, Widened(indices));
  return x;
}

absl::StatusOr<std::vector<SparseValue>> ReadSparseList(const KernelContext& c, int n) {
  std::vector<SparseValue> list;
  for (int i = 0; i < n; ++i) {
    absl::StatusOr<SparseValue> x = MakeSparse(c.input(i), c.input(n + i), c.input(2 * n + i));
    if (!x.ok()) return InvalidArgument(x.status().message(), " at position ", i);
    list.push_back(*std::move(x));
  }
  return list;
}

absl::Status CheckIndices(const SparseValue& x, bool in_order) {
  if (const int64_t i = FindOutOfBounds(x); i >= 0) {
    return InvalidArgument("indices[", i, "] = ", RowText(x.row(i), x.rank()),
                           " is out of bounds: need 0 <= index < ", DimsText(x.dims));
  }
  for (int64_t i = 1; in_order && i < x.count(); ++i) {
    ThrowIfCancelledAt(i);
    const int order = CompareRows(x.row(i - 1), x.row(i), x.rank());
    if (order < 0) continue;
    return InvalidArgument("indices[", i, "] = ", RowText(x.row(i), x.rank()),
                           order == 0 ? " is repeated."
                                      : " is out of order. Many sparse ops require sorted indices. "
                                        "Use SparseReorder to make a correctly ordered copy.");
  }
  return absl::OkStatus();
}

absl::Status CheckBounds(const SparseValue& x) {
  const int64_t i = FindOutOfBounds(x);
  if (i < 0) return absl::OkStatus();
  return InvalidArgument("Sparse index tuple indices[", i, ", :] = ", RowText(x.row(i), x.rank()),
                         " is out of bounds");
}

absl::Status CheckSameDims(const SparseValue& a, const SparseValue& b) {
  if (a.rank() != b.rank()) {
    return InvalidArgument("Operands do not have the same ranks; got shapes: ", DimsText(a.dims),
                           " and ", DimsText(b.dims));
  }
  for (int d = 0; d < a.rank(); ++d) {
    if (a.dims[d] == b.dims[d]) continue;
    return InvalidArgument("Operands' shapes do not match: got ", a.dims[d], " and ", b.dims[d],
                           " for dimension ", d);
  }
  return absl::OkStatus();
}

std::vector<int64_t> SortedOrder(const int64_t* rows, int64_t count, int64_t rank) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), int64_t{0});
  int64_t compared = 0;
  const auto less = [&](int64_t a, int64_t b) {
    ThrowIfCancelledAt(++compared);
    return CompareRows(rows + a * rank, rows + b * rank, rank) < 0;
  };
  if (std::is_sorted(order.begin(), order.end(), less)) return order;
  if (!RowKeys(rows, count, rank).Sort(&order)) std::stable_sort(order.begin(), order.end(), less);
  return order;
}

void GatherElements(const Tensor& from, absl::Span<const int64_t> at, Tensor& to) {
  DispatchCopyType(from.dtype(), [&]<class U>() {
    const U* const x = static_cast<const U*>(from.raw());
    U* const y = static_cast<U*>(to.raw());
    for (size_t i = 0; i < at.size(); ++i) y[i] = x[at[i]];
  });
}

void ScatterElements(const Tensor& from, absl::Span<const int64_t> at, Tensor& to) {
  DispatchCopyType(from.dtype(), [&]<class U>() {
    const U* const x = static_cast<const U*>(from.raw());
    U* const y = static_cast<U*>(to.raw());
    for (size_t i = 0; i < at.size(); ++i) y[at[i]] = x[i];
  });
}

absl::Status OutputInts(KernelContext& c, int i, absl::Span<const int64_t> values) {
  WEIR_ASSIGN_OR_RETURN(Tensor* const out,
                        c.AllocateOutput(i, Shape({static_cast<int64_t>(values.size())})));
  std::copy(values.begin(), values.end(), out->data<int64_t>());
  return absl::OkStatus();
}

absl::Status OutputRows(KernelContext& c, int i, absl::Span<const int64_t> rows, int64_t count,
                        int64_t rank) {
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(i, Shape({count, rank})));
  std::copy(rows.begin(), rows.end(), out->data<int64_t>());
  return absl::OkStatus();
}

}  // namespace weir
