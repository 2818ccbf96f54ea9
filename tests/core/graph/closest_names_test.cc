#include "weir/core/graph/closest_names.h"

#include "gtest/gtest.h"

namespace weir {
namespace {

// Returns the closest name, or an empty string.
std::string Closest(absl::string_view name, const std::vector<std::string>& candidates) {
  const std::vector<std::string> close = ClosestNames(name, candidates);
  return close.empty() ? "" : close.front();
}

TEST(ClosestNames, BeginWithTheOneWithTheFewestChanges) {
  EXPECT_EQ(Closest("grph", {"run", "graph", "ckpt"}), "graph");
  EXPECT_EQ(Closest("hiden/w", {"hidden/b", "hidden/w"}), "hidden/w");
  EXPECT_EQ(Closest("serve", {"run", "graph"}), "");
  EXPECT_EQ(Closest("w", {}), "");
}

TEST(ClosestNames, PreferTheSameNameUnderAnotherScope) {
  EXPECT_EQ(Closest("net/w", {"net/b", "model/net/w"}), "model/net/w");
  EXPECT_EQ(Closest("tower/net/w", {"net/b", "net/w"}), "net/w");
  EXPECT_EQ(Closest("w", {"new"}), "");
}

TEST(ClosestNames, LongNamesAreNotCompared) {
  const std::string name(100000, 'a');
  EXPECT_EQ(Closest(name, {name + "b"}), "");
}

}  // namespace
}  // namespace weir
