#include "weir/core/families.h"

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/family_index.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A registry that knows which family filled it, and families that count how often they are made.
struct TestRegistry {
  int family = -1;
};

std::array<std::atomic<int>, 3> made;

template <int family>
void Make(TestRegistry* r) {
  ++made[family];
  r->family = family;
}

constexpr Families<TestRegistry>::Add kFamilies[] = {Make<0>, Make<1>, Make<2>};

class FamiliesTest : public testing::Test {
 protected:
  FamiliesTest() {
    for (std::atomic<int>& count : made) count = 0;
  }
  static std::vector<int> Made() { return {made[0], made[1], made[2]}; }

  // The families of an op, in the order of the visits.
  std::vector<int> With(absl::string_view op) const {
    std::vector<int> visited;
    families_.With(op, [&](const TestRegistry& r) {
      visited.push_back(r.family);
      return false;
    });
    return visited;
  }

  const FamilyIndexEntries table_{{{"Add", "Mul"}, {"Relu"}, {"Add", "Conv2D"}}};
  const Families<TestRegistry> families_{kFamilies, table_.index()};
};

TEST_F(FamiliesTest, AreMadeWhenAnOpOfThemIsLookedUp) {
  EXPECT_THAT(Made(), ElementsAre(0, 0, 0));
  EXPECT_THAT(With("Relu"), ElementsAre(1));
  EXPECT_THAT(Made(), ElementsAre(0, 1, 0));
}

TEST_F(FamiliesTest, AreMadeOnce) {
  EXPECT_THAT(With("Mul"), ElementsAre(0));
  EXPECT_THAT(With("Mul"), ElementsAre(0));
  EXPECT_THAT(With("Add"), ElementsAre(0, 2));
  EXPECT_EQ(families_.All().size(), 3u);
  EXPECT_THAT(Made(), ElementsAre(1, 1, 1));
}

TEST_F(FamiliesTest, AreNotMadeForAnOpThatNoneHas) {
  EXPECT_THAT(With("Add2"), IsEmpty());
  EXPECT_THAT(With(""), IsEmpty());
  EXPECT_THAT(Made(), ElementsAre(0, 0, 0));
}

TEST_F(FamiliesTest, AreVisitedUntilOneIsAllThatIsNeeded) {
  families_.With("Add", [](const TestRegistry&) { return true; });
  EXPECT_THAT(Made(), ElementsAre(1, 0, 0));
}

TEST_F(FamiliesTest, AreAllVisitedWithoutAnIndex) {
  const Families<TestRegistry> families(kFamilies, {});
  std::vector<int> visited;
  families.With("Relu", [&](const TestRegistry& r) {
    visited.push_back(r.family);
    return r.family == 1;
  });
  EXPECT_THAT(visited, ElementsAre(0, 1));
}

TEST_F(FamiliesTest, AreMadeOnceByManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (const char* op : {"Conv2D", "Add", "Relu"}) {
        families_.With(op, [](const TestRegistry& r) {
          EXPECT_GE(r.family, 0);
          return false;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Made(), ElementsAre(1, 1, 1));
}

TEST(FamilyIndex, HasManyOpsByTheirNames) {
  FamilyOps ops(3);
  for (int i = 0; i < 3000; ++i) ops[i % 3].push_back("Op" + std::to_string(i));
  const FamilyIndexEntries table(ops);
  const Families<TestRegistry> families(kFamilies, table.index());
  for (int i = 0; i < 3000; ++i) {
    std::vector<int> visited;
    families.With("Op" + std::to_string(i), [&](const TestRegistry& r) {
      visited.push_back(r.family);
      return false;
    });
    EXPECT_THAT(visited, ElementsAre(i % 3)) << i;
  }
}

TEST(FamilyIndex, IsWrittenAsASource) {
  const std::string source = FamilyIndexSource({{"Add"}, {"Relu", "Add"}}, "TestIndex");
  EXPECT_THAT(source, HasSubstr("FamilyIndex TestIndex() {"));
  EXPECT_THAT(source, HasSubstr("    {\"Add\", 0},\n    {\"Add\", 1},\n"));
  EXPECT_THAT(source, HasSubstr("    {\"Relu\", 1},\n"));
}

}  // namespace
}  // namespace weir
