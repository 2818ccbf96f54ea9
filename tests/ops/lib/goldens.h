#ifndef WEIR_TESTS_OPS_LIB_GOLDENS_H_
#define WEIR_TESTS_OPS_LIB_GOLDENS_H_

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weir/core/graph/graph.h"

// Small programs that a Python script builds with TensorFlow (make_goldens.py,
// make_layer_goldens.py) and the test builds with Weir. The graphs must agree node by node.
//
//   void Counting(Graph& g) { MakeVariable(g, 0, {.name = "w"}).CountUpTo(3); }
//   const GoldenProgram kPrograms[] = {{"counting", Counting}, ...};
//   INSTANTIATE_TEST_SUITE_P(Variables, GoldenTest, GoldensOf(kPrograms), GoldenName);
namespace weir {

struct GoldenProgram {
  const char* name;
  void (*build)(Graph&);
};
// A program and the kind of its variables.
using GoldenParam = std::tuple<GoldenProgram, bool>;

// Compares the graph with golden/<name>_res.pbtxt, or _ref for reference variables: nodes by name,
// and the collections that the file lists in lines "# collection <key>: <names>".
class GoldenTest : public testing::TestWithParam<GoldenParam> {};

inline auto GoldensOf(absl::Span<const GoldenProgram> programs) {
  return testing::Combine(testing::ValuesIn(programs.begin(), programs.end()), testing::Bool());
}
// For programs without variables.
inline auto RefGoldensOf(absl::Span<const GoldenProgram> programs) {
  return testing::Combine(testing::ValuesIn(programs.begin(), programs.end()),
                          testing::Values(false));
}
std::string GoldenName(const testing::TestParamInfo<GoldenParam>& info);

}  // namespace weir

#endif  // WEIR_TESTS_OPS_LIB_GOLDENS_H_
