#include "weir/tests/kernels/lib/op_case.h"

namespace weir {

// Each family instantiates this test; a binary without rows (never built) is not an error.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpSweepTest);

TEST_P(OpSweepTest, MatchesReference) { GetParam().Run(); }

}  // namespace weir
