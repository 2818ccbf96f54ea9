#ifndef WEIR_TESTS_SESSION_LIB_TEST_FUNCTIONS_H_
#define WEIR_TESTS_SESSION_LIB_TEST_FUNCTIONS_H_

#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/lib/array.h"

namespace weir {

// Adds a function with arguments of these types to a graph's library; `build` builds its body. The
// body can call the functions that are already there.
inline FunctionRef DefineFrom(Graph& graph, const std::string& name, const DataTypes& types,
                              const std::function<Outputs(Graph&, const Outputs&)>& build) {
  Graph body;
  body.set_functions(graph.functions());
  Outputs args;
  for (const DataType type : types) args.push_back(Placeholder(body, type));
  const Outputs results = build(body, args);
  EXPECT_TRUE(body.status().ok()) << body.status();
  const absl::Status status = DefineFunction(graph, name, body, args, results);
  EXPECT_TRUE(status.ok()) << status;
  return FunctionRef{name, nullptr};
}

}  // namespace weir

#endif  // WEIR_TESTS_SESSION_LIB_TEST_FUNCTIONS_H_
