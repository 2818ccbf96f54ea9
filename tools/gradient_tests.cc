#include "weir/tools/gradient_tests.h"

#include <sstream>

#include "absl/strings/str_split.h"

namespace weir::tools {

std::map<std::string, GradientTest> GradientTests() {
  std::map<std::string, GradientTest> tests;
  for (const absl::string_view line : absl::StrSplit(GradientTestsText(), '\n')) {
    std::istringstream words{std::string(line)};
    std::string op;
    GradientTest test;
    if (words >> op >> test.order >> test.test && op[0] != '#') tests[op] = test;
  }
  return tests;
}

}  // namespace weir::tools
