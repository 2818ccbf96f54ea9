#include <algorithm>
#include <cmath>

#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/sparse_tables.h"

// Ragged tensors.
namespace weir {

namespace {

using namespace pick;  // NOLINT: a vocabulary made for these tables

// The position of each row of the values: an index for each ragged dimension and the outermost one.
std::vector<pick::Index> PlacesOfRows(const std::vector<pick::Index>& splits) {
  std::vector<pick::Index> places;
  for (size_t i = 0; i + 1 < splits[0].size(); ++i) places.push_back({static_cast<int64_t>(i)});
  for (const pick::Index& s : splits) {
    std::vector<pick::Index> next;
    for (size_t i = 0; i < places.size(); ++i) {
      for (int64_t j = 0; j < s[i + 1] - s[i]; ++j) {
        next.push_back(places[i]);
        next.back().push_back(j);
      }
    }
    places = next;
  }
  return places;
}

std::vector<pick::Index> SplitsOf(const Tensors& x, size_t begin, size_t end) {
  std::vector<pick::Index> splits;
  for (size_t k = begin; k < end; ++k) splits.push_back(pick::Ints(x[k]));
  return splits;
}

Tensors ToSparseReference(const Node&, const Tensors& x) {
  const Tensor& values = x.back();
  std::vector<pick::Index> rows;
  const std::vector<pick::Index> splits = SplitsOf(x, 0, x.size() - 1);
  pick::Index dims = {static_cast<int64_t>(splits[0].size()) - 1};
  for (const pick::Index& s : splits) {
    dims.push_back(0);
    for (size_t i = 1; i < s.size(); ++i) dims.back() = std::max(dims.back(), s[i] - s[i - 1]);
  }
  for (int d = 1; d < values.rank(); ++d) dims.push_back(values.dim(d));
  for (const pick::Index& place : PlacesOfRows(splits)) {
    ForEachIndex(values.shape().Sub(1), [&](int64_t, const pick::Index& inner) {
      rows.push_back(place);
      rows.back().insert(rows.back().end(), inner.begin(), inner.end());
    });
  }
  return {MatrixOf(rows, static_cast<int64_t>(dims.size())),
          values.Reshaped(Shape({values.num_elements()})), VectorOf(dims)};
}

// Row ids and the number of rows, as splits.
pick::Index SplitsOfIds(const pick::Index& ids, int64_t rows) {
  pick::Index splits(rows + 1, 0);
  for (const int64_t id : ids) {
    for (int64_t r = id + 1; r <= rows; ++r) ++splits[r];
  }
  return splits;
}

Tensors ToTensorReference(const Node& node, const Tensors& x) {
  const auto types = node.attr<std::vector<std::string>>("row_partition_types");
  std::vector<pick::Index> splits;
  if (types[0] == "FIRST_DIM_SIZE") {
    int64_t rows = x[3].IntAt(0);
    for (size_t k = 1; k < types.size(); ++k) {
      splits.push_back(SplitsOfIds(pick::Ints(x[3 + k]), rows));
      rows = splits.back().back();
    }
  } else {
    splits = SplitsOf(x, 3, x.size());
  }
  const Tensors sparse = [&] {
    Tensors parts;
    for (const pick::Index& s : splits) parts.push_back(VectorOf(s));
    parts.push_back(x[1]);
    return ToSparseReference(node, parts);
  }();
  pick::Index dims = pick::Ints(sparse[2]);
  if (x[0].rank() == 1) {
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = x[0].IntAt(d) < 0 ? dims[d] : x[0].IntAt(d);
  }
  const Places places = PlacesOf(sparse[0]);
  return {Pick({x[1], x[2]}, Shape(absl::MakeConstSpan(dims)), [&](const pick::Index& index) {
    if (const auto it = places.find(index); it != places.end()) return Source(0, it->second);
    pick::Index inner;
    for (int d = 0; d < x[2].rank(); ++d)
      inner.push_back(x[2].dim(d) == 1 ? 0 : index[index.size() - x[2].rank() + d]);
    return Source(1, Flat(x[2].shape(), inner));
  })};
}

std::vector<OpCase> ConversionCases() {
  std::vector<OpCase> rows;
  const struct {
    const char* label;
    Tensors splits;
    Shape values;
  } cases[] = {{"one", {I64({0, 2, 2, 5})}, {5}},
               {"two", {I64({0, 1, 3, 3}), I64({0, 2, 2, 5})}, {5}},
               {"narrow", {I32({0, 1, 3})}, {3, 2}},
               {"no_rows", {I64({0})}, {0}},
               {"empty_rows", {I64({0, 0, 0})}, {0, 2}}};
  for (const auto& c : cases) {
    rows.push_back(OpCase("RaggedTensorToSparse")
                       .Label(c.label)
                       .GivenList(c.splits)
                       .Input(c.values)
                       .ShapesDependOnValues()
                       .Reference(ToSparseReference));
    for (const bool cut : {false, true}) {
      const size_t rank = c.splits.size() + c.values.rank();
      pick::Index asked(rank, -1);
      asked[0] = 2;
      asked[1] = 2;
      rows.push_back(
          OpCase("RaggedTensorToTensor")
              .Label(absl::StrCat(c.label, cut ? "_cut" : ""))
              .Attr("row_partition_types", std::vector<std::string>(c.splits.size(), "ROW_SPLITS"))
              .Input(cut ? VectorOf(asked) : Tensor::Scalar<int64_t>(-1))
              .Input(c.values)
              .Input(c.values.Sub(1))
              .GivenList(c.splits)
              .ShapesDependOnValues()
              .Reference(ToTensorReference));
    }
  }
  rows.push_back(
      OpCase("RaggedTensorToTensor")
          .Label("row_ids")
          .Attr("row_partition_types",
                std::vector<std::string>{"FIRST_DIM_SIZE", "VALUE_ROWIDS", "VALUE_ROWIDS"})
          .Input(I64({-1, 2, 2, -1}))
          .Input({6, 2})
          .Input(Shape({1}))
          .GivenList({Tensor::Scalar<int64_t>(4), I64({0, 0, 2, 2, 2}), I64({0, 0, 0, 2, 3, 4})})
          .ShapesDependOnValues()
          .Reference(ToTensorReference));
  return rows;
}

// ---- RaggedRange, RaggedGather

Tensors RangeReference(const Node& node, const Tensors& x) {
  const std::vector<double> starts = ToDoubles(x[0]), limits = ToDoubles(x[1]),
                            deltas = ToDoubles(x[2]);
  const auto at = [](const std::vector<double>& v, size_t i) {
    return v.size() == 1 ? v[0] : v[i];
  };
  std::vector<double> values;
  pick::Index splits = {0};
  for (size_t r = 0; r < std::max({starts.size(), limits.size(), deltas.size()}); ++r) {
    const double delta = at(deltas, r);
    for (double v = at(starts, r); delta > 0 ? v < at(limits, r) : v > at(limits, r); v += delta)
      values.push_back(v);
    splits.push_back(static_cast<int64_t>(values.size()));
  }
  const bool narrow = node.attr<DataType>("Tsplits") == DT_INT32;
  return {narrow ? Narrow(VectorOf(splits)) : VectorOf(splits),
          Doubles(Shape({static_cast<int64_t>(values.size())}), values)};
}

// A ragged tensor as a tree: nested rows whose leaves are the numbers of value rows.
struct Tree {
  std::vector<Tree> rows;
  int64_t value = -1;
};
Tree TreeOf(const std::vector<pick::Index>& splits, size_t level, int64_t row) {
  if (level == splits.size()) return {.value = row};
  Tree tree;
  for (int64_t r = splits[level][row]; r < splits[level][row + 1]; ++r)
    tree.rows.push_back(TreeOf(splits, level + 1, r));
  return tree;
}

Tensors GatherReference(const Node& node, const Tensors& x) {
  const size_t n = x.size() - 2;
  const std::vector<pick::Index> params = SplitsOf(x, 0, n);
  const Tensor &values = x[n], &indices = x[n + 1];
  std::vector<Tree> level;
  for (const int64_t i : pick::Ints(indices)) level.push_back(TreeOf(params, 0, i));
  for (int d = indices.rank() - 1; d > 0; --d) {
    std::vector<Tree> outer;
    for (size_t i = 0; i < level.size(); i += indices.dim(d))
      outer.push_back(
          {.rows = std::vector<Tree>(level.begin() + i, level.begin() + i + indices.dim(d))});
    level = outer;
  }
  if (indices.rank() == 0) level = level[0].rows;
  Tensors out;
  for (int k = 0; k + 1 < node.num_outputs(); ++k) {
    pick::Index splits = {0};
    std::vector<Tree> next;
    for (const Tree& tree : level) {
      next.insert(next.end(), tree.rows.begin(), tree.rows.end());
      splits.push_back(static_cast<int64_t>(next.size()));
    }
    out.push_back(VectorOf(splits));
    level = next;
  }
  Shape shape = values.shape();
  shape.set_dim(0, static_cast<int64_t>(level.size()));
  out.push_back(PickOne(values, shape, [&](pick::Index i) {
    i[0] = level[i[0]].value;
    return Flat(values.shape(), i);
  }));
  return out;
}

std::vector<OpCase> RowCases() {
  std::vector<OpCase> rows;
  for (const DataType splits : {DT_INT32, DT_INT64}) {
    rows.push_back(OpCase("RaggedRange")
                       .Label(DataTypeName(splits))
                       .Attr("Tsplits", splits)
                       .Input({5}, {-4, 4})
                       .Input({5}, {-6, 6})
                       .Input(Shape(), {1, 1})
                       .ShapesDependOnValues()
                       .Gradient(0)
                       .Reference(RangeReference));
    rows.push_back(OpCase("RaggedRange")
                       .Label(absl::StrCat(DataTypeName(splits), "_down"))
                       .Attr("Tsplits", splits)
                       .Input(Shape(), {5, 5})
                       .Input({3}, {-3, 4})
                       .Input(Shape(), {-2, -2})
                       .ShapesDependOnValues()
                       .Gradient(0)
                       .Reference(RangeReference));
  }
  const Tensor splits = I64({0, 2, 2, 5});
  const struct {
    const char* label;
    Tensors splits;
    Shape values;
    Tensor indices;
    int64_t rank;
  } cases[] = {{"vector", {splits}, {5}, I64({2, 0, 2}), 1},
               {"matrix", {splits}, {5, 2}, Matrix(2, {2, 0, 1, 1}), 2},
               {"scalar", {I64({0, 1, 3}), splits}, {5}, Tensor::Scalar<int64_t>(1), 1},
               {"two", {I64({0, 1, 3}), splits}, {5}, I32({1, 1, 0}), 2},
               {"nothing", {splits}, {5}, I64({}), 1}};
  for (const auto& c : cases) {
    rows.push_back(OpCase("RaggedGather")
                       .Label(c.label)
                       .Attr("OUTPUT_RAGGED_RANK", c.rank)
                       .GivenList(c.splits)
                       .Input(c.values)
                       .Input(c.indices)
                       .TypeAttr("Tvalues")
                       .ShapesDependOnValues()
                       .Reference(GatherReference));
  }
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Conversion, OpSweepTest, testing::ValuesIn(ConversionCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(Rows, OpSweepTest, testing::ValuesIn(RowCases()), OpCaseName);

}  // namespace weir
