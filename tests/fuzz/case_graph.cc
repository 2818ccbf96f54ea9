#include "weir/tests/fuzz/case_graph.h"

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/tests/fuzz/mutate.h"
#include "weir/tools/case/case_runner.h"
#include "weir/tools/lib/value_file.h"

namespace weir::fuzz {

namespace {

using Json = nlohmann::json;
using NodesByName = std::map<std::string, proto::NodeDef*>;

std::pair<std::string, std::string> NodeAndOutput(const std::string& tensor) {
  const size_t colon = tensor.find(':');
  if (colon == std::string::npos) return {tensor, "0"};
  return {tensor.substr(0, colon), tensor.substr(colon + 1)};
}

proto::AttrValue* Mark(const NodesByName& nodes, const char* mark, int step,
                       const std::string& tensor) {
  const auto [name, output] = NodeAndOutput(tensor);
  const auto it = nodes.find(name);
  if (it == nodes.end()) return nullptr;
  std::string key = absl::StrCat(mark, step);
  if (mark != kTargetMark) absl::StrAppend(&key, ".", output);
  return &(*it->second->mutable_attr())[key];
}

absl::Status MarkStep(const NodesByName& nodes, const std::string& folder, int number,
                      const Json& step) {
  const Json feeds = step.value("feed", Json::object());
  const Json fetches = step.value("fetch", Json::object());
  for (const auto& [tensor, file] : feeds.items()) {
    proto::AttrValue* mark = Mark(nodes, kFeedMark, number, tensor);
    if (mark == nullptr) continue;
    Tensor value = Tensor::Scalar("/missing");
    if (file.is_string()) {
      WEIR_ASSIGN_OR_RETURN(value, tools::ReadValueFile(JoinPath(folder, file)));
    }
    TensorToProto(value, mark->mutable_tensor());
  }
  for (const auto& [tensor, file] : fetches.items()) {
    if (proto::AttrValue* mark = Mark(nodes, kFetchMark, number, tensor)) mark->set_b(true);
  }
  for (const Json& target : step.value("target", Json::array())) {
    if (proto::AttrValue* mark = Mark(nodes, kTargetMark, number, target)) mark->set_b(true);
  }
  return absl::OkStatus();
}

absl::StatusOr<proto::GraphDef> ReadGraph(const std::string& folder, const Json& spec) {
  proto::MetaGraphDef meta;
  if (spec.contains("graph")) {
    WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(JoinPath(folder, spec["graph"])));
    if (!meta.mutable_graph_def()->ParseFromString(bytes)) return InvalidArgument("not a GraphDef");
  } else if (spec.contains("meta")) {
    WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(JoinPath(folder, spec["meta"])));
    if (!meta.ParseFromString(bytes)) return InvalidArgument("not a MetaGraphDef");
  } else {
    return Unimplemented("the case has no graph");
  }
  return std::move(*meta.mutable_graph_def());
}

// Larger graphs make the search slow.
constexpr size_t kMostBytes = 300000;

}  // namespace

absl::StatusOr<std::string> CaseGraph(const std::string& folder) {
  WEIR_ASSIGN_OR_RETURN(const std::string text, ReadFile(JoinPath(folder, "case.json")));
  const Json spec = Json::parse(text, nullptr, false);
  if (!spec.is_object()) return InvalidArgument("case.json is not a JSON object");
  WEIR_ASSIGN_OR_RETURN(proto::GraphDef graph, ReadGraph(folder, spec));
  NodesByName nodes;
  for (proto::NodeDef& node : *graph.mutable_node()) nodes[node.name()] = &node;
  int number = 0;
  for (const Json& step : spec.value("steps", Json::array())) {
    if (number == kMaxSteps) break;
    WEIR_RETURN_IF_ERROR(MarkStep(nodes, folder, number++, step));
  }
  return graph.SerializeAsString();
}

absl::StatusOr<std::vector<std::string>> ReadGraphs(const std::vector<std::string>& paths) {
  std::vector<std::string> graphs;
  for (const std::string& path : paths) {
    if (absl::EndsWith(path, ".pb")) {
      WEIR_ASSIGN_OR_RETURN(graphs.emplace_back(), ReadFile(path));
      continue;
    }
    WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> folders, tools::FindCases({path}));
    for (const std::string& folder : folders) {
      absl::StatusOr<std::string> graph = CaseGraph(folder);
      if (graph.ok() && graph->size() < kMostBytes) graphs.push_back(*std::move(graph));
    }
  }
  if (graphs.empty()) return NotFound("There are no graphs to begin with");
  return graphs;
}

}  // namespace weir::fuzz
