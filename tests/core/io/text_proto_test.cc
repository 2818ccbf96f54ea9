#include "weir/core/io/text_proto.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/proto/graph.pb.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

TEST(TextProto, RoundTrips) {
  proto::GraphDef def;
  def.add_node()->set_name("x\"1\"");
  proto::GraphDef read;
  ASSERT_TRUE(ParseTextProto(PrintTextProto(def), "memory", &read).ok());
  EXPECT_EQ(read.SerializeAsString(), def.SerializeAsString());
}

TEST(TextProto, TheFirstMistakeIsReportedWithItsPosition) {
  proto::GraphDef def;
  const absl::Status status =
      ParseTextProto("node {\n  name: 'a'\n  nome: 'b'\n  oq: 'c'\n}", "my.pbtxt", &def);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              HasSubstr("my.pbtxt: Error parsing text-format GraphDef: line 3, column 7: "));
  EXPECT_THAT(status.message(), HasSubstr("nome"));
}

TEST(TextProto, NestingHasALimit) {
  const auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "attr { key: 'f' value { func { ";
    for (int i = 0; i < depth; ++i) text += "} } } ";
    return "node { " + text + "}";
  };
  proto::GraphDef def;
  EXPECT_TRUE(ParseTextProto(nested(30), "shallow", &def).ok());
  EXPECT_EQ(ParseTextProto(nested(40), "deep", &def).code(), absl::StatusCode::kInvalidArgument);
}

TEST(TextProto, UnknownFieldsAreSkippedOnRequest) {
  const std::string text = "versions { producer: 7 } color: 'green'";
  proto::GraphDef def;
  EXPECT_FALSE(ParseTextProto(text, "memory", &def).ok());
  ASSERT_TRUE(ParseTextProto(text, "memory", &def, {.allow_unknown_fields = true}).ok());
  EXPECT_EQ(def.versions().producer(), 7);
}

}  // namespace
}  // namespace weir
