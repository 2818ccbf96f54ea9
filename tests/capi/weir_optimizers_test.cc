#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "weir/tests/capi/weir_api.h"

namespace weir::capi_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Optimizers : public Line {
 protected:
  OptimizerPtr Make(const char* name, const char* hyperparameters) {
    return OptimizerPtr(weir_new_optimizer(graph(), name, hyperparameters, status()));
  }
  // Adds a training step, initializes everything, and runs it once; returns the slope.
  float SlopeAfterOneStep(const char* name, const char* hyperparameters) {
    const OptimizerPtr optimizer = Make(name, hyperparameters);
    if (optimizer == nullptr) return NAN;
    TF_Operation* const train =
        weir_optimizer_minimize(optimizer.get(), &loss_, nullptr, nullptr, 0, status());
    if (train == nullptr) return NAN;
    Run(weir_variables_initializer(graph(), "variables", status()));
    Run(train);
    return Slope();
  }
};

// The gradient at slope 1 is -16.
TEST_F(Optimizers, StepsFollowTheFormulas) {
  EXPECT_FLOAT_EQ(SlopeAfterOneStep("GradientDescent", "learning_rate=0.01"), 1.16f);
  EXPECT_FLOAT_EQ(SlopeAfterOneStep("Momentum", "learning_rate=0.01 momentum=0.9"), 1.16f);
  EXPECT_FLOAT_EQ(SlopeAfterOneStep("Adagrad", "learning_rate=0.1 initial_accumulator_value=0.25"),
                  1 + 0.1f * 16 / std::sqrt(256.25f));
  EXPECT_NEAR(SlopeAfterOneStep("Adam", "learning_rate=0.1"), 1.1, 1e-5);
  EXPECT_NEAR(SlopeAfterOneStep("AdamW", "learning_rate=0.1 weight_decay=0.01"), 1.09, 1e-5);
  EXPECT_NEAR(SlopeAfterOneStep("RMSProp", "learning_rate=0.1 decay=0.5"),
              1 + 0.1 * 16 / std::sqrt(0.5 + 128), 1e-3);
  EXPECT_FLOAT_EQ(SlopeAfterOneStep("ProximalGradientDescent", "learning_rate=0.01"), 1.16f);
  for (const char* const name : {"Ftrl", "ProximalAdagrad"}) {
    const float slope = SlopeAfterOneStep(name, "learning_rate=0.1");
    EXPECT_TRUE(std::isfinite(slope)) << name << ": " << api_.message();
    EXPECT_NE(slope, 1) << name;
  }
  EXPECT_GT(SlopeAfterOneStep("Adadelta", nullptr), 1) << api_.message();
}

TEST_F(Optimizers, ClipByTheGlobalNorm) {
  EXPECT_FLOAT_EQ(SlopeAfterOneStep("GradientDescent", "learning_rate=0.1 clip_norm=4"), 1.4f);
  EXPECT_FLOAT_EQ(SlopeAfterOneStep("GradientDescent", "learning_rate=0.1 clip_norm=100"), 2.6f);
}

TEST_F(Optimizers, HyperparametersMayBeTensors) {
  api_.Const("rate", 0.02f);
  EXPECT_FLOAT_EQ(SlopeAfterOneStep("GradientDescent", "learning_rate=rate:0 name=\"SGD\""), 1.32f);
  EXPECT_NE(TF_GraphOperationByName(graph(), "SGD"), nullptr);
}

TEST_F(Optimizers, CountStepsAndShareSlots) {
  TF_Operation* const step = weir_global_step(graph(), status());
  EXPECT_EQ(weir_global_step(graph(), status()), step);
  const OptimizerPtr adam = Make("Adam", nullptr);
  TF_Operation* const train =
      weir_optimizer_minimize(adam.get(), &loss_, step, &slope_, 1, status());
  ASSERT_NE(train, nullptr) << api_.message();
  const BufferPtr names(TF_NewBuffer());
  weir_optimizer_slot_names(adam.get(), names.get(), status());
  EXPECT_THAT(ListOf(names), ElementsAre("m", "v"));
  TF_Operation* const m = weir_optimizer_slot(adam.get(), slope_, "m", status());
  ASSERT_NE(m, nullptr) << api_.message();
  EXPECT_STREQ(TF_OperationName(m), "slope/Adam");
  EXPECT_EQ(weir_optimizer_slot(adam.get(), slope_, "x", status()), nullptr);
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
  Run(weir_variables_initializer(graph(), "variables", status()));
  Run(train);
  Run(train);
  TF_Output count;
  weir_variable_value(graph(), step, &count, status());
  const TensorPtr steps = api_.Run(session_, {}, {}, count);
  EXPECT_EQ(*static_cast<const int64_t*>(TF_TensorData(steps.get())), 2);
}

TEST_F(Optimizers, ApplyGivenGradients) {
  const OptimizerPtr sgd = Make("GradientDescent", "learning_rate=1");
  const TF_Output gradient = {x_, 0};
  TF_Operation* const train =
      weir_optimizer_apply_gradients(sgd.get(), &gradient, &slope_, 1, nullptr, status());
  Run(init_);
  ASSERT_TRUE(Run(train)) << api_.message();
  EXPECT_EQ(Slope(), -1);
  const TF_Output none = {nullptr, -1};
  EXPECT_EQ(weir_optimizer_apply_gradients(sgd.get(), &none, &slope_, 1, nullptr, status()),
            nullptr);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT) << api_.message();
  EXPECT_EQ(weir_optimizer_apply_gradients(sgd.get(), nullptr, nullptr, 0, nullptr, status()),
            nullptr);
  EXPECT_EQ(api_.message(), "no variables");
}

TEST_F(Optimizers, MistakesAreErrors) {
  EXPECT_EQ(Make("SGD", "learning_rate=1"), nullptr);
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
  EXPECT_THAT(api_.message(), HasSubstr("GradientDescent"));
  EXPECT_EQ(Make("Momentum", "momentum=1"), nullptr);
  EXPECT_EQ(api_.message(), "Momentum: hyperparameters without a value: learning_rate");
  EXPECT_EQ(Make("Adam", "learning_rate=1 lr=2"), nullptr);
  EXPECT_THAT(api_.message(), HasSubstr("Adam: unknown option 'lr'; the options are: "));
  EXPECT_EQ(Make("Adam", "learning_rate=absent:0"), nullptr);
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
  EXPECT_EQ(Make("Adam", "learning_rate"), nullptr);
  EXPECT_EQ(api_.message(), "Adam: options: 'learning_rate' is not of the form key=value");
  EXPECT_EQ(Make("Adam", "name=\"x"), nullptr);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  const OptimizerPtr adam = Make("Adam", "");
  const TF_Output constant = {x_, 0}, absent = {x_, 5};
  EXPECT_EQ(weir_optimizer_minimize(adam.get(), &constant, nullptr, nullptr, 0, status()), nullptr);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT) << api_.message();
  EXPECT_EQ(weir_optimizer_minimize(adam.get(), &absent, nullptr, nullptr, 0, status()), nullptr);
  EXPECT_EQ(api_.code(), TF_OUT_OF_RANGE);
  EXPECT_EQ(weir_optimizer_minimize(adam.get(), &loss_, x_, nullptr, 0, status()), nullptr);
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
  EXPECT_EQ(weir_optimizer_minimize(adam.get(), &loss_, nullptr, nullptr, 3, status()), nullptr);
  EXPECT_EQ(api_.message(), "no array of 3 variables");
  EXPECT_EQ(weir_optimizer_minimize(nullptr, &loss_, nullptr, nullptr, 0, nullptr), nullptr);
  weir_delete_optimizer(nullptr);
}

}  // namespace
}  // namespace weir::capi_test
