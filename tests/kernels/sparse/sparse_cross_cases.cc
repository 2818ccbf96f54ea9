#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/sparse_tables.h"

// Feature crosses, with the results of TensorFlow 2.21.
namespace weir {

namespace {

using namespace pick;  // NOLINT: a vocabulary made for these tables

Tensor Texts(std::initializer_list<std::string> texts) {
  return Tensor::Vector<std::string>(texts);
}

// Two sparse columns and a dense one, of three examples; the second example has no cross.
OpCase Cross(absl::string_view op, absl::string_view label, Tensor first_values) {
  return OpCase(op)
      .Label(label)
      .GivenList({Matrix(2, {0, 0, 0, 1, 2, 0}), Matrix(2, {0, 0, 2, 0, 2, 1})})
      .GivenList({first_values, Texts({"x", "y", "z"})})
      .GivenList({I64({3, 2}), I64({3, 2})})
      .GivenList({Matrix(1, {1, 2, 3})})
      .ShapesDependOnValues();
}

OpReference Answers(const Tensor& values) {
  return [values](const Node&, const Tensors&) -> Tensors {
    return {Matrix(2, {0, 0, 0, 1, 2, 0, 2, 1}), values, I64({3, 2})};
  };
}

OpCase Hashed(absl::string_view label, int64_t num_buckets, const Tensor& answers) {
  return Cross("SparseCross", label, Texts({"a", "b", "c"}))
      .Attr("hashed_output", true)
      .Attr("num_buckets", num_buckets)
      .Attr("hash_key", int64_t{956888297470})
      .Attr("out_type", DT_INT64)
      .Attr("internal_type", DT_INT64)
      .Reference(Answers(answers));
}

std::vector<OpCase> CrossCases() {
  const Tensor letters = Texts({"a", "b", "c"});
  return {
      Cross("SparseCross", "texts", letters)
          .Attr("hashed_output", false)
          .Attr("num_buckets", int64_t{0})
          .Attr("hash_key", int64_t{1})
          .Attr("out_type", DT_STRING)
          .Attr("internal_type", DT_INT64)
          .Reference(Answers(Texts({"a_X_x_X_1", "b_X_x_X_1", "c_X_y_X_3", "c_X_z_X_3"}))),
      Hashed(
          "hashes", 0,
          I64({7722368476446652350, 5434263408962330, 6735157126599932720, 7042610332163216184})),
      Hashed("buckets", 100, I64({50, 37, 27, 91})),
      Cross("SparseCrossV2", "dash", letters)
          .Input(Tensor::Scalar("-"))
          .Reference(Answers(Texts({"a-x-1", "b-x-1", "c-y-3", "c-z-3"}))),
      Cross("SparseCrossHashed", "texts", letters)
          .Input(Tensor::Scalar<int64_t>(0))
          .Input(Tensor::Scalar(false))
          .Input(I64({1, 2}))
          .Reference(Answers(I64({5739564452218565631, 9117783702721625304, 2844565238442869018,
                                  358716771742186901}))),
      Cross("SparseCrossHashed", "numbers", I64({7, (int64_t{1} << 40) + 1, 9}))
          .Input(Tensor::Scalar<int64_t>(1000))
          .Input(Tensor::Scalar(false))
          .Input(I64({1, 2}))
          .Reference(Answers(I64({465, 109, 191, 217}))),
  };
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Cross, OpSweepTest, testing::ValuesIn(CrossCases()), OpCaseName);

}  // namespace weir
