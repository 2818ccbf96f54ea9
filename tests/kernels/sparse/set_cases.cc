#include <algorithm>
#include <map>
#include <set>

#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/pick.h"

// Sets in the last dimension of dense and sparse tensors.
namespace weir {

namespace {

using namespace pick;  // NOLINT: a vocabulary made for these tables

using Sets = std::map<std::vector<int64_t>, std::set<double>>;

Sets DenseSets(const Tensor& x) {
  Sets sets;
  const std::vector<double> values = ToDoubles(x);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    std::vector<int64_t> group;
    int64_t rest = i / x.dim(-1);
    for (int d = x.rank() - 2; d >= 0; --d) {
      group.insert(group.begin(), rest % x.dim(d));
      rest /= x.dim(d);
    }
    sets[group].insert(values[i]);
  }
  return sets;
}

Sets SparseSets(const Tensor& indices, const Tensor& values) {
  Sets sets;
  const std::vector<double> v = ToDoubles(values);
  const int64_t rank = indices.dim(1);
  for (int64_t i = 0; i < indices.dim(0); ++i) {
    const int64_t* row = indices.data<int64_t>() + i * rank;
    sets[std::vector<int64_t>(row, row + rank - 1)].insert(v[i]);
  }
  return sets;
}

// The node's operation on its two arguments: dense ones have one input, sparse ones three.
Tensors OperationReference(const Node& n, const Tensors& x) {
  const bool first_sparse = x.size() == 6;
  const Sets a = first_sparse ? SparseSets(x[0], x[1]) : DenseSets(x[0]);
  const Sets b = x.size() == 2 ? DenseSets(x[1])
                               : SparseSets(x[first_sparse ? 3 : 1], x[first_sparse ? 4 : 2]);
  std::vector<int64_t> dims;
  if (first_sparse) {
    dims.assign(x[2].data<int64_t>(), x[2].data<int64_t>() + x[2].num_elements());
  } else {
    dims.assign(x[0].shape().dims().begin(), x[0].shape().dims().end());
  }
  const std::string operation = n.attr<std::string>("set_operation");
  Sets all = a;
  for (const auto& [group, set] : b) all[group].insert(set.begin(), set.end());
  std::vector<int64_t> indices;
  std::vector<double> values;
  dims.back() = 0;
  for (const auto& [group, candidates] : all) {
    int64_t k = 0;
    for (const double v : candidates) {
      const bool in_a = a.contains(group) && a.at(group).contains(v);
      const bool in_b = b.contains(group) && b.at(group).contains(v);
      const bool taken = operation == "union"          ? true
                         : operation == "intersection" ? in_a && in_b
                         : operation == "a-b"          ? in_a && !in_b
                                                       : in_b && !in_a;
      if (!taken) continue;
      indices.insert(indices.end(), group.begin(), group.end());
      indices.push_back(k++);
      values.push_back(v);
    }
    dims.back() = std::max(dims.back(), k);
  }
  Tensor rows(DT_INT64,
              Shape({static_cast<int64_t>(values.size()), static_cast<int64_t>(dims.size())}));
  std::copy(indices.begin(), indices.end(), rows.data<int64_t>());
  return {rows, Tensor::Vector<double>(absl::MakeConstSpan(values)),
          Tensor::Vector<int64_t>(absl::MakeConstSpan(dims))};
}

Tensors SizeReference(const Node&, const Tensors& x) {
  std::vector<int64_t> dims(x[2].data<int64_t>(), x[2].data<int64_t>() + x[2].num_elements() - 1);
  const Shape shape{absl::MakeConstSpan(dims)};
  Tensor sizes(DT_INT32, shape);
  std::fill_n(sizes.data<int32_t>(), sizes.num_elements(), 0);
  for (const auto& [group, set] : SparseSets(x[0], x[1])) {
    int64_t at = 0;
    for (size_t d = 0; d < group.size(); ++d) at = at * dims[d] + group[d];
    sizes.data<int32_t>()[at] = static_cast<int32_t>(set.size());
  }
  return {sizes};
}

Tensor Rows(std::initializer_list<int64_t> values) {
  return Tensor::Of<int64_t>(Shape({static_cast<int64_t>(values.size()) / 3, 3}), values);
}

std::vector<OpCase> SetCases() {
  const Range few = {0, 5};
  const std::vector<DataType> types = {DT_INT8, DT_INT16, DT_INT32, DT_INT64, DT_UINT8, DT_UINT16};
  const Tensor shape = I64({2, 3, 4});
  const Tensor some = Rows({0, 0, 0, 0, 0, 3, 0, 2, 1, 1, 0, 0, 1, 0, 1, 1, 0, 2});
  const Tensor others = Rows({0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 3});
  std::vector<OpCase> rows;
  for (const auto& [label, operation] : {std::pair("minus", "a-b"),
                                         {"reversed", "b-a"},
                                         {"intersection", "intersection"},
                                         {"union", "union"}}) {
    rows.push_back(OpCase("DenseToDenseSetOperation")
                       .Label(label)
                       .Attr("set_operation", operation)
                       .Input({2, 3, 4}, few)
                       .Input({2, 3, 6}, few)
                       .Types(types)
                       .ShapesDependOnValues()
                       .Reference(OperationReference));
    rows.push_back(OpCase("DenseToSparseSetOperation")
                       .Label(label)
                       .Attr("set_operation", operation)
                       .Input({2, 3, 4}, few)
                       .Input(some)
                       .Input({6}, few)
                       .Input(shape)
                       .Types(types)
                       .ShapesDependOnValues()
                       .Reference(OperationReference));
    rows.push_back(OpCase("SparseToSparseSetOperation")
                       .Label(label)
                       .Attr("set_operation", operation)
                       .Input(some)
                       .Input({6}, few)
                       .Input(shape)
                       .Input(others)
                       .Input({4}, few)
                       .Input(shape)
                       .Types(types)
                       .ShapesDependOnValues()
                       .Reference(OperationReference));
  }
  rows.push_back(OpCase("SetSize")
                     .Input(some)
                     .Input({6}, few)
                     .Input(shape)
                     .Types(types)
                     .ShapesDependOnValues()
                     .Reference(SizeReference));
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Sets, OpSweepTest, testing::ValuesIn(SetCases()), OpCaseName);

namespace {

TEST(Sets, SetsOfStringsAreSorted) {
  const Tensor a = Tensor::Of<std::string>({1, 3}, {"pear", "apple", "fig"});
  const Tensor b = Tensor::Of<std::string>({1, 1}, {"fig"});
  const absl::StatusOr<Tensors> out =
      RunFed("DenseToDenseSetOperation", {a, b}, {{"set_operation", "a-b"}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[1].data<std::string>()[0], "apple");
  EXPECT_EQ((*out)[1].data<std::string>()[1], "pear");
  EXPECT_EQ((*out)[2].data<int64_t>()[1], 2);
}

TEST(Sets, RejectsInvalidSets) {
  const Tensor matrix = Tensor::Of<int64_t>({2, 2}, {1, 2, 3, 4});
  const Tensor row = I64({1, 2}), shape = I64({2, 2}), values = I64({5, 6});
  const auto indices = [](std::initializer_list<int64_t> v) {
    return Tensor::Of<int64_t>({2, 2}, v);
  };
  const struct {
    const char* op;
    Tensors inputs;
    const char* operation;
    const char* message;
  } rows[] = {
      {"DenseToDenseSetOperation", {matrix, matrix}, "xor", "Invalid set_operation xor."},
      {"DenseToDenseSetOperation", {row, row}, "union", "has rank 1 < 2"},
      {"DenseToDenseSetOperation",
       {matrix, Tensor::Of<int64_t>({1, 2}, {1, 2})},
       "union",
       "Mismatched shapes [2] vs [1]"},
      {"SetSize", {indices({0, 0, 0, 5}), values, shape}, "", "is out of bounds"},
      {"SetSize", {indices({1, 0, 0, 1}), values, shape}, "", "is out of order"},
      {"SetSize", {indices({1, 0, 1, 0}), values, shape}, "", "is repeated"},
      {"SetSize",
       {indices({0, 0, 1, 0}), I64({5}), shape},
       "",
       "indices (2) and values (1) do not match"},
      {"SetSize", {indices({0, 0, 1, 0}), values, I64({2, -2})}, "", ""},
      {"SetSize", {indices({0, 0, 1, 0}), values, I64({2, 2, 2})}, "", "do not match"},
  };
  for (const auto& row_of : rows) {
    Attrs attrs;
    if (*row_of.operation != 0) attrs = {{"set_operation", std::string(row_of.operation)}};
    const absl::StatusOr<Tensors> out = RunFed(row_of.op, row_of.inputs, attrs);
    EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument) << row_of.message;
    EXPECT_NE(out.status().message().find(row_of.message), std::string::npos) << out.status();
  }
}

}  // namespace

}  // namespace weir
