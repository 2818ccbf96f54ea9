#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_join.h"
#include "weir/kernels/lib/hash.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/sparse/sparse_kernels.h"

// Feature crosses: all combinations of one feature of each column, example by example, as strings
// or as hashes.
namespace weir {

namespace {

// The features of an example in one column: their number and the position of the first.
struct Run {
  int64_t example, begin, count;
};

// A column of features, from a two-dimensional sparse tensor (with the runs of its examples) or a
// matrix.
struct Column {
  Tensor values;
  bool is_dense = false;
  std::vector<Run> runs;  // sparse: in ascending order of examples

  Run Of(int64_t example) const {
    if (is_dense) return {example, example * values.dim(1), values.dim(1)};
    const auto it = std::lower_bound(runs.begin(), runs.end(), example,
                                     [](const Run& r, int64_t e) { return r.example < e; });
    return it != runs.end() && it->example == example ? *it : Run{example, 0, 0};
  }
};

struct Columns {
  std::vector<Column> columns;
  int64_t examples = 0;
};

// Features that are not in the order of the examples are dropped, with all features after them.
std::vector<Run> RunsOf(const SparseValue& x) {
  std::vector<Run> runs;
  for (int64_t begin = 0, end; begin < x.count(); begin = end) {
    const int64_t example = x.row(begin)[0];
    if (example >= x.dims[0] || example < (runs.empty() ? 0 : runs.back().example)) break;
    for (end = begin; end < x.count() && x.row(end)[0] == example;) ++end;
    runs.push_back({example, begin, end - begin});
  }
  return runs;
}

// The inputs: indices, values and shapes of `n` sparse tensors, matrices, and `others` that are not
// columns.
absl::StatusOr<Columns> ReadColumns(const KernelContext& c, int n, int others) {
  Columns out;
  WEIR_ASSIGN_OR_RETURN(const std::vector<SparseValue> sparse, ReadSparseList(c, n));
  const int end = c.num_inputs() - others;
  for (int i = 3 * n; i < end; ++i) {
    if (c.input(i).rank() == 2) continue;
    return InvalidArgument("Dense inputs should be a matrix but received shape ",
                           c.input(i).shape().ToString(), " at position ", i - 3 * n);
  }
  for (const SparseValue& x : sparse) {
    if (x.rank() != 2) return InvalidArgument("Expected D2 of index to be 2 got ", x.rank());
  }
  if (n > 0)
    out.examples = sparse[0].dims[0];
  else if (end > 0)
    out.examples = c.input(0).dim(0);
  const auto check = [&](int64_t examples) {
    return examples == out.examples
               ? absl::OkStatus()
               : InvalidArgument("Expected batch size ", out.examples, " got ", examples);
  };
  for (const SparseValue& x : sparse) {
    WEIR_RETURN_IF_ERROR(check(x.dims[0]));
    out.columns.push_back({.values = x.values, .runs = RunsOf(x)});
  }
  for (int i = 3 * n; i < end; ++i) {
    WEIR_RETURN_IF_ERROR(check(c.input(i).dim(0)));
    out.columns.push_back({.values = c.input(i), .is_dense = true});
  }
  return out;
}

// The number of examples, and the number of crosses of each.
absl::StatusOr<std::vector<Run>> CountCrosses(const Columns& in) {
  std::vector<Run> crosses;
  int64_t total = 0;
  const auto count = [&](int64_t example) {
    int64_t product = 1;
    for (const Column& column : in.columns) {
      if (__builtin_mul_overflow(product, column.Of(example).count, &product)) return false;
    }
    if (product > 0) crosses.push_back({example, total, product});
    return !__builtin_add_overflow(total, product, &total);
  };
  bool fits = true;
  if (!in.columns.empty() && !in.columns[0].is_dense) {
    for (const Run& run : in.columns[0].runs) fits = fits && count(run.example);
  } else if (!in.columns.empty()) {
    for (int64_t e = 0; e < in.examples && fits; ++e) fits = count(e);
  }
  if (!fits) return absl::ResourceExhaustedError("the number of crosses overflows int64");
  return crosses;
}

// Calls emit(values, i, at) for cross number i, which consists of element at[k] of column k. The
// last column varies fastest.
template <class Emit>
absl::Status Cross(KernelContext& c, const Columns& in, Emit emit) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<Run> crosses, CountCrosses(in));
  int64_t total = 0, most = 0;
  for (const Run& run : crosses) {
    total += run.count;
    most = std::max(most, run.count);
  }
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({total, 2}));
  WEIR_ASSIGN_OR_RETURN(Tensor* const indices, c.AllocateOutput(0, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor* const values, c.AllocateOutput(1, Shape({total})));
  int64_t* to = indices->data<int64_t>();
  const size_t n = in.columns.size();
  std::vector<Run> features(n);
  std::vector<int64_t> at(n);
  for (const Run& run : crosses) {
    for (size_t k = 0; k < n; ++k) features[k] = in.columns[k].Of(run.example);
    for (int64_t i = 0; i < run.count; ++i) {
      ThrowIfCancelledAt(i);
      int64_t rest = i;
      for (size_t k = n; k-- > 0; rest /= features[k].count)
        at[k] = features[k].begin + rest % features[k].count;
      *to++ = run.example;
      *to++ = i;
      emit(*values, run.begin + i, at);
    }
  }
  return OutputInts(c, 2, {in.examples, most});
}

// ---- strings

absl::Status CrossStrings(KernelContext& c, const Columns& in, const std::string& separator) {
  std::vector<std::string> features(in.columns.size());
  return Cross(c, in, [&](Tensor& out, int64_t i, absl::Span<const int64_t> at) {
    for (size_t k = 0; k < at.size(); ++k) {
      const Tensor& values = in.columns[k].values;
      features[k] = values.dtype() == DT_STRING ? values.data<std::string>()[at[k]]
                                                : absl::StrCat(values.data<int64_t>()[at[k]]);
    }
    out.data<std::string>()[i] = absl::StrJoin(features, separator);
  });
}

absl::StatusOr<Kernel> MakeCrossV2(const KernelInit& init) {
  const int n = static_cast<int>(init.attr<int64_t>("N"));
  return Kernel([n](KernelContext& c) -> absl::Status {
    const Tensor& separator = c.input(c.num_inputs() - 1);
    if (separator.rank() != 0) {
      return InvalidArgument("Input separator should be a scalar. Received: ",
                             separator.Description());
    }
    WEIR_ASSIGN_OR_RETURN(const Columns columns, ReadColumns(c, n, 1));
    return CrossStrings(c, columns, *separator.data<std::string>());
  });
}

// ---- hashes

uint64_t ShiftMix(uint64_t x) { return x ^ (x >> 47); }

// Combines two fingerprints: MurmurHash64A's step and finalization (A. Appleby), as FarmHash's
// authors recommend.
uint64_t Concatenated(uint64_t a, uint64_t b) {
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995u;
  uint64_t h = ((a ^ kMul) ^ (ShiftMix(b * kMul) * kMul)) * kMul;
  h = ShiftMix(h) * kMul;
  return ShiftMix(h);
}

int64_t Bucket(uint64_t hash, int64_t num_buckets) {
  const int64_t buckets = num_buckets > 0 ? num_buckets : std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(hash % static_cast<uint64_t>(buckets));
}

// The hash of a feature. The weak hash uses numbers unchanged, except those in sparse columns of
// SparseCrossHashed. Where numbers are hashed as bytes, only the first four bytes count, as in
// TensorFlow, whose models depend on those hashes.
struct FeatureHash {
  bool keyed = false, strong = false;
  uint64_t key[2] = {0, 0};

  uint64_t Of(const Column& column, int64_t at) const {
    if (column.values.dtype() == DT_STRING) return OfBytes(column.values.data<std::string>()[at]);
    const int64_t* const number = column.values.data<int64_t>() + at;
    if (!keyed || (column.is_dense && !strong)) return static_cast<uint64_t>(*number);
    return OfBytes(absl::string_view(reinterpret_cast<const char*>(number), 4));
  }
  uint64_t OfBytes(absl::string_view bytes) const {
    return strong ? SipHash(key[0], key[1], bytes) : Fingerprint64(bytes);
  }
};

absl::Status CrossHashes(KernelContext& c, const Columns& in, const FeatureHash& feature,
                         std::optional<uint64_t> seed, int64_t num_buckets) {
  return Cross(c, in, [&](Tensor& out, int64_t i, absl::Span<const int64_t> at) {
    uint64_t hash = 0;
    for (size_t k = 0; k < at.size(); ++k) {
      const uint64_t next = feature.Of(in.columns[k], at[k]);
      if (k == 0 && !seed)
        hash = next;
      else
        hash = Concatenated(k == 0 ? *seed : hash, next);
    }
    out.data<int64_t>()[i] = Bucket(hash, num_buckets);
  });
}

absl::StatusOr<Kernel> MakeCrossHashed(const KernelInit& init) {
  const int n = static_cast<int>(init.attr<int64_t>("N"));
  return Kernel([n](KernelContext& c) -> absl::Status {
    const int last = c.num_inputs() - 1;
    const Tensor &strong = c.input(last - 1), &salt = c.input(last);
    WEIR_ASSIGN_OR_RETURN(const int64_t num_buckets, ReadOneInt(c.input(last - 2), "num_buckets"));
    if (strong.num_elements() != 1) return InvalidArgument("strong_hash must be a scalar");
    if (salt.num_elements() != 2) {
      return InvalidArgument("Input \"salt\" must have length 2 but has length ",
                             salt.num_elements());
    }
    FeatureHash feature{.keyed = true, .strong = *strong.data<bool>()};
    for (int k = 0; k < 2; ++k) feature.key[k] = static_cast<uint64_t>(salt.data<int64_t>()[k]);
    WEIR_ASSIGN_OR_RETURN(const Columns columns, ReadColumns(c, n, 3));
    return CrossHashes(c, columns, feature, std::nullopt, num_buckets);
  });
}

absl::StatusOr<Kernel> MakeCross(const KernelInit& init) {
  const int n = static_cast<int>(init.attr<int64_t>("N"));
  const int64_t num_buckets = init.attr<int64_t>("num_buckets");
  const uint64_t seed = static_cast<uint64_t>(init.attr<int64_t>("hash_key"));
  const bool texts = init.attr<DataType>("out_type") == DT_STRING;
  const bool only_texts = init.attr<DataType>("internal_type") == DT_STRING;
  return Kernel([=](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const Columns columns, ReadColumns(c, n, 0));
    for (const Column& column : columns.columns) {
      if (!only_texts || column.values.dtype() == DT_STRING) continue;
      return InvalidArgument("Input values should be of internal type string but received ",
                             DataTypeName(column.values.dtype()));
    }
    return texts ? CrossStrings(c, columns, "_X_")
                 : CrossHashes(c, columns, FeatureHash{}, seed, num_buckets);
  });
}

}  // namespace

void AddSparseCrossCpu(KernelRegistry* r) {
  r->Add("SparseCross", kCpu, MakeCross);
  r->Add("SparseCrossV2", kCpu, MakeCrossV2);
  r->Add("SparseCrossHashed", kCpu, MakeCrossHashed);
}

}  // namespace weir
