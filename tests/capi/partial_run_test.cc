#include <gtest/gtest.h>

#include "weir/tests/capi/api.h"

namespace weir::capi_test {
namespace {

TEST(PartialRun, RunsPieces) {
  Api api;
  TF_Operation* const a = api.Placeholder("a");
  TF_Operation* const b = api.Placeholder("b");
  TF_Operation* const sum = api.Binary("Add", "sum", a, api.Const("two", 2));
  TF_Operation* const product = api.Binary("Mul", "product", sum, b);
  TF_Session* const session = TF_NewSession(api.graph(), nullptr, api.status());
  const TF_Output inputs[] = {{a, 0}, {b, 0}}, outputs[] = {{sum, 0}, {product, 0}};
  const char* handle = nullptr;
  TF_SessionPRunSetup(session, inputs, 2, outputs, 2, nullptr, 0, &handle, api.status());
  ASSERT_NE(handle, nullptr) << api.message();
  const TensorPtr one = Floats({}, {1}), four = Floats({}, {4});
  TF_Tensor *value = one.get(), *fetched = nullptr;
  TF_SessionPRun(session, handle, &inputs[0], &value, 1, &outputs[0], &fetched, 1, nullptr, 0,
                 api.status());
  const TensorPtr first(fetched);
  ASSERT_NE(first, nullptr) << api.message();
  EXPECT_EQ(FloatAt(first), 3);
  value = four.get();
  TF_SessionPRun(session, handle, &inputs[1], &value, 1, &outputs[1], &fetched, 1, nullptr, 0,
                 api.status());
  const TensorPtr second(fetched);
  ASSERT_NE(second, nullptr) << api.message();
  EXPECT_EQ(FloatAt(second), 12);
  TF_SessionPRun(session, handle, &inputs[1], &value, 1, &outputs[1], &fetched, 1, nullptr, 0,
                 api.status());
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  TF_SessionPRun(session, "none", nullptr, nullptr, 0, nullptr, nullptr, 0, nullptr, 0,
                 api.status());
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  TF_DeletePRunHandle(handle);
  TF_DeletePRunHandle(nullptr);
  TF_DeleteSession(session, api.status());
}

}  // namespace
}  // namespace weir::capi_test
