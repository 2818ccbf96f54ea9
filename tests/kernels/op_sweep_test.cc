#include "weir/tests/kernels/op_case.h"

namespace weir {

// Instantiated by every family's rows; a binary without any (never built) is no error.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpSweepTest);

TEST_P(OpSweepTest, MatchesReference) { GetParam().Run(); }

}  // namespace weir
