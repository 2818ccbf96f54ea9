// A graph of more than 2 GiB, which protobuf cannot parse as one message. The file is sparse; in
// memory, its constants take their full size.

#include <cstdio>
#include <fstream>

#include "gtest/gtest.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/lib/array.h"
#include "weir/proto/graph.pb.h"

namespace weir {
namespace {

constexpr uint64_t kBytes = uint64_t{450} << 20;
constexpr int kConstants = 5;

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}

// Returns the tag and length of a field with this number and `bytes` bytes of contents.
std::string Head(int field, uint64_t bytes) { return Varint(field << 3 | 2) + Varint(bytes); }
std::string Field(int field, const std::string& bytes) { return Head(field, bytes.size()) + bytes; }

// A field of the GraphDef: a Const of kBytes uint8 zeros, without the zeros, which come last in
// each of the nested messages.
std::string ConstWithoutContent(const std::string& name) {
  const std::string dtype = std::string("\x08\x04", 2);  // DT_UINT8
  const std::string shape = Field(2, Field(2, "\x08" + Varint(kBytes)));
  std::string bytes = dtype + shape + Head(4, kBytes);                 // TensorProto
  bytes = Head(8, bytes.size() + kBytes) + bytes;                      // AttrValue
  bytes = Field(1, "value") + Head(2, bytes.size() + kBytes) + bytes;  // an entry of attr
  const std::string type = Field(5, Field(1, "dtype") + Field(2, std::string("\x30\x04", 2)));
  bytes = Field(1, name) + Field(2, "Const") + type + Head(5, bytes.size() + kBytes) + bytes;
  return Head(1, bytes.size() + kBytes) + bytes;
}

class LargeGraph : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream file(path_, std::ios::binary);
    file << Field(4, "\x08" + Varint(kProducer));
    for (int i = 0; i < kConstants; ++i) {
      file << ConstWithoutContent("c" + std::to_string(i));
      file.seekp(static_cast<std::streamoff>(kBytes) - 1, std::ios::cur);
      file << static_cast<char>(i + 1);
    }
    file << Field(kUnknownField, "kept");
    ASSERT_GT(static_cast<uint64_t>(file.tellp()), uint64_t{1} << 31);
  }
  void TearDown() override { std::remove(path_.c_str()); }

  static constexpr int kProducer = 1234, kUnknownField = 99;
  const std::string path_ = testing::TempDir() + "large.pb";
};

TEST_F(LargeGraph, IsReadNodeByNode) {
  proto::GraphDef def;
  const absl::Status read = ReadGraphFile(path_, &def);
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_EQ(def.versions().producer(), kProducer);
  ASSERT_EQ(def.node_size(), kConstants);
  EXPECT_EQ(def.node(4).name(), "c4");
  const auto& unknown = def.GetReflection()->GetUnknownFields(def);
  ASSERT_EQ(unknown.field_count(), 1);
  EXPECT_EQ(unknown.field(0).length_delimited(), "kept");
}

TEST_F(LargeGraph, IsImportedNodeByNode) {
  Graph g;
  const auto last = ImportGraphFile(g, path_, {.return_elements = {"c4:0"}});
  ASSERT_TRUE(last.ok()) << last.status();
  ASSERT_EQ(g.num_nodes(), kConstants);
  for (int i = 0; i < kConstants; ++i) {
    const Tensor value = g.nodes()[i]->attr<Tensor>("value");
    ASSERT_EQ(value.num_bytes(), kBytes);
    EXPECT_EQ(value.data<uint8_t>()[0], 0);
    EXPECT_EQ(value.data<uint8_t>()[kBytes - 1], i + 1);
  }
}

}  // namespace
}  // namespace weir
