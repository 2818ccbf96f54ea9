#include "weir/core/tensor/nearest_name.h"

#include "gtest/gtest.h"

namespace weir {
namespace {

TEST(NearestName, IsTheOneWithTheFewestChanges) {
  EXPECT_EQ(NearestName("grph", {"run", "graph", "ckpt"}), "graph");
  EXPECT_EQ(NearestName("hiden/w", {"hidden/b", "hidden/w"}), "hidden/w");
  EXPECT_EQ(NearestName("serve", {"run", "graph"}), "");
  EXPECT_EQ(NearestName("w", {}), "");
}

TEST(NearestName, PrefersTheSameNameUnderAnotherScope) {
  EXPECT_EQ(NearestName("net/w", {"net/b", "model/net/w"}), "model/net/w");
  EXPECT_EQ(NearestName("tower/net/w", {"net/b", "net/w"}), "net/w");
  EXPECT_EQ(NearestName("w", {"new"}), "");
}

TEST(NearestName, LongNamesAreNotCompared) {
  const std::string name(100000, 'a');
  EXPECT_EQ(NearestName(name, {name + "b"}), "");
}

}  // namespace
}  // namespace weir
