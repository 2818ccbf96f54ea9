#include "weir/ops/framework/device_setter.h"

#include <algorithm>
#include <memory>

#include "weir/core/graph/scope.h"

namespace weir {

PsStrategy RoundRobinStrategy(int num_tasks) {
  return [num_tasks = std::max(num_tasks, 1), next = std::make_shared<int>(0)](const Node&) {
    const int task = *next;
    *next = (task + 1) % num_tasks;
    return task;
  };
}

PsStrategy GreedyLoadBalancingStrategy(int num_tasks, LoadFn load) {
  auto loads = std::make_shared<std::vector<double>>(std::max(num_tasks, 1));
  return [loads, load = std::move(load)](const Node& node) {
    const auto least = std::min_element(loads->begin(), loads->end());
    *least += load(node);
    return static_cast<int>(least - loads->begin());
  };
}

double ByteSizeLoad(const Node& node) {
  const Shape shape = node.attr_or<Shape>("shape", Shape::UnknownRank());
  if (!shape.IsFullyDefined()) {
    node.graph().Fail(InvalidArgument(
        node.Label(), ": the shape must be fully defined to balance loads by size, but is ",
        shape.ToString()));
    return 0;
  }
  const DataType dtype = node.attr_or<DataType>("dtype", DT_INVALID);
  const size_t size = dtype == DT_STRING ? sizeof(void*) : ElementSize(dtype);
  return static_cast<double>(shape.num_elements()) * static_cast<double>(size);
}

const std::vector<std::string>& StandardPsOps() {
  static const auto* const ops = new std::vector<std::string>{
      "Variable",
      "VariableV2",
      "AutoReloadVariable",
      "MutableHashTable",
      "MutableHashTableV2",
      "MutableHashTableOfTensors",
      "MutableHashTableOfTensorsV2",
      "MutableDenseHashTable",
      "MutableDenseHashTableV2",
      "VarHandleOp",
      "BoostedTreesEnsembleResourceHandleOp",
      "BoostedTreesQuantileStreamResourceHandleOp",
      "ResourceConditionalAccumulator",
      "DecisionTreeResource",
  };
  return *ops;
}

namespace {

// The caller parses the result too and reports errors, so an unparsable device string is returned
// unchanged.
std::string PlaceOnPs(const Node& node, const ReplicaDeviceSetterOptions& o) {
  absl::StatusOr<DeviceName> device = DeviceName::Parse(o.ps_device);
  const absl::StatusOr<DeviceName> inner = DeviceName::Parse(node.device());
  if (!device.ok() || !inner.ok() || !device->job) return o.ps_device;
  if (inner->job && inner->job != device->job) return o.ps_device;
  const int task = o.ps_strategy(node);
  if (task < 0) {
    node.graph().Fail(
        InvalidArgument(node.Label(), ": ps_strategy returned a negative task ", task));
    return o.ps_device;
  }
  device->task = task;
  return device->ToString();
}

int CountPsTasks(const ReplicaDeviceSetterOptions& o) {
  if (!o.cluster) return o.ps_tasks;
  const absl::StatusOr<DeviceName> device = DeviceName::Parse(o.ps_device);
  if (!device.ok()) return 1;  // reported with the first node
  if (!device->job) return 0;
  const auto job = o.cluster->find(*device->job);
  return job == o.cluster->end() ? 0 : static_cast<int>(job->second.size());
}

}  // namespace

Graph::DeviceFn ReplicaDeviceSetter(ReplicaDeviceSetterOptions options) {
  const int tasks = CountPsTasks(options);
  if (tasks <= 0) return [](const Node&) { return std::string(); };
  if (!options.ps_strategy) options.ps_strategy = RoundRobinStrategy(tasks);
  return [o = std::move(options)](const Node& node) {
    if (!o.merge_devices && !node.device().empty()) return std::string();
    const bool is_state =
        std::find(o.ps_ops.begin(), o.ps_ops.end(), node.op_name()) != o.ps_ops.end();
    return is_state && !o.ps_device.empty() ? PlaceOnPs(node, o) : o.worker_device;
  };
}

}  // namespace weir
