#include "weir/session/model/constant_node.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/node_def.pb.h"

namespace weir {

void ReplaceByConst(const Tensor& value, proto::NodeDef* node) {
  std::vector<std::string> controls;
  for (const std::string& input : node->input()) {
    if (absl::StartsWith(input, "^")) controls.push_back(input);
  }
  *node->mutable_input() = {controls.begin(), controls.end()};
  node->set_op("Const");
  node->clear_attr();
  auto& attrs = *node->mutable_attr();
  attrs["dtype"].set_type(static_cast<proto::DataType>(value.dtype()));
  TensorToProto(value, attrs["value"].mutable_tensor());
}

}  // namespace weir
