#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "weir/tests/capi/eager_api.h"

// Codes and key words are those of TensorFlow 2.21's library.
namespace weir::capi_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Execute, RunsAnOpAgainAndAgain) {
  Eager eager;
  const HandlePtr two = eager.Scalar(2);
  HandlePtr sum = eager.Scalar(0);
  for (int i = 0; i < 3; ++i) sum = eager.Execute("AddV2", {sum.get(), two.get()});
  EXPECT_THAT(eager.Values(sum), ElementsAre(6)) << eager.message();
  const HandlePtr row = eager.Floats({1, 2}, {3, 4});  // another shape of the same signature
  EXPECT_THAT(eager.Values(eager.Execute("AddV2", {row.get(), two.get()})), ElementsAre(5, 6));
}

TEST(Execute, AnyNumberOfShapesIsExecuted) {
  Eager eager;
  for (int n = 1; n < 40; ++n) {
    const HandlePtr x = eager.Floats({n}, std::vector<float>(n, 1));
    const std::vector<float> sums = eager.Values(eager.Execute("AddV2", {x.get(), x.get()}));
    EXPECT_EQ(sums, std::vector<float>(n, 2)) << eager.message();
  }
}

TEST(Execute, AttributesTellOpsApart) {
  Eager eager;
  const HandlePtr a = eager.Floats({2, 2}, {1, 2, 3, 4}), b = eager.Floats({2, 2}, {1, 0, 0, 0});
  for (const bool transpose : {false, true, false}) {
    const OpPtr op = eager.Op("MatMul", {a.get(), b.get()});
    TFE_OpSetAttrBool(op.get(), "transpose_a", transpose ? 1 : 0);
    EXPECT_THAT(eager.Values(eager.Execute(op)),
                transpose ? ElementsAre(1, 0, 2, 0) : ElementsAre(1, 0, 3, 0));
  }
}

TEST(Execute, ReturnsAllOutputs) {
  Eager eager;
  const HandlePtr row = eager.Floats({4}, {1, 2, 3, 4});
  const TensorPtr axis(TF_AllocateTensor(TF_INT32, nullptr, 0, 4));
  *static_cast<int32_t*>(TF_TensorData(axis.get())) = 0;
  const HandlePtr zero = eager.Handle(axis);
  const OpPtr op = eager.Op("Split", {zero.get(), row.get()});
  TFE_OpSetAttrInt(op.get(), "num_split", 2);
  TFE_TensorHandle* halves[3] = {};
  int count = 1;
  TFE_Execute(op.get(), halves, &count, eager.status());
  EXPECT_EQ(eager.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(eager.message(), "Expecting 2 outputs, but *num_retvals is 1");
  EXPECT_EQ(halves[0], nullptr);
  count = 3;
  TFE_Execute(op.get(), halves, &count, eager.status());
  EXPECT_EQ(count, 2) << eager.message();
  const HandlePtr first(halves[0]), second(halves[1]);
  EXPECT_THAT(eager.Values(second), ElementsAre(3, 4));
  EXPECT_EQ(halves[2], nullptr);
}

TEST(Execute, UnknownOpsAreNotFound) {
  Eager eager;
  EXPECT_EQ(eager.Op("NoSuchOp"), nullptr);
  EXPECT_EQ(eager.code(), TF_NOT_FOUND);
  EXPECT_THAT(eager.message(), HasSubstr("'NoSuchOp' is neither a type of a primitive operation"));
}

TEST(Execute, MistakesHaveTensorFlowsCodes) {
  Eager eager;
  const HandlePtr a = eager.Floats({2, 2}, {1, 2, 3, 4}),
                  b = eager.Floats({3, 2}, {1, 2, 3, 4, 5, 6});
  const TensorPtr double_tensor(TF_AllocateTensor(TF_DOUBLE, nullptr, 0, 8));
  const HandlePtr d = eager.Handle(double_tensor);
  EXPECT_EQ(eager.Execute("MatMul", {a.get(), b.get()}), nullptr);
  EXPECT_EQ(eager.code(), TF_INVALID_ARGUMENT);
  EXPECT_THAT(eager.message(), HasSubstr("Matrix size-incompatible: In[0]: [2,2], In[1]: [3,2]"));
  EXPECT_THAT(eager.message(), HasSubstr("[Op:MatMul]"));
  const OpPtr mixed = eager.Op("MatMul", {a.get(), d.get()});
  TFE_OpSetAttrType(mixed.get(), "T", TF_FLOAT);
  EXPECT_EQ(eager.Execute(mixed), nullptr);
  EXPECT_EQ(eager.message(),
            "cannot compute MatMul as input #1(zero-based) was expected to be a "
            "float tensor but is a double tensor");
  EXPECT_EQ(eager.Execute("MatMul", {a.get()}), nullptr);
  EXPECT_EQ(eager.message(), "expected 2 inputs, got 1");
  EXPECT_EQ(eager.Execute("Placeholder", {}), nullptr);
  EXPECT_THAT(eager.message(), HasSubstr("NodeDef missing attr 'dtype' from Op<"));
  const OpPtr extra = eager.Op("Neg", {a.get()});
  TFE_OpSetAttrInt(extra.get(), "extra", 1);
  EXPECT_EQ(eager.Execute(extra), nullptr);
  EXPECT_THAT(eager.message(), HasSubstr("NodeDef mentions attr 'extra' not in Op<"));
  EXPECT_NE(eager.Execute("Neg", {a.get()}), nullptr);  // the context still works
}

TEST(Execute, VariablesLiveFromOpToOp) {
  Eager eager;
  const OpPtr make = eager.Op("VarHandleOp");
  TFE_OpSetAttrType(make.get(), "dtype", TF_FLOAT);
  TFE_OpSetAttrShape(make.get(), "shape", nullptr, 0, eager.status());
  TFE_OpSetAttrString(make.get(), "shared_name", "v", 1);
  const HandlePtr variable = eager.Execute(make);
  ASSERT_NE(variable, nullptr) << eager.message();
  EXPECT_EQ(TFE_TensorHandleDataType(variable.get()), TF_RESOURCE);
  const auto update = [&](const char* name, float value) {
    const HandlePtr by = eager.Scalar(value);
    const OpPtr op = eager.Op(name, {variable.get(), by.get()});
    int count = 0;
    TFE_Execute(op.get(), nullptr, &count, eager.status());
    EXPECT_EQ(count, 0);
    EXPECT_EQ(eager.code(), TF_OK) << eager.message();
  };
  const auto read = [&] {
    const OpPtr op = eager.Op("ReadVariableOp", {variable.get()});
    TFE_OpSetAttrType(op.get(), "dtype", TF_FLOAT);
    return eager.Execute(op);
  };
  EXPECT_EQ(read(), nullptr);
  EXPECT_EQ(eager.code(), TF_FAILED_PRECONDITION);
  update("AssignVariableOp", 12);
  const HandlePtr before = read();
  update("AssignAddVariableOp", 3);
  EXPECT_THAT(eager.Values(before), ElementsAre(12));  // a value that was read does not change
  EXPECT_THAT(eager.Values(read()), ElementsAre(15));
}

TEST(Execute, AnonymousVariablesAreDistinct) {
  Eager eager;
  constexpr char kAnonymous[] = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";
  const OpPtr make = eager.Op("VarHandleOp");
  TFE_OpSetAttrType(make.get(), "dtype", TF_FLOAT);
  TFE_OpSetAttrShape(make.get(), "shape", nullptr, 0, eager.status());
  TFE_OpSetAttrString(make.get(), "shared_name", kAnonymous, sizeof(kAnonymous) - 1);
  const HandlePtr first = eager.Execute(make), second = eager.Execute(make);
  for (const auto& [variable, value] : {std::pair(&first, 1.f), std::pair(&second, 2.f)}) {
    const HandlePtr to = eager.Scalar(value);
    const OpPtr op = eager.Op("AssignVariableOp", {variable->get(), to.get()});
    int count = 0;
    TFE_Execute(op.get(), nullptr, &count, eager.status());
    ASSERT_EQ(eager.code(), TF_OK) << eager.message();
  }
  const OpPtr read = eager.Op("ReadVariableOp", {first.get()});
  TFE_OpSetAttrType(read.get(), "dtype", TF_FLOAT);
  EXPECT_THAT(eager.Values(eager.Execute(read)), ElementsAre(1));
}

TEST(Execute, ConstantsAreTheirAttribute) {
  Eager eager;
  const OpPtr op = eager.Op("Const");
  const TensorPtr value = Floats({2}, {1, 2});
  TFE_OpSetAttrTensor(op.get(), "value", value.get(), eager.status());
  EXPECT_EQ(eager.Execute(op), nullptr);  // without a dtype
  EXPECT_EQ(eager.code(), TF_INVALID_ARGUMENT);
  TFE_OpSetAttrType(op.get(), "dtype", TF_FLOAT);
  static_cast<float*>(TF_TensorData(value.get()))[0] = 9;  // the op has a copy
  EXPECT_THAT(eager.Values(eager.Execute(op)), ElementsAre(1, 2));
  const OpPtr wrong = eager.Op("Const");
  TFE_OpSetAttrTensor(wrong.get(), "value", value.get(), eager.status());
  TFE_OpSetAttrType(wrong.get(), "dtype", TF_INT32);
  EXPECT_EQ(eager.Execute(wrong), nullptr);
  EXPECT_EQ(eager.code(), TF_INVALID_ARGUMENT);
}

TEST(Execute, OutputTakesTheMemoryOfAnInputThatOnlyTheOpHolds) {
  Eager eager;
  const std::vector<float> ones(10000, 1);
  for (const bool is_held : {true, false}) {
    const StatusPtr status(TF_NewStatus());
    const int64_t dims[] = {100, 100};
    TensorPtr tensor(TFE_AllocateHostTensor(eager.context(), TF_FLOAT, dims, 2, eager.status()));
    std::memcpy(TF_TensorData(tensor.get()), ones.data(), ones.size() * sizeof(float));
    const void* const memory = TF_TensorData(tensor.get());
    HandlePtr x(TFE_NewTensorHandleFromTensor(eager.context(), tensor.get(), eager.status()));
    tensor.reset();
    const HandlePtr y = eager.Floats(std::vector<int64_t>(dims, dims + 2), ones);
    const OpPtr op = eager.Op("AddV2", {x.get(), y.get()});
    if (!is_held) x.reset();
    const HandlePtr sum = eager.Execute(op);
    const TensorPtr result(TFE_TensorHandleResolve(sum.get(), eager.status()));
    EXPECT_EQ(TF_TensorData(result.get()) == memory, !is_held);
    EXPECT_EQ(FloatAt(result, 9999), 2);
    // What the op has given away is missed, not read.
    EXPECT_EQ(eager.Execute(op) == nullptr, !is_held);
    EXPECT_EQ(eager.code(), is_held ? TF_OK : TF_FAILED_PRECONDITION);
  }
}

TEST(Execute, MemoryOfTheClientIsNotWritten) {
  Eager eager;
  alignas(64) float values[4] = {1, 2, 3, 4};
  const int64_t dims[] = {4};
  TensorPtr tensor(TF_NewTensor(TF_FLOAT, dims, 1, values, sizeof(values), nullptr, nullptr));
  HandlePtr x = eager.Handle(tensor);
  tensor.reset();
  const OpPtr op = eager.Op("Neg", {x.get()});
  x.reset();
  EXPECT_THAT(eager.Values(eager.Execute(op)), ElementsAre(-1, -2, -3, -4));
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 4));
}

TEST(Execute, RandomStreamsGoOnUntilCachesAreCleared) {
  Eager eager;
  const TensorPtr shape_tensor = [] {
    const int64_t dims[] = {1};
    TensorPtr tensor(TF_AllocateTensor(TF_INT32, dims, 1, 4));
    *static_cast<int32_t*>(TF_TensorData(tensor.get())) = 1;
    return tensor;
  }();
  const HandlePtr shape = eager.Handle(shape_tensor);
  const auto draw = [&] {
    const OpPtr op = eager.Op("RandomUniform", {shape.get()});
    TFE_OpSetAttrInt(op.get(), "seed", 1);
    TFE_OpSetAttrType(op.get(), "dtype", TF_FLOAT);
    TFE_OpSetAttrFloat(op.get(), "_mark", NAN);  // it is the same op although NaN != NaN
    return eager.Values(eager.Execute(op));
  };
  const auto first = draw(), second = draw();
  ASSERT_EQ(first.size(), 1) << eager.message();
  EXPECT_NE(first, second);
  TFE_ContextClearCaches(eager.context());
  EXPECT_EQ(draw(), first);
}

TEST(Execute, ThreadsExecuteAtTheSameTime) {
  Eager eager;
  constexpr int kThreads = 4, kRounds = 200;
  std::vector<std::thread> threads;
  std::vector<float> results(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const StatusPtr status(TF_NewStatus());
      const TensorPtr tensor = Floats({}, {static_cast<float>(t)});
      HandlePtr sum(TFE_NewTensorHandle(tensor.get(), status.get()));
      const HandlePtr step(TFE_NewTensorHandle(tensor.get(), status.get()));
      for (int i = 0; i < kRounds; ++i) {
        const OpPtr op(TFE_NewOp(eager.context(), "AddV2", status.get()));
        TFE_OpAddInput(op.get(), sum.get(), status.get());
        TFE_OpAddInput(op.get(), step.get(), status.get());
        TFE_TensorHandle* output = nullptr;
        int count = 1;
        TFE_Execute(op.get(), &output, &count, status.get());
        sum.reset(output);
      }
      const TensorPtr result(TFE_TensorHandleResolve(sum.get(), status.get()));
      results[t] = result == nullptr ? NAN : FloatAt(result);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(results[t], t * (kRounds + 1.f));
}

}  // namespace
}  // namespace weir::capi_test
