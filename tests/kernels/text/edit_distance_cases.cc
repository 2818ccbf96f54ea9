#include <algorithm>

#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/sparse_tables.h"

// Levenshtein distances by their recursive definition.
namespace weir {

namespace {

using namespace pick;  // NOLINT: a vocabulary made for these tables

int64_t Distance(const std::vector<double>& a, const std::vector<double>& b, size_t i, size_t j) {
  if (i == 0 || j == 0) return static_cast<int64_t>(i + j);
  if (a[i - 1] == b[j - 1]) return Distance(a, b, i - 1, j - 1);
  return 1 + std::min({Distance(a, b, i - 1, j), Distance(a, b, i, j - 1),
                       Distance(a, b, i - 1, j - 1)});
}

Tensors DistanceReference(const Node& node, const Tensors& x) {
  std::map<pick::Index, std::vector<double>> sequences[2];
  Shape shape;
  for (int k = 0; k < 2; ++k) {
    const std::vector<double> values = ToDoubles(x[3 * k + 1]);
    for (const auto& [row, i] : PlacesOf(x[3 * k]))
      sequences[k][pick::Index(row.begin(), row.end() - 1)].push_back(values[i]);
  }
  for (size_t d = 0; d + 1 < pick::Ints(x[2]).size(); ++d)
    shape.AddDim(std::max(pick::Ints(x[2])[d], pick::Ints(x[5])[d]));
  std::vector<double> out(shape.num_elements());
  ForEachIndex(shape, [&](int64_t flat, const pick::Index& index) {
    const std::vector<double>&a = sequences[0][index], &b = sequences[1][index];
    out[flat] = static_cast<double>(Distance(a, b, a.size(), b.size()));
    if (node.attr<bool>("normalize") && out[flat] > 0)
      out[flat] /= static_cast<double>(b.size());  // infinite if the truth is empty
  });
  return {Doubles(shape, out)};
}

std::vector<OpCase> DistanceCases() {
  std::vector<OpCase> rows;
  for (const bool normalize : {true, false}) {
    rows.push_back(
        OpCase("EditDistance")
            .Label(normalize ? "normalized" : "plain")
            .Attr("normalize", normalize)
            .Input(Matrix(3, {0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 2}))
            .Input({7}, {0, 2})
            .Input(I64({2, 2, 3}))
            .Input(Matrix(3, {0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 1, 0, 0, 1, 1, 0, 1, 1, 1}))
            .Input({7}, {0, 2})
            .Input(I64({2, 2, 4}))
            .Types({DT_BOOL, DT_INT8, DT_INT32, DT_INT64, DT_UINT8, DT_UINT16, DT_INT16})
            .Gradient(0)
            .Reference(DistanceReference));
  }
  return rows;
}

}  // namespace

TEST(Distance, RejectsFarOutOfRangeIndices) {
  const Tensor far = Matrix(3, {INT64_MIN, -1, 0}), values = Tensor::Vector<int64_t>({1}),
               shape = I64({2, 2, 2});
  const absl::Status s = RunFed("EditDistance", {far, values, shape, far, values, shape}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInternal);
  EXPECT_NE(s.message().find("Got an inner product -1 which would require writing to outside of "
                             "the buffer for the output tensor"),
            std::string::npos)
      << s;
}

INSTANTIATE_TEST_SUITE_P(Distance, OpSweepTest, testing::ValuesIn(DistanceCases()), OpCaseName);

}  // namespace weir
