#include "weir/tools/case/case_runner.h"

#include <string>

#include "weir/core/io/npy.h"
#include "weir/tests/tools/lib/tools_testing.h"

namespace weir::tools {
namespace {

// Writes a case with the graph of BuildLine and these members of case.json.
class CaseRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = TestFolder();
    WriteLine(folder_);
    Write("x.npy", Tensor::Of<float>({1, 2}, {1, 10}));
    Write("y.npy", Tensor::Of<float>({1, 2}, {2, 30}));
    Write("wrong.npy", Tensor::Of<float>({1, 2}, {2, 31}));
    Write("ints.npy", Tensor::Of<int32_t>({1, 2}, {1, 10}));
  }
  void Write(const std::string& name, const Tensor& tensor) {
    ASSERT_TRUE(WriteNpy(folder_ + "/" + name, tensor).ok());
  }
  CaseResult Run(const std::string& members) {
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/case.json", "{" + members + "}").ok());
    return RunCase(folder_);
  }
  static std::string Text(const CaseResult& result) {
    std::string text = result.why;
    for (const std::string& more : result.more) text += " | " + more;
    return text;
  }

  std::string folder_;
};

constexpr char kInit[] = R"("graph": "graph.pb", "steps": [{"target": ["init"]}, )";

TEST_F(CaseRunnerTest, CorrectResultsPass) {
  const CaseResult result =
      Run(std::string(kInit) + R"({"feed": {"x:0": "x.npy"}, "fetch": {"y:0": "y.npy"}}])");
  EXPECT_EQ(result.outcome, CaseResult::kPassed) << Text(result);
}

TEST_F(CaseRunnerTest, WrongResultsFailWithElementAndStep) {
  const CaseResult result =
      Run(std::string(kInit) + R"({"feed": {"x:0": "x.npy"}, "fetch": {"y:0": "wrong.npy"}}])");
  EXPECT_EQ(result.outcome, CaseResult::kFailed);
  EXPECT_EQ(Text(result),
            "step 1: y:0: 1 of 2 elements differ: [0,1] is 30, recorded 31, greatest difference 1");
}

TEST_F(CaseRunnerTest, TolerancesOfStepAndCase) {
  const std::string step = R"("feed": {"x:0": "x.npy"}, "fetch": {"y:0": "wrong.npy"}})";
  EXPECT_EQ(Run(std::string(kInit) + R"({"rtol": 0.1, )" + step + "]").outcome,
            CaseResult::kPassed);
  EXPECT_EQ(Run(std::string(R"("rtol": 0.1, )") + kInit + "{" + step + "]").outcome,
            CaseResult::kPassed);
}

TEST_F(CaseRunnerTest, RepeatRunsTheStepAndStatePersists) {
  Write("after.npy", Tensor::Vector<float>({8, 12}));
  const CaseResult result = Run(
      std::string(kInit) +
      R"({"target": ["double_w"], "repeat": 2}, {"target": ["double_w"]}, {"fetch": {"w/Read/ReadVariableOp:0": "after.npy"}}])");
  EXPECT_EQ(result.outcome, CaseResult::kPassed) << Text(result);
}

TEST_F(CaseRunnerTest, AnErrorMustHaveItsCodeAndText) {
  const auto step = [](const std::string& code, const std::string& text) {
    return R"("graph": "graph.pb", "steps": [{"feed": {"x:0": "ints.npy"}, "fetch": {"y:0": ""}, "code": ")" +
           code + R"(", "expect_error": ")" + text + R"("}])";
  };
  EXPECT_EQ(Run(step("INVALID_ARGUMENT", "x")).outcome, CaseResult::kPassed);
  EXPECT_NE(Run(step("NOT_FOUND", "")).why.find("recorded NOT_FOUND, got INVALID_ARGUMENT"),
            std::string::npos);
  EXPECT_NE(Run(step("INVALID_ARGUMENT", "no such words")).why.find("'no such words' is not in: "),
            std::string::npos);
  EXPECT_EQ(Run(R"("graph": "graph.pb", "steps": [{"target": ["init"], "code": "NOT_FOUND"}])").why,
            "step 0: no error, recorded NOT_FOUND");
}

TEST_F(CaseRunnerTest, StepsAfterAnExpectedErrorRun) {
  const CaseResult result =
      Run(std::string(kInit) + R"({"fetch": {"nowhere:0": ""}, "code": "NOT_FOUND"},
          {"feed": {"x:0": "x.npy"}, "fetch": {"y:0": "wrong.npy"}}])");
  EXPECT_EQ(result.outcome, CaseResult::kFailed);
  EXPECT_EQ(result.why.substr(0, 7), "step 2:") << Text(result);
}

TEST_F(CaseRunnerTest, AGraphThatMustBeRejected) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/bad.pb", "\x0a\xff").ok());
  EXPECT_EQ(
      Run(R"("graph": "bad.pb", "load_error": {"code": "INVALID_ARGUMENT"}, "steps": [])").outcome,
      CaseResult::kPassed);
  EXPECT_EQ(
      Run(R"("graph": "graph.pb", "load_error": {"code": "INVALID_ARGUMENT"}, "steps": [])").why,
      "load: no error, recorded INVALID_ARGUMENT");
}

TEST_F(CaseRunnerTest, PythonOnlyChecksAreSkipped) {
  const CaseResult step =
      Run(std::string(kInit) + R"({"layer": "python", "fetch": {"nowhere": ""}}])");
  EXPECT_EQ(step.outcome, CaseResult::kPassed);
  ASSERT_EQ(step.notes.size(), 1u);
  EXPECT_EQ(step.notes[0], "step 1 skipped: a Python-only check");
  EXPECT_EQ(Run(R"("layer": "python", "graph": "graph.pb", "steps": [])").outcome,
            CaseResult::kSkipped);
}

TEST_F(CaseRunnerTest, AMalformedCaseFails) {
  for (const char* members : {R"("graph": "missing.pb", "steps": [])", R"("graph" 3)",
                              R"("meta": "graph.pb", "steps": [{"restore": "x"}])",
                              R"("graph": "graph.pb", "steps": [{"feed": {"x:0": 3}}])",
                              R"("graph": "graph.pb", "steps": [{"feed": {"x:0": "missing.npy"}}])",
                              R"("graph": "graph.pb", "steps": [{"signature": "none"}])",
                              R"("steps": [{"target": ["init"]}])"}) {
    const CaseResult result = Run(members);
    EXPECT_EQ(result.outcome, CaseResult::kFailed) << members;
    EXPECT_FALSE(result.why.empty());
  }
  EXPECT_EQ(RunCase(folder_ + "/missing").outcome, CaseResult::kFailed);
}

TEST_F(CaseRunnerTest, CasesAreFoundBelowAFolder) {
  for (const char* name : {"b/two", "a", "b/one"}) {
    std::filesystem::create_directories(folder_ + "/all/" + name);
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/all/" + name + "/case.json", "{}").ok());
  }
  const auto found = FindCases({folder_ + "/all"});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, (std::vector<std::string>{folder_ + "/all/a", folder_ + "/all/b/one",
                                              folder_ + "/all/b/two"}));
  EXPECT_EQ(FindCases({folder_ + "/none"}).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace weir::tools
