#ifndef WEIR_TESTS_KERNELS_LIB_GRAPH_FIXTURE_H_
#define WEIR_TESTS_KERNELS_LIB_GRAPH_FIXTURE_H_

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/tests/evaluate.h"

namespace weir {

// A fixture that builds a graph and evaluates its nodes.
class GraphFixture : public ::testing::Test {
 protected:
  Tensor Run(const Output& fetch) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    const auto out = Evaluate(g_, {fetch});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0] : Tensor::Scalar(0.f);
  }
  std::vector<float> Floats(const Output& fetch) {
    const Tensor t = Run(fetch);
    return {t.flat<float>().begin(), t.flat<float>().end()};
  }
  // Expects the fetch to fail with INVALID_ARGUMENT and a message that contains `words`.
  void ExpectError(const Output& fetch, const std::string& words) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    const absl::Status s = Evaluate(g_, {fetch}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
    EXPECT_THAT(s.message(), ::testing::HasSubstr(words));
  }

  Graph g_;
};

}  // namespace weir

#endif  // WEIR_TESTS_KERNELS_LIB_GRAPH_FIXTURE_H_
