#include <atomic>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/file.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/model/restore.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/session/lib/saver_testing.h"

// How Saver::Restore uses the memory of variables. saver_test.cc tests what it reads and rejects.
namespace weir {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Init;
using testing::MakeTempDirectory;
using testing::ReadBytes;
using testing::Start;
using testing::Value;
using testing::WriteBytes;

// Large enough that values are not kept between the two readings.
constexpr int64_t kElements = 100'000;

// A file system whose checkpoint data files can be read up to a number of bytes; then the disk
// fails.
class LimitedDisk : public FileSystem {
 public:
  explicit LimitedDisk(int64_t bytes) : bytes_(bytes), base_(Files()) {}

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    class File : public ReadableFile {
     public:
      File(std::unique_ptr<ReadableFile> file, std::atomic<int64_t>* left)
          : ReadableFile(file->path(), file->size()), file_(std::move(file)), left_(left) {}
      absl::StatusOr<size_t> ReadSome(uint64_t offset, size_t size, char* out) const override {
        if (*left_ -= static_cast<int64_t>(size); *left_ < 0) return DataLoss("the disk fails");
        return file_->ReadSome(offset, size, out);
      }

     private:
      const std::unique_ptr<ReadableFile> file_;
      std::atomic<int64_t>* const left_;
    };
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, base_.Open(path));
    if (!absl::StrContains(path, ".data-")) return file;
    return std::unique_ptr<ReadableFile>(new File(std::move(file), &bytes_));
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return base_.Create(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return base_.Rename(from, to);
  }
  absl::Status Link(const std::string& from, const std::string& to) override {
    return base_.Link(from, to);
  }
  absl::Status Remove(const std::string& path) override { return base_.Remove(path); }
  absl::Status SyncDirectory(const std::string& path) override { return base_.SyncDirectory(path); }
  absl::Status MakeDirectory(const std::string& path) override { return base_.MakeDirectory(path); }
  absl::Status RemoveDirectory(const std::string& path) override {
    return base_.RemoveDirectory(path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    return base_.List(path);
  }
  bool Exists(const std::string& path) override { return base_.Exists(path); }
  bool IsDirectory(const std::string& path) override { return base_.IsDirectory(path); }
  int64_t left() const { return bytes_; }

 private:
  std::atomic<int64_t> bytes_;
  FileSystem& base_;
};

// Returns `value` everywhere, in unshared memory: a constant would be shared.
Output Computed(const Variable& v, float value) { return v.value() * 0.f + value; }

// Two large variables of ones and of twos, saved, then set to sevens and eights.
class RestoreLarge : public ::testing::TestWithParam<bool> {
 protected:
  RestoreLarge() : path_(MakeTempDirectory("restore") + "/m") {
    a_ = Fill("a", 1);
    b_ = Fill("b", 2);
    saver_.emplace(*Saver::Create(g_));
    change_ = {a_.Assign(Computed(a_, 7)), b_.Assign(Computed(b_, 8))};
    session_.emplace(Start(g_));
    Init(*session_, g_);
    EXPECT_TRUE(saver_->Save(*session_, path_).ok());
    Change();
  }

  void Change() { EXPECT_TRUE(session_->Run(Feeds{}, {}, change_).ok()); }
  void DamageLastByte() {
    const std::string data = path_ + ".data-00000-of-00001";
    std::string bytes = ReadBytes(data);
    bytes.back() ^= 1;
    WriteBytes(data, bytes);
  }

  static Tensor Full(float value) {
    Tensor t(DT_FLOAT, {kElements});
    std::fill_n(t.data<float>(), kElements, value);
    return t;
  }
  Variable Fill(const std::string& name, float value) {
    return MakeVariable(g_, Full(value), {.name = name, .use_resource = GetParam()});
  }
  VariableState& State(const std::string& name) {
    return *session_->resources().Lookup<VariableState>("", name);
  }
  const void* Memory(const std::string& name) { return State(name).value().raw(); }

  const std::string path_;
  Graph g_;
  Variable a_, b_;
  std::vector<Operation> change_;
  std::optional<Saver> saver_;
  std::optional<Session> session_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, RestoreLarge, ::testing::Values(true, false));

TEST_P(RestoreLarge, ReadsIntoTheMemoryThatVariablesHave) {
  const void* const a = Memory("a");
  const void* const b = Memory("b");
  constexpr int64_t kMuch = int64_t{1} << 40, kBoth = 2 * kElements * sizeof(float);
  LimitedDisk disk(kMuch);
  {
    const ScopedFileSystem scoped(&disk);
    ASSERT_TRUE(saver_->Restore(*session_, path_).ok());
  }
  EXPECT_EQ(kMuch - disk.left(), 2 * kBoth);  // once to check, once to keep
  EXPECT_EQ(Memory("a"), a);
  EXPECT_EQ(Memory("b"), b);
  EXPECT_THAT(Value(*session_, a_), Each(1));
  EXPECT_THAT(Value(*session_, b_), Each(2));
}

// Read once, into new memory, which becomes the variable's.
TEST_P(RestoreLarge, VariablesThatShareAConstantGetTheirOwnMemory) {
  const std::string saved = MakeTempDirectory("restore") + "/m";
  ASSERT_TRUE(saver_->Save(*session_, saved).ok());
  session_.emplace(Start(g_));
  Init(*session_, g_);
  const Tensor initial = State("a").value();
  ASSERT_FALSE(initial.OwnsBufferAlone());
  constexpr int64_t kMuch = int64_t{1} << 40, kBoth = 2 * kElements * sizeof(float);
  LimitedDisk disk(kMuch);
  {
    const ScopedFileSystem scoped(&disk);
    ASSERT_TRUE(saver_->Restore(*session_, saved).ok());
  }
  EXPECT_EQ(kMuch - disk.left(), kBoth);
  EXPECT_TRUE(State("a").value().OwnsBufferAlone());
  EXPECT_TRUE(State("b").value().OwnsBufferAlone());
  EXPECT_THAT(Value(*session_, a_), Each(7));
  EXPECT_THAT(Value(*session_, b_), Each(8));
  EXPECT_THAT(initial.flat<float>(), Each(1));
}

TEST_P(RestoreLarge, UninitializedVariablesAdoptReadTensors) {
  session_.emplace(Start(g_));
  constexpr int64_t kMuch = int64_t{1} << 40, kBoth = 2 * kElements * sizeof(float);
  LimitedDisk disk(kMuch);
  {
    const ScopedFileSystem scoped(&disk);
    ASSERT_TRUE(saver_->Restore(*session_, path_).ok());
  }
  EXPECT_EQ(kMuch - disk.left(), kBoth);
  EXPECT_TRUE(State("a").value().OwnsBufferAlone());
  EXPECT_THAT(Value(*session_, a_), Each(1));
  EXPECT_THAT(Value(*session_, b_), Each(2));
}

TEST_P(RestoreLarge, DamageLeavesUninitializedVariablesUninitialized) {
  DamageLastByte();
  session_.emplace(Start(g_));
  EXPECT_TRUE(absl::IsDataLoss(saver_->Restore(*session_, path_)));
  EXPECT_FALSE(State("a").IsInitialized());
  EXPECT_FALSE(State("b").IsInitialized());
}

// A graph from another program: `restore` does more than assign.
class RestoreByHand : public RestoreLarge {
 protected:
  RestoreByHand() : file_(Const(g_, "none")) {}
  Output Read(const std::string& name) {
    return AddOp("RestoreV2",
                 {file_, Const(g_, Tensor::Vector<std::string>({name})),
                  Const(g_, Tensor::Vector<std::string>({""}))},
                 {{"dtypes", DataTypes{DT_FLOAT}}});
  }
  absl::Status Restore(const Operation& last) {
    const ControlDependencies after(g_, {last});
    const Operation all = NoOp(g_);
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    const SaverDef def = {.filename_tensor_name = file_.name(), .restore_op_name = all.name()};
    return RestoreVariables(*session_, def, path_);
  }

  const Output file_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, RestoreByHand, ::testing::Values(true, false));

TEST_P(RestoreByHand, AnUpdateAfterTheAssignmentIsMade) {
  const Operation assign = a_.Assign(Read("a"));
  const ControlDependencies after(g_, {assign});
  const Operation add = a_.AssignAdd(Const(g_, Full(10)));
  ASSERT_TRUE(Restore(add).ok());
  EXPECT_THAT(Value(*session_, a_), Each(11));
}

TEST_P(RestoreByHand, OneBehindAGroupToo) {
  const Operation assign = a_.Assign(Read("a"));
  Operation group;
  {
    const ControlDependencies after(g_, {assign});
    group = NoOp(g_);
  }
  const ControlDependencies after(g_, {group});
  const Operation add = a_.AssignAdd(Const(g_, Full(10)));
  ASSERT_TRUE(Restore(add).ok());
  EXPECT_THAT(Value(*session_, a_), Each(11));
}

TEST_P(RestoreByHand, ControlInputsPrecedeTheValue) {
  Output value = Read("a");
  {
    const Operation fails(AddNode("Assert", {Const(g_, false), Outputs{Const(g_, "not now")}}));
    const ControlDependencies after(g_, {fails});
    value = Identity(value);
  }
  const absl::Status status = Restore(a_.Assign(value));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Value(*session_, a_), Each(7));
}

TEST_P(RestoreByHand, AValueMayGoTwoWays) {
  const Output value = Read("a");
  const Operation a = a_.Assign(value);
  const ControlDependencies after(g_, {a});
  ASSERT_TRUE(Restore(b_.Assign(Negative(value))).ok());
  EXPECT_THAT(Value(*session_, a_), Each(1));
  EXPECT_THAT(Value(*session_, b_), Each(-1));
}

TEST_P(RestoreLarge, OnlyWhatIsNeeded) {
  RestoreReport report;
  const RestoreOptions options = {.mode = RestoreMode::kNeeded, .needed = {b_.value()}};
  ASSERT_TRUE(RestoreVariables(*session_, saver_->def(), path_, options, &report).ok());
  EXPECT_THAT(Value(*session_, a_), Each(7));
  EXPECT_THAT(Value(*session_, b_), Each(2));
  EXPECT_THAT(report.restored, ElementsAre("b"));
  EXPECT_THAT(report.not_needed, ElementsAre("a"));
}

TEST_P(RestoreLarge, WhatIsAvailableIsReported) {
  RestoreReport report;
  const RestoreOptions options = {
      .mode = RestoreMode::kAvailable,
      .rename = [](const std::string& key) { return key == "a" ? "b" : "c"; }};
  ASSERT_TRUE(RestoreVariables(*session_, saver_->def(), path_, options, &report).ok());
  EXPECT_THAT(Value(*session_, a_), Each(2));
  EXPECT_THAT(Value(*session_, b_), Each(8));
  EXPECT_THAT(report.restored, ElementsAre("b"));
  ASSERT_EQ(report.missing.size(), 1u);
  EXPECT_EQ(report.missing[0].key, "c");
  EXPECT_THAT(report.unexpected, ElementsAre("a"));
}

TEST_P(RestoreLarge, DoesNotChangeValuesReadBefore) {
  const Tensors before = *session_->Run({a_.value()});
  const Tensor held = State("b").value();
  ASSERT_TRUE(saver_->Restore(*session_, path_).ok());
  EXPECT_THAT(before[0].flat<float>(), Each(7));
  EXPECT_THAT(held.flat<float>(), Each(8));
  EXPECT_THAT(Value(*session_, a_), Each(1));
  EXPECT_THAT(Value(*session_, b_), Each(2));
}

TEST_P(RestoreLarge, WritesNothingIfTheLastByteIsDamaged) {
  DamageLastByte();
  const absl::Status status = saver_->Restore(*session_, path_);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(Value(*session_, a_), Each(7));
  EXPECT_THAT(Value(*session_, b_), Each(8));
}

TEST_P(RestoreLarge, InitializesUninitializedVariables) {
  Session fresh = Start(g_);
  ASSERT_TRUE(saver_->Restore(fresh, path_).ok());
  EXPECT_THAT(Value(fresh, a_), Each(1));
  EXPECT_THAT(Value(fresh, b_), Each(2));
}

// After a partial read a variable has no value, rather than an incomplete or an old one.
TEST_P(RestoreLarge, LeavesNoPartiallyReadValue) {
  constexpr int64_t kBoth = 2 * kElements * sizeof(float);
  {
    LimitedDisk disk(
        kBoth + kBoth / 4);  // enough to check everything, and for a part of the second reading
    const ScopedFileSystem scoped(&disk);
    const absl::Status status = saver_->Restore(*session_, path_);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("has no value any more"));
  }
  for (const auto& [name, variable, value] :
       {std::tuple{"a", &a_, 1.0f}, std::tuple{"b", &b_, 2.0f}}) {
    const bool initialized = State(name).IsInitialized();
    if (initialized) {
      EXPECT_THAT(Value(*session_, *variable), Each(value)) << name;
    } else {
      EXPECT_TRUE(absl::IsFailedPrecondition(session_->Run({variable->value()}).status())) << name;
    }
  }
  ASSERT_TRUE(saver_->Restore(*session_, path_).ok());
  EXPECT_THAT(Value(*session_, a_), Each(1));
  EXPECT_THAT(Value(*session_, b_), Each(2));
}

// ---- Many small variables, which are read together.

class RestoreMany : public ::testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  static constexpr int kCount = 300;
  RestoreMany() : path_(MakeTempDirectory("restore") + "/m") {
    const auto [use_resource, sharded] = GetParam();
    for (int i = 0; i < kCount; ++i) {
      const DeviceScope device(g_, i % 2 == 0 ? "" : "/cpu:0");
      const float v = static_cast<float>(i);
      variables_.push_back(
          MakeVariable(g_, Tensor::Vector<float>({v, v + 0.5f}),
                       {.name = absl::StrCat("v", i), .use_resource = use_resource}));
    }
    saver_.emplace(*Saver::Create(g_, {.sharded = sharded}));
    for (const Variable& v : variables_) change_.push_back(v.Assign(Computed(v, -1)));
    session_.emplace(Start(g_));
    Init(*session_, g_);
    EXPECT_TRUE(saver_->Save(*session_, path_).ok());
    Change(*session_);
  }

  void Change(Session& session) { ASSERT_TRUE(session.Run(Feeds{}, {}, change_).ok()); }

  // Returns the number of variables with the saved value, and with the changed value.
  std::pair<int, int> Count(Session& session) {
    Outputs values;
    for (const Variable& v : variables_) values.push_back(v.value());
    const Tensors read = *session.Run(values);
    std::pair<int, int> counts;
    for (int i = 0; i < kCount; ++i) {
      const auto value = read[i].flat<float>();
      const float v = static_cast<float>(i);
      if (value[0] == v && value[1] == v + 0.5f) ++counts.first;
      if (value[0] == -1 && value[1] == -1) ++counts.second;
    }
    return counts;
  }

  const std::string path_;
  Graph g_;
  Variables variables_;
  std::vector<Operation> change_;
  std::optional<Saver> saver_;
  std::optional<Session> session_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, RestoreMany,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()));

TEST_P(RestoreMany, RestoresAllValuesRepeatedly) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(saver_->Restore(*session_, path_).ok());
    EXPECT_EQ(Count(*session_), std::pair(kCount, 0));
    Change(*session_);
  }
  Session fresh = Start(g_);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(saver_->Restore(fresh, path_).ok());
    EXPECT_EQ(Count(fresh), std::pair(kCount, 0));
    Change(fresh);
  }
}

TEST_P(RestoreMany, ADamagedByteNamesItsVariableAndAllStayAsTheyWere) {
  const std::string data =
      path_ + (std::get<1>(GetParam()) ? ".data-00001-of-00002" : ".data-00000-of-00001");
  const std::string sound = ReadBytes(data);
  ASSERT_TRUE(saver_->Restore(*session_, path_).ok());
  Change(*session_);
  for (const size_t place : {size_t{0}, sound.size() / 2, sound.size() - 1}) {
    std::string bytes = sound;
    bytes[place] ^= 1;
    WriteBytes(data, bytes);
    const absl::Status status = saver_->Restore(*session_, path_);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(": tensor v"));
    EXPECT_EQ(Count(*session_), std::pair(0, kCount));
  }
}

TEST_P(RestoreMany, AFailedSecondReadLeavesNoValue) {
  {
    LimitedDisk disk(kCount * 8 + 100);
    const ScopedFileSystem scoped(&disk);
    const absl::Status status = saver_->Restore(*session_, path_);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("has no value any more"));
  }
  for (const Variable& v : variables_) {
    const auto value = session_->Run({v.value()});
    if (value.ok()) {
      EXPECT_GE((*value)[0].data<float>()[0], 0) << v.name();
    }
  }
  ASSERT_TRUE(saver_->Restore(*session_, path_).ok());
  EXPECT_EQ(Count(*session_), std::pair(kCount, 0));
}

TEST_P(RestoreMany, VariablesOfASessionThatWasResetAreNew) {
  ASSERT_TRUE(saver_->Restore(*session_, path_).ok());
  session_->Reset();
  EXPECT_FALSE(session_->Run({variables_[0].value()}).ok());
  ASSERT_TRUE(saver_->Restore(*session_, path_).ok());
  EXPECT_EQ(Count(*session_), std::pair(kCount, 0));
  Change(*session_);
  ASSERT_TRUE(saver_->Restore(*session_, path_).ok());
  EXPECT_EQ(Count(*session_), std::pair(kCount, 0));
}

TEST_P(RestoreMany, AChangedGraphIsAnalyzedAgain) {
  ASSERT_TRUE(saver_->Restore(*session_, path_).ok());
  Node* const restore = g_.FindNode(saver_->def().restore_op_name);
  ASSERT_TRUE(g_.AddControlInput(
                    restore, variables_[0].Assign(Const(g_, Tensor::Vector<float>({4, 4}))).node)
                  .ok());
  ASSERT_TRUE(saver_->Restore(*session_, path_).ok());
  const std::vector<float> first = Value(*session_, variables_[0]);
  EXPECT_THAT(first,
              ::testing::AnyOf(::testing::ElementsAre(4, 4), ::testing::ElementsAre(0, 0.5)));
}

TEST_P(RestoreMany, DoesNotRecoverAClosedSession) {
  ASSERT_TRUE(saver_->Restore(*session_, path_).ok());
  Change(*session_);
  session_->Close();
  const absl::Status status = saver_->Restore(*session_, path_);
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  const auto variable = session_->resources().Lookup<VariableState>("", "v7");
  EXPECT_EQ(variable->value().data<float>()[0], -1);
}

TEST_P(RestoreMany, SaversOfOneSessionDoNotDisturbEachOther) {
  const Saver other = *Saver::Create(g_, {.variables = {{variables_[7]}}, .name = "other"});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(other.Restore(*session_, path_).ok());
    EXPECT_EQ(Count(*session_), std::pair(1, kCount - 1));
    ASSERT_TRUE(saver_->Restore(*session_, path_).ok());
    EXPECT_EQ(Count(*session_), std::pair(kCount, 0));
    Change(*session_);
  }
}

// ---- Saving without waiting for the disk.

class Durable : public ::testing::TestWithParam<std::tuple<int, bool>> {};
INSTANTIATE_TEST_SUITE_P(Formats, Durable,
                         ::testing::Combine(::testing::Values(1, 2), ::testing::Bool()));

TEST_P(Durable, UnsyncedCheckpointsSurviveTheProcessAndNoMore) {
  const auto [version, sharded] = GetParam();
  for (const Durability durability : {Durability::kSynced, Durability::kUnsynced}) {
    Graph g;
    const Variable v = testing::Var(g, "v", {1, 2});
    Saver saver =
        *Saver::Create(g, {.sharded = sharded, .write_version = version, .durability = durability});
    Session session = Start(g);
    Init(session, g);
    testing::MemoryFileSystem files;
    const ScopedFileSystem scoped(&files);
    ASSERT_TRUE(Files().MakeDirectory("/d").ok());
    ASSERT_TRUE(Files().SyncDirectory("/").ok());
    ASSERT_TRUE(saver.Save(session, "/d/m").ok());
    using Survivors = testing::MemoryFileSystem::Survivors;
    for (const Survivors survivors : {Survivors::kSyncedOnly, Survivors::kEverything}) {
      const auto left = files.AfterPowerFailure(survivors);
      const ScopedFileSystem after(left.get());
      const bool survives =
          durability == Durability::kSynced || survivors == Survivors::kEverything;
      const absl::StatusOr<std::string> latest = LatestCheckpoint("/d");
      EXPECT_EQ(latest.ok(), survives) << latest.status();
      if (latest.ok()) {
        Session fresh = Start(g);
        EXPECT_TRUE(saver.Restore(fresh, *latest).ok());
        EXPECT_THAT(Value(fresh, v), ::testing::ElementsAre(1, 2));
      }
    }
  }
}

}  // namespace
}  // namespace weir
