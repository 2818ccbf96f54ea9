#ifndef WEIR_TOOLS_OPS_GRADIENT_TESTS_H_
#define WEIR_TOOLS_OPS_GRADIENT_TESTS_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace weir::tools {

// The order up to which a test compares an op's gradient with finite differences, a formula or
// TensorFlow, and that test: "sweep" for rows of tests/kernels/*/*_cases.cc, the path of another
// test, or "untested" (order 0).
struct GradientTest {
  int order = 0;
  std::string test;
};
// Returns the tests of all gradients by op. Comments in the sources of tests/kernels, tests/ops and
// tests/session state them:
//
//   // Gradients checked to order 1 by rows: Max, Min.
//   // Gradients checked to order 2 by tests: Svd,
//   // Qr.
//   // Gradients checked to order 0 by nothing: TopK.
//
// The sweep checks every other gradient to order 2. tests/kernels/lib/coverage_test.cc fails for a
// gradient that is not checked like this.
std::map<std::string, GradientTest> GradientTests();

// The comments, one per line: "tests/kernels/linalg/linalg_gradients_test.cc 2 tests Svd Qr".
// Generated when Weir is built.
absl::string_view GradientTestsText();

}  // namespace weir::tools

#endif  // WEIR_TOOLS_OPS_GRADIENT_TESTS_H_
