#ifndef WEIR_TESTS_SESSION_LIB_SAVER_TESTING_H_
#define WEIR_TESTS_SESSION_LIB_SAVER_TESTING_H_

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weir/ops/framework/variables.h"
#include "weir/session/session.h"

// Small variables and their values, for tests of savers.
namespace weir::testing {

inline Session Start(const Graph& graph) {
  absl::StatusOr<Session> session = Session::Create(graph);
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

// A float variable.
inline Variable Var(Graph& graph, const std::string& name, const std::vector<float>& values) {
  return MakeVariable(graph, Tensor::Vector<float>(values), {.name = name});
}

inline void Init(Session& session, Graph& graph) {
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(graph)).ok());
}

// Returns the file's bytes; empty if it cannot be read.
inline std::vector<float> Value(Session& session, const Variable& v) {
  const auto out = session.Run({v.value()});
  if (!out.ok()) return {};
  return {(*out)[0].flat<float>().begin(), (*out)[0].flat<float>().end()};
}

}  // namespace weir::testing

#endif  // WEIR_TESTS_SESSION_LIB_SAVER_TESTING_H_
