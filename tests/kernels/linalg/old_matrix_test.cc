#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/kernels/lib/answers.h"

// Ops on matrices that only old graphs contain.
namespace weir {
namespace {

TEST(OldMatrix, MatchesTensorFlow) {
  ExpectAnswers("tests/kernels/golden/old_matrix_answers.txt", 10, 2e-5);
}

TEST(OldMatrix, NewGraphsRejectTheOps) {
  for (const char* op : {"BatchMatrixDiag", "BatchMatrixDiagPart", "MatrixExponential"}) {
    Graph g;
    AddOp(op, {Const<float>(g, {2, 2}, {1, 2, 3, 4})});
    EXPECT_FALSE(g.status().ok()) << op;
  }
}

}  // namespace
}  // namespace weir
