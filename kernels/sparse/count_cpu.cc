#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/kernels/lib/accumulate.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/sparse/sparse_kernels.h"

// Counts of the integers in each row, or the sums of their weights, as a sparse tensor. Elements
// are sorted by row and value; so memory and time depend on the elements, not on the extents.
namespace weir {

namespace {

struct CountOptions {
  int64_t min_length = -1, max_length = -1;  // -1: no limit
  bool binary = false;                       // 1 for each value that occurs
};

struct Element {
  int64_t row, value, position;
};

absl::Status CheckWeights(const Tensor& weights, const Tensor& values, absl::string_view what) {
  if (weights.num_elements() == 0 || weights.shape() == values.shape()) return absl::OkStatus();
  return InvalidArgument("Weights and ", what,
                         " must have the same shape. Weight shape: ", weights.shape().ToString(),
                         "; ", what, " shape: ", values.shape().ToString());
}

// Counts elements, which it sorts. The result has `rows` rows, or is a vector if that is -1.
template <class W>
absl::Status OutputCounts(KernelContext& c, const CountOptions& o, const Tensor& weights,
                          std::vector<Element> elements, int64_t rows) {
  const auto comes_first = [](const Element& a, const Element& b) {
    return std::tie(a.row, a.value, a.position) < std::tie(b.row, b.value, b.position);
  };
  SortCancellably(static_cast<int64_t>(elements.size()), comes_first,
                  [&](const auto& less) { std::sort(elements.begin(), elements.end(), less); });
  const auto starts_group = [&](size_t i) {
    return i == 0 || elements[i].row != elements[i - 1].row ||
           elements[i].value != elements[i - 1].value;
  };
  int64_t count = 0, largest = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    ThrowIfCancelledAt(static_cast<int64_t>(i));
    count += starts_group(i) ? 1 : 0;
    largest = std::max(largest, elements[i].value);
  }
  if (largest == std::numeric_limits<int64_t>::max())
    return InvalidArgument("values must be less than 2^63 - 1");
  const int64_t rank = rows < 0 ? 1 : 2;
  WEIR_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape({count, rank})));
  WEIR_ASSIGN_OR_RETURN(Tensor * counts, c.AllocateOutput(1, Shape({count})));
  int64_t* index = indices->data<int64_t>();
  W* out = counts->data<W>() - 1;
  for (size_t i = 0; i < elements.size(); ++i) {
    ThrowIfCancelledAt(static_cast<int64_t>(i));
    const Element& e = elements[i];
    const W weight = weights.num_elements() > 0 && !o.binary ? weights.data<W>()[e.position] : W(1);
    if (starts_group(i)) {
      if (rank == 2) *index++ = e.row;
      *index++ = e.value;
      *++out = weight;
    } else if (!o.binary) {
      *out = Add(*out, weight);
    }
  }
  const int64_t length =
      o.max_length >= 0 ? o.max_length : std::max(Add(largest, int64_t{1}), o.min_length);
  if (rank == 1) return OutputInts(c, 2, {length});
  return OutputInts(c, 2, {rows, length});
}

// The elements that count, of `values`, whose element i is in row row_of(i).
template <class RowOf>
absl::StatusOr<std::vector<Element>> ElementsOf(const Tensor& values, const CountOptions& o,
                                                RowOf row_of) {
  std::vector<Element> elements;
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    ThrowIfCancelledAt(i);
    const int64_t value = values.IntAt(i), row = row_of(i);
    if (value < 0) return InvalidArgument("Input values must all be non-negative, got ", value);
    if (o.max_length < 0 || value < o.max_length) elements.push_back({row, value, i});
  }
  return elements;
}

template <class W>
absl::Status CountDense(KernelContext& c, const CountOptions& o) {
  const Tensor &values = c.input(0), &weights = c.input(1);
  if (values.rank() != 1 && values.rank() != 2) {
    return InvalidArgument("Input must be a 1 or 2-dimensional tensor. Got: ",
                           values.shape().ToString());
  }
  WEIR_RETURN_IF_ERROR(CheckWeights(weights, values, "data"));
  if (values.rank() == 2 && values.dim(0) == 0)
    return InvalidArgument("Invalid input: Shapes dimension cannot be 0.");
  const int64_t columns = std::max<int64_t>(values.dim(-1), 1);
  WEIR_ASSIGN_OR_RETURN(std::vector<Element> elements, ElementsOf(values, o, [&](int64_t i) {
                          return values.rank() == 1 ? 0 : i / columns;
                        }));
  return OutputCounts<W>(c, o, weights, std::move(elements),
                         values.rank() == 1 ? -1 : values.dim(0));
}

template <class W>
absl::Status CountSparse(KernelContext& c, const CountOptions& o) {
  const Tensor& shape = c.input(2);
  if (shape.rank() == 1 && shape.num_elements() == 0)
    return InvalidArgument("The shape argument requires at least one element.");
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadSparse(c, 0));
  for (int64_t i = 0; i < x.count(); ++i) {
    for (int d = 0; d < x.rank(); ++d) {
      if (x.row(i)[d] >= 0 && x.row(i)[d] < x.dims[d]) continue;
      return InvalidArgument("Invalid index value at ", i, ": dimension ", d, " has value ",
                             x.row(i)[d], " which is not in [0, ", x.dims[d],
                             ") (as given by dense shape ", shape.Description(), ")");
    }
  }
  const Tensor& weights = c.input(3);
  WEIR_RETURN_IF_ERROR(CheckWeights(weights, x.values, "values"));
  const int64_t rows = x.rank() == 1 ? -1 : x.dims[0];
  if (rows == 0 || rows >= std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("Cannot allocate ", rows, " batches, is the dense shape too wide?");
  }
  WEIR_ASSIGN_OR_RETURN(std::vector<Element> elements, ElementsOf(x.values, o, [&](int64_t i) {
                          return rows < 0 ? 0 : x.row(i)[0];
                        }));
  return OutputCounts<W>(c, o, weights, std::move(elements), rows);
}

absl::Status CheckSplits(const Tensor& splits, int64_t values) {
  if (splits.rank() != 1)
    return InvalidArgument("splits must be a vector, got shape ", splits.shape().ToString());
  const int64_t rows = splits.num_elements() - 1;
  if (rows < 1) return InvalidArgument("Must provide at least 2 elements for the splits argument");
  const int64_t* const at = splits.data<int64_t>();
  if (at[0] != 0) return InvalidArgument("Splits must start with 0, not with ", at[0]);
  if (at[rows] != values) {
    return InvalidArgument("Splits must end with the number of values, got ", at[rows],
                           " instead of ", values);
  }
  for (int64_t i = 0; i < rows; ++i) {
    if (at[i] > at[i + 1])
      return InvalidArgument("Splits must not decrease: ", at[i], " is before ", at[i + 1]);
  }
  return absl::OkStatus();
}

template <class W>
absl::Status CountRagged(KernelContext& c, const CountOptions& o) {
  const Tensor &splits = c.input(0), &values = c.input(1), &weights = c.input(2);
  WEIR_RETURN_IF_ERROR(CheckWeights(weights, values, "values"));
  WEIR_RETURN_IF_ERROR(CheckSplits(splits, values.num_elements()));
  const int64_t* const at = splits.data<int64_t>();
  int64_t row = 0;
  const auto row_of = [&](int64_t i) {
    while (i >= at[row + 1]) ++row;
    return row;
  };
  WEIR_ASSIGN_OR_RETURN(std::vector<Element> elements, ElementsOf(values, o, row_of));
  return OutputCounts<W>(c, o, weights, std::move(elements), splits.num_elements() - 1);
}

using CountFn = absl::Status (*)(KernelContext&, const CountOptions&);

void AddCount(KernelRegistry* r, absl::string_view op, DataType type, CountFn count) {
  r->Add(op, kCpu, TypeConstraints{{"output_type", type}},
         [count](const KernelInit& init) -> absl::StatusOr<Kernel> {
           CountOptions o;
           o.min_length = init.attr<int64_t>("minlength");
           o.max_length = init.attr<int64_t>("maxlength");
           o.binary = init.attr<bool>("binary_output");
           return Kernel([count, o](KernelContext& c) { return count(c, o); });
         });
}

template <class... Ws>
void AddCounts(KernelRegistry* r, List<Ws...>) {
  (AddCount(r, "DenseCountSparseOutput", DataTypeOf<Ws>::value, CountDense<Ws>), ...);
  (AddCount(r, "SparseCountSparseOutput", DataTypeOf<Ws>::value, CountSparse<Ws>), ...);
  (AddCount(r, "RaggedCountSparseOutput", DataTypeOf<Ws>::value, CountRagged<Ws>), ...);
}

}  // namespace

void AddCountCpu(KernelRegistry* r) { AddCounts(r, List<int32_t, int64_t, float, double>()); }

}  // namespace weir
