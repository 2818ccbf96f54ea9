#ifndef WEIR_TOOLS_GRADIENT_TESTS_H_
#define WEIR_TOOLS_GRADIENT_TESTS_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace weir::tools {

// The order up to which a test compares an op's gradient with finite differences, and that test.
struct GradientTest {
  int order = 0;
  std::string test;
};
// Returns the tests by op, from gradient_tests.txt. tests/kernels/coverage_test.cc checks that the
// file is complete.
std::map<std::string, GradientTest> GradientTests();

// The contents of gradient_tests.txt.
absl::string_view GradientTestsText();

}  // namespace weir::tools

#endif  // WEIR_TOOLS_GRADIENT_TESTS_H_
