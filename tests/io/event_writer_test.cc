#include "weir/core/io/event_writer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/proto/event.pb.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using testing::MakeTempDirectory;
using ::testing::MatchesRegex;

std::vector<proto::Event> ReadEvents(const std::string& path) {
  std::vector<proto::Event> events;
  const auto reader = RecordReader::Open(path);
  for (;;) {
    const auto record = (*reader)->Next();
    if (!record.ok() || !record->has_value()) return events;
    EXPECT_TRUE(events.emplace_back().ParseFromString(**record));
  }
}

TEST(EventWriter, StartsWithTheVersionAndKeepsTheOrder) {
  const std::string dir = MakeTempDirectory("events") + "/new/logs";
  const auto writer = EventWriter::Create(dir, {.filename_suffix = ".v"});
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_THAT(std::string(BaseName((*writer)->path())),
              MatchesRegex("events\\.out\\.tfevents\\.[0-9]{10}\\..*\\.v"));
  EXPECT_TRUE((*writer)->AddGraph("graph bytes").ok());
  EXPECT_TRUE((*writer)->AddScalar("loss", 0.5f, 7).ok());
  EXPECT_TRUE((*writer)->AddRunMetadata("step 7", "metadata", 7).ok());
  EXPECT_EQ(ReadEvents((*writer)->path()).size(), 1u) << "buffered";
  EXPECT_TRUE((*writer)->Flush().ok());
  const auto events = ReadEvents((*writer)->path());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_GT(events[0].wall_time(), 1e9);
  EXPECT_EQ(events[1].graph_def(), "graph bytes");
  EXPECT_EQ(events[2].step(), 7);
  EXPECT_EQ(events[2].summary().value(0).tag(), "loss");
  EXPECT_EQ(events[2].summary().value(0).simple_value(), 0.5f);
  EXPECT_EQ(events[3].tagged_run_metadata().tag(), "step 7");
  EXPECT_TRUE((*writer)->Close().ok());
  EXPECT_FALSE((*writer)->AddScalar("late", 1, 8).ok());
}

TEST(EventWriter, WritesMetadataOnlyWithTheFirstValueOfATag) {
  proto::Summary summary;
  summary.add_value()->set_tag("text");
  summary.mutable_value(0)->mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  const auto writer = EventWriter::Create(MakeTempDirectory("events"));
  for (int step = 0; step < 2; ++step) {
    EXPECT_TRUE((*writer)->AddSummary(summary.SerializeAsString(), step).ok());
  }
  EXPECT_TRUE(absl::IsInvalidArgument((*writer)->AddSummary("\xff\xff", 2)));
  EXPECT_TRUE((*writer)->Close().ok());
  const auto events = ReadEvents((*writer)->path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_TRUE(events[1].summary().value(0).has_metadata());
  EXPECT_FALSE(events[2].summary().value(0).has_metadata());
}

TEST(EventWriter, WritersInTheSameSecondUseDifferentFiles) {
  const std::string dir = MakeTempDirectory("events");
  const auto a = EventWriter::Create(dir), b = EventWriter::Create(dir);
  EXPECT_NE((*a)->path(), (*b)->path());
}

TEST(EventWriter, APeriodOfZeroFlushesEveryEvent) {
  const auto writer =
      EventWriter::Create(MakeTempDirectory("events"), {.flush_period = std::chrono::seconds(0)});
  EXPECT_TRUE((*writer)->AddScalar("loss", 1, 1).ok());
  EXPECT_EQ(ReadEvents((*writer)->path()).size(), 2u);
}

}  // namespace
}  // namespace weir
