#include "weir/capi/step_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "weir/tests/capi/api.h"

namespace weir::capi {
namespace {

using capi_test::Api;
using capi_test::FloatAt;
using capi_test::Floats;
using capi_test::TensorPtr;

// Handles that no function looks into.
TF_Operation* Fake(uintptr_t number) { return reinterpret_cast<TF_Operation*>(number * 64); }

TEST(StepCache, FindsByInputsOutputsAndTargetsInOrder) {
  const TF_Output a[] = {{Fake(1), 0}, {Fake(2), 0}}, swapped[] = {{Fake(2), 0}, {Fake(1), 0}},
                  other_index[] = {{Fake(1), 0}, {Fake(2), 1}};
  const TF_Operation* const target[] = {Fake(3)};
  StepCache cache;
  EXPECT_EQ(cache.Find({a, {}, {}}), nullptr);
  cache.Insert({a, {}, {}}, {Step(), {DT_FLOAT}});
  ASSERT_NE(cache.Find({a, {}, {}}), nullptr);
  EXPECT_EQ(cache.Find({a, {}, {}})->feed_types, DataTypes{DT_FLOAT});
  EXPECT_EQ(cache.Find({{}, a, {}}), nullptr);
  EXPECT_EQ(cache.Find({swapped, {}, {}}), nullptr);
  EXPECT_EQ(cache.Find({other_index, {}, {}}), nullptr);
  EXPECT_EQ(cache.Find({a, {}, target}), nullptr);
  cache.Insert({a, {}, target}, {Step(), {DT_INT32}});
  EXPECT_EQ(cache.Find({a, {}, target})->feed_types, DataTypes{DT_INT32});
  cache.Insert({a, {}, {}}, {Step(), {DT_INT64}});  // is there already
  EXPECT_EQ(cache.Find({a, {}, {}})->feed_types, DataTypes{DT_FLOAT});
}

TEST(StepCache, KeepsTheFirstSteps) {
  StepCache cache;
  const auto output = [](size_t i) { return TF_Output{Fake(i + 1), 0}; };
  for (size_t i = 0; i < StepCache::kMaxSteps + 10; ++i) {
    const TF_Output fetch[] = {output(i)};
    cache.Insert({{}, fetch, {}}, {});
  }
  const TF_Output first[] = {output(0)}, last[] = {output(StepCache::kMaxSteps - 1)},
                  beyond[] = {output(StepCache::kMaxSteps)};
  EXPECT_NE(cache.Find({{}, first, {}}), nullptr);
  EXPECT_NE(cache.Find({{}, last, {}}), nullptr);
  EXPECT_EQ(cache.Find({{}, beyond, {}}), nullptr);
}

// Runs with more different steps than are kept, and by several threads while steps are added.
TEST(StepCache, StepsBeyondItsSizeRun) {
  Api api;
  std::vector<TF_Operation*> constants;
  for (int i = 0; i < 1100; ++i)
    constants.push_back(api.Const(("c" + std::to_string(i)).c_str(), static_cast<float>(i)));
  TF_Session* const session = TF_NewSession(api.graph(), nullptr, api.status());
  std::vector<int> num_right(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const capi_test::StatusPtr status(TF_NewStatus());
      for (int k = 0; k < 1100; ++k) {
        const int i = (k + 275 * t) % 1100;
        const TF_Output fetch = {constants[i], 0};
        TF_Tensor* value = nullptr;
        TF_SessionRun(session, nullptr, nullptr, nullptr, 0, &fetch, &value, 1, nullptr, 0, nullptr,
                      status.get());
        const TensorPtr owned(value);
        if (owned != nullptr && FloatAt(owned) == static_cast<float>(i)) ++num_right[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_right, std::vector<int>(4, 1100));
  TF_DeleteSession(session, api.status());
}

TEST(StepCache, AClosedSessionRunsNoCachedStep) {
  Api api;
  const TF_Output fetch = {api.Const("c", 3), 0};
  TF_Session* const session = TF_NewSession(api.graph(), nullptr, api.status());
  EXPECT_EQ(FloatAt(api.Run(session, {}, {}, fetch)), 3);
  EXPECT_EQ(FloatAt(api.Run(session, {}, {}, fetch)), 3);
  TF_CloseSession(session, api.status());
  EXPECT_EQ(api.Run(session, {}, {}, fetch), nullptr);
  EXPECT_EQ(api.code(), TF_CANCELLED);
  TF_DeleteSession(session, api.status());
}

TEST(StepCache, FeedsOfACachedStepAreChecked) {
  Api api;
  TF_Operation* const x = api.Placeholder("x");
  TF_Operation* const sum = api.Binary("Add", "sum", x, x);
  TF_Session* const session = TF_NewSession(api.graph(), nullptr, api.status());
  const TensorPtr two = Floats({}, {2}), integer(TF_AllocateTensor(TF_INT32, nullptr, 0, 4));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(FloatAt(api.Run(session, {{x, 0}}, {two.get()}, {sum, 0})), 4);
    EXPECT_EQ(api.Run(session, {{x, 0}}, {integer.get()}, {sum, 0}), nullptr);
    EXPECT_EQ(api.message(), "Expects arg[0] to be float but int32 is provided");
    EXPECT_EQ(api.Run(session, {{x, 0}}, {nullptr}, {sum, 0}), nullptr);
    EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  }
  TF_DeleteSession(session, api.status());
}

}  // namespace
}  // namespace weir::capi
