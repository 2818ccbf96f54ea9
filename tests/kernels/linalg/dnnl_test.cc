#include "weir/kernels/linalg/dnnl.h"

#include "gtest/gtest.h"

namespace weir::dnnl {
namespace {

TEST(Dnnl, IsLoadedOnRequest) {
  ASSERT_TRUE(IsThere());
  const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
  float c[4] = {};
  ASSERT_EQ(sgemm('N', 'N', 2, 2, 2, 1, a, 2, b, 2, 0, c, 2), dnnl_success);
  EXPECT_EQ(c[0], 19);
  EXPECT_EQ(c[3], 50);
}

// Like all functions if the library is missing.
TEST(Dnnl, MissingFunctionsAreUnimplementedOrNull) {
  EXPECT_EQ(FindFunction("dnnl_no_such_function"), nullptr);
  const Function<dnnl_status_t(int)> says("dnnl_no_such_function");
  const Function<const int*(int)> gives("dnnl_no_such_function");
  EXPECT_EQ(says(1), dnnl_unimplemented);
  EXPECT_EQ(gives(1), nullptr);
}

}  // namespace
}  // namespace weir::dnnl
