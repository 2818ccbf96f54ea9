#include "weir/rpc/models/request_log.h"

#include <filesystem>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/record.h"
#include "weir/proto/prediction_log.pb.h"

namespace weir::rpc {
namespace {

using ::testing::EndsWith;

class RequestLogTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::vector<serving::ModelConfig> Models(double rate) const {
    serving::ModelConfig model = {.name = "m", .base_path = "/m"};
    model.logging = serving::RequestLogging{root_ + "/m.log", rate};
    return {model};
  }
  static void Add(RequestLog* log, const std::string& signature) {
    proto::serving::PredictionLog entry;
    entry.mutable_log_metadata()->mutable_model_spec()->set_signature_name(signature);
    entry.mutable_predict_log()->mutable_request()->add_output_filter("y");
    log->Add("m", &entry);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(root_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  // The signatures of the records in all files.
  std::vector<std::string> Logged() const {
    std::vector<std::string> signatures;
    for (const std::string& name : Names()) {
      auto reader = RecordReader::Open(root_ + "/" + name);
      EXPECT_TRUE(reader.ok()) << reader.status();
      for (;;) {
        const auto record = (*reader)->Next();
        EXPECT_TRUE(record.ok()) << record.status();
        if (!record.ok() || !record->has_value()) break;
        proto::serving::PredictionLog entry;
        EXPECT_TRUE(entry.ParseFromString(**record));
        EXPECT_EQ(entry.log_metadata().saved_model_tags(0), "serve");
        EXPECT_GT(entry.log_metadata().timestamp_secs(), 1'700'000'000);
        EXPECT_EQ(entry.predict_log().request().output_filter(0), "y");
        signatures.push_back(entry.log_metadata().model_spec().signature_name());
      }
    }
    return signatures;
  }

  std::string root_;
};

TEST_F(RequestLogTest, CompletesFilesOfRecords) {
  {
    RequestLog log;
    log.Configure(Models(1));
    EXPECT_TRUE(log.Samples("m"));
    EXPECT_FALSE(log.Samples("other"));
    Add(&log, "first");
    Add(&log, "second");
    proto::serving::PredictionLog entry;
    log.Add("other", &entry);
  }
  EXPECT_THAT(Logged(), testing::ElementsAre("first", "second"));
  ASSERT_EQ(Names().size(), 1);
  EXPECT_THAT(Names()[0], EndsWith(".tfrecord"));
}

TEST_F(RequestLogTest, BeginsNewFilesAndToleratesThatTheyAreMoved) {
  {
    RequestLog log({.max_file_bytes = 1});
    log.Configure(Models(1));
    for (int i = 0; i < 3; ++i) {
      Add(&log, std::to_string(i));
      const size_t files = static_cast<size_t>(i) + 1;
      while (Names().size() < files || testing::Matches(EndsWith(".open"))(Names().back()))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  EXPECT_EQ(Names().size(), 3);
  EXPECT_THAT(Logged(), testing::UnorderedElementsAre("0", "1", "2"));
}

TEST_F(RequestLogTest, SamplesTheRate) {
  RequestLog log;
  log.Configure(Models(0.25));
  int sampled = 0;
  for (int i = 0; i < 10'000; ++i) sampled += log.Samples("m");
  EXPECT_NEAR(sampled, 2500, 250);  // more than five standard deviations
  log.Configure(Models(0));
  EXPECT_FALSE(log.Samples("m"));
}

TEST_F(RequestLogTest, ErrorsAreReportedAndDropRecordsOnly) {
  absl::Status reported;
  int64_t dropped = 0;
  {
    RequestLog log({.on_error = [&](const absl::Status& status) { reported = status; }});
    std::vector<serving::ModelConfig> models = Models(1);
    models[0].logging->filename_prefix = root_ + "/missing/m";
    log.Configure(models);
    Add(&log, "a");
    Add(&log, "b");
    while (log.dropped() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    dropped = log.dropped();
  }
  EXPECT_EQ(dropped, 2);
  EXPECT_TRUE(absl::IsNotFound(reported)) << reported;
}

TEST_F(RequestLogTest, FullQueuesDropRecords) {
  RequestLog log({.max_waiting_bytes = 10});
  log.Configure(Models(1));
  Add(&log, "a");
  EXPECT_EQ(log.dropped(), 1);
}

}  // namespace
}  // namespace weir::rpc
