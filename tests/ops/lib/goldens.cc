#include "weir/tests/ops/lib/goldens.h"

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/function.pb.h"
#include "weir/proto/graph.pb.h"

namespace weir {
namespace {

// The nodes of functions have the names "function/node".
std::map<std::string, proto::NodeDef> ByName(const proto::GraphDef& def) {
  std::map<std::string, proto::NodeDef> nodes;
  for (const proto::NodeDef& node : def.node()) nodes[node.name()] = node;
  for (const proto::FunctionDef& function : def.library().function()) {
    for (const proto::NodeDef& node : function.node_def())
      nodes[absl::StrCat(function.signature().name(), "/", node.name())] = node;
  }
  return nodes;
}

bool SameAttr(const proto::AttrValue& a, const proto::AttrValue& b) {
  if (!a.has_tensor() || !b.has_tensor())
    return google::protobuf::util::MessageDifferencer::Equals(a, b);
  const auto x = TensorFromProto(a.tensor()), y = TensorFromProto(b.tensor());
  return x.ok() && y.ok() && IdenticalTensors(*x, *y);
}

void ExpectSameNode(const proto::NodeDef& got, const proto::NodeDef& want) {
  SCOPED_TRACE(want.ShortDebugString());
  EXPECT_EQ(got.op(), want.op());
  EXPECT_EQ(got.device(), want.device());
  std::vector<std::string> inputs[2];
  std::set<std::string> controls[2];
  for (int i = 0; i < 2; ++i) {
    for (const std::string& in : (i == 0 ? got : want).input()) {
      if (in[0] == '^') {
        controls[i].insert(in);
      } else {
        inputs[i].push_back(in);
      }
    }
  }
  EXPECT_EQ(inputs[0], inputs[1]);
  EXPECT_EQ(controls[0], controls[1]);
  for (const auto& [key, value] : want.attr()) {
    const auto it = got.attr().find(key);
    if (it == got.attr().end()) {
      ADD_FAILURE() << "no attribute " << key;
    } else {
      EXPECT_TRUE(SameAttr(it->second, value)) << key << ": " << it->second.ShortDebugString();
    }
  }
  for (const auto& [key, value] : got.attr()) {
    EXPECT_TRUE(want.attr().contains(key))
        << "extra attribute " << key << ": " << value.ShortDebugString();
  }
}

void ExpectSameNodes(const proto::GraphDef& got_def, const proto::GraphDef& want_def) {
  const auto got = ByName(got_def), want = ByName(want_def);
  for (const auto& [name, node] : want) {
    const auto it = got.find(name);
    if (it == got.end()) {
      ADD_FAILURE() << "missing: " << node.ShortDebugString();
    } else {
      ExpectSameNode(it->second, node);
    }
  }
  for (const auto& [name, node] : got) {
    EXPECT_TRUE(want.contains(name)) << "extra: " << node.ShortDebugString();
  }
}

std::string NameOf(const CollectionItem& item) {
  if (const auto* tensor = std::get_if<Output>(&item)) return tensor->name();
  if (const auto* op = std::get_if<Operation>(&item)) return op->name();
  if (const auto* object = std::get_if<std::shared_ptr<CollectionObject>>(&item))
    return (*object)->name();
  return "?";
}

// `line`: "# collection losses: a:0 b:0".
void ExpectSameCollection(const Graph& g, absl::string_view line) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(line.substr(sizeof("# collection ") - 1), absl::MaxSplits(':', 1));
  const auto [key, rest] = parts;
  const std::vector<std::string> want = absl::StrSplit(rest, ' ', absl::SkipEmpty());
  std::vector<std::string> got;
  for (const CollectionItem& item : g.collection(key)) got.push_back(NameOf(item));
  EXPECT_EQ(got, want) << "collection " << key;
}

}  // namespace

TEST_P(GoldenTest, GraphMatchesTensorFlowNodeByNode) {
  const auto& [program, use_resource] = GetParam();
  Graph g({.use_resource = use_resource});
  program.build(g);
  ASSERT_TRUE(g.status().ok()) << g.status();
  proto::GraphDef got_def, want_def;
  ExportGraphDef(g, &got_def);
  const std::string path =
      absl::StrCat("tests/ops/golden/", program.name, use_resource ? "_res" : "_ref", ".pbtxt");
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text.str(), &want_def)) << path;
  ASSERT_GT(want_def.node_size(), 0) << path;
  ExpectSameNodes(got_def, want_def);
  for (std::string line; std::getline(text, line) && absl::StartsWith(line, "# collection ");) {
    ExpectSameCollection(g, line);
  }
}

std::string GoldenName(const testing::TestParamInfo<GoldenParam>& info) {
  return absl::StrCat(std::get<0>(info.param).name, std::get<1>(info.param) ? "_res" : "_ref");
}

}  // namespace weir
