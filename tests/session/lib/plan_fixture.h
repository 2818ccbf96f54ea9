#ifndef WEIR_TESTS_SESSION_LIB_PLAN_FIXTURE_H_
#define WEIR_TESTS_SESSION_LIB_PLAN_FIXTURE_H_

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weir/core/graph/graph.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/mutex.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/compile.h"

namespace weir {

// What the passes of a plan need, for tests of one pass or of a part of one: a graph, and a session
// that exists only as an environment, with the CPU as its device.
class PlanFixture : public ::testing::Test {
 protected:
  // Returns the plan after the passes of Phase::kPrepare.
  PlanGraph Prepare(Outputs feeds, Outputs fetches, std::vector<Operation> targets = {}) {
    placement_ = std::make_unique<Placement>(graph_, BuiltinKernels(), devices(), options_);
    absl::StatusOr<PlanGraph> plan =
        PreparePlan({std::move(feeds), std::move(fetches), std::move(targets)}, env());
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : PlanGraph();
  }
  // The same after Specialize, for these shapes of the feeds.
  PlanGraph Specialized(Outputs feeds, Outputs fetches, const std::vector<Shape>& feed_shapes) {
    PlanGraph plan = Prepare(std::move(feeds), std::move(fetches));
    EXPECT_TRUE(Specialize(plan, {env(), feed_shapes}).ok());
    return plan;
  }

  PlanEnvironment env() {
    return {graph_, mutex_, BuiltinKernels(), devices(), resources_, pool_, options_, *placement_};
  }
  // Returns the number of the plan's node with this name; -1 if it has none.
  static int Find(const PlanGraph& plan, absl::string_view name) {
    for (int i = 0; i < static_cast<int>(plan.nodes.size()); ++i) {
      if (!plan.nodes[i].removed && plan.nodes[i].node->name() == name) return i;
    }
    return -1;
  }
  absl::Span<const std::unique_ptr<Device>> devices() const { return devices_; }

  Graph graph_;
  SessionOptions options_;
  ThreadPool pool_{2};

 private:
  SharedMutex mutex_;
  std::vector<std::unique_ptr<Device>> devices_ = MakeDevices();
  ResourceMap resources_;
  std::unique_ptr<Placement> placement_;

  static std::vector<std::unique_ptr<Device>> MakeDevices() {
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(NewCpuDevice());
    return devices;
  }
};

}  // namespace weir

#endif  // WEIR_TESTS_SESSION_LIB_PLAN_FIXTURE_H_
