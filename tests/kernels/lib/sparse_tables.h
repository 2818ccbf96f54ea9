#ifndef WEIR_TESTS_KERNELS_LIB_SPARSE_TABLES_H_
#define WEIR_TESTS_KERNELS_LIB_SPARSE_TABLES_H_

#include <map>

#include "weir/tests/kernels/lib/pick.h"

// Helpers for the references of ops on sparse tensors: the positions that have an element, in
// order, and which element it is.
namespace weir::pick {

using Places = std::map<Index, int64_t>;

inline Places PlacesOf(const Tensor& indices) {
  Places places;
  const int64_t rank = indices.dim(1);
  for (int64_t i = 0; i < indices.dim(0); ++i) {
    Index row;
    for (int64_t d = 0; d < rank; ++d) row.push_back(indices.IntAt(i * rank + d));
    places[row] = i;
  }
  return places;
}

inline Tensor MatrixOf(const std::vector<Index>& rows, int64_t rank) {
  Tensor t(DT_INT64, Shape({static_cast<int64_t>(rows.size()), rank}));
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int64_t d = 0; d < rank; ++d) t.data<int64_t>()[i * rank + d] = rows[i][d];
  }
  return t;
}

inline Tensor VectorOf(const Index& values) {
  return Tensor::Vector<int64_t>(absl::MakeConstSpan(values));
}

// int64 [rows, rank]
inline Tensor Matrix(int64_t rank, std::initializer_list<int64_t> values) {
  return Tensor::Of<int64_t>(Shape({static_cast<int64_t>(values.size()) / rank, rank}), values);
}

inline Tensor Narrow(const Tensor& t) {
  Tensor out(DT_INT32, t.shape());
  for (int64_t i = 0; i < t.num_elements(); ++i)
    out.data<int32_t>()[i] = static_cast<int32_t>(t.IntAt(i));
  return out;
}

// Elements of xs, each given by its tensor and its position.
inline Tensor Elements(const Tensors& xs, const std::vector<Source>& sources) {
  return Pick(xs, Shape({static_cast<int64_t>(sources.size())}),
              [&](const Index& i) { return sources[i[0]]; });
}

// The indices and values of positions whose elements are in tensor `k` of xs.
inline Tensors SparseOf(const Tensors& xs, const std::map<Index, Source>& places, int64_t rank) {
  std::vector<Index> rows;
  std::vector<Source> sources;
  for (const auto& [row, source] : places) {
    rows.push_back(row);
    sources.push_back(source);
  }
  return {MatrixOf(rows, rank), Elements(xs, sources)};
}

}  // namespace weir::pick

#endif  // WEIR_TESTS_KERNELS_LIB_SPARSE_TABLES_H_
