#ifndef WEIR_KERNELS_SPARSE_FEATURE_CROSS_H_
#define WEIR_KERNELS_SPARSE_FEATURE_CROSS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weir/core/tensor/cancellation.h"
#include "weir/kernels/sparse/sparse_value.h"

// Feature crosses, from columns of any kind: all combinations of one feature of each column,
// example by example.
namespace weir {

// The features of an example in one column: their number and the position of the first.
struct ValueRun {
  int64_t example, begin, count;
};

// A column of features, from a two-dimensional sparse tensor (with the runs of its examples) or a
// matrix.
struct CrossColumn {
  Tensor values;
  bool is_dense = false;
  std::vector<ValueRun> runs;  // sparse: in ascending order of examples

  ValueRun Of(int64_t example) const;
};

struct CrossColumns {
  std::vector<CrossColumn> columns;
  int64_t examples = 0;
};

// Returns the runs of the examples of a sparse matrix. Features that are not in the order of the
// examples are dropped, with all features after them.
std::vector<ValueRun> RunsOf(const SparseValue& x);
// Returns the number of crosses of each example that has any, and the position of its first.
// RESOURCE_EXHAUSTED if their number overflows.
absl::StatusOr<std::vector<ValueRun>> CountCrosses(const CrossColumns& in);

// Calls emit(i, at) for cross number i, which consists of element at[k] of column k. The last
// column varies fastest.
template <class Emit>
absl::Status ForEachCross(const CrossColumns& in, Emit emit) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<ValueRun> crosses, CountCrosses(in));
  const size_t n = in.columns.size();
  std::vector<ValueRun> features(n);
  std::vector<int64_t> at(n);
  for (const ValueRun& run : crosses) {
    for (size_t k = 0; k < n; ++k) features[k] = in.columns[k].Of(run.example);
    for (int64_t i = 0; i < run.count; ++i) {
      ThrowIfCancelledAt(i);
      int64_t rest = i;
      for (size_t k = n; k-- > 0; rest /= features[k].count)
        at[k] = features[k].begin + rest % features[k].count;
      emit(run.begin + i, at);
    }
  }
  return absl::OkStatus();
}

// Returns the function for ForEachCross that joins the features of each cross.
inline auto CrossedStrings(const CrossColumns& in, std::string separator, Tensor* out) {
  return [&in, separator = std::move(separator), out,
          features = std::vector<std::string>(in.columns.size())](
             int64_t i, absl::Span<const int64_t> at) mutable {
    for (size_t k = 0; k < at.size(); ++k) {
      const Tensor& values = in.columns[k].values;
      features[k] = values.dtype() == DT_STRING ? values.data<std::string>()[at[k]]
                                                : absl::StrCat(values.data<int64_t>()[at[k]]);
    }
    out->data<std::string>()[i] = absl::StrJoin(features, separator);
  };
}

// The hash of a feature. The weak hash uses numbers unchanged, except those in sparse columns of
// SparseCrossHashed. Where numbers are hashed as bytes, only the first four bytes count, as in
// TensorFlow, whose models depend on those hashes.
struct FeatureHash {
  bool keyed = false, strong = false;
  uint64_t key[2] = {0, 0};

  uint64_t Of(const CrossColumn& column, int64_t at) const;
  uint64_t OfBytes(absl::string_view bytes) const;
};

// Combines two fingerprints.
uint64_t Concatenated(uint64_t a, uint64_t b);
// Returns the bucket of a hash; there are 2^63 - 1 if `num_buckets` is 0.
int64_t Bucket(uint64_t hash, int64_t num_buckets);

// Returns the function for ForEachCross that hashes the features of each cross.
inline auto CrossedHashes(const CrossColumns& in, const FeatureHash& feature,
                          std::optional<uint64_t> seed, int64_t num_buckets, Tensor* out) {
  return [&in, feature, seed, num_buckets, out](int64_t i, absl::Span<const int64_t> at) {
    uint64_t hash = 0;
    for (size_t k = 0; k < at.size(); ++k) {
      const uint64_t next = feature.Of(in.columns[k], at[k]);
      if (k == 0 && !seed)
        hash = next;
      else
        hash = Concatenated(k == 0 ? *seed : hash, next);
    }
    out->data<int64_t>()[i] = Bucket(hash, num_buckets);
  };
}

}  // namespace weir

#endif  // WEIR_KERNELS_SPARSE_FEATURE_CROSS_H_
