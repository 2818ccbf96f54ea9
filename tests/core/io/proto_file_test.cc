#include "weir/core/io/proto_file.h"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/file.h"
#include "weir/core/io/text_proto.h"
#include "weir/proto/graph.pb.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

proto::GraphDef OneNode(const std::string& name) {
  proto::GraphDef def;
  def.add_node()->set_name(name);
  def.mutable_node(0)->set_op("NoOp");
  return def;
}

std::string Gzip(const std::string& bytes) {
  std::string out;
  {
    google::protobuf::io::StringOutputStream sink(&out);
    google::protobuf::io::GzipOutputStream stream(&sink);
    void* data;
    int size;
    size_t at = 0;
    while (at < bytes.size() && stream.Next(&data, &size)) {
      const size_t count = std::min(bytes.size() - at, static_cast<size_t>(size));
      std::memcpy(data, bytes.data() + at, count);
      at += count;
      stream.BackUp(size - static_cast<int>(count));
    }
  }
  return out;
}

std::string Written(const std::string& bytes) {
  const std::string path = testing::TempDir() + "/message";
  EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
  return path;
}

TEST(ProtoFile, ContentsTellTheForm) {
  for (const size_t length : {1, 10, 32, 127, 128, 400, 5000}) {
    const proto::GraphDef def = OneNode(std::string(length, 'a'));
    EXPECT_EQ(ProtoFormOf(def.SerializeAsString()), ProtoForm::kBinary) << length;
    EXPECT_EQ(ProtoFormOf(PrintTextProto(def)), ProtoForm::kText) << length;
  }
  proto::GraphDef library;
  library.mutable_library()->add_function()->mutable_signature()->set_name("f");
  EXPECT_EQ(ProtoFormOf(library.SerializeAsString()), ProtoForm::kBinary);
  EXPECT_EQ(ProtoFormOf("# \xc3\xa9\r\nnode {}"), ProtoForm::kText);
  EXPECT_EQ(ProtoFormOf(""), ProtoForm::kBinary);
}

TEST(ProtoFile, ReadsEachForm) {
  const proto::GraphDef def = OneNode("a");
  const std::string binary = def.SerializeAsString(), text = PrintTextProto(def);
  for (const std::string& bytes : {binary, text, Gzip(binary), Gzip(text)}) {
    const absl::StatusOr<std::string> read = ReadProtoFile(Written(bytes));
    ASSERT_TRUE(read.ok()) << read.status();
    proto::GraphDef parsed;
    ASSERT_TRUE(ParseProto(*read, "message", &parsed).ok());
    EXPECT_EQ(parsed.SerializeAsString(), binary);
  }
}

TEST(ProtoFile, DamagedGzipIsDataLoss) {
  std::string content;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&content, i, " ");
  const std::string bytes = Gzip(content);
  for (size_t size = 2; size < bytes.size(); ++size) {
    const absl::Status status = ReadProtoFile(Written(bytes.substr(0, size))).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << size << " " << status;
  }
  std::string flipped = bytes;
  flipped[bytes.size() / 2] ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(ReadProtoFile(Written(flipped)).status()));
}

TEST(ProtoFile, ErrorsNameTheSource) {
  proto::GraphDef def;
  EXPECT_THAT(ParseProto("\x01\x02", "g.pb", &def).message(),
              HasSubstr("g.pb: not a serialized GraphDef"));
  EXPECT_THAT(ParseProto("nonsense", "g.pb", &def).message(), HasSubstr("line 1"));
}

}  // namespace
}  // namespace weir
