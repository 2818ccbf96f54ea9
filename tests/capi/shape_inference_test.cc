#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/tests/capi/kernels.h"

// The shape functions of ops that a program registers.
namespace weir::capi_test {
namespace {

using ::testing::HasSubstr;

using ShapePtr = std::unique_ptr<TF_ShapeHandle, Deleter<TF_ShapeHandle, TF_DeleteShapeHandle>>;
using DimPtr =
    std::unique_ptr<TF_DimensionHandle, Deleter<TF_DimensionHandle, TF_DeleteDimensionHandle>>;

// The shape of input 0, which the operation below has as [2, ?, 5].
struct Input {
  explicit Input(TF_ShapeInferenceContext* c) : context(c) {
    TF_ShapeInferenceContextGetInput(c, 0, shape.get(), status.get());
  }
  int64_t Dim(TF_ShapeHandle* of, int64_t i) {
    const DimPtr dim(TF_NewDimensionHandle());
    TF_ShapeInferenceContextDim(context, of, i, dim.get());
    const int64_t extent = TF_DimensionHandleValue(dim.get());
    EXPECT_EQ(TF_DimensionHandleValueKnown(dim.get()), extent >= 0);
    return extent;
  }
  TF_Code code() const { return TF_GetCode(status.get()); }

  TF_ShapeInferenceContext* context;
  StatusPtr status{TF_NewStatus()};
  ShapePtr shape{TF_NewShapeHandle()}, result{TF_NewShapeHandle()};
};

int num_probes = 0;

void Probe(TF_ShapeInferenceContext* c, TF_Status* status) {
  ++num_probes;
  Input in(c);
  TF_Status* const s = in.status.get();
  TF_ShapeHandle *const shape = in.shape.get(), *const result = in.result.get();
  EXPECT_EQ(TF_ShapeInferenceContextNumInputs(c), 1);
  EXPECT_EQ(TF_ShapeInferenceContextRank(c, shape), 3);
  EXPECT_EQ(TF_ShapeInferenceContextRankKnown(c, shape), 1);
  EXPECT_EQ(TF_ShapeInferenceContextRankKnown(c, result), 0);
  EXPECT_EQ(in.Dim(shape, 0), 2);
  EXPECT_EQ(in.Dim(shape, 1), -1);
  EXPECT_EQ(in.Dim(shape, -1), 5);
  EXPECT_EQ(in.Dim(shape, 3), -1);
  TF_ShapeInferenceContextWithRank(c, shape, 3, result, s);
  EXPECT_EQ(in.code(), TF_OK);
  TF_ShapeInferenceContextWithRank(c, shape, 2, result, s);
  EXPECT_STREQ(TF_Message(s), "Shape must be rank 2 but is rank 3");
  TF_ShapeInferenceContextWithRankAtLeast(c, shape, 4, result, s);
  EXPECT_STREQ(TF_Message(s), "Shape must be at least rank 4 but is rank 3");
  TF_ShapeInferenceContextWithRankAtMost(c, shape, 2, result, s);
  EXPECT_STREQ(TF_Message(s), "Shape must be at most rank 2 but is rank 3");
  const ShapePtr unknown(TF_NewShapeHandle());
  TF_ShapeInferenceContextWithRank(c, unknown.get(), 2, result, s);
  EXPECT_EQ(TF_ShapeInferenceContextRank(c, result), 2);
  TF_ShapeInferenceContextSubshape(c, shape, 1, INT64_MAX, result, s);
  EXPECT_EQ(TF_ShapeInferenceContextRank(c, result), 2);
  EXPECT_EQ(in.Dim(result, 1), 5);
  TF_ShapeInferenceContextSubshape(c, shape, -2, -1, result, s);
  EXPECT_EQ(TF_ShapeInferenceContextRank(c, result), 1);
  TF_ShapeInferenceContextSubshape(c, shape, 2, 1, result, s);
  EXPECT_EQ(in.code(), TF_INVALID_ARGUMENT);
  TF_ShapeInferenceContextSubshape(c, shape, -4, 1, result, s);
  EXPECT_THAT(TF_Message(s), HasSubstr("start out of bounds: -4"));
  const ShapePtr seven(TF_ShapeInferenceContextVectorFromSize(c, 7));
  TF_ShapeInferenceContextConcatenateShapes(c, seven.get(), shape, result, s);
  EXPECT_EQ(TF_ShapeInferenceContextRank(c, result), 4);
  EXPECT_EQ(in.Dim(result, 0), 7);
  TF_DataType type = {};
  TF_ShapeInferenceContext_GetAttrType(c, "T", &type, s);
  EXPECT_EQ(type, TF_FLOAT);
  TF_ShapeInferenceContext_GetAttrType(c, "none", &type, s);
  EXPECT_EQ(in.code(), TF_NOT_FOUND);
  TF_ShapeInferenceContextGetInput(c, 1, result, s);
  EXPECT_STREQ(TF_Message(s), "input index out of range");
  TF_ShapeInferenceContextSetOutput(c, 2, shape, s);
  EXPECT_STREQ(TF_Message(s), "output index out of range");
  const ShapePtr scalar(TF_ShapeInferenceContextScalar(c));
  TF_ShapeInferenceContextSetOutput(c, 0, scalar.get(), status);
  TF_ShapeInferenceContextSetOutput(c, 1, seven.get(), status);
}

TEST(ShapeInference, ReadsInputsAndSetsOutputs) {
  ASSERT_EQ(RegisterOp("ShapeProbeOp", {"x: T"}, {"y: T", "z: T"}, {"T: type"}, &Probe), TF_OK);
  Runner runner;
  const std::vector<int64_t> dims = {2, -1, 5};
  TF_Operation* const probe = runner.Add("ShapeProbeOp", "probe", {runner.Placeholder("x", &dims)});
  ASSERT_NE(probe, nullptr) << runner.message();
  EXPECT_GE(num_probes, 1);
  EXPECT_EQ(TF_GraphGetTensorNumDims(runner.graph(), {probe, 0}, runner.status()), 0);
  int64_t extent = 0;
  TF_GraphGetTensorShape(runner.graph(), {probe, 1}, &extent, 1, runner.status());
  EXPECT_EQ(extent, 7);
}

TEST(ShapeInference, ErrorsFailTheOperation) {
  const auto matrix = [](TF_ShapeInferenceContext* c, TF_Status* status) {
    Input in(c);
    TF_ShapeInferenceContextWithRank(c, in.shape.get(), 2, in.result.get(), status);
    if (TF_GetCode(status) == TF_OK)
      TF_ShapeInferenceContextSetOutput(c, 0, in.result.get(), status);
  };
  ASSERT_EQ(RegisterOp("MatrixOp", {"x: float"}, {"y: float"}, {}, matrix), TF_OK);
  Runner runner;
  EXPECT_EQ(runner.Add("MatrixOp", "m", {runner.Const("c", 1)}), nullptr);
  EXPECT_EQ(runner.code(), TF_INVALID_ARGUMENT);
  EXPECT_THAT(runner.message(), HasSubstr("Shape must be rank 2 but is rank 0"));
  TF_Operation* const any = runner.Add("MatrixOp", "any", {runner.Placeholder("p")});
  EXPECT_EQ(TF_GraphGetTensorNumDims(runner.graph(), {any, 0}, runner.status()), 2);
}

TEST(ShapeInference, UnknownShapes) {
  ASSERT_EQ(RegisterOp("UnknownShapeOp", {}, {"y: float"}, {},
                       [](TF_ShapeInferenceContext* c, TF_Status* status) {
                         TF_ShapeInferenceContextSetUnknownShape(c, status);
                       }),
            TF_OK);
  Runner runner;
  TF_Operation* const op = runner.Add("UnknownShapeOp", "u");
  ASSERT_NE(op, nullptr) << runner.message();
  EXPECT_EQ(TF_GraphGetTensorNumDims(runner.graph(), {op, 0}, runner.status()), -1);
}

}  // namespace
}  // namespace weir::capi_test
