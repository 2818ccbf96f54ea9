#include "weir/session/runtime/chrome_trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

namespace weir {

namespace {

using Json = nlohmann::ordered_json;

// "float[2,3]".
std::vector<std::string> Descriptions(const std::vector<NodeTrace::Value>& values) {
  std::vector<std::string> texts;
  for (const NodeTrace::Value& value : values) {
    texts.push_back(DataTypeName(value.dtype) + value.shape.ToString());
  }
  return texts;
}

class TraceWriter {
 public:
  explicit TraceWriter(const std::vector<NodeTrace>& trace) {
    for (const NodeTrace& node : trace) start_ns_ = std::min(start_ns_, node.start_ns);
    for (const NodeTrace& node : trace) {
      records_.emplace(node.node, &node);
      AddNode(node);
    }
  }

  // Adds an arrow from the end of one box to the start of another.
  void AddEdge(const std::string& from, const std::string& to) {
    const auto a = records_.find(from), b = records_.find(to);
    if (a == records_.end() || b == records_.end()) return;
    ++edges_;
    AddEnd("s", *a->second, Micros(a->second->end_ns));
    AddEnd("t", *b->second, Micros(b->second->start_ns));
  }

  std::string Text() const {
    return Json{{"traceEvents", events_}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  double Micros(int64_t ns) const { return static_cast<double>(ns - start_ns_) / 1000; }

  void AddNode(const NodeTrace& node) {
    const auto [device, is_new] = devices_.emplace(node.device, static_cast<int>(devices_.size()));
    if (is_new) {
      events_.push_back({{"ph", "M"},
                         {"name", "process_name"},
                         {"pid", device->second},
                         {"args", {{"name", node.device}}}});
    }
    events_.push_back({{"ph", "X"},
                       {"name", node.node},
                       {"cat", node.op},
                       {"pid", device->second},
                       {"tid", node.thread},
                       {"ts", Micros(node.start_ns)},
                       {"dur", static_cast<double>(node.end_ns - node.start_ns) / 1000},
                       {"args", {{"op", node.op}, {"outputs", Descriptions(node.outputs)}}}});
  }

  void AddEnd(const char* phase, const NodeTrace& node, double at) {
    events_.push_back({{"ph", phase},
                       {"name", "data"},
                       {"cat", "data"},
                       {"id", edges_},
                       {"pid", devices_.at(node.device)},
                       {"tid", node.thread},
                       {"ts", at}});
  }

  int64_t start_ns_ = std::numeric_limits<int64_t>::max();
  std::map<std::string, const NodeTrace*> records_;
  std::map<std::string, int> devices_;
  int edges_ = 0;
  Json events_ = Json::array();
};

}  // namespace

std::string ChromeTrace(const std::vector<NodeTrace>& trace, const Graph& graph) {
  TraceWriter writer(trace);
  for (const NodeTrace& record : trace) {
    const Node* node = graph.FindNode(record.node);
    for (int i = 0; node != nullptr && i < node->num_inputs(); ++i) {
      writer.AddEdge(node->input(i).node->name(), record.node);
    }
  }
  return writer.Text();
}

}  // namespace weir
