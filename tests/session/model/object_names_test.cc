// Checkpoints of objects, restored into graphs whose savers know full names.
// golden/make_object_checkpoint.py writes one, with two variables that are both named "twin".

#include "weir/session/model/object_names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/session/model/restore.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/session/lib/saver_testing.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MakeTempDirectory;
using testing::Start;
using testing::Value;
using testing::Var;

constexpr char kCheckpoint[] = "tests/session/golden/object_checkpoint";
constexpr char kKernel[] = "model/kernel/.ATTRIBUTES/VARIABLE_VALUE";
constexpr char kSecondTwin[] = "model/twins/1/.ATTRIBUTES/VARIABLE_VALUE";

// Restores the variables that a graph has.
absl::Status Restore(Session& session, Graph& graph, const std::string& path,
                     const RestoreOptions& options = {}, RestoreReport* report = nullptr) {
  WEIR_ASSIGN_OR_RETURN(const Saver saver, Saver::Create(graph));
  return RestoreVariables(session, saver.def(), path, options, report);
}

TEST(FullNames, AreListedByKey) {
  const auto reader = CheckpointReader::Open(kCheckpoint);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto names = FullNamesOf(**reader);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ(names->size(), 4u);
  EXPECT_EQ(names->at(kKernel), "net/w");
  EXPECT_EQ(names->at(kSecondTwin), "twin");
}

TEST(FullNames, OtherCheckpointsHaveNone) {
  const auto reader = CheckpointReader::Open("tests/session/golden/tf_model");
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto names = FullNamesOf(**reader);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(*names, IsEmpty());
}

TEST(FullNames, OfADamagedEntryAreAnError) {
  const std::string prefix = MakeTempDirectory("damaged") + "/m";
  const auto writer = BundleWriter::Create(prefix);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Add(kObjectGraphKey, Tensor::Scalar<std::string>("junk")).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  Graph g;
  const Variable w = Var(g, "net/w", {0, 0});
  Session session = Start(g);
  EXPECT_EQ(Restore(session, g, prefix).code(), absl::StatusCode::kDataLoss);
}

TEST(RestoreByFullName, FindsTheVariablesOfASaver) {
  Graph g;
  const Variable w = Var(g, "net/w", {0, 0});
  const Variable b = MakeVariable(g, Tensor::Scalar(0.f), {.name = "net/b"});
  Session session = Start(g);
  RestoreReport report;
  const absl::Status restored = Restore(session, g, kCheckpoint, {}, &report);
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_THAT(Value(session, w), ElementsAre(1, 2));
  EXPECT_THAT(Value(session, b), ElementsAre(3));
  ASSERT_EQ(report.by_full_name.size(), 2u);
  EXPECT_EQ(report.by_full_name[1].name, "net/w");
  EXPECT_EQ(report.by_full_name[1].key, kKernel);
  EXPECT_EQ(report.restored[1], kKernel);
  // The twins, and no entry that is not a variable.
  EXPECT_THAT(report.unexpected, IsEmpty()) << "nothing is missing, so nothing is listed";
}

TEST(RestoreByFullName, KeysComeFirst) {
  Graph g;
  const Variable w = Var(g, "w", {0, 0});
  Session session = Start(g);
  const RestoreOptions options = {.rename = [](const std::string&) { return kKernel; }};
  RestoreReport report;
  const absl::Status restored = Restore(session, g, kCheckpoint, options, &report);
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_THAT(Value(session, w), ElementsAre(1, 2));
  EXPECT_THAT(report.by_full_name, IsEmpty());
}

TEST(RestoreByFullName, ANameOfSeveralVariablesIsRejected) {
  Graph g;
  const Variable twin = MakeVariable(g, Tensor::Scalar(0.f), {.name = "twin"});
  const Variable w = Var(g, "net/w", {0, 0});
  Session session = Start(g);
  const absl::Status ambiguous = Restore(session, g, kCheckpoint);
  EXPECT_EQ(ambiguous.code(), absl::StatusCode::kInvalidArgument) << ambiguous;
  EXPECT_THAT(std::string(ambiguous.message()),
              AllOf(HasSubstr("twin is the full name of several"), HasSubstr(kSecondTwin)));
  EXPECT_THAT(Value(session, w), IsEmpty()) << "nothing was restored";

  RestoreReport report;
  const absl::Status available =
      Restore(session, g, kCheckpoint, {.mode = RestoreMode::kAvailable}, &report);
  ASSERT_TRUE(available.ok()) << available;
  EXPECT_THAT(Value(session, w), ElementsAre(1, 2));
  ASSERT_EQ(report.mismatched.size(), 1u);
  EXPECT_EQ(report.mismatched[0].key, "twin");

  const auto second = [](const std::string& key) { return key == "twin" ? kSecondTwin : key; };
  const absl::Status renamed = Restore(session, g, kCheckpoint, {.rename = second});
  ASSERT_TRUE(renamed.ok()) << renamed;
  EXPECT_THAT(Value(session, twin), ElementsAre(5));
}

TEST(RestoreByFullName, WhatHasNoSuchNameIsMissing) {
  Graph g;
  const Variable w = Var(g, "net/v", {0, 0});
  Session session = Start(g);
  RestoreReport report;
  const absl::Status missing = Restore(session, g, kCheckpoint, {}, &report);
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr("Key net/v not found in checkpoint"));
  EXPECT_EQ(report.unexpected.size(), 4u) << "without the entry that describes the objects";
}

}  // namespace
}  // namespace weir
