#include "weir/serving/model_manager.h"

#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/tensor/mutex.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/serving/lib/written_models.h"

namespace weir::serving {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using testing::FactorOf;
using ::testing::HasSubstr;
using testing::MakeTempDirectory;
using testing::ReadBytes;
using testing::WriteBytes;
using testing::WriteMultiplier;

constexpr seconds kLimit(60);  // on a busy machine

ModelManagerOptions Fast() {
  return {.poll = milliseconds(20), .max_load_retries = 2, .load_retry_interval = milliseconds(20)};
}

std::unique_ptr<ModelManager> Start(const std::vector<ModelConfig>& models,
                                    const ModelManagerOptions& options = Fast()) {
  auto manager = ModelManager::Create(models, options);
  EXPECT_TRUE(manager.ok()) << manager.status();
  return *std::move(manager);
}

// Waits until the condition holds.
template <class Condition>
bool Eventually(const Condition& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

std::vector<int64_t> Available(const ModelManager& manager, const std::string& name = "m") {
  std::vector<int64_t> versions;
  const auto states = manager.Status({.name = name});
  if (!states.ok()) return versions;
  for (const VersionStatus& status : *states) {
    if (status.state == VersionState::kAvailable) versions.push_back(status.version);
  }
  return versions;
}

VersionStatus StatusOf(const ModelManager& manager, int64_t version) {
  const auto states = manager.Status({.name = "m", .version = version});
  return states.ok() ? states->at(0)
                     : VersionStatus{version, VersionState::kUnknown, states.status()};
}

// Returns the version that answers, or -1.
int64_t Latest(const ModelManager& manager) {
  const auto servable = manager.Find({.name = "m"});
  return servable.ok() ? (*servable)->version() : -1;
}

std::string VersionPath(const std::string& base, int64_t version) {
  return absl::StrCat(base, "/", version);
}

// Writes version v of a model that multiplies by v, beside its place, and moves it there.
void AddVersion(const std::string& base, int64_t version, int64_t size = 1) {
  const std::string aside = absl::StrCat(base, "/aside");
  WriteMultiplier(aside, static_cast<float>(version), size);
  ASSERT_TRUE(Files().Rename(aside, VersionPath(base, version)).ok());
}

void RemoveVersion(const std::string& base, int64_t version) {
  ASSERT_EQ(system(absl::StrCat("rm -r '", VersionPath(base, version), "'").c_str()), 0);
}

TEST(ModelManager, ServesTheLatestVersion) {
  const std::string base = MakeTempDirectory("latest");
  AddVersion(base, 1);
  AddVersion(base, 12);
  const auto manager = Start({{.name = "m", .base_path = base}});
  ASSERT_TRUE(manager->WaitUntilLoaded(kLimit).ok());
  EXPECT_TRUE(Eventually([&] { return Available(*manager) == std::vector<int64_t>{12}; }));
  EXPECT_EQ(FactorOf(**manager->Find({.name = "m"})), 12);
  EXPECT_THAT(manager->models(), ElementsAre("m"));
}

TEST(ModelManager, KnowsOnlyVersionsThatItMayServe) {
  const std::string base = MakeTempDirectory("old");
  for (const int64_t version : {1, 2, 3}) AddVersion(base, version);
  std::this_thread::sleep_for(milliseconds(100));  // all are complete
  const auto manager = Start({{.name = "m", .base_path = base}});
  ASSERT_TRUE(manager->WaitUntilLoaded(kLimit).ok());
  const auto all = manager->Status({.name = "m"});
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ(all->at(0).version, 3);
  const absl::Status old = manager->Status({.name = "m", .version = 2}).status();
  EXPECT_EQ(old.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(old.message(), "Could not find version 2 of model m");
  RemoveVersion(base, 3);
  EXPECT_TRUE(Eventually([&] { return Latest(*manager) == 2; }));
}

// Calls the model on several threads while five versions replace each other.
void SwapUnderLoad(const ModelConfig& config) {
  const std::string& base = config.base_path;
  AddVersion(base, 1);
  const auto manager = Start({config});
  ASSERT_TRUE(manager->WaitUntilLoaded(kLimit).ok());
  std::atomic<bool> is_over = false;
  std::atomic<int> calls = 0, failed = 0, wrong = 0;
  const auto call = [&] {
    while (!is_over) {
      const auto servable = manager->Find({.name = "m"});
      if (!servable.ok()) {
        ++failed;
        continue;
      }
      const auto result = manager->Run(**servable, "", {{"x", Tensor::Vector<float>({1})}});
      ++calls;
      if (!result.ok()) {
        ++failed;
      } else if (result->at("y").flat<float>()[0] != static_cast<float>((*servable)->version())) {
        ++wrong;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(call);
  for (int64_t version = 2; version <= 6; ++version) {
    AddVersion(base, version);
    EXPECT_TRUE(Eventually([&] { return Latest(*manager) == version; })) << version;
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(calls, 0);
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(Eventually([&] { return StatusOf(*manager, 1).state == VersionState::kEnd; }));
  EXPECT_THAT(Available(*manager), ElementsAre(6));
}

TEST(ModelManager, SwapsUnderLoadWithoutAFailedCall) {
  SwapUnderLoad({.name = "m", .base_path = MakeTempDirectory("swap")});
}

TEST(ModelManager, SwapsUnderLoadWithBatching) {
  SwapUnderLoad({.name = "m",
                 .base_path = MakeTempDirectory("swap_batches"),
                 .batching = BatchingOptions{.max_batch_size = 8,
                                             .batch_timeout = std::chrono::milliseconds(1)}});
}

TEST(ModelManager, LetsRequestsFinishOnAnUnloadedVersion) {
  const std::string base = MakeTempDirectory("held");
  AddVersion(base, 1);
  auto manager = Start({{.name = "m", .base_path = base}});
  ASSERT_TRUE(manager->WaitUntilLoaded(kLimit).ok());
  auto held = manager->Find({.name = "m"});
  AddVersion(base, 2);
  ASSERT_TRUE(Eventually([&] { return Latest(*manager) == 2; }));
  EXPECT_EQ(StatusOf(*manager, 1).state, VersionState::kUnloading);
  EXPECT_EQ(FactorOf(**held), 1);
  held = absl::CancelledError("");  // lets go of the version
  EXPECT_TRUE(Eventually([&] { return StatusOf(*manager, 1).state == VersionState::kEnd; }));
  held = manager->Find({.name = "m"});
  manager.reset();
  EXPECT_EQ(FactorOf(**held), 2) << "after the manager";
}

TEST(ModelManager, DoesNotLoadADirectoryThatIsBeingCopied) {
  const std::string base = MakeTempDirectory("copy"), source = MakeTempDirectory("source") + "/2";
  AddVersion(base, 1);
  WriteMultiplier(source, 2);
  ModelManagerOptions options = Fast();
  options.poll = milliseconds(300);
  std::atomic<int> attempts = 0;
  options.on_change = [&](const std::string&, const VersionStatus& status) {
    if (status.version == 2 && status.state == VersionState::kLoading) ++attempts;
  };
  const auto manager = Start({{.name = "m", .base_path = base}}, options);
  ASSERT_TRUE(manager->WaitUntilLoaded(kLimit).ok());
  ASSERT_TRUE(MakeDirectories(base + "/2/variables").ok());
  const std::string graph = ReadBytes(source + "/saved_model.pb");
  for (size_t bytes = 0; bytes < graph.size(); bytes += graph.size() / 20 + 1) {
    WriteBytes(base + "/2/saved_model.pb", graph.substr(0, bytes));
    std::this_thread::sleep_for(milliseconds(40));
    EXPECT_EQ(Latest(*manager), 1);
  }
  EXPECT_EQ(attempts, 0);
  WriteBytes(base + "/2/saved_model.pb", graph);
  for (const char* file : {"variables/variables.data-00000-of-00001", "variables/variables.index"})
    WriteBytes(JoinPath(base + "/2", file), ReadBytes(JoinPath(source, file)));
  EXPECT_TRUE(Eventually([&] { return Latest(*manager) == 2; }));
  EXPECT_EQ(FactorOf(**manager->Find({.name = "m"})), 2);
}

TEST(ModelManager, KeepsTheOldVersionIfTheNewOneDoesNotLoad) {
  const std::string base = MakeTempDirectory("broken");
  AddVersion(base, 1);
  const auto manager = Start({{.name = "m", .base_path = base}});
  ASSERT_TRUE(manager->WaitUntilLoaded(kLimit).ok());
  ASSERT_TRUE(MakeDirectories(base + "/2").ok());
  WriteBytes(base + "/2/saved_model.pb", "damaged");
  ASSERT_TRUE(Eventually([&] { return StatusOf(*manager, 2).state == VersionState::kEnd; }));
  EXPECT_EQ(StatusOf(*manager, 2).error.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Latest(*manager), 1);
  RemoveVersion(base, 2);
  AddVersion(base, 2);
  EXPECT_TRUE(Eventually([&] { return Latest(*manager) == 2; })) << "a change starts anew";
  EXPECT_TRUE(StatusOf(*manager, 2).error.ok());
}

TEST(ModelManager, ServesAnOlderVersionAfterTheNewestIsRemoved) {
  const std::string base = MakeTempDirectory("removed");
  AddVersion(base, 1);
  AddVersion(base, 2);
  const auto manager = Start({{.name = "m", .base_path = base}});
  ASSERT_TRUE(manager->WaitUntilLoaded(kLimit).ok());
  EXPECT_TRUE(Eventually([&] { return Latest(*manager) == 2; }));
  RemoveVersion(base, 2);
  EXPECT_TRUE(Eventually([&] { return Latest(*manager) == 1; }));
  RemoveVersion(base, 1);
  EXPECT_TRUE(Eventually([&] { return Latest(*manager) == -1; }));
}

TEST(ModelManager, FollowsItsPolicies) {
  const std::string base = MakeTempDirectory("policies");
  for (const int64_t version : {1, 2, 3}) AddVersion(base, version);
  using Kind = VersionPolicy::Kind;
  const auto manager = Start({{"two", base, {Kind::kLatest, 2}},
                              {"all", base, {Kind::kAll}},
                              {"some", base, {Kind::kSpecific, 1, {1, 3}}}});
  ASSERT_TRUE(manager->WaitUntilLoaded(kLimit).ok());
  EXPECT_TRUE(Eventually([&] {
    return Available(*manager, "two") == std::vector<int64_t>{3, 2} &&
           Available(*manager, "all") == std::vector<int64_t>{3, 2, 1} &&
           Available(*manager, "some") == std::vector<int64_t>{3, 1};
  }));
  EXPECT_EQ(FactorOf(**manager->Find({.name = "all", .version = 2})), 2);
  const absl::Status none = manager->Find({.name = "some", .version = 2}).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("Servable not found for request: Specific(some, 2). Available versions: "
                        "{3, 1}"));
}

TEST(ModelManager, FindsVersionsByLabel) {
  const std::string base = MakeTempDirectory("labels");
  for (const int64_t version : {1, 2}) AddVersion(base, version);
  ModelConfig config{"m", base, {VersionPolicy::Kind::kAll}, {{"stable", 1}, {"canary", 2}}};
  const auto manager = Start({config});
  ASSERT_TRUE(manager->WaitUntilLoaded(kLimit).ok());
  EXPECT_EQ((*manager->Find({.name = "m", .label = "stable"}))->version(), 1);
  EXPECT_EQ((*manager->Find({.name = "m", .label = "canary"}))->version(), 2);
  EXPECT_EQ(manager->Status({.name = "m", .label = "stable"})->at(0).version, 1);
  const absl::Status unknown = manager->Find({.name = "m", .label = "beta\n"}).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(unknown.message(), "Unrecognized servable version label: beta\\n");
  EXPECT_EQ(manager->Find({.name = "m", .version = 1, .label = "stable"}).status().code(),
            absl::StatusCode::kInvalidArgument);

  config.labels["stable"] = 2;
  ASSERT_TRUE(manager->Reload({config}).ok());
  EXPECT_EQ((*manager->Find({.name = "m", .label = "stable"}))->version(), 2);
  config.labels["stable"] = 777;
  const absl::Status refused = manager->Reload({config});
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("Request to assign label to version 777 of model m, which is not currently "
                        "available for inference"));
  EXPECT_EQ((*manager->Find({.name = "m", .label = "stable"}))->version(), 2);
}

TEST(ModelManager, ReportsALabelOfAnUnavailableVersion) {
  const std::string base = MakeTempDirectory("early_label");
  AddVersion(base, 1);
  const ModelConfig config{.name = "m", .base_path = base, .labels = {{"next", 2}}};
  EXPECT_EQ(Start({config})->WaitUntilLoaded(kLimit).code(), absl::StatusCode::kFailedPrecondition);
  ModelManagerOptions options = Fast();
  options.allow_labels_of_unavailable_versions = true;
  const auto manager = Start({config}, options);
  EXPECT_TRUE(manager->WaitUntilLoaded(kLimit).ok());
  EXPECT_EQ(manager->Find({.name = "m", .label = "next"}).status().code(),
            absl::StatusCode::kNotFound);
  AddVersion(base, 2);
  EXPECT_TRUE(Eventually([&] { return manager->Find({.name = "m", .label = "next"}).ok(); }));
}

TEST(ModelManager, RefusesVersionsBeyondTheMemoryLimit) {
  const std::string base = MakeTempDirectory("memory");
  AddVersion(base, 1, 100'000);
  const auto manager = Start({{.name = "m", .base_path = base, .max_memory_bytes = 1'000'000}});
  ASSERT_TRUE(manager->WaitUntilLoaded(kLimit).ok());
  AddVersion(base, 2, 200'000);
  ASSERT_TRUE(Eventually([&] { return StatusOf(*manager, 2).state == VersionState::kEnd; }));
  const absl::Status error = StatusOf(*manager, 2).error;
  EXPECT_EQ(error.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(error.message()), HasSubstr("model 'm', version 2, asks for"));
  EXPECT_THAT(std::string(error.message()), HasSubstr("the model may use 1000000"));
  EXPECT_THAT(std::string(error.message()), HasSubstr("by versions 1"));
  EXPECT_EQ(Latest(*manager), 1);
}

TEST(ModelManager, RetriesALoadThatMaySucceedLater) {
  const std::string base = MakeTempDirectory("retries");
  ASSERT_TRUE(MakeDirectories(base + "/1").ok());
  Mutex mutex;
  std::vector<VersionState> states;
  ModelManagerOptions options = Fast();
  options.on_change = [&](const std::string& name, const VersionStatus& status) {
    EXPECT_EQ(name, "m");
    const MutexLock lock(mutex);
    states.push_back(status.state);
  };
  const auto manager = Start({{.name = "m", .base_path = base}}, options);
  const absl::Status failed = manager->WaitUntilLoaded(kLimit);
  EXPECT_EQ(failed.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("model 'm', version 1"));
  AddVersion(base, 2);
  EXPECT_TRUE(Eventually([&] { return Latest(*manager) == 2; }));
  const MutexLock lock(mutex);
  EXPECT_THAT(states, ::testing::Contains(VersionState::kLoading));
  EXPECT_THAT(states, ::testing::Contains(VersionState::kEnd));
}

TEST(ModelManager, SaysWhatItWaitsFor) {
  const std::string base = MakeTempDirectory("empty");
  const auto manager = Start({{.name = "m", .base_path = base}});
  const absl::Status status = manager->WaitUntilLoaded(milliseconds(100));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("No versions of servable m found"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(base));
  EXPECT_EQ(manager->Find({.name = "m"}).status().code(), absl::StatusCode::kNotFound);
  const auto nowhere = Start({{.name = "m", .base_path = base + "/none"}});
  EXPECT_EQ(nowhere->WaitUntilLoaded(kLimit).code(), absl::StatusCode::kNotFound);
}

TEST(ModelManager, ReloadsAllOrNothing) {
  const std::string first = MakeTempDirectory("first"), second = MakeTempDirectory("second");
  AddVersion(first, 1);
  AddVersion(second, 5);
  const auto manager = Start({{.name = "first", .base_path = first}});
  ASSERT_TRUE(manager->WaitUntilLoaded(kLimit).ok());
  const auto before = *manager->Find({.name = "first"});

  EXPECT_EQ(manager->Reload({{.name = "second", .base_path = second}, {.name = "second"}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(manager
                ->Reload({{.name = "second", .base_path = second},
                          {.name = "third", .base_path = first + "/none"}})
                .code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(manager->models(), ElementsAre("first"));

  const absl::Status added = manager->Reload(
      {{.name = "first", .base_path = first}, {.name = "second", .base_path = second}});
  ASSERT_TRUE(added.ok()) << added;
  EXPECT_EQ(FactorOf(**manager->Find({.name = "second"})), 5);
  EXPECT_EQ(*manager->Find({.name = "first"}), before) << "was loaded again";

  ASSERT_TRUE(manager->Reload({{.name = "second", .base_path = second}}).ok());
  EXPECT_EQ(manager->Find({.name = "first"}).status().message(),
            "Servable not found for request: Latest(first)");
  EXPECT_EQ(FactorOf(*before), 1);
  ASSERT_TRUE(manager->Reload({}).ok());
  EXPECT_TRUE(manager->models().empty());
}

TEST(ModelManager, TakesHostileNamesInRequests) {
  const std::string base = MakeTempDirectory("hostile");
  AddVersion(base, 1);
  const auto manager = Start({{.name = "m", .base_path = base}});
  ASSERT_TRUE(manager->WaitUntilLoaded(kLimit).ok());
  for (const std::string& name : {std::string("../m"), std::string("m/1"), std::string("m\0x", 3),
                                  std::string("\x1b[2J"), std::string(1 << 20, 'm')}) {
    const absl::Status status = manager->Find({.name = name}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_LT(status.message().size(), 300u);
    for (const char c : status.message()) EXPECT_TRUE(c >= ' ' && c < 0x7f);
    EXPECT_FALSE(manager->Status({.name = name}).ok());
  }
  EXPECT_FALSE(ModelManager::Create({{.name = "../m", .base_path = base}}).ok());
  EXPECT_EQ(manager->Find({.name = "m", .version = -1}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ModelManager, LooksOnceIfTheIntervalIsZero) {
  const std::string base = MakeTempDirectory("once");
  AddVersion(base, 1);
  ModelManagerOptions options = Fast();
  options.poll = milliseconds(0);
  const auto manager = Start({{.name = "m", .base_path = base}}, options);
  ASSERT_TRUE(manager->WaitUntilLoaded(kLimit).ok());
  AddVersion(base, 2);
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(Latest(*manager), 1);
}

}  // namespace
}  // namespace weir::serving
