#include <algorithm>
#include <set>

#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/sparse_tables.h"

// Ops that copy the elements of sparse tensors.
namespace weir {

namespace {

using namespace pick;  // NOLINT: a vocabulary made for these tables

// ---- SparseToDense

Tensors ToDenseReference(const Node&, const Tensors& x) {
  const Tensor& indices = x[0];
  const int64_t count = indices.rank() > 0 ? indices.dim(0) : 1;
  const Places places =
      PlacesOf(indices.Reshaped(Shape({count, indices.rank() > 1 ? indices.dim(1) : 1})));
  return {Pick({x[2], x[3]}, Shape(absl::MakeConstSpan(pick::Ints(x[1]))),
               [&](const pick::Index& index) {
                 const auto it = places.find(index);
                 if (it == places.end()) return Source(1, 0);
                 return Source(0, x[2].rank() == 0 ? 0 : it->second);
               })};
}

std::vector<OpCase> ToDenseCases() {
  const Tensor indices = Matrix(2, {0, 1, 0, 3, 2, 0, 2, 2});
  return {
      OpCase("SparseToDense")
          .Input(indices)
          .Input(I64({3, 4}))
          .Input({4})
          .Input(Shape())
          .Reference(ToDenseReference),
      OpCase("SparseToDense")
          .Label("narrow")
          .Input(Narrow(indices))
          .Input(I32({3, 4}))
          .Input({4})
          .Input(Shape())
          .Reference(ToDenseReference),
      OpCase("SparseToDense")
          .Label("any_order")
          .Attr("validate_indices", false)
          .Input(Matrix(1, {4, 0, 2}))
          .Input(I64({6}))
          .Input({3})
          .Input(Shape())
          .Reference(ToDenseReference),
      OpCase("SparseToDense")
          .Label("one_value")
          .Input(I64({1, 3}))
          .Input(I64({5}))
          .Input(Shape())
          .Input(Shape())
          .Gradient(0)
          .Reference(ToDenseReference),
      OpCase("SparseToDense")
          .Label("empty")
          .Input(Matrix(3, {}))
          .Input(I64({2, 0, 3}))
          .Input({0})
          .Input(Shape())
          .Gradient(0)
          .Reference(ToDenseReference),
      OpCase("SparseToDense")
          .Label("text")
          .Input(I64({1, 3}))
          .Input(I64({5}))
          .Input(DT_STRING, {2})
          .Input(DT_STRING, Shape())
          .Types({DT_STRING})
          .Reference(ToDenseReference),
  };
}

// ---- SparseReorder, SparseReshape

Tensors ReorderReference(const Node&, const Tensors& x) {
  std::map<pick::Index, Source> sorted;
  for (const auto& [row, i] : PlacesOf(x[0])) sorted[row] = Source(0, i);
  return SparseOf({x[1]}, sorted, x[0].dim(1));
}

Tensors ReshapeReference(const Node&, const Tensors& x) {
  pick::Index from = pick::Ints(x[1]), to = pick::Ints(x[2]);
  int64_t size = 1, known = 1;
  for (const int64_t d : from) size *= d;
  for (const int64_t d : to) known *= d == -1 ? 1 : d;
  for (int64_t& d : to) d = d == -1 ? size / known : d;
  std::map<int64_t, pick::Index> by_flat;
  ForEachIndex(Shape(absl::MakeConstSpan(to)),
               [&](int64_t flat, const pick::Index& index) { by_flat[flat] = index; });
  std::vector<pick::Index> rows(x[0].dim(0));
  for (const auto& [row, i] : PlacesOf(x[0]))
    rows[i] = by_flat[Flat(Shape(absl::MakeConstSpan(from)), row)];
  return {MatrixOf(rows, static_cast<int64_t>(to.size())), VectorOf(to)};
}

std::vector<OpCase> OrderCases() {
  return {
      OpCase("SparseReorder")
          .Input(Matrix(3, {1, 0, 2, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 0, 3}))
          .Input({5})
          .Input(I64({2, 2, 4}))
          .Reference(ReorderReference),
      OpCase("SparseReorder")
          .Label("empty")
          .Input(Matrix(2, {}))
          .Input({0})
          .Input(I64({2, 2}))
          .Gradient(0)
          .Reference(ReorderReference),
      OpCase("SparseReshape")
          .Input(Matrix(3, {0, 0, 1, 0, 1, 0, 1, 0, 2, 1, 1, 2}))
          .Input(I64({2, 2, 3}))
          .Input(I64({4, -1}))
          .Reference(ReshapeReference),
      OpCase("SparseReshape")
          .Label("flat")
          .Input(Matrix(2, {0, 1, 3, 2}))
          .Input(I64({4, 5}))
          .Input(I64({20}))
          .Reference(ReshapeReference),
      OpCase("SparseReshape")
          .Label("same")
          .Input(Matrix(2, {0, 1, 3, 2}))
          .Input(I64({4, 5}))
          .Input(I64({4, 5}))
          .Reference(ReshapeReference),
      OpCase("SparseReshape")
          .Label("empty")
          .Input(Matrix(2, {}))
          .Input(I64({0, 6}))
          .Input(I64({-1, 3}))
          .Reference(ReshapeReference),
  };
}

// ---- SparseFillEmptyRows

Tensors FillReference(const Node&, const Tensors& x) {
  const int64_t rows = pick::Ints(x[2])[0], count = x[0].dim(0), rank = x[0].dim(1);
  std::vector<pick::Index> indices;
  std::vector<Source> sources;
  pick::Index reverse(count);
  Tensor empty(DT_BOOL, Shape({rows}));
  for (int64_t r = 0; r < rows; ++r) {
    const size_t before = indices.size();
    for (int64_t i = 0; i < count; ++i) {
      if (x[0].IntAt(i * rank) != r) continue;
      reverse[i] = static_cast<int64_t>(indices.size());
      pick::Index row;
      for (int64_t d = 0; d < rank; ++d) row.push_back(x[0].IntAt(i * rank + d));
      indices.push_back(row);
      sources.emplace_back(0, i);
    }
    empty.data<bool>()[r] = indices.size() == before;
    if (indices.size() > before) continue;
    pick::Index row(rank, 0);
    row[0] = r;
    indices.push_back(row);
    sources.emplace_back(1, 0);
  }
  return {MatrixOf(indices, rank), Elements({x[1], x[3]}, sources), empty, VectorOf(reverse)};
}

// The same for one column, without the column index.
Tensors RaggedFillReference(const Node& node, const Tensors& x) {
  Tensors out = FillReference(
      node, {x[0].Reshaped(Shape({x[0].dim(0), 1})), x[1], x[2].Reshaped(Shape({1})), x[3]});
  out[0] = out[0].Reshaped(Shape({out[0].dim(0)}));
  return out;
}

Tensors FillGradReference(const Node&, const Tensors& x) {
  const pick::Index map = pick::Ints(x[0]);
  const std::set<int64_t> visited(map.begin(), map.end());
  const Tensor sum = SumTo(x[1], Shape({2}),
                           [&](const pick::Index& at) { return visited.contains(at[0]) ? 0 : 1; });
  return {PickOne(x[1], Shape({static_cast<int64_t>(map.size())}),
                  [&](const pick::Index& i) { return map[i[0]]; }),
          PickOne(sum, Shape(), [](const pick::Index&) { return 1; })};
}

std::vector<OpCase> FillCases() {
  std::vector<OpCase> rows;
  const struct {
    const char* label;
    Tensor indices, shape;
  } cases[] = {{"gaps", Matrix(2, {1, 2, 3, 1, 1, 0}), I64({5, 3})},
               {"full", Matrix(2, {0, 2, 1, 1}), I64({2, 3})},
               {"three_dims", Matrix(3, {1, 2, 3}), I64({3, 4, 5})},
               {"all_empty", Matrix(2, {}), I64({2, 3})},
               {"no_rows", Matrix(2, {}), I64({0, 3})}};
  for (const auto& c : cases) {
    rows.push_back(OpCase("SparseFillEmptyRows")
                       .Label(c.label)
                       .Input(c.indices)
                       .Input({c.indices.dim(0)})
                       .Input(c.shape)
                       .Input(Shape())
                       .ShapesDependOnValues()
                       .Reference(FillReference));
  }
  for (const char* op : {"SparseFillEmptyRowsGrad", "RaggedFillEmptyRowsGrad"}) {
    rows.push_back(
        OpCase(op).Input(I64({3, 0, 4})).Input({6}).Gradient(0).Reference(FillGradReference));
  }
  for (const Tensor& rowids : {I64({1, 3, 1}), I64({4, 2, 1, 0, 3}), I64({})}) {
    rows.push_back(OpCase("RaggedFillEmptyRows")
                       .Label(absl::StrCat(rowids.dim(0), "_elements"))
                       .Input(rowids)
                       .Input({rowids.dim(0)})
                       .Input(Tensor::Scalar<int64_t>(5))
                       .Input(Shape())
                       .ShapesDependOnValues()
                       .Reference(RaggedFillReference));
  }
  return rows;
}

// ---- SparseConcat, SparseSplit, SparseSlice

Tensors ConcatReference(const Node& node, const Tensors& x) {
  const int n = static_cast<int>(x.size()) / 3;
  int64_t axis = node.attr<int64_t>("concat_dim");
  pick::Index dims = pick::Ints(x[2 * n]);
  const int64_t rank = static_cast<int64_t>(dims.size());
  if (axis < 0) axis += rank;
  dims[axis] = 0;
  std::map<pick::Index, Source> joined;
  for (int k = 0; k < n; ++k) {
    for (const auto& [at, i] : PlacesOf(x[k])) {
      pick::Index row = at;
      row[axis] += dims[axis];
      joined[row] = Source(k, i);
    }
    dims[axis] += pick::Ints(x[2 * n + k])[axis];
  }
  Tensors out = SparseOf(Tensors(x.begin() + n, x.begin() + 2 * n), joined, rank);
  out.push_back(VectorOf(dims));
  return out;
}

Tensors SplitReference(const Node& node, const Tensors& x) {
  const int64_t n = node.attr<int64_t>("num_split");
  const pick::Index dims = pick::Ints(x[3]);
  int64_t axis = x[0].IntAt(0);
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  Tensors indices, values, shapes;
  int64_t begin = 0;
  for (int64_t part = 0; part < n; ++part) {
    const int64_t size = dims[axis] / n + (part < dims[axis] % n ? 1 : 0);
    std::map<pick::Index, Source> inside;
    for (const auto& [at, i] : PlacesOf(x[1])) {
      pick::Index row = at;
      if (row[axis] < begin || row[axis] >= begin + size) continue;
      row[axis] -= begin;
      inside[row] = Source(0, i);
    }
    const Tensors out = SparseOf({x[2]}, inside, static_cast<int64_t>(dims.size()));
    indices.push_back(out[0]);
    values.push_back(out[1]);
    pick::Index shape = dims;
    shape[axis] = size;
    shapes.push_back(VectorOf(shape));
    begin += size;
  }
  indices.insert(indices.end(), values.begin(), values.end());
  indices.insert(indices.end(), shapes.begin(), shapes.end());
  return indices;
}

Tensors SliceReference(const Node&, const Tensors& x) {
  const pick::Index start = pick::Ints(x[3]), size = pick::Ints(x[4]);
  pick::Index dims = pick::Ints(x[2]);
  std::map<pick::Index, Source> inside;
  for (const auto& [at, i] : PlacesOf(x[0])) {
    pick::Index row = at;
    bool in = true;
    for (size_t d = 0; d < row.size(); ++d) {
      in = in && row[d] >= start[d] && row[d] < start[d] + size[d];
      row[d] -= start[d];
    }
    if (in) inside[row] = Source(0, i);
  }
  for (size_t d = 0; d < dims.size(); ++d)
    dims[d] = std::max<int64_t>(0, std::min(dims[d], start[d] + size[d]) - start[d]);
  Tensors out = SparseOf({x[1]}, inside, static_cast<int64_t>(dims.size()));
  out.push_back(VectorOf(dims));
  return out;
}

Tensors SliceGradReference(const Node&, const Tensors& x) {
  const pick::Index start = pick::Ints(x[2]);
  const Places kept = PlacesOf(x[3]);
  std::vector<Source> sources(x[1].dim(0), Source(-1, 0));
  for (const auto& [at, i] : PlacesOf(x[1])) {
    pick::Index row = at;
    for (size_t d = 0; d < row.size(); ++d) row[d] -= start[d];
    if (const auto it = kept.find(row); it != kept.end()) sources[i] = Source(0, it->second);
  }
  return {Elements({x[0]}, sources)};
}

std::vector<OpCase> PartCases() {
  const Tensor some = Matrix(2, {0, 1, 0, 2, 1, 0}), more = Matrix(2, {0, 0, 1, 1});
  const Tensor wide = Matrix(2, {0, 0, 0, 3, 1, 4, 1, 6});
  std::vector<OpCase> rows;
  for (const int64_t axis : {1, -2}) {
    rows.push_back(OpCase("SparseConcat")
                       .Label(axis == 1 ? "columns" : "rows")
                       .Attr("concat_dim", axis)
                       .GivenList({some, more})
                       .List({Shape{3}, Shape{2}})
                       .GivenList({I64({2, 3}), axis == 1 ? I64({2, 5}) : I64({4, 3})})
                       .Reference(ConcatReference));
  }
  for (const int64_t parts : {1, 2, 3, 7}) {
    rows.push_back(OpCase("SparseSplit")
                       .Label(absl::StrCat("in_", parts))
                       .Attr("num_split", parts)
                       .Input(Tensor::Scalar<int64_t>(parts == 3 ? -1 : 1))
                       .Input(wide)
                       .Input({4})
                       .Input(I64({2, 7}))
                       .ShapesDependOnValues()
                       .Gradient(0)
                       .Reference(SplitReference));
  }
  const struct {
    const char* label;
    Tensor start, size;
  } blocks[] = {{"block", I64({0, 3}), I64({2, 3})},
                {"past_the_end", I64({1, 2}), I64({5, 90})},
                {"nothing", I64({0, 9}), I64({2, 9})},
                {"before", I64({0, -1}), I64({2, 9})}};
  for (const auto& block : blocks) {
    rows.push_back(OpCase("SparseSlice")
                       .Label(block.label)
                       .Input(wide)
                       .Input({4})
                       .Input(I64({2, 7}))
                       .Input(block.start)
                       .Input(block.size)
                       .ShapesDependOnValues()
                       .Reference(SliceReference));
  }
  rows.push_back(OpCase("SparseSliceGrad")
                     .Input({2})
                     .Input(wide)
                     .Input(I64({0, 3}))
                     .Input(Matrix(2, {0, 0, 1, 1}))
                     .Reference(SliceGradReference));
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(ToDense, OpSweepTest, testing::ValuesIn(ToDenseCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(Order, OpSweepTest, testing::ValuesIn(OrderCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(Fill, OpSweepTest, testing::ValuesIn(FillCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(Parts, OpSweepTest, testing::ValuesIn(PartCases()), OpCaseName);

}  // namespace weir
