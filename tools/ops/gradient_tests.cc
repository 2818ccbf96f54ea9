#include "weir/tools/ops/gradient_tests.h"

#include <sstream>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weir/core/graph/op.h"

namespace weir::tools {

namespace {

// Returns the test that a comment in a source is about.
std::string TestOf(const std::string& source, absl::string_view kind) {
  if (kind == "rows") return "sweep";
  if (kind == "nothing") return "untested";
  // The path of the source is that of this project and tests/...; x_cases.cc runs in x_sweep_test.
  const std::string path = source.substr(source.rfind("tests/"));
  return absl::StrReplaceAll(absl::StripSuffix(path, ".cc"), {{"_cases", "_sweep_test"}});
}

}  // namespace

std::map<std::string, GradientTest> GradientTests() {
  std::map<std::string, GradientTest> tests;
  for (const absl::string_view line : absl::StrSplit(GradientTestsText(), '\n')) {
    std::istringstream words{std::string(line)};
    std::string source, kind, op;
    int order = 0;
    words >> source >> order >> kind;
    while (words >> op) tests[op] = {order, TestOf(source, kind)};
  }
  for (const OpSpec* op : BuiltinOps().All()) {
    if (op->gradient_fn()) tests.try_emplace(op->name(), GradientTest{2, "sweep"});
  }
  return tests;
}

}  // namespace weir::tools
