// Runs the snippets of docs/variables.md and checks the claims of its text.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/cond.h"
#include "weir/session/weir.h"
#include "weir/tests/io/test_files.h"

// Outside of namespace weir, as the programs of readers are.
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Section {
  const char* title;
  absl::Status (*run)(weir::Graph& g, const std::string& dir);
};

// Declares a session with initialized variables.
#define ASSIGN_SESSION(session, g)                                        \
  WEIR_ASSIGN_OR_RETURN(weir::Session session, weir::Session::Create(g)); \
  WEIR_RETURN_IF_ERROR(session.Run(weir::GlobalVariablesInitializer(g)))

// Checks that an expression in a table causes no error.
template <class T>
void Works(const absl::StatusOr<T>& result) {
  EXPECT_TRUE(result.ok()) << result.status();
}
void Works(const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; }
template <class T>
void Works(const T& made) {}

#include "tests/docs/variables_snippets.inc"

class VariablesGuide : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Kinds, VariablesGuide, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Reference"; });

TEST_P(VariablesGuide, SnippetsMatchTheText) {
  for (const Section& section : kSections) {
    SCOPED_TRACE(section.title);
    weir::Graph g({.use_resource = GetParam()});
    const absl::Status status = section.run(g, weir::testing::MakeTempDirectory("guide"));
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(g.status().ok()) << g.status();
  }
}

}  // namespace
