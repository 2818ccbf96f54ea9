#include <algorithm>
#include <cmath>
#include <numeric>

#include "weir/tests/kernels/lib/pick.h"

// Ops that gather, scatter, look up and sort, and ops on diagonals.
namespace weir {

namespace {

using namespace pick;  // NOLINT: a vocabulary made for these tables

// ---- gathering

OpReference GatherReference(int axis, int batch_dims) {
  return [=](const Node&, const Tensors& x) -> Tensors {
    const Tensor &params = x[0], &indices = x[1];
    const Shape shape = params.shape()
                            .Sub(0, axis)
                            .Concatenate(indices.shape().Sub(batch_dims))
                            .Concatenate(params.shape().Sub(axis + 1));
    const int middle = indices.rank() - batch_dims;
    return {PickOne(params, shape, [&](const pick::Index& i) {
      pick::Index at(i.begin(), i.begin() + batch_dims);
      at.insert(at.end(), i.begin() + axis, i.begin() + axis + middle);
      pick::Index from(i.begin(), i.begin() + axis);
      from.push_back(indices.IntAt(Flat(indices.shape(), at)));
      from.insert(from.end(), i.begin() + axis + middle, i.end());
      return Flat(params.shape(), from);
    })};
  };
}

Tensors GatherNdReference(const Node&, const Tensors& x) {
  const Tensor &params = x[0], &indices = x[1];
  const int depth = static_cast<int>(indices.dim(-1)), outer = indices.rank() - 1;
  const Shape shape = indices.shape().Sub(0, outer).Concatenate(params.shape().Sub(depth));
  return {PickOne(params, shape, [&](const pick::Index& i) {
    pick::Index from;
    for (int d = 0; d < depth; ++d) {
      pick::Index at(i.begin(), i.begin() + outer);
      at.push_back(d);
      from.push_back(indices.IntAt(Flat(indices.shape(), at)));
    }
    from.insert(from.end(), i.begin() + outer, i.end());
    return Flat(params.shape(), from);
  })};
}

// ---- scattering

using Combine = std::function<complex128(complex128, complex128)>;

// Returns `start` with the updates applied sequentially.
Tensor Scattered(Tensor start, const Tensor& indices, const Tensor& updates,
                 const Combine& combine) {
  const int depth = static_cast<int>(indices.dim(-1)), outer = indices.rank() - 1;
  ForEachIndex(updates.shape(), [&](int64_t flat, const pick::Index& i) {
    pick::Index to;
    for (int d = 0; d < depth; ++d) {
      pick::Index at(i.begin(), i.begin() + outer);
      at.push_back(d);
      to.push_back(indices.IntAt(Flat(indices.shape(), at)));
    }
    to.insert(to.end(), i.begin() + outer, i.end());
    const int64_t k = Flat(start.shape(), to);
    if (start.dtype() == DT_DOUBLE) {
      start.data<double>()[k] =
          combine(start.data<double>()[k], updates.data<double>()[flat]).real();
    } else if (start.dtype() == DT_COMPLEX128) {
      start.data<complex128>()[k] =
          combine(start.data<complex128>()[k], updates.data<complex128>()[flat]);
    } else if (start.dtype() == DT_BOOL) {
      start.data<bool>()[k] =
          combine(start.data<bool>()[k], updates.data<bool>()[flat]) != complex128(0);
    } else {
      start.data<std::string>()[k] = updates.data<std::string>()[flat];
    }
  });
  return start;
}

Tensors ScatterNdReference(const Node&, const Tensors& x) {
  const Shape shape(absl::MakeConstSpan(pick::Ints(x[2])));
  return {Scattered(Tensor::Zeros(x[1].dtype(), shape), x[0], x[1], std::plus<complex128>())};
}

OpReference TensorScatterReference(const Combine& combine) {
  return [combine](const Node&, const Tensors& x) -> Tensors {
    return {Scattered(x[0].DeepCopy(), x[1], x[2], combine)};
  };
}

complex128 Second(complex128, complex128 b) { return b; }
complex128 Smaller(complex128 a, complex128 b) { return std::min(a.real(), b.real()); }
complex128 Greater(complex128 a, complex128 b) { return std::max(a.real(), b.real()); }

// ---- looking up

Tensors OneHotReference(const Node& n, const Tensors& x) {
  const int64_t depth = x[1].IntAt(0), attr = n.attr<int64_t>("axis");
  const int axis = static_cast<int>(attr < 0 ? x[0].rank() : attr);
  Shape shape = x[0].shape();
  shape.InsertDim(axis, depth);
  return {Pick({x[2], x[3]}, shape, [&](const pick::Index& i) {
    pick::Index at = i;
    at.erase(at.begin() + axis);
    return Source(x[0].IntAt(Flat(x[0].shape(), at)) == i[axis] ? 0 : 1, 0);
  })};
}

template <class T>
std::vector<int64_t> FirstPlaces(const Tensor& x, std::vector<int64_t>* of) {
  std::vector<int64_t> first;
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const auto same = [&](int64_t k) { return x.data<T>()[k] == x.data<T>()[i]; };
    const auto it = std::find_if(first.begin(), first.end(), same);
    of->push_back(it - first.begin());
    if (it == first.end()) first.push_back(i);
  }
  return first;
}

Tensors UniqueReference(const Node& n, const Tensors& x) {
  std::vector<int64_t> of, first;
  DispatchType(x[0].dtype(), Moved{}, [&]<class T>() { first = FirstPlaces<T>(x[0], &of); });
  std::vector<double> counts(first.size());
  for (const int64_t k : of) ++counts[k];
  const int64_t count = static_cast<int64_t>(first.size());
  Tensors out = {PickOne(x[0], {count}, [&](const pick::Index& i) { return first[i[0]]; }),
                 Doubles({x[0].num_elements()}, std::vector<double>(of.begin(), of.end())),
                 Doubles({count}, counts)};
  out.resize(n.num_outputs());
  for (size_t k = 1; k < out.size(); ++k) {
    Tensor ints(n.output_type(static_cast<int>(k)), out[k].shape());
    for (int64_t i = 0; i < ints.num_elements(); ++i) {
      const double v = out[k].data<double>()[i];
      if (ints.dtype() == DT_INT64)
        ints.data<int64_t>()[i] = static_cast<int64_t>(v);
      else
        ints.data<int32_t>()[i] = static_cast<int32_t>(v);
    }
    out[k] = ints;
  }
  return out;
}

Tensors ListDiffReference(const Node&, const Tensors& x) {
  std::vector<int64_t> kept;
  DispatchType(x[0].dtype(), Moved{}, [&]<class T>() {
    for (int64_t i = 0; i < x[0].num_elements(); ++i) {
      const auto y = x[1].flat<T>();
      if (std::find(y.begin(), y.end(), x[0].data<T>()[i]) == y.end()) kept.push_back(i);
    }
  });
  std::vector<int32_t> idx(kept.begin(), kept.end());
  const int64_t n = static_cast<int64_t>(kept.size());
  return {PickOne(x[0], {n}, [&](const pick::Index& i) { return kept[i[0]]; }),
          Tensor::Vector<int32_t>(absl::MakeConstSpan(idx))};
}

Tensors WhereReference(const Node&, const Tensors& x) {
  std::vector<int64_t> rows;
  DispatchType(x[0].dtype(), Moved{}, [&]<class T>() {
    ForEachIndex(x[0].shape(), [&](int64_t flat, const pick::Index& i) {
      if (x[0].data<T>()[flat] != T()) rows.insert(rows.end(), i.begin(), i.end());
    });
  });
  return {Tensor::Of<int64_t>({static_cast<int64_t>(rows.size()) / x[0].rank(), x[0].rank()},
                              absl::MakeConstSpan(rows))};
}

// Repeatedly takes the largest remaining element; ties go to the first.
Tensors TopReference(const Tensor& x, int64_t k) {
  Shape shape = x.shape();
  shape.set_dim(shape.rank() - 1, k);
  Tensor values(DT_DOUBLE, shape);
  std::vector<double> indices;
  const int64_t n = x.dim(-1);
  for (int64_t r = 0; k > 0 && r < x.num_elements() / n; ++r) {
    std::vector<bool> taken(n, false);
    for (int64_t i = 0; i < k; ++i) {
      int64_t best = -1;
      for (int64_t j = 0; j < n; ++j) {
        if (!taken[j] && (best < 0 || x.data<double>()[r * n + j] > x.data<double>()[r * n + best]))
          best = j;
      }
      taken[best] = true;
      values.data<double>()[r * k + i] = x.data<double>()[r * n + best];
      indices.push_back(static_cast<double>(best));
    }
  }
  return {values, Doubles(shape, indices)};
}
Tensors TopKV2Reference(const Node&, const Tensors& x) { return TopReference(x[0], x[1].IntAt(0)); }

// Is in the top k if fewer than k are larger.
Tensors InTopKReference(const Node& n, const Tensors& x) {
  const int64_t k = x.size() == 3 ? x[2].IntAt(0) : n.attr<int64_t>("k"), classes = x[0].dim(1);
  Tensor out(DT_BOOL, x[1].shape());
  for (int64_t r = 0; r < x[1].num_elements(); ++r) {
    const int64_t target = x[1].IntAt(r);
    int64_t larger = 0;
    for (int64_t i = 0; target >= 0 && target < classes && i < classes; ++i) {
      if (x[0].data<float>()[r * classes + i] > x[0].data<float>()[r * classes + target]) ++larger;
    }
    out.data<bool>()[r] = target >= 0 && target < classes && larger < k;
  }
  return {out};
}

// ---- diagonals

Tensors DiagReference(const Node&, const Tensors& x) {
  const int r = x[0].rank();
  return {
      PickOne(x[0], x[0].shape().Concatenate(x[0].shape()), [&](const pick::Index& i) -> int64_t {
        return std::equal(i.begin(), i.begin() + r, i.begin() + r)
                   ? Flat(x[0].shape(), pick::Index(i.begin(), i.begin() + r))
                   : -1;
      })};
}

Tensors DiagPartReference(const Node&, const Tensors& x) {
  return {PickOne(x[0], x[0].shape().Sub(0, x[0].rank() / 2), [&](const pick::Index& i) {
    pick::Index twice = i;
    twice.insert(twice.end(), i.begin(), i.end());
    return Flat(x[0].shape(), twice);
  })};
}

// Diagonals low..high of rows x cols matrices.
struct Band {
  int64_t rows, cols, low, high;
  std::string align = "LEFT_LEFT";

  int64_t Length(int64_t k) const {
    return std::min(rows + std::min<int64_t>(k, 0), cols - std::max<int64_t>(k, 0));
  }
  int64_t Longest() const {
    int64_t n = 0;
    for (int64_t k = low; k <= high; ++k) n = std::max(n, Length(k));
    return n;
  }
  // Returns the position of element (r, c) of the matrix among the stored diagonals: the diagonal's
  // row and the index in it; -1 if it is on none.
  Source Stored(int64_t r, int64_t c) const {
    const int64_t k = c - r;
    if (k < low || k > high) return {-1, -1};
    const std::string side =
        k >= 0 ? align.substr(0, align.find('_')) : align.substr(align.find('_') + 1);
    return {static_cast<int>(high - k),
            std::min(r, c) + (side == "RIGHT" ? Longest() - Length(k) : 0)};
  }
};

// Returns the index among stored diagonals for element i of the matrices, or nullopt.
pick::Index StoredIndex(const Band& band, const pick::Index& i) {
  const auto [row, place] = band.Stored(i[i.size() - 2], i.back());
  if (row < 0) return {};
  pick::Index at(i.begin(), i.end() - 2);
  if (band.high > band.low) at.push_back(row);
  at.push_back(place);
  return at;
}

OpReference MatrixDiagReference(Band band) {
  return [band](const Node&, const Tensors& x) -> Tensors {
    Shape shape = x[0].shape().Sub(0, x[0].rank() - (band.high > band.low ? 2 : 1));
    shape.AddDim(band.rows);
    shape.AddDim(band.cols);
    return {Pick({x[0], x.back()}, shape, [&](const pick::Index& i) {
      const pick::Index at = StoredIndex(band, i);
      if (at.empty()) return x.size() == 5 ? Source(1, 0) : Source(-1, 0);
      return Source(0, Flat(x[0].shape(), at));
    })};
  };
}

OpReference MatrixDiagPartReference(Band band) {
  return [band](const Node&, const Tensors& x) -> Tensors {
    Shape shape = x[0].shape().Sub(0, x[0].rank() - 2);
    if (band.high > band.low) shape.AddDim(band.high - band.low + 1);
    shape.AddDim(band.Longest());
    std::vector<int64_t> from(shape.num_elements(), -1);
    ForEachIndex(x[0].shape(), [&](int64_t flat, const pick::Index& i) {
      const pick::Index at = StoredIndex(band, i);
      if (!at.empty()) from[Flat(shape, at)] = flat;
    });
    return {Pick({x[0], x.back()}, shape, [&](const pick::Index& i) {
      const int64_t flat = from[Flat(shape, i)];
      return flat < 0 ? Source(1, 0) : Source(0, flat);
    })};
  };
}

OpReference MatrixSetDiagReference(Band band) {
  return [band](const Node&, const Tensors& x) -> Tensors {
    return {Pick({x[0], x[1]}, x[0].shape(), [&](const pick::Index& i) {
      const pick::Index at = StoredIndex(band, i);
      return at.empty() ? Source(0, Flat(x[0].shape(), i)) : Source(1, Flat(x[1].shape(), at));
    })};
  };
}

OpReference BandPartReference(int64_t below, int64_t above) {
  return [=](const Node&, const Tensors& x) -> Tensors {
    return {PickOne(x[0], x[0].shape(), [&](const pick::Index& i) -> int64_t {
      const int64_t r = i[i.size() - 2], c = i.back();
      const bool in = (below < 0 || r - c <= below) && (above < 0 || c - r <= above);
      return in ? Flat(x[0].shape(), i) : -1;
    })};
  };
}

// ---- rows

std::vector<OpCase> GatherCases() {
  const Tensor nd = Tensor::Of<int32_t>({3, 2}, {0, 1, 2, 0, 0, 1}),
               column = Tensor::Of<int64_t>({4, 1}, {3, 0, 3, 1});
  const Tensor distinct = Tensor::Of<int32_t>({3, 1}, {2, 0, 4});
  std::vector<OpCase> rows = {
      OpCase("Gather")
          .TypeAttr("Tparams")
          .Input({5, 2, 3})
          .Input(I32({4, 0, 4}))
          .Reference(GatherReference(0, 0)),
      OpCase("Gather")
          .Label("scalar")
          .TypeAttr("Tparams")
          .Input({5, 2})
          .Input(Tensor::Scalar<int64_t>(3))
          .Reference(GatherReference(0, 0)),
      OpCase("Gather")
          .Label("strings")
          .TypeAttr("Tparams")
          .Input({5})
          .Input(I32({1, 1}))
          .Types({DT_STRING})
          .Reference(GatherReference(0, 0)),
      OpCase("GatherV2")
          .TypeAttr("Tparams")
          .Input({5, 2, 3})
          .Input(Rows({4, 0, 4, 1}))
          .Input(I32(0))
          .Reference(GatherReference(0, 0)),
      OpCase("GatherV2")
          .Label("inner")
          .TypeAttr("Tparams")
          .Input({2, 5, 3})
          .Input(I64({4, 0, 4}))
          .Input(I32(-2))
          .Reference(GatherReference(1, 0)),
      OpCase("GatherV2")
          .Label("last")
          .TypeAttr("Tparams")
          .Input({2, 3, 4})
          .Input(I32({3, 0}))
          .Input(I32(2))
          .Reference(GatherReference(2, 0)),
      OpCase("GatherV2")
          .Label("batch")
          .TypeAttr("Tparams")
          .Input({2, 5, 3})
          .Input(Rows({4, 0, 2, 2}))
          .Input(I32(1))
          .Attr("batch_dims", 1)
          .Reference(GatherReference(1, 1)),
      OpCase("GatherV2")
          .Label("batch_inner")
          .TypeAttr("Tparams")
          .Input({2, 3, 4, 2})
          .Input(Rows({3, 0, 2, 2}))
          .Input(I32(2))
          .Attr("batch_dims", -1)
          .Reference(GatherReference(2, 1)),
      OpCase("GatherV2")
          .Label("int16")
          .TypeAttr("Tparams")
          .Input({5, 2})
          .Input(Tensor::Vector<int16_t>({4, 1}))
          .Input(I32(0))
          .Reference(GatherReference(0, 0)),
      OpCase("GatherV2")
          .Label("empty")
          .TypeAttr("Tparams")
          .Input({0, 2})
          .Input(I32({}))
          .Input(I32(0))
          .Reference(GatherReference(0, 0))
          .Gradient(0),
      OpCase("GatherNd")
          .TypeAttr("Tparams")
          .Input({3, 2, 4})
          .Input(nd)
          .Reference(GatherNdReference),
      OpCase("GatherNd")
          .Label("rows")
          .TypeAttr("Tparams")
          .Input({4, 3})
          .Input(column)
          .Reference(GatherNdReference),
      OpCase("GatherNd")
          .Label("whole")
          .TypeAttr("Tparams")
          .Input({2, 3})
          .Input(Tensor(DT_INT32, {2, 0}))
          .Reference(GatherNdReference),
      OpCase("GatherNd")
          .Label("strings")
          .TypeAttr("Tparams")
          .Input({3, 2})
          .Input(nd)
          .Types({DT_STRING})
          .Reference(GatherNdReference),
      OpCase("ScatterNd")
          .Input(nd)
          .Input({3, 4})
          .Input(I32({3, 2, 4}))
          .Reference(ScatterNdReference)
          .Gradient(2),
      OpCase("ScatterNd")
          .Label("scalars")
          .Input(column)
          .Input({4})
          .Input(I64({5}))
          .Reference(ScatterNdReference),
      OpCase("ScatterNd")
          .Label("wide")
          .Input(column)
          .Input({4, 300})
          .Input(I64({5, 300}))
          .Reference(ScatterNdReference)
          .Gradient(0),
      OpCase("ScatterNd")
          .Label("strings")
          .Input(distinct)
          .Input({3})
          .Input(I32({5}))
          .Types({DT_STRING})
          .Reference(ScatterNdReference),
      OpCase("ScatterNdNonAliasingAdd")
          .Input({4, 2})
          .Input(column)
          .Input({4, 2})
          .NotTypes(DataTypesOf(QuantizedNumbers()))
          .Reference(TensorScatterReference(std::plus<complex128>())),
      OpCase("TensorScatterUpdate")
          .Input({5, 2})
          .Input(distinct)
          .Input({3, 2})
          .Reference(TensorScatterReference(Second)),
      OpCase("TensorScatterUpdate")
          .Label("strings")
          .Input({5})
          .Input(distinct)
          .Input({3})
          .Types({DT_STRING})
          .Reference(TensorScatterReference(Second)),
      OpCase("TensorScatterAdd")
          .Input({4, 2})
          .Input(column)
          .Input({4, 2})
          .Reference(TensorScatterReference(std::plus<complex128>())),
      OpCase("TensorScatterSub")
          .Input({4, 2}, {4, 6})
          .Input(column)
          .Input({4, 2}, {0, 2})
          .NotTypes({DT_BOOL})
          .Reference(TensorScatterReference(std::minus<complex128>())),
      OpCase("TensorScatterMin")
          .Input({5, 2}, {.distinct = true})
          .Input(distinct)
          .Input({3, 2}, {.distinct = true})
          .NotTypes({DT_BOOL, DT_COMPLEX64, DT_COMPLEX128})
          .Reference(TensorScatterReference(Smaller)),
      OpCase("TensorScatterMax")
          .Input({5, 2}, {.distinct = true})
          .Input(distinct)
          .Input({3, 2}, {.distinct = true})
          .NotTypes({DT_BOOL, DT_COMPLEX64, DT_COMPLEX128})
          .Reference(TensorScatterReference(Greater)),
  };
  return rows;
}

std::vector<OpCase> LookUpCases() {
  const DataTypes quantized = DataTypesOf(QuantizedNumbers());
  return {
      OpCase("OneHot")
          .Input(I64({0, 3, -1, 2, 7}))
          .Input(I32(4))
          .Input(Shape())
          .Input(Shape())
          .Reference(OneHotReference),
      OpCase("OneHot")
          .Label("first")
          .Input(Rows({0, 2, 1, 1}))
          .Input(I32(3))
          .Input(Shape())
          .Input(Shape())
          .Attr("axis", 0)
          .Reference(OneHotReference),
      OpCase("OneHot")
          .Label("strings")
          .Input(I32({1, 0}))
          .Input(I32(2))
          .Input(Shape())
          .Input(Shape())
          .Types({DT_STRING})
          .Reference(OneHotReference),
      OpCase("Where").Input({3, 4}).NotTypes(quantized).ShapesDependOnValues().Reference(
          WhereReference),
      OpCase("Unique").Input({20}, {-3, 3}).ShapesDependOnValues().Reference(UniqueReference),
      OpCase("Unique")
          .Label("strings")
          .Input({20})
          .Types({DT_STRING})
          .Attr("out_idx", DT_INT64)
          .ShapesDependOnValues()
          .Reference(UniqueReference),
      OpCase("UniqueWithCounts")
          .Input({20}, {-3, 3})
          .ShapesDependOnValues()
          .Reference(UniqueReference),
      OpCase("ListDiff")
          .Input({20}, {-3, 3})
          .Input({3}, {-3, 3})
          .ShapesDependOnValues()
          .Reference(ListDiffReference),
      OpCase("ListDiff")
          .Label("strings")
          .Input({9})
          .Input({3})
          .Types({DT_STRING})
          .ShapesDependOnValues()
          .Reference(ListDiffReference),
      OpCase("TopKV2")
          .Input({2, 3, 5}, {.distinct = true})
          .Input(I32(3))
          .Reference(TopKV2Reference),
      OpCase("TopKV2")
          .Label("ties")
          .Input({4, 40}, {-2, 2})
          .Input(I32(3))
          .Types({DT_INT32, DT_FLOAT})
          .Reference(TopKV2Reference),
      OpCase("TopKV2")
          .Label("one")
          .Input({4, 9}, {-2, 2})
          .Input(I32(1))
          .Types({DT_INT8, DT_HALF})
          .Reference(TopKV2Reference),
      OpCase("TopKV2")
          .Label("all")
          .Input({9})
          .Input(I32(9))
          .Types({DT_UINT8, DT_FLOAT})
          .Reference(TopKV2Reference),
      OpCase("TopKV2")
          .Label("none")
          .Input({3, 4})
          .Input(I32(0))
          .Types({DT_FLOAT})
          .Reference(TopKV2Reference),
      OpCase("InTopK")
          .Types({DT_INT32})
          .Input(DT_FLOAT, {4, 6})
          .Input(I32({0, 5, 3, 9}))
          .Attr("k", 3)
          .Reference(InTopKReference),
      OpCase("InTopKV2")
          .Types({DT_INT64})
          .Input(DT_FLOAT, {4, 6})
          .Input(I64({0, 5, 3, -1}))
          .Input(Tensor::Scalar<int64_t>(2))
          .Reference(InTopKReference),
  };
}

std::vector<OpCase> DiagCases() {
  std::vector<OpCase> rows = {
      OpCase("Diag").Input({2, 3}).Reference(DiagReference),
      OpCase("DiagPart").Input({2, 3, 2, 3}).Reference(DiagPartReference),
      OpCase("MatrixDiag").Input({2, 3}).Reference(MatrixDiagReference({3, 3, 0, 0})),
      OpCase("MatrixDiagPart").Input({2, 3, 4}).Reference(MatrixDiagPartReference({3, 4, 0, 0})),
      OpCase("MatrixDiagPart")
          .Label("square")
          .Input({2, 3, 3})
          .Reference(MatrixDiagPartReference({3, 3, 0, 0})),
      OpCase("MatrixSetDiag")
          .Input({2, 4, 3})
          .Input({2, 3})
          .Reference(MatrixSetDiagReference({4, 3, 0, 0})),
      OpCase("MatrixDiagV2")
          .Input({2, 3})
          .Input(I32(1))
          .Input(I32(-1))
          .Input(I32(-1))
          .Input(Shape())
          .Reference(MatrixDiagReference({4, 4, 1, 1}))
          .GradientInputs({0}),
      OpCase("MatrixDiagV2")
          .Label("sized")
          .Input({3})
          .Input(I32(-1))
          .Input(I32(4))
          .Input(I32(3))
          .Input(Shape())
          .Reference(MatrixDiagReference({4, 3, -1, -1}))
          .GradientInputs({0}),
      OpCase("MatrixDiagPartV2")
          .Input({2, 3, 4})
          .Input(I32({-1, 2}))
          .Input(Shape())
          .Reference(MatrixDiagPartReference({3, 4, -1, 2}))
          .Gradient(0),
      OpCase("MatrixDiagPartV2")
          .Label("one")
          .Input({2, 3, 4})
          .Input(I32(-2))
          .Input(Shape())
          .Reference(MatrixDiagPartReference({3, 4, -2, -2}))
          .GradientInputs({0}),
      OpCase("MatrixSetDiagV2")
          .Input({2, 3, 4})
          .Input({2, 3, 3})
          .Input(I32({-1, 1}))
          .Reference(MatrixSetDiagReference({3, 4, -1, 1}))
          .Gradient(0),
      OpCase("MatrixBandPart")
          .Input({2, 4, 5})
          .Input(Tensor::Scalar<int64_t>(1))
          .Input(Tensor::Scalar<int64_t>(2))
          .Reference(BandPartReference(1, 2)),
      OpCase("MatrixBandPart")
          .Label("upper")
          .Input({4, 3})
          .Input(I32(0))
          .Input(I32(-1))
          .Reference(BandPartReference(0, -1)),
  };
  for (const char* align : {"LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT"}) {
    const Band band{3, 4, -1, 2, align};
    rows.push_back(OpCase("MatrixDiagV3")
                       .Label(align)
                       .Input({2, 4, 3})
                       .Input(I32({-1, 2}))
                       .Input(I32(3))
                       .Input(I32(4))
                       .Input(Shape())
                       .Attr("align", align)
                       .Reference(MatrixDiagReference(band))
                       .GradientInputs({0}));
    rows.push_back(OpCase("MatrixDiagPartV3")
                       .Label(align)
                       .Input({2, 3, 4})
                       .Input(I32({-1, 2}))
                       .Input(Shape())
                       .Attr("align", align)
                       .Reference(MatrixDiagPartReference(band))
                       .GradientInputs({0}));
    rows.push_back(OpCase("MatrixSetDiagV3")
                       .Label(align)
                       .Input({2, 3, 4})
                       .Input({2, 4, 3})
                       .Input(I32({-1, 2}))
                       .Attr("align", align)
                       .Reference(MatrixSetDiagReference(band)));
  }
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Gather, OpSweepTest, testing::ValuesIn(GatherCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(LookUp, OpSweepTest, testing::ValuesIn(LookUpCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(Diag, OpSweepTest, testing::ValuesIn(DiagCases()), OpCaseName);

}  // namespace weir
