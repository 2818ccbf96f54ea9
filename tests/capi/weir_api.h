#ifndef WEIR_TESTS_CAPI_WEIR_API_H_
#define WEIR_TESTS_CAPI_WEIR_API_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/c_api.h"
#include "weir/tests/capi/api.h"

// What the tests of weir/c_api.h share: lists, and a line that is fitted to points.
namespace weir::capi_test {

using OptimizerPtr =
    std::unique_ptr<weir_optimizer, Deleter<weir_optimizer, weir_delete_optimizer>>;
using SaverPtr = std::unique_ptr<weir_saver, Deleter<weir_saver, weir_delete_saver>>;

inline std::string TextOf(const BufferPtr& buffer) {
  return std::string(static_cast<const char*>(buffer->data), buffer->length);
}

// The strings of a list.
inline std::vector<std::string> ListOf(const BufferPtr& buffer) {
  std::vector<std::string> list;
  const auto* at = static_cast<const char*>(buffer->data);
  for (const char* const end = at + buffer->length; at < end; at += list.back().size() + 1)
    list.emplace_back(at);
  return list;
}

// y = slope * x, with the loss mean((y - 3 * x)^2) at x = 2: its gradient is 8 * (slope - 3).
class Line : public ::testing::Test {
 protected:
  Line() {
    slope_ = weir_new_variable(graph(), "slope", TF_FLOAT, nullptr, 0, "constant value=1", nullptr,
                               status());
    weir_variable_value(graph(), slope_, &value_, status());
    x_ = api_.Const("x", 2);
    TF_Operation* const y = Binary("Mul", "y", value_, {x_, 0});
    TF_Operation* const wanted = Binary("Mul", "wanted", {api_.Const("three", 3), 0}, {x_, 0});
    loss_ = {Binary("SquaredDifference", "loss", {y, 0}, {wanted, 0}), 0};
    init_ = weir_variables_initializer(graph(), "variables", status());
    session_ = TF_NewSession(graph(), nullptr, status());
  }
  ~Line() override { TF_DeleteSession(session_, status()); }

  TF_Graph* graph() { return api_.graph(); }
  TF_Status* status() { return api_.status(); }

  TF_Operation* Binary(const char* op, const char* name, TF_Output a, TF_Output b) {
    TF_OperationDescription* const desc = TF_NewOperation(graph(), op, name);
    TF_AddInput(desc, a);
    TF_AddInput(desc, b);
    return TF_FinishOperation(desc, status());
  }
  // Runs an operation; returns whether that succeeded.
  bool Run(TF_Operation* target) {
    TF_SessionRun(session_, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, &target, 1, nullptr,
                  status());
    return api_.code() == TF_OK;
  }
  float Slope() {
    const TensorPtr slope = api_.Run(session_, {}, {}, value_);
    return slope == nullptr ? NAN : FloatAt(slope);
  }
  // Sets the slope, by an operation of its own.
  void SetSlope(float slope) {
    const std::string name = "set_" + std::to_string(num_set_++);
    const TF_Output value = {api_.Const(name.c_str(), slope), 0};
    TF_Output result;
    weir_variable_assign(graph(), slope_, &value, &result, status());
    ASSERT_TRUE(Run(result.oper)) << api_.message();
  }

  Api api_;
  TF_Operation *slope_, *x_, *init_;
  TF_Output value_, loss_;
  TF_Session* session_;
  int num_set_ = 0;
};

}  // namespace weir::capi_test

#endif  // WEIR_TESTS_CAPI_WEIR_API_H_
