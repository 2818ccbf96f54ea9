#include "weir/tools/graph/graph_dot.h"

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weir/core/graph/op.h"
#include "weir/proto/graph.pb.h"

namespace weir::tools {

namespace {

std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// A name scope: its subscopes, and its nodes by the last component of their names.
struct Scope {
  std::map<std::string, std::unique_ptr<Scope>> scopes;
  std::vector<std::pair<const proto::NodeDef*, std::string>> nodes;
};

// Names from files may have any number of components. Boxes stop at a depth that Graphviz can draw;
// the innermost box contains all deeper nodes.
constexpr int kMaxDepth = 32;

void Insert(const proto::NodeDef& node, Scope* root) {
  const std::vector<std::string> parts =
      absl::StrSplit(node.name(), absl::MaxSplits('/', kMaxDepth));
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    std::unique_ptr<Scope>& inner = root->scopes[parts[i]];
    if (inner == nullptr) inner = std::make_unique<Scope>();
    root = inner.get();
  }
  root->nodes.emplace_back(&node, parts.back());
}

bool DeclaresVariable(const std::string& op_name) {
  return BuiltinOps().TraitsOf(op_name).variable_use == VariableUse::kDeclares;
}

void WriteScope(const Scope& scope, const std::string& path, int depth, std::string* out) {
  const std::string indent(2 * depth + 2, ' ');
  for (const auto& [node, name] : scope.nodes) {
    const bool is_state = DeclaresVariable(node->op());
    absl::StrAppend(out, indent, Quoted(node->name()),
                    " [label=", Quoted(name + " : " + node->op()),
                    is_state ? ", shape=cylinder" : "", "];\n");
  }
  for (const auto& [name, inner] : scope.scopes) {
    const std::string inner_path = path + name + "/";
    absl::StrAppend(out, indent, "subgraph ", Quoted("cluster_" + inner_path), " {\n", indent,
                    "  label=", Quoted(name), ";\n");
    WriteScope(*inner, inner_path, depth + 1, out);
    absl::StrAppend(out, indent, "}\n");
  }
}

void WriteEdge(absl::string_view input, const std::string& to, const std::set<std::string>& nodes,
               std::string* out) {
  const bool is_control = absl::ConsumePrefix(&input, "^");
  const std::pair<absl::string_view, absl::string_view> from =
      absl::StrSplit(input, absl::MaxSplits(':', 1));
  if (nodes.count(std::string(from.first)) == 0) return;
  std::string style;
  if (is_control) style = " [style=dashed]";
  if (!from.second.empty() && from.second != "0") {
    style = absl::StrCat(" [taillabel=", Quoted(from.second), "]");
  }
  absl::StrAppend(out, "  ", Quoted(from.first), " -> ", Quoted(to), style, ";\n");
}

}  // namespace

std::string GraphToDot(const proto::GraphDef& def,
                       const std::function<bool(const proto::NodeDef&)>& keep) {
  Scope root;
  std::set<std::string> kept;
  for (const proto::NodeDef& node : def.node()) {
    if (keep(node) && kept.insert(node.name()).second) Insert(node, &root);
  }
  std::string out = "digraph weir {\n  node [shape=box, fontname=Helvetica];\n";
  WriteScope(root, "", 0, &out);
  for (const proto::NodeDef& node : def.node()) {
    if (kept.count(node.name()) == 0) continue;
    for (const std::string& input : node.input()) WriteEdge(input, node.name(), kept, &out);
  }
  return out + "}\n";
}

}  // namespace weir::tools
