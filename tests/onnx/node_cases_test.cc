#include <gtest/gtest.h>

#include <set>

#include "weir/tests/onnx/node_case.h"

namespace weir::onnx {
namespace {

// Cases of onnx.backend.test that run_node_cases --pack wrote; all_node_cases_test.py runs all.
TEST(NodeCases, GiveTheResultsOfOnnx) {
  const auto cases = ReadNodeCases("tests/onnx/node_cases.records");
  ASSERT_TRUE(cases.ok()) << cases.status();
  std::set<std::string> operators;
  for (const NodeCase& node_case : *cases) {
    operators.insert(node_case.op);
    const absl::Status status = RunNodeCase(node_case);
    EXPECT_TRUE(status.ok()) << node_case.name << ": " << status;
  }
  EXPECT_GT(operators.size(), 120);
}

}  // namespace
}  // namespace weir::onnx
