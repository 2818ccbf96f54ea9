#include <sys/resource.h>

#include <cstdint>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/escaping.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/lib/registry.h"
#include "weir/proto/graph.pb.h"
#include "weir/session/session.h"
#include "weir/tests/fuzz/marked_steps.h"

// Runs what comes in on standard input, GraphDefs with marks (tests/fuzz/mutate.h), each after its
// length in four bytes, and writes a line of JSON for each:
//
//   {"import": {"code": 3, "message": "..."}}
//   {"steps": [{"code": 0, "message": "", "values": {"x:0": {"dtype": 1, "shape": [2], "hex":
//   "..."}}}]}
//
// The first step that fails is the last. Strings come as "strings", each in hex; handles and what
// is large without their contents.
namespace weir {

namespace {

using Json = nlohmann::json;

constexpr size_t kMostBytes = 1 << 16;  // of a value that is compared

Json StatusJson(const absl::Status& status) {
  // A message may quote bytes that are no UTF-8.
  return {{"code", static_cast<int>(status.code())},
          {"message", absl::CHexEscape(status.message())}};
}

Json ValueJson(const Tensor& value) {
  Json json = {
      {"dtype", static_cast<int>(value.dtype())},
      {"shape", std::vector<int64_t>(value.shape().dims().begin(), value.shape().dims().end())}};
  if (value.num_bytes() > kMostBytes) return json;
  if (value.dtype() == DT_STRING) {
    json["strings"] = Json::array();
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      json["strings"].push_back(absl::BytesToHexString(value.data<std::string>()[i]));
    }
  } else if (IsPlain(value.dtype())) {
    const absl::string_view bytes(static_cast<const char*>(value.raw()), value.num_bytes());
    json["hex"] = absl::BytesToHexString(bytes);
  }
  return json;
}

Json RunGraph(const std::string& bytes) {
  proto::GraphDef def;
  if (!def.ParseFromString(bytes)) return {{"import", StatusJson(InvalidArgument("no GraphDef"))}};
  Graph graph;
  if (const auto imported = ImportGraphDef(graph, def); !imported.ok()) {
    return {{"import", StatusJson(imported.status())}};
  }
  absl::StatusOr<Session> session = Session::Create(graph, {.num_threads = 1});
  if (!session.ok()) return {{"import", StatusJson(session.status())}};
  Json steps = Json::array();
  for (const auto& [number, step] : fuzz::MarkedSteps(graph)) {
    const auto results = session->Run(step.feeds, step.fetches, step.targets,
                                      {.timeout = std::chrono::milliseconds(1000)});
    steps.push_back(StatusJson(results.status()));
    if (!results.ok()) break;
    Json& values = steps.back()["values"];
    for (size_t i = 0; i < results->size(); ++i) {
      const Output& fetch = step.fetches[i];
      values[absl::StrCat(fetch.node->name(), ":", fetch.index)] = ValueJson((*results)[i]);
    }
  }
  return {{"steps", steps}};
}

int Main() {
  // What asks for more ends as an error, not with the machine's memory.
  const rlimit limit{.rlim_cur = rlim_t{4} << 30, .rlim_max = rlim_t{4} << 30};
  setrlimit(RLIMIT_AS, &limit);
  uint32_t length = 0;
  while (std::cin.read(reinterpret_cast<char*>(&length), sizeof(length))) {
    std::string bytes(length, '\0');
    if (!std::cin.read(bytes.data(), length)) return 1;
    std::cout << RunGraph(bytes).dump() << std::endl;
  }
  return 0;
}

}  // namespace

}  // namespace weir

int main() { return weir::Main(); }
