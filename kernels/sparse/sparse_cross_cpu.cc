#include <algorithm>
#include <optional>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/sparse/feature_cross.h"
#include "weir/kernels/sparse/sparse_kernels.h"

// Feature crosses: all combinations of one feature of each column, example by example, as strings
// or as hashes.
namespace weir {

namespace {

// The inputs: indices, values and shapes of `n` sparse tensors, matrices, and `others` that are not
// columns.
absl::StatusOr<CrossColumns> ReadColumns(const KernelContext& c, int n, int others) {
  CrossColumns out;
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

// Writes the indices and the shape of the crosses, and returns where their values go.
absl::StatusOr<Tensor*> OutputCrosses(KernelContext& c, const CrossColumns& in) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<ValueRun> crosses, CountCrosses(in));
  int64_t total = 0, most = 0;
  for (const ValueRun& run : crosses) {
    total += run.count;
    most = std::max(most, run.count);
  }
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({total, 2}));
  WEIR_ASSIGN_OR_RETURN(Tensor* const indices, c.AllocateOutput(0, shape));
  int64_t* to = indices->data<int64_t>();
  for (const ValueRun& run : crosses) {
    for (int64_t i = 0; i < run.count; ++i) {
      ThrowIfCancelledAt(i);
      *to++ = run.example;
      *to++ = i;
    }
  }
  WEIR_RETURN_IF_ERROR(OutputInts(c, 2, {in.examples, most}));
  return c.AllocateOutput(1, Shape({total}));
}

// ---- strings

absl::Status CrossStrings(KernelContext& c, const CrossColumns& in, const std::string& separator) {
  WEIR_ASSIGN_OR_RETURN(Tensor * out, OutputCrosses(c, in));
  return ForEachCross(in, CrossedStrings(in, separator, out));
}

absl::StatusOr<Kernel> MakeCrossV2(const KernelInit& init) {
  const int n = static_cast<int>(init.attr<int64_t>("N"));
  return Kernel([n](KernelContext& c) -> absl::Status {
    const Tensor& separator = c.input(c.num_inputs() - 1);
    if (separator.rank() != 0) {
      return InvalidArgument("Input separator should be a scalar. Received: ",
                             separator.Description());
    }
    WEIR_ASSIGN_OR_RETURN(const CrossColumns columns, ReadColumns(c, n, 1));
    return CrossStrings(c, columns, *separator.data<std::string>());
  });
}

// ---- hashes

absl::Status CrossHashes(KernelContext& c, const CrossColumns& in, const FeatureHash& feature,
                         std::optional<uint64_t> seed, int64_t num_buckets) {
  WEIR_ASSIGN_OR_RETURN(Tensor * out, OutputCrosses(c, in));
  return ForEachCross(in, CrossedHashes(in, feature, seed, num_buckets, out));
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
    WEIR_ASSIGN_OR_RETURN(const CrossColumns columns, ReadColumns(c, n, 3));
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
    WEIR_ASSIGN_OR_RETURN(const CrossColumns columns, ReadColumns(c, n, 0));
    for (const CrossColumn& column : columns.columns) {
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
