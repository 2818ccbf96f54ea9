#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "weir/tests/capi/eager_api.h"

namespace weir::capi_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A product of shapes that do not match, which fails when it runs.
HandlePtr Fail(Eager& eager) {
  const HandlePtr a = eager.Floats({1, 2}, {1, 2});
  return eager.Execute("MatMul", {a.get(), a.get()});
}

TEST(AsyncContext, RunsOpsInOrder) {
  Eager eager(/*is_async=*/true);
  const HandlePtr two = eager.Scalar(2);
  HandlePtr sum = eager.Scalar(0);
  for (int i = 0; i < 1000; ++i) sum = eager.Execute("AddV2", {sum.get(), two.get()});
  EXPECT_EQ(TFE_TensorHandleNumDims(sum.get(), eager.status()), 0);  // waits
  EXPECT_THAT(eager.Values(sum), ElementsAre(2000)) << eager.message();
}

TEST(AsyncContext, ErrorsStayUntilTheyAreCleared) {
  Eager eager(/*is_async=*/true);
  const HandlePtr x = eager.Scalar(1);
  const HandlePtr failed = Fail(eager);
  ASSERT_NE(failed, nullptr) << eager.message();
  EXPECT_TRUE(eager.Values(failed).empty());
  EXPECT_EQ(eager.code(), TF_INVALID_ARGUMENT);
  EXPECT_THAT(eager.message(), HasSubstr("Matrix size-incompatible"));
  const ExecutorPtr executor(TFE_ContextGetExecutorForThread(eager.context()));
  EXPECT_TRUE(TFE_ExecutorIsAsync(executor.get()));
  TFE_ExecutorWaitForAllPendingNodes(executor.get(), eager.status());
  EXPECT_EQ(eager.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(eager.Execute("Neg", {x.get()}), nullptr);
  EXPECT_THAT(eager.message(), HasSubstr("this error cancels"));
  TFE_ExecutorClearError(executor.get());
  TFE_ExecutorWaitForAllPendingNodes(executor.get(), eager.status());
  EXPECT_EQ(eager.code(), TF_OK) << eager.message();
  EXPECT_THAT(eager.Values(eager.Execute("Neg", {x.get()})), ElementsAre(-1));
  // The output of the op that failed keeps its error, and passes it on.
  EXPECT_TRUE(eager.Values(eager.Execute("Neg", {failed.get()})).empty());
  TFE_ContextAsyncWait(eager.context(), eager.status());
  EXPECT_THAT(eager.message(), HasSubstr("Matrix size-incompatible"));
  TFE_ContextAsyncWait(eager.context(), eager.status());
  EXPECT_EQ(eager.code(), TF_OK);
}

TEST(AsyncContext, MistakesInTheSignatureAreReportedAtOnce) {
  Eager eager(/*is_async=*/true);
  const HandlePtr x = eager.Scalar(1);
  EXPECT_EQ(eager.Execute("MatMul", {x.get()}), nullptr);
  EXPECT_EQ(eager.code(), TF_INVALID_ARGUMENT);
  EXPECT_NE(eager.Execute("Neg", {x.get()}), nullptr);
}

TEST(AsyncContext, OutputTakesTheMemoryOfAnInputThatNobodyElseHolds) {
  Eager eager(/*is_async=*/true);
  TensorPtr tensor = Floats({2}, {1, 2});
  const void* const memory = TF_TensorData(tensor.get());
  HandlePtr x = eager.Handle(tensor);
  tensor.reset();
  OpPtr op = eager.Op("Neg", {x.get()});
  x.reset();
  // Keeps the executor busy until the op is deleted.
  const HandlePtr big = eager.Floats({500, 500}, std::vector<float>(250000, 1));
  const HandlePtr product = eager.Execute("MatMul", {big.get(), big.get()});
  const HandlePtr output = eager.Execute(op);
  op.reset();
  const TensorPtr result(TFE_TensorHandleResolve(output.get(), eager.status()));
  ASSERT_NE(result, nullptr) << eager.message();
  EXPECT_EQ(TF_TensorData(result.get()), memory);
  EXPECT_EQ(FloatAt(result, 1), -2);
}

TEST(Executor, OfAThreadReplacesThatOfTheContext) {
  Eager eager;
  const HandlePtr x = eager.Scalar(1);
  const ExecutorPtr of_context(TFE_ContextGetExecutorForThread(eager.context()));
  EXPECT_FALSE(TFE_ExecutorIsAsync(of_context.get()));
  ExecutorPtr own(TFE_NewExecutor(/*is_async=*/true, /*enable_streaming_enqueue=*/false, 2));
  TFE_ContextSetExecutorForThread(eager.context(), own.get());
  const HandlePtr failed = Fail(eager);
  ASSERT_NE(failed, nullptr);  // it does not wait
  TFE_ExecutorWaitForAllPendingNodes(own.get(), eager.status());
  EXPECT_EQ(eager.code(), TF_INVALID_ARGUMENT);
  std::thread([&] {
    const StatusPtr status(TF_NewStatus());
    const OpPtr op(TFE_NewOp(eager.context(), "Neg", status.get()));
    TFE_OpAddInput(op.get(), x.get(), status.get());
    TFE_TensorHandle* output = nullptr;
    int count = 1;
    TFE_Execute(op.get(), &output, &count, status.get());
    EXPECT_EQ(TF_GetCode(status.get()), TF_OK) << TF_Message(status.get());
    TFE_DeleteTensorHandle(output);
  }).join();
  own.reset();
  EXPECT_EQ(Fail(eager), nullptr);  // by the context's executor again
  EXPECT_THAT(eager.Values(eager.Execute("Neg", {x.get()})), ElementsAre(-1));
}

TEST(Executor, LimitsTheOpsThatWait) {
  Eager eager;
  const ExecutorPtr own(TFE_NewExecutor(true, false, 1));
  TFE_ContextSetExecutorForThread(eager.context(), own.get());
  HandlePtr sum = eager.Scalar(0);
  const HandlePtr one = eager.Scalar(1);
  for (int i = 0; i < 100; ++i) sum = eager.Execute("AddV2", {sum.get(), one.get()});
  EXPECT_THAT(eager.Values(sum), ElementsAre(100)) << eager.message();
}

TEST(Executor, MayOutliveTheContext) {
  const ExecutorPtr own(TFE_NewExecutor(true, false, 0));
  HandlePtr product;
  {
    Eager eager;
    TFE_ContextSetExecutorForThread(eager.context(), own.get());
    const ExecutorPtr other(TFE_NewExecutor(true, false, 0));
    const HandlePtr big = eager.Floats({400, 400}, std::vector<float>(160000, 1));
    for (int i = 0; i < 20; ++i) product = eager.Execute("MatMul", {big.get(), big.get()});
    TFE_ContextSetExecutorForThread(eager.context(), other.get());
  }
  const StatusPtr status(TF_NewStatus());
  TFE_ExecutorWaitForAllPendingNodes(own.get(), status.get());
  EXPECT_EQ(TFE_TensorHandleNumDims(product.get(), status.get()) == 2,
            TF_GetCode(status.get()) == TF_OK);
}

TEST(Executor, DropsWhatWaitsWhenItIsDeleted) {
  Eager eager;
  ExecutorPtr own(TFE_NewExecutor(true, false, 0));
  TFE_ContextSetExecutorForThread(eager.context(), own.get());
  const HandlePtr big = eager.Floats({400, 400}, std::vector<float>(160000, 1));
  std::vector<HandlePtr> products;
  for (int i = 0; i < 200; ++i) products.push_back(eager.Execute("MatMul", {big.get(), big.get()}));
  own.reset();
  EXPECT_TRUE(eager.Values(products.back()).empty());
  EXPECT_EQ(eager.code(), TF_CANCELLED);
}

}  // namespace
}  // namespace weir::capi_test
