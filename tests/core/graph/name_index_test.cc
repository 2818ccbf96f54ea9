#include "weir/core/graph/name_index.h"

#include <map>
#include <memory>
#include <random>

#include "absl/strings/ascii.h"
#include "gtest/gtest.h"
#include "weir/core/graph/graph.h"
#include "weir/tests/core/graph/test_ops.h"

namespace weir {
namespace {

class Nodes {
 public:
  Node* Make(const std::string& name) {
    graphs_.push_back(std::make_unique<Graph>(TestOps()));
    return NodeBuilder(*graphs_.back(), "NoOp").Name(name).Build();
  }

 private:
  std::vector<std::unique_ptr<Graph>> graphs_;
};

TEST(NameIndex, FindsExactNamesAndReservesIgnoringCase) {
  Nodes nodes;
  NameIndex index;
  Node *const upper = nodes.Make("A"), *const lower = nodes.Make("a");
  index.Add(upper);
  EXPECT_EQ(index.Find("A"), upper);
  EXPECT_EQ(index.Find("a"), nullptr);
  EXPECT_EQ(index.Unique("a").text(), "a") << "not taken yet";
  index.Add(lower);
  EXPECT_TRUE(index.Take("A"));
  EXPECT_FALSE(index.Take("a"));
  EXPECT_EQ(index.Find("A"), upper);
  EXPECT_EQ(index.Find("a"), lower);
  EXPECT_EQ(index.Unique("a").text(), "a_1");
  index.Remove(upper);
  EXPECT_EQ(index.Find("A"), nullptr);
  EXPECT_EQ(index.Find("a"), lower);
  index.Remove(lower);
  EXPECT_EQ(index.Find("a"), nullptr);
  EXPECT_EQ(index.Unique("a").text(), "a_1") << "still taken";
}

// A reference model with two maps, from exact names to nodes and from lowercase names to counters;
// NameIndex combines both in one.
class Reference {
 public:
  Node* Find(const std::string& name) const {
    const auto it = nodes_.find(name);
    return it == nodes_.end() ? nullptr : it->second;
  }
  std::string Unique(const std::string& name) const {
    const std::string base = absl::AsciiStrToLower(name);
    if (next_.count(base) == 0) return name;
    int i = next_.at(base);
    while (next_.count(absl::StrCat(base, "_", i)) > 0) ++i;
    return absl::StrCat(name, "_", i);
  }
  void TakeUnique(const std::string& asked, const std::string& given) {
    const std::string base = absl::AsciiStrToLower(asked);
    if (given != asked) {
      next_[base] = std::stoi(given.substr(asked.size() + 1)) + 1;
      next_[absl::AsciiStrToLower(given)] = 1;
    } else {
      next_[base] = 1;
    }
  }
  void Take(const std::string& name) { next_.try_emplace(absl::AsciiStrToLower(name), 1); }
  void Add(Node* node) { nodes_[node->name()] = node; }
  void Remove(Node* node) { nodes_.erase(node->name()); }
  void Release(const std::string& asked, const std::string& given) {
    const std::string base = absl::AsciiStrToLower(asked);
    if (given == asked) {
      if (next_.count(base) > 0 && next_[base] == 1) next_.erase(base);
    } else if (const int number = std::stoi(given.substr(asked.size() + 1));
               next_.count(base) > 0 && next_[base] == number + 1) {
      next_[base] = number;
      next_.erase(absl::AsciiStrToLower(given));
    }
  }

 private:
  std::map<std::string, Node*> nodes_;
  std::map<std::string, int> next_;
};

TEST(NameIndex, MatchesTheReferenceModel) {
  const std::vector<std::string> names = {"a",     "A",   "b",   "a_1", "A_1",
                                          "a_1_1", "b_2", "a/b", "a/B"};
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    Nodes nodes;
    NameIndex index;
    Reference reference;
    std::vector<std::pair<Node*, std::string>> added;
    const auto draw = [&](size_t limit) { return random() % limit; };
    for (int step = 0; step < 120; ++step) {
      const std::string& asked = names[draw(names.size())];
      const NameIndex::FreeName free = index.Unique(asked);
      const std::string given = free.text();
      ASSERT_EQ(given, reference.Unique(asked)) << "seed " << seed << " step " << step;
      switch (draw(5)) {
        case 0:
        case 1: {
          Node* const node = nodes.Make(given);
          ASSERT_NE(node, nullptr);
          index.AddUnique(node, free);
          reference.TakeUnique(asked, given);
          reference.Add(node);
          added.emplace_back(node, asked);
          break;
        }
        case 2:
          EXPECT_EQ(index.TakeUnique(asked), given);
          reference.TakeUnique(asked, given);
          break;
        case 3:
          index.Take(asked);
          reference.Take(asked);
          break;
        default:
          if (added.empty()) break;
          const size_t at = draw(added.size());
          const auto [node, wanted] = added[at];
          added.erase(added.begin() + static_cast<int64_t>(at));
          index.Remove(node);
          index.Release(wanted, node->name());
          reference.Remove(node);
          reference.Release(wanted, node->name());
      }
      for (const std::string& name : names)
        ASSERT_EQ(index.Find(name), reference.Find(name)) << name << ", seed " << seed;
    }
    for (const auto& [node, asked] : added) EXPECT_EQ(index.Find(node->name()), node);
  }
}

}  // namespace
}  // namespace weir
