#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/pick.h"

// Ops on rows of a forwarded tensor, and parallel concatenation.
namespace weir {

namespace {

using namespace pick;  // NOLINT: a vocabulary made for these tables

Tensors UpdateReference(const Node& node, const Tensors& in) {
  Tensor y = in[0].DeepCopy();
  const int64_t rows = y.dim(0), count = rows == 0 ? 0 : y.num_elements() / rows;
  const double sign = node.op_name() == "InplaceSub" ? -1 : 1;
  for (int64_t k = 0; k < in[1].num_elements(); ++k) {
    const int64_t row = in[1].IntAt(k) < 0 ? in[1].IntAt(k) + rows : in[1].IntAt(k);
    for (int64_t i = 0; i < count; ++i) {
      const auto update = [&](auto* to, const auto* from) {
        to += row * count + i;
        from += k * count + i;
        *to = node.op_name() == "InplaceUpdate" ? *from : *to + sign * *from;
      };
      if (y.dtype() == DT_COMPLEX128) {
        update(y.data<complex128>(), in[2].data<complex128>());
      } else {
        update(y.data<double>(), in[2].data<double>());
      }
    }
  }
  return {y};
}

Tensors JoinReference(const Node& node, const Tensors& in) {
  const Shape shape = node.attr<Shape>("shape");
  return {Pick(in, shape, [&](const pick::Index& i) {
    pick::Index rest = i;
    rest[0] = 0;
    return Source(static_cast<int>(i[0]), Flat(in[0].shape(), rest));
  })};
}

std::vector<OpCase> InplaceCases() {
  const std::vector<DataType> numbers = {
      DT_HALF,  DT_BFLOAT16, DT_FLOAT,  DT_DOUBLE, DT_INT8,      DT_INT16,     DT_INT32,
      DT_INT64, DT_UINT8,    DT_UINT16, DT_UINT32, DT_COMPLEX64, DT_COMPLEX128};
  std::vector<OpCase> rows;
  for (const char* op : {"InplaceUpdate", "InplaceAdd", "InplaceSub"}) {
    const Range range = {5, 9}, change = {0, 2};  // keeps unsigned results nonnegative
    rows.push_back(OpCase(op)
                       .Input({4, 3}, range)
                       .Input(I32({2, -1, 2}))
                       .Input({3, 3}, change)
                       .Types(numbers)
                       .Gradient(0)
                       .Reference(UpdateReference));
    rows.push_back(OpCase(op)
                       .Label("no_rows")
                       .Input({4, 3}, range)
                       .Input(Tensor(DT_INT32, Shape({0})))
                       .Input({0, 3}, range)
                       .Types({DT_FLOAT})
                       .Gradient(0)
                       .Reference(UpdateReference));
  }
  rows.push_back(OpCase("ParallelConcat")
                     .List({Shape({1, 2, 3}), Shape({1, 2, 3}), Shape({1, 2, 3})})
                     .Attr("shape", Shape({3, 2, 3}))
                     .Gradient(0)
                     .Reference(JoinReference));
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Inplace, OpSweepTest, testing::ValuesIn(InplaceCases()), OpCaseName);

namespace {

TEST(Inplace, ReplacesStrings) {
  const Tensor x = Tensor::Vector<std::string>({"a", "b", "c"});
  const absl::StatusOr<Tensors> out =
      RunFed("InplaceUpdate", {x, I32({-2}), Tensor::Vector<std::string>({"long enough to move"})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].data<std::string>()[1], "long enough to move");
  EXPECT_EQ((*out)[0].data<std::string>()[2], "c");
}

TEST(Inplace, RejectsMismatchedRows) {
  const Tensor x = Tensor::Of<float>({2, 2}, {1, 2, 3, 4}), row = Tensor::Of<float>({1, 2}, {5, 6});
  const Tensor wide = Tensor::Of<float>({1, 3}, {5, 6, 7});
  for (const Tensors& in :
       {Tensors{x, I32(0), row}, Tensors{x, I32({0}), wide}, Tensors{x, I32({0, 1}), row},
        Tensors{Tensor::Scalar(1.0f), I32({0}), Tensor::Scalar(1.0f)}}) {
    EXPECT_EQ(RunFed("InplaceAdd", in).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(RunFed("ParallelConcat", {row, x}, {{"shape", Shape({2, 2})}}, 2).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace

}  // namespace weir
