#include "weir/serving/memory_use.h"

#include <memory>

#include "weir/core/io/function_library.h"
#include "weir/core/runtime/resource.h"
#include "weir/proto/function.pb.h"

namespace weir::serving {
namespace {

int64_t BytesOf(const Tensor& value) {
  if (!value.initialized()) return 0;
  auto bytes = static_cast<int64_t>(value.num_bytes());
  if (value.dtype() != DT_STRING) return bytes;
  for (const std::string& text : value.flat<std::string>()) {
    bytes += static_cast<int64_t>(text.size());
  }
  return bytes;
}

}  // namespace

int64_t MemoryUse(const LoadedModel& model) {
  int64_t bytes = 0;
  for (const std::shared_ptr<VariableState>& variable :
       model.session->resources().All<VariableState>()) {
    const MutexLock lock(variable->mutex());
    bytes += BytesOf(variable->value());
  }
  for (const auto& node : model.graph->nodes()) {
    const AttrValue* value = node->op_name() == "Const" ? node->FindAttr("value") : nullptr;
    const Tensor* constant = value != nullptr ? value->get_if<Tensor>() : nullptr;
    if (constant != nullptr) bytes += BytesOf(*constant);
  }
  if (model.graph->functions() == nullptr) return bytes;
  for (const std::string& name : model.graph->functions()->Names()) {
    for (const proto::NodeDef& node : model.graph->functions()->FindDef(name)->node_def()) {
      if (node.op() == "Const") bytes += static_cast<int64_t>(node.ByteSizeLong());
    }
  }
  return bytes;
}

}  // namespace weir::serving
