#include "weir/tools/graph/graph_diff.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/graph.pb.h"

namespace weir::tools {

namespace {

using Names = std::vector<std::string>;

// Returns "x" for "x:0": both name the same tensor.
std::string TensorName(absl::string_view input) {
  absl::ConsumeSuffix(&input, ":0");
  return std::string(input);
}

Names DataInputs(const proto::NodeDef& node) {
  Names names;
  for (const std::string& input : node.input()) {
    if (!absl::StartsWith(input, "^")) names.push_back(TensorName(input));
  }
  return names;
}

Names Controls(const proto::NodeDef& node) {
  std::set<std::string> names;
  for (const std::string& input : node.input()) {
    if (absl::StartsWith(input, "^")) names.insert(input);
  }
  return Names(names.begin(), names.end());
}

// Returns the effective values: explicit attributes, and the op's defaults for the others.
std::map<std::string, std::optional<AttrValue>> Attributes(const proto::NodeDef& node) {
  std::map<std::string, std::optional<AttrValue>> attrs;
  if (const OpSpec* op = BuiltinOps().Find(node.op())) {
    for (const AttrSpec& spec : op->attrs()) {
      if (spec.default_value) attrs[spec.name] = *spec.default_value;
    }
  }
  for (const auto& [name, value] : node.attr()) {
    absl::StatusOr<AttrValue> parsed = AttrFromProto(value);
    attrs[name] = parsed.ok() ? std::optional<AttrValue>(*std::move(parsed)) : std::nullopt;
  }
  return attrs;
}

std::string Printed(const std::optional<AttrValue>& value) {
  return value ? value->ToString() : "(unreadable)";
}

class NodeComparison {
 public:
  NodeComparison(const proto::NodeDef& a, const proto::NodeDef& b) : a_(a), b_(b) {}

  std::vector<std::string> Run(const std::set<std::string>& ignore) {
    Compare("op", a_.op(), b_.op());
    const Names inputs_a = DataInputs(a_), inputs_b = DataInputs(b_);
    for (size_t i = 0; i < std::max(inputs_a.size(), inputs_b.size()); ++i) {
      Compare(absl::StrCat("input ", i), i < inputs_a.size() ? inputs_a[i] : "",
              i < inputs_b.size() ? inputs_b[i] : "");
    }
    Compare("controls", absl::StrJoin(Controls(a_), " "), absl::StrJoin(Controls(b_), " "));
    if (ignore.count("device") == 0) Compare("device", a_.device(), b_.device());
    CompareAttributes(ignore);
    return std::move(details_);
  }

 private:
  void Compare(absl::string_view what, absl::string_view a, absl::string_view b) {
    if (a == b) return;
    details_.push_back(
        absl::StrCat(what, ": ", a.empty() ? "(none)" : a, " -> ", b.empty() ? "(none)" : b));
  }

  void CompareAttributes(const std::set<std::string>& ignore) {
    const auto attrs_a = Attributes(a_), attrs_b = Attributes(b_);
    std::set<std::string> names;
    for (const auto& [name, value] : attrs_a) names.insert(name);
    for (const auto& [name, value] : attrs_b) names.insert(name);
    for (const std::string& name : names) {
      if (ignore.count(name) > 0) continue;
      const auto a = attrs_a.find(name), b = attrs_b.find(name);
      const bool in_a = a != attrs_a.end(), in_b = b != attrs_b.end();
      if (in_a && in_b && SameValue(name, a->second, b->second)) continue;
      std::string text_a = in_a ? Printed(a->second) : "", text_b = in_b ? Printed(b->second) : "";
      if (text_a == text_b) text_b += " with other elements";
      Compare(name == "_class" ? "colocation" : absl::StrCat("attribute ", name), text_a, text_b);
    }
  }

  bool SameValue(const std::string& name, const std::optional<AttrValue>& a,
                 const std::optional<AttrValue>& b) const {
    if (a && b) return *a == *b;
    return !a && !b &&
           a_.attr().at(name).SerializeAsString() == b_.attr().at(name).SerializeAsString();
  }

  const proto::NodeDef& a_;
  const proto::NodeDef& b_;
  std::vector<std::string> details_;
};

template <class Range, class NameOf>
auto ByName(const Range& range, NameOf name_of) {
  std::map<std::string, decltype(&*range.begin())> out;
  for (const auto& element : range) out.emplace(name_of(element), &element);
  return out;
}

std::vector<std::string> DiffFunctions(const proto::GraphDef& first,
                                       const proto::GraphDef& second) {
  const auto name_of = [](const proto::FunctionDef& f) { return f.signature().name(); };
  const auto in_a = ByName(first.library().function(), name_of);
  const auto in_b = ByName(second.library().function(), name_of);
  std::vector<std::string> out;
  for (const auto& [name, f] : in_a) {
    const auto other = in_b.find(name);
    if (other == in_b.end()) {
      out.push_back("only in the first: " + name);
    } else if (f->ShortDebugString() != other->second->ShortDebugString()) {
      out.push_back("differs: " + name);
    }
  }
  for (const auto& [name, f] : in_b) {
    if (in_a.count(name) == 0) out.push_back("only in the second: " + name);
  }
  return out;
}

}  // namespace

GraphDifference DiffGraphs(const proto::GraphDef& first, const proto::GraphDef& second,
                           const std::set<std::string>& ignore) {
  const auto name_of = [](const proto::NodeDef& node) { return node.name(); };
  const auto in_a = ByName(first.node(), name_of), in_b = ByName(second.node(), name_of);
  GraphDifference out;
  for (const proto::NodeDef& node : first.node()) {
    const auto other = in_b.find(node.name());
    if (other == in_b.end()) {
      out.nodes.push_back({NodeDifference::kOnlyInFirst, node.name(), {node.op()}});
      continue;
    }
    std::vector<std::string> details = NodeComparison(node, *other->second).Run(ignore);
    if (!details.empty()) {
      out.nodes.push_back({NodeDifference::kChanged, node.name(), std::move(details)});
    }
  }
  for (const proto::NodeDef& node : second.node()) {
    if (in_a.count(node.name()) == 0) {
      out.nodes.push_back({NodeDifference::kOnlyInSecond, node.name(), {node.op()}});
    }
  }
  out.functions = DiffFunctions(first, second);
  return out;
}

}  // namespace weir::tools
