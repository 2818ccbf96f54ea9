#include "weir/core/import/order.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A graph of nodes n0, n1, ..., given by the sources of each.
class Nodes {
 public:
  explicit Nodes(const std::vector<std::vector<ImportEdge>>& sources) {
    for (size_t i = 0; i < sources.size(); ++i) names_.push_back(absl::StrCat("n", i));
    for (size_t i = 0; i < sources.size(); ++i) {
      headers_.push_back({.name = names_[i]});
      for (const ImportEdge& edge : sources[i]) edges_.Add(edge);
      edges_.EndNode();
    }
  }
  absl::StatusOr<std::vector<int>> Order() const { return TopologicalOrder(headers_, edges_); }
  std::string Error() const { return std::string(Order().status().message()); }

 private:
  std::vector<std::string> names_;
  std::vector<NodeHeader> headers_;
  ImportEdges edges_;
};

TEST(TopologicalOrder, TakesTheLowestPositionThatIsReady) {
  EXPECT_THAT(*Nodes({}).Order(), IsEmpty());
  EXPECT_THAT(*Nodes({{}, {{.def = 0}}, {{.def = 1}}}).Order(), ElementsAre(0, 1, 2));
  EXPECT_THAT(*Nodes({{{.def = 3}}, {}, {{.def = 0}}, {}}).Order(), ElementsAre(1, 3, 0, 2));
  EXPECT_THAT(*Nodes({{{.def = 2, .control = true}}, {}, {}}).Order(), ElementsAre(1, 2, 0));
}

TEST(TopologicalOrder, CountsEachOfSeveralEdgesBetweenTwoNodes) {
  EXPECT_THAT(*Nodes({{{.def = 1}, {.def = 1}, {.def = 1, .control = true}}, {}}).Order(),
              ElementsAre(1, 0));
}

TEST(TopologicalOrder, IgnoresBackEdgesAndMappedInputs) {
  Node* const mapped = reinterpret_cast<Node*>(8);  // is not read
  EXPECT_THAT(*Nodes({{{.def = 1, .back = true}}, {{.def = 0}, {.mapped = mapped}}}).Order(),
              ElementsAre(0, 1));
}

TEST(TopologicalOrder, NamesACycleInTheDirectionOfItsEdges) {
  const std::vector<std::vector<ImportEdge>> itself = {{{.def = 0}}};
  EXPECT_EQ(Nodes(itself).Error(), "1 node in a cycle: n0 -> n0");
  EXPECT_EQ(Nodes({{}, {{.def = 0}, {.def = 3}}, {{.def = 1}}, {{.def = 2}}}).Error(),
            "3 nodes in a cycle: n1 -> n2 -> n3 -> n1");
}

TEST(TopologicalOrder, CountsNodesBehindACycle) {
  EXPECT_EQ(Nodes({{{.def = 1}}, {{.def = 2}}, {{.def = 1}}}).Error(),
            "3 nodes in a cycle: n1 -> n2 -> n1");
}

TEST(TopologicalOrder, NamesOnlyTheStartOfALongCycle) {
  std::vector<std::vector<ImportEdge>> ring;
  for (int i = 0; i < 100; ++i) ring.push_back({{.def = (i + 99) % 100}});
  EXPECT_EQ(
      Nodes(ring).Error(),
      "100 nodes in a cycle: n0 -> n1 -> n2 -> n3 -> n4 -> n5 -> n6 -> n7 -> n8 -> n9 -> ...");
}

}  // namespace
}  // namespace weir
