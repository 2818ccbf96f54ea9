#ifndef WEIR_TESTS_TOOLS_LIB_TOOLS_TESTING_H_
#define WEIR_TESTS_TOOLS_LIB_TOOLS_TESTING_H_

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weir/core/graph/graph.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/tools/lib/cli.h"

namespace weir::tools {

// Returns an empty folder for the running test.
inline std::string TestFolder() {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::string path = testing::TempDir() + "/" + info->test_suite_name() + "." + info->name();
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

struct CommandResult {
  int status = 0;
  std::string out, err;
};
// Runs `weir <args>` without a terminal.
inline CommandResult Weir(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  Console console{out, err};
  const int status = RunWeir(args, console);
  return {status, out.str(), err.str()};
}

// Builds y = x * w for the variable w = [2, 3]: nodes x, w, y, init, double_w.
inline void BuildLine(Graph& g) {
  Output x = Placeholder(g, DT_FLOAT, {-1, 2}, "x");
  Variable w = MakeVariable(g, Initializer{2.f, 3.f}, {.name = "w"});
  AddOp("Mul", {x, w.value()}, {}, "y");
  w.AssignAdd({2.f, 3.f}, {.name = "double_w"});
  GlobalVariablesInitializer(g);
}

// Writes that graph to folder/graph.pb and returns the path.
inline std::string WriteLine(const std::string& folder) {
  Graph g;
  BuildLine(g);
  EXPECT_TRUE(g.status().ok()) << g.status();
  const std::string path = folder + "/graph.pb";
  EXPECT_TRUE(WriteFileAtomically(path, SerializeGraph(g)).ok());
  return path;
}

}  // namespace weir::tools

#endif  // WEIR_TESTS_TOOLS_LIB_TOOLS_TESTING_H_
