#include <limits>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/sparse/feature_cross.h"
#include "weir/kernels/sparse/ragged.h"

// Feature crosses as ragged tensors.
namespace weir {

namespace {

constexpr char kRankTwo[] = "tf.ragged.cross only supports inputs with rank=2.";

// The runs of the rows of a ragged matrix.
absl::StatusOr<std::vector<ValueRun>> RunsOfSplits(const Tensor& splits, int64_t values) {
  if (splits.rank() != 1) return InvalidArgument(kRankTwo);
  if (splits.num_elements() < 1 || splits.IntAt(0) != 0) {
    return InvalidArgument("Invalid ragged splits: first element of ragged splits must be 0");
  }
  std::vector<ValueRun> runs;
  int64_t begin = 0;
  for (int64_t row = 0; row + 1 < splits.num_elements(); ++row) {
    const int64_t end = splits.IntAt(row + 1);
    if (end < begin) {
      return InvalidArgument(
          "Invalid ragged splits: ragged splits must be monotonically increasing, but ", end,
          " follows ", begin);
    }
    if (end > begin) runs.push_back({row, begin, end - begin});
    begin = end;
  }
  if (begin != values) {
    return InvalidArgument(
        "Invalid ragged splits: last element of ragged splits must be the number of ragged values(",
        values, ") but is ", begin);
  }
  return runs;
}

// A column, and the number of examples that it is of.
struct SizedColumn {
  CrossColumn column;
  int64_t examples = 0;
};

// The inputs of RaggedCross: `ragged` values and as many splits, `sparse` indices, values and
// shapes, and matrices.
class RaggedCrossInputs {
 public:
  RaggedCrossInputs(const KernelContext& c, int ragged, int sparse)
      : c_(c), ragged_(ragged), sparse_(sparse) {}

  absl::StatusOr<SizedColumn> Ragged(int i) const {
    const Tensor &values = c_.input(i), &splits = c_.input(ragged_ + i);
    if (values.rank() != 1) return InvalidArgument(kRankTwo);
    WEIR_ASSIGN_OR_RETURN(std::vector<ValueRun> runs, RunsOfSplits(splits, values.num_elements()));
    return SizedColumn{{.values = values, .runs = std::move(runs)}, splits.num_elements() - 1};
  }
  absl::StatusOr<SizedColumn> Sparse(int i) const {
    const int first = 2 * ragged_ + i;
    WEIR_ASSIGN_OR_RETURN(
        const SparseValue x,
        MakeSparse(c_.input(first), c_.input(first + sparse_), c_.input(first + 2 * sparse_)));
    if (x.rank() != 2) return InvalidArgument(kRankTwo);
    return SizedColumn{{.values = x.values, .runs = RunsOf(x)}, x.dims[0]};
  }
  absl::StatusOr<SizedColumn> Dense(int i) const {
    const Tensor& x = c_.input(2 * ragged_ + 3 * sparse_ + i);
    if (x.rank() != 2) return InvalidArgument(kRankTwo);
    return SizedColumn{{.values = x, .is_dense = true}, x.dim(0)};
  }

 private:
  const KernelContext& c_;
  const int ragged_, sparse_;
};

struct RaggedCrossOptions {
  std::string order;
  int ragged = 0, sparse = 0, dense = 0;
  int64_t num_buckets = 0;
  uint64_t hash_key = 0;
};

absl::StatusOr<CrossColumns> ReadRaggedColumns(const KernelContext& c,
                                               const RaggedCrossOptions& o) {
  const RaggedCrossInputs inputs(c, o.ragged, o.sparse);
  CrossColumns out;
  int ragged = 0, sparse = 0, dense = 0;
  for (const char kind : o.order) {
    const bool known = (kind == 'R' && ragged < o.ragged) || (kind == 'S' && sparse < o.sparse) ||
                       (kind == 'D' && dense < o.dense);
    if (!known) {
      return InvalidArgument("Unexpected input_order value. input_order \"", o.order,
                             "\" does not fit ", o.ragged, " ragged, ", o.sparse, " sparse and ",
                             o.dense, " dense inputs");
    }
    WEIR_ASSIGN_OR_RETURN(SizedColumn next, kind == 'R'   ? inputs.Ragged(ragged++)
                                            : kind == 'S' ? inputs.Sparse(sparse++)
                                                          : inputs.Dense(dense++));
    if (!out.columns.empty() && next.examples != out.examples)
      return InvalidArgument("inputs must all have the same batch dimension size.");
    out.examples = next.examples;
    out.columns.push_back(std::move(next.column));
  }
  return out;
}

// Writes the splits: how many crosses the examples before each have.
template <class S>
absl::StatusOr<int64_t> OutputCrossSplits(KernelContext& c, const CrossColumns& in) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<ValueRun> crosses, CountCrosses(in));
  if (in.examples == std::numeric_limits<int64_t>::max())
    return InvalidArgument("too many examples: ", in.examples);
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({in.examples + 1}));
  WEIR_ASSIGN_OR_RETURN(Tensor * splits, c.AllocateOutput(1, shape));
  const int64_t total = crosses.empty() ? 0 : crosses.back().begin + crosses.back().count;
  if (total > std::numeric_limits<S>::max())
    return InvalidArgument("the ", total, " crosses need row splits of int64");
  S* const at = splits->data<S>();
  int64_t example = 0;
  for (const ValueRun& run : crosses) {
    while (example <= run.example) at[example++] = static_cast<S>(run.begin);
  }
  while (example <= in.examples) at[example++] = static_cast<S>(total);
  return total;
}

template <class S>
absl::Status RaggedCross(KernelContext& c, const RaggedCrossOptions& o) {
  WEIR_ASSIGN_OR_RETURN(const CrossColumns in, ReadRaggedColumns(c, o));
  WEIR_ASSIGN_OR_RETURN(const int64_t total, OutputCrossSplits<S>(c, in));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({total})));
  if (out->dtype() == DT_STRING) return ForEachCross(in, CrossedStrings(in, "_X_", out));
  return ForEachCross(in, CrossedHashes(in, FeatureHash{}, o.hash_key, o.num_buckets, out));
}

template <class S>
absl::StatusOr<Kernel> MakeRaggedCross(const KernelInit& init) {
  RaggedCrossOptions o;
  const auto count = [&](absl::string_view attr) {
    return static_cast<int>(init.attr<std::vector<DataType>>(attr).size());
  };
  o.order = init.attr<std::string>("input_order");
  o.ragged = count("ragged_values_types");
  o.sparse = count("sparse_values_types");
  o.dense = count("dense_types");
  o.num_buckets = init.attr<int64_t>("num_buckets");
  o.hash_key = static_cast<uint64_t>(init.attr<int64_t>("hash_key"));
  if (o.ragged != count("ragged_splits_types"))
    return InvalidArgument("ragged values and splits must have the same length");
  if (o.sparse != init.attr<int64_t>("Nsparse"))
    return InvalidArgument("sparse indices and values must have the same length");
  if (static_cast<int>(o.order.size()) != o.ragged + o.sparse + o.dense)
    return InvalidArgument("Invalid length for input_order");
  return Kernel([o](KernelContext& c) { return RaggedCross<S>(c, o); });
}

}  // namespace

void AddRaggedCrossCpu(KernelRegistry* r) {
  r->Add("RaggedCross", kCpu, TypeConstraints{{"out_row_splits_type", DT_INT32}},
         MakeRaggedCross<int32_t>);
  r->Add("RaggedCross", kCpu, TypeConstraints{{"out_row_splits_type", DT_INT64}},
         MakeRaggedCross<int64_t>);
}

}  // namespace weir
