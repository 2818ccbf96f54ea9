#include "weir/core/import/versions.h"

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "weir/proto/graph.pb.h"

namespace weir {
namespace {

using ::testing::ElementsAre;

proto::VersionDef Versions(const std::string& text) {
  proto::VersionDef versions;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &versions)) << text;
  return versions;
}

TEST(CheckVersions, AcceptsWhatThisVersionMayRead) {
  for (const char* text : {"", "producer: 0", "producer: 1000000", "min_consumer: 2474",
                           "producer: 21 min_consumer: 12 bad_consumers: [2473, 2475]"})
    EXPECT_TRUE(CheckVersions(Versions(text)).ok()) << text;
}

TEST(CheckVersions, SaysWhyItRejects) {
  const auto error = [](const char* text) {
    const absl::Status status = CheckVersions(Versions(text));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(status.message());
  };
  EXPECT_EQ(error("producer: -1"),
            "GraphDef producer version -1 below min producer 0 supported by Weir");
  EXPECT_EQ(error("min_consumer: 2475"),
            "GraphDef min consumer version 2475 above current version 2474 for Weir.  Please "
            "upgrade Weir.");
  EXPECT_EQ(error("bad_consumers: [1, 2474]"),
            "GraphDef disallows consumer version 2474.  Please upgrade Weir: this version is "
            "likely buggy.");
}

TEST(MergeVersions, AnEmptyGraphTakesTheProducer) {
  GraphVersions mine;
  MergeVersions(Versions("producer: 3000 min_consumer: 5"), true, &mine);
  EXPECT_EQ(mine.producer, 3000);
  EXPECT_EQ(mine.min_consumer, 5);
}

TEST(MergeVersions, OtherwiseTheStricterVersionCounts) {
  GraphVersions mine{.producer = 100, .min_consumer = 7, .bad_consumers = {1, 2}};
  MergeVersions(Versions("producer: 3000 min_consumer: 5 bad_consumers: [2, 3]"), false, &mine);
  EXPECT_EQ(mine.producer, 100);
  EXPECT_EQ(mine.min_consumer, 7);
  EXPECT_THAT(mine.bad_consumers, ElementsAre(1, 2, 3));
  MergeVersions(Versions("producer: 20 min_consumer: 9"), false, &mine);
  EXPECT_EQ(mine.producer, 20);
  EXPECT_EQ(mine.min_consumer, 9);
}

}  // namespace
}  // namespace weir
