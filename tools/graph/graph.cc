#include <re2/re2.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "weir/core/graph/graph.h"
#include "weir/core/graph/unknown_op.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/tools/graph/graph_diff.h"
#include "weir/tools/graph/graph_dot.h"
#include "weir/tools/graph/graph_export.h"
#include "weir/tools/graph/graph_file.h"
#include "weir/tools/graph/model.h"
#include "weir/tools/graph/op_use.h"
#include "weir/tools/lib/command.h"
#include "weir/tools/lib/text_table.h"

// weir graph show|ops|diff|dot: inspects graphs as stored in their files, without running them.
// (freeze, unfreeze and export need the values of variables: graph_export.cc, graph_unfreeze.cc.)
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct GraphOptions {
  std::string file, other, name, out;
  std::vector<std::string> tags, ignore;
  bool json = false, strict = false;
};

absl::StatusOr<std::function<bool(const proto::NodeDef&)>> NameFilter(const std::string& pattern) {
  if (pattern.empty()) return [](const proto::NodeDef&) { return true; };
  const auto regex = std::make_shared<const RE2>(pattern, RE2::Quiet);
  if (!regex->ok()) {
    return InvalidArgument("--name: invalid regular expression '", pattern, "': ", regex->error());
  }
  return [regex](const proto::NodeDef& node) { return RE2::PartialMatch(node.name(), *regex); };
}

// ---- show

// Finds types and shapes of outputs by importing the graph. Returns none if it cannot be imported.
class OutputTypes {
 public:
  OutputTypes(const proto::MetaGraphDef& meta, bool strict) {
    ImportOptions options;
    options.op_list = meta.meta_info_def().stripped_op_list().SerializeAsString();
    options.unknown = strict ? UnknownParts::kReject : UnknownParts::kKeep;
    status_ = ImportGraphDef(graph_, meta.graph_def(), options).status();
  }
  const absl::Status& status() const { return status_; }
  // Returns the ops of imported nodes that no registry contains.
  std::set<std::string> UnknownOps() const {
    std::set<std::string> ops;
    for (const auto& node : graph_.nodes()) {
      if (IsUnknownOp(*node)) ops.insert(node->op_name());
    }
    return ops;
  }

  std::vector<std::string> Of(const std::string& name) const {
    std::vector<std::string> out;
    const Node* node = status_.ok() ? graph_.FindNode(name) : nullptr;
    for (int i = 0; node != nullptr && i < node->num_outputs(); ++i) {
      const Shape& shape = node->output_shape(i);
      out.push_back(absl::StrCat(DataTypeName(node->output_type(i)),
                                 shape.has_rank() ? shape.ToString() : "[...]"));
    }
    return out;
  }

 private:
  Graph graph_;
  absl::Status status_;
};

std::map<std::string, std::string> AttributeTexts(const proto::NodeDef& node) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : node.attr()) {
    if (name == "_output_shapes") continue;
    const absl::StatusOr<AttrValue> parsed = AttrFromProto(value);
    out[name] = parsed.ok() ? parsed->ToString() : "(unreadable)";
  }
  return out;
}

Json NodeToJson(const proto::NodeDef& node, const OutputTypes& types) {
  return {{"name", node.name()},
          {"op", node.op()},
          {"inputs", std::vector<std::string>(node.input().begin(), node.input().end())},
          {"device", node.device()},
          {"attributes", AttributeTexts(node)},
          {"outputs", types.Of(node.name())}};
}

void PrintNode(const proto::NodeDef& node, const OutputTypes& types, Console& console) {
  console.out << console.Paint(Style::kBold, node.name()) << " = " << node.op() << "("
              << absl::StrJoin(node.input(), ", ") << ")";
  const std::vector<std::string> outputs = types.Of(node.name());
  if (!outputs.empty()) {
    console.out << console.Paint(Style::kGood, " -> " + absl::StrJoin(outputs, ", "));
  }
  std::vector<std::string> marks;
  for (const auto& [name, text] : AttributeTexts(node)) marks.push_back(name + "=" + text);
  if (!node.device().empty()) marks.push_back("device=" + node.device());
  if (!marks.empty()) {
    console.out << "\n    " << console.Paint(Style::kDim, absl::StrJoin(marks, " "));
  }
  console.out << "\n";
}

int Show(const GraphOptions& options, Console& console) {
  proto::MetaGraphDef meta;
  const auto kind = ReadAnyGraph(options.file, options.tags, &meta);
  if (!kind.ok()) return Fail(console, kind.status());
  const auto keep = NameFilter(options.name);
  if (!keep.ok()) return Fail(console, keep.status());
  const proto::GraphDef& def = meta.graph_def();
  const OutputTypes types(meta, options.strict);
  if (options.strict && !types.status().ok()) return Fail(console, types.status());
  Json nodes = Json::array();
  int shown = 0;
  for (const proto::NodeDef& node : def.node()) {
    if (!(*keep)(node)) continue;
    ++shown;
    if (options.json) {
      nodes.push_back(NodeToJson(node, types));
    } else {
      PrintNode(node, types, console);
    }
  }
  if (options.json) {
    const Json out = {{"producer", def.versions().producer()},
                      {"functions", def.library().function_size()},
                      {"nodes", std::move(nodes)}};
    console.out << out.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
    return kOk;
  }
  console.out << console.Paint(Style::kDim,
                               absl::StrCat(shown, " of ", def.node_size(), " nodes, ",
                                            def.library().function_size(), " functions, producer ",
                                            def.versions().producer()))
              << "\n";
  if (!types.status().ok()) {
    console.err << "weir: shapes are not shown because the graph cannot be imported: "
                << types.status().ToString() << "\n";
  }
  if (const std::set<std::string> unknown = types.UnknownOps(); !unknown.empty()) {
    console.err << "weir: unregistered ops (steps that need them fail): "
                << absl::StrJoin(unknown, ", ") << "\n";
  }
  return kOk;
}

// ---- ops

int Ops(const GraphOptions& options, Console& console) {
  proto::MetaGraphDef meta;
  const auto kind = ReadAnyGraph(options.file, options.tags, &meta);
  if (!kind.ok()) return Fail(console, kind.status());
  const std::vector<OpUse> ops = CountOps(meta.graph_def());
  TextTable table({">nodes", ">in functions", "op", "missing"});
  Json json = Json::array();
  int lacking = 0;
  for (const OpUse& use : ops) {
    lacking += !use.missing.empty();
    table.Row({absl::StrCat(use.nodes), absl::StrCat(use.in_functions), use.op, use.missing});
    json.push_back({{"op", use.op},
                    {"nodes", use.nodes},
                    {"in_functions", use.in_functions},
                    {"lacks", use.missing}});
  }
  if (options.json) {
    console.out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    table.Print(console);
    console.out << ops.size() << " ops, " << lacking << " of them not supported\n";
  }
  return lacking == 0 ? kOk : kFailure;
}

// ---- diff

void PrintDifference(const GraphDifference& difference, Console& console) {
  int count[3] = {};
  for (const NodeDifference& node : difference.nodes) {
    ++count[node.kind];
    if (node.kind == NodeDifference::kChanged) {
      console.out << console.Paint(Style::kNote, "~ " + node.node) << "\n";
      for (const std::string& detail : node.details) console.out << "    " << detail << "\n";
    } else {
      const bool first = node.kind == NodeDifference::kOnlyInFirst;
      console.out << console.Paint(
                         first ? Style::kBad : Style::kGood,
                         absl::StrCat(first ? "- " : "+ ", node.node, " (", node.details[0], ")"))
                  << "\n";
    }
  }
  for (const std::string& function : difference.functions) {
    console.out << console.Paint(Style::kNote, "~ function ") << function << "\n";
  }
  console.out << count[NodeDifference::kOnlyInFirst] << " nodes only in the first, "
              << count[NodeDifference::kOnlyInSecond] << " only in the second, "
              << count[NodeDifference::kChanged] << " changed\n";
}

Json DifferenceToJson(const GraphDifference& difference) {
  static constexpr const char* kKinds[] = {"only_in_first", "only_in_second", "changed"};
  Json nodes = Json::array();
  for (const NodeDifference& node : difference.nodes) {
    nodes.push_back({{"node", node.node}, {"kind", kKinds[node.kind]}, {"details", node.details}});
  }
  return {{"equal", difference.empty()}, {"nodes", nodes}, {"functions", difference.functions}};
}

int Diff(const GraphOptions& options, Console& console) {
  proto::MetaGraphDef first, second;
  const auto is_folder = [](const std::string& file) { return Files().IsDirectory(file); };
  const bool selects = is_folder(options.file) || is_folder(options.other);
  for (const auto& [file, meta] : {std::pair(&options.file, &first), {&options.other, &second}}) {
    // Tags that select from a SavedModel are not asked of the file that it is compared with.
    const auto tags = selects && !is_folder(*file) ? std::vector<std::string>() : options.tags;
    const auto kind = ReadAnyGraph(*file, tags, meta);
    if (!kind.ok()) return Fail(console, kind.status());
  }
  const GraphDifference difference =
      DiffGraphs(first.graph_def(), second.graph_def(),
                 std::set<std::string>(options.ignore.begin(), options.ignore.end()));
  if (options.json) {
    console.out << DifferenceToJson(difference).dump(1, ' ', false, Json::error_handler_t::replace)
                << "\n";
  } else if (difference.empty()) {
    console.out << "The graphs are equal: " << first.graph_def().node_size() << " nodes\n";
  } else {
    PrintDifference(difference, console);
  }
  return difference.empty() ? kOk : kFailure;
}

// ---- dot

int Dot(const GraphOptions& options, Console& console) {
  proto::MetaGraphDef meta;
  const auto kind = ReadAnyGraph(options.file, options.tags, &meta);
  if (!kind.ok()) return Fail(console, kind.status());
  const auto keep = NameFilter(options.name);
  if (!keep.ok()) return Fail(console, keep.status());
  const std::string dot = GraphToDot(meta.graph_def(), *keep);
  if (options.out.empty()) {
    console.out << dot;
    return kOk;
  }
  return Finish(console, WriteFileAtomically(options.out, dot));
}

}  // namespace

void AddGraphCommand(Command& weir) {
  auto options = std::make_shared<GraphOptions>();
  Command graph = weir.Add("graph", "Show, compare, draw, freeze, unfreeze and export graphs",
                           "  weir graph ops model.meta");
  const auto add = [&](const char* name, const char* description, const char* example,
                       int (*run)(const GraphOptions&, Console&)) {
    Command part = graph.Add(name, description, example);
    AddGraphArgument(part, &options->file);
    part.List("--tags", &options->tags, "select the meta graph of a SavedModel by its tags")
        .Word("TAG,...");
    part.Do([options, run](Console& console) { return run(*options, console); });
    return part;
  };

  Command show = add("show", "Print the nodes with inputs, attributes and inferred shapes",
                     "  weir graph show model.meta --name 'hidden/.*'", Show);
  show.Value("--name", &options->name, "only nodes whose names match this regular expression")
      .Word("REGEX");
  show.Flag("--json", &options->json, "print JSON");
  AddStrictOption(show, &options->strict);

  Command ops = add(
      "ops", "Count the ops and list those that Weir cannot run (exit status 1 if there are any)",
      "  weir graph ops saved_model_dir", Ops);
  ops.Flag("--json", &options->json, "print JSON");

  Command diff = add("diff", "Compare two graphs node by node (exit status 1 if they differ)",
                     "  weir graph diff mine.pb theirs.pb --ignore device,_output_shapes", Diff);
  diff.Argument("OTHER", &options->other, "the second graph").Required();
  diff.List("--ignore", &options->ignore, "attributes to ignore; also: device").Word("ATTR,...");
  diff.Flag("--json", &options->json, "print JSON");

  Command dot = add("dot", "Write the graph in Graphviz's DOT language",
                    "  weir graph dot model.pb | dot -Tsvg -o model.svg", Dot);
  dot.Value("--name", &options->name, "only nodes whose names match this regular expression")
      .Word("REGEX");
  dot.Value("--out,-o", &options->out, "the file to write; default: standard output").Word("FILE");

  AddFreezeCommand(graph);
  AddUnfreezeCommand(graph);
  AddExportCommand(graph);
}

}  // namespace weir::tools
