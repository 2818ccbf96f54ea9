#include <algorithm>

#include "weir/tests/kernels/lib/pick.h"

// DynamicPartition and DynamicStitch.
namespace weir {

namespace {

using namespace pick;  // NOLINT: a vocabulary made for these tables

// For each partition, the positions in `partitions` that are assigned to it, in order.
Tensors PartitionReference(const Node& n, const Tensors& x) {
  const Tensor &data = x[0], &partitions = x[1];
  const int prefix = partitions.rank();
  const Shape tail = data.shape().Sub(prefix);
  Tensors out;
  for (int p = 0; p < n.num_outputs(); ++p) {
    pick::Index places;
    for (int64_t i = 0; i < partitions.num_elements(); ++i) {
      if (partitions.IntAt(i) == p) places.push_back(i);
    }
    const Shape shape = Shape({static_cast<int64_t>(places.size())}).Concatenate(tail);
    out.push_back(PickOne(data, shape, [&](const pick::Index& i) {
      return places[i[0]] * tail.num_elements() + Flat(tail, pick::Index(i.begin() + 1, i.end()));
    }));
  }
  return out;
}

// The last occurrence of a row wins; a row that does not occur is zero.
Tensors StitchReference(const Node&, const Tensors& x) {
  const size_t n = x.size() / 2;
  const Shape tail = x[n].shape().Sub(x[0].rank());
  std::vector<Source> rows;
  for (size_t m = 0; m < n; ++m) {
    for (int64_t i = 0; i < x[m].num_elements(); ++i) {
      const size_t row = static_cast<size_t>(x[m].IntAt(i));
      if (row >= rows.size()) rows.resize(row + 1, Source(-1, 0));
      rows[row] = Source(static_cast<int>(m), i);
    }
  }
  const Shape shape = Shape({static_cast<int64_t>(rows.size())}).Concatenate(tail);
  return {
      Pick(Tensors(x.begin() + static_cast<int64_t>(n), x.end()), shape, [&](const pick::Index& i) {
        const Source row = rows[i[0]];
        return Source(row.first, row.second * tail.num_elements() +
                                     Flat(tail, pick::Index(i.begin() + 1, i.end())));
      })};
}

std::vector<OpCase> DataFlowCases() {
  std::vector<OpCase> rows = {
      OpCase("DynamicPartition")
          .Input({5, 2})
          .Input(I32({1, 0, 1, 2, 1}))
          .Attr("num_partitions", 4)
          .ShapesDependOnValues()
          .Reference(PartitionReference),
      OpCase("DynamicPartition")
          .Label("matrix")
          .Input({2, 2, 3})
          .Input(Rows({1, 0, 0, 1}))
          .Attr("num_partitions", 2)
          .ShapesDependOnValues()
          .Reference(PartitionReference),
      OpCase("DynamicPartition")
          .Label("scalar")
          .Input({3})
          .Input(I32(1))
          .Attr("num_partitions", 2)
          .ShapesDependOnValues()
          .Reference(PartitionReference),
      OpCase("DynamicPartition")
          .Label("strings")
          .Input({4})
          .Input(I32({1, 0, 1, 0}))
          .Attr("num_partitions", 2)
          .Types({DT_STRING})
          .ShapesDependOnValues()
          .Reference(PartitionReference),
  };
  for (const char* op : {"DynamicStitch", "ParallelDynamicStitch"}) {
    rows.push_back(OpCase(op)
                       .GivenList({I32({0, 4}), Rows({3, 1}), I32(5)})
                       .List({{2, 3}, {1, 2, 3}, {3}})
                       .Reference(StitchReference));
    rows.push_back(OpCase(op)
                       .Label("strings")
                       .GivenList({I32({1, 0})})
                       .List({Shape{2}})
                       .Types({DT_STRING})
                       .Reference(StitchReference));
  }
  rows.push_back(OpCase("DynamicStitch")
                     .Label("repeated")
                     .GivenList({I32({0, 1}), I32({1, 1})})
                     .List({{2, 2}, {2, 2}})
                     .Reference(StitchReference)
                     .Gradient(0));
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(DataFlow, OpSweepTest, testing::ValuesIn(DataFlowCases()), OpCaseName);

}  // namespace weir
