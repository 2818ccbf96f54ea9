#ifndef WEIR_TOOLS_GRADIENT_TESTS_H_
#define WEIR_TOOLS_GRADIENT_TESTS_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace weir::tools {

// To which order an op's gradient is compared with finite differences, and by which test.
struct GradientTest {
  int order = 0;
  std::string test;
};
// By op; from gradient_tests.txt, which tests/kernels/coverage_test.cc keeps whole.
std::map<std::string, GradientTest> GradientTests();

// Its text.
absl::string_view GradientTestsText();

}  // namespace weir::tools

#endif  // WEIR_TOOLS_GRADIENT_TESTS_H_
