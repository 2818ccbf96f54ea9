#include "weir/core/graph/families.h"

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/family_index.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A registry that records which family filled it, and families that count how often they are
// constructed.
struct TestRegistry {
  int family = -1;
};

std::array<std::atomic<int>, 3> constructed;

template <int family>
void Make(TestRegistry* r) {
  ++constructed[family];
  r->family = family;
}

constexpr Families<TestRegistry>::Add kFamilies[] = {Make<0>, Make<1>, Make<2>};

class FamiliesTest : public testing::Test {
 protected:
  FamiliesTest() {
    for (std::atomic<int>& count : constructed) count = 0;
  }
  static std::vector<int> ConstructedCounts() {
    return {constructed[0], constructed[1], constructed[2]};
  }

  // Returns the families of an op, in the order of the visits.
  std::vector<int> FamiliesWith(absl::string_view op) const {
    std::vector<int> visited;
    families_.ForEachWith(op, [&](const TestRegistry& r) {
      visited.push_back(r.family);
      return false;
    });
    return visited;
  }

  const FamilyIndexEntries entries_{{{"Add", "Mul"}, {"Relu"}, {"Add", "Conv2D"}}};
  const Families<TestRegistry> families_{kFamilies, entries_.index()};
};

TEST_F(FamiliesTest, AreConstructedOnLookup) {
  EXPECT_THAT(ConstructedCounts(), ElementsAre(0, 0, 0));
  EXPECT_THAT(FamiliesWith("Relu"), ElementsAre(1));
  EXPECT_THAT(ConstructedCounts(), ElementsAre(0, 1, 0));
}

TEST_F(FamiliesTest, AreConstructedOnce) {
  EXPECT_THAT(FamiliesWith("Mul"), ElementsAre(0));
  EXPECT_THAT(FamiliesWith("Mul"), ElementsAre(0));
  EXPECT_THAT(FamiliesWith("Add"), ElementsAre(0, 2));
  EXPECT_EQ(families_.All().size(), 3u);
  EXPECT_THAT(ConstructedCounts(), ElementsAre(1, 1, 1));
}

TEST_F(FamiliesTest, AreNotConstructedForAnUnknownOp) {
  EXPECT_THAT(FamiliesWith("Add2"), IsEmpty());
  EXPECT_THAT(FamiliesWith(""), IsEmpty());
  EXPECT_THAT(ConstructedCounts(), ElementsAre(0, 0, 0));
}

TEST_F(FamiliesTest, AreVisitedUntilTheVisitorStops) {
  families_.ForEachWith("Add", [](const TestRegistry&) { return true; });
  EXPECT_THAT(ConstructedCounts(), ElementsAre(1, 0, 0));
}

TEST_F(FamiliesTest, AreAllVisitedWithoutAnIndex) {
  const Families<TestRegistry> families(kFamilies, {});
  std::vector<int> visited;
  families.ForEachWith("Relu", [&](const TestRegistry& r) {
    visited.push_back(r.family);
    return r.family == 1;
  });
  EXPECT_THAT(visited, ElementsAre(0, 1));
}

TEST_F(FamiliesTest, AreConstructedOnceByManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (const char* op : {"Conv2D", "Add", "Relu"}) {
        families_.ForEachWith(op, [](const TestRegistry& r) {
          EXPECT_GE(r.family, 0);
          return false;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(ConstructedCounts(), ElementsAre(1, 1, 1));
}

TEST(FamilyIndex, FindsEachOfManyOps) {
  FamilyOps ops(3);
  for (int i = 0; i < 3000; ++i) ops[i % 3].push_back("Op" + std::to_string(i));
  const FamilyIndexEntries entries(ops);
  const Families<TestRegistry> families(kFamilies, entries.index());
  for (int i = 0; i < 3000; ++i) {
    std::vector<int> visited;
    families.ForEachWith("Op" + std::to_string(i), [&](const TestRegistry& r) {
      visited.push_back(r.family);
      return false;
    });
    EXPECT_THAT(visited, ElementsAre(i % 3)) << i;
  }
}

TEST(FamilyIndex, GeneratesSource) {
  const std::string source = FamilyIndexSource({{"Add"}, {"Relu", "Add"}}, "TestIndex");
  EXPECT_THAT(source, HasSubstr("FamilyIndex TestIndex() {"));
  EXPECT_THAT(source, HasSubstr("    {\"Add\", 0},\n    {\"Add\", 1},\n"));
  EXPECT_THAT(source, HasSubstr("    {\"Relu\", 1},\n"));
}

}  // namespace
}  // namespace weir
