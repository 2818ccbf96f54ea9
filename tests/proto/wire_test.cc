// Bytes written by hand, field by field, against what the messages read and write.

#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "weir/proto/config.pb.h"
#include "weir/proto/event.pb.h"
#include "weir/proto/example.pb.h"
#include "weir/proto/graph.pb.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/tensor_bundle.pb.h"
#include "weir/proto/tensor_slice.pb.h"

namespace weir {
namespace {

using google::protobuf::TextFormat;

// The tag byte of a field numbered below 16.
constexpr char Varint(int field) { return static_cast<char>(field << 3); }
constexpr char Bytes(int field) { return static_cast<char>(field << 3 | 2); }
constexpr char Fixed32(int field) { return static_cast<char>(field << 3 | 5); }

// A length-delimited field of fewer than 128 bytes.
std::string Field(int number, const std::string& content) {
  return std::string{Bytes(number), static_cast<char>(content.size())} + content;
}

TEST(Wire, GraphDefReadsAndWritesNodesAttributesAndVersions) {
  const std::string type_attr = Field(1, "T") + Field(2, {Varint(6), 1});
  const std::string node = Field(1, "y") + Field(2, "Neg") + Field(3, "x:1") + Field(3, "^init") +
                           Field(4, "/cpu:0") + Field(5, type_attr);
  const std::string bytes = Field(1, node) + Field(4, {Varint(1), 21, Varint(2), 12});

  proto::GraphDef graph;
  ASSERT_TRUE(graph.ParseFromString(bytes));
  ASSERT_EQ(graph.node_size(), 1);
  EXPECT_EQ(graph.node(0).name(), "y");
  EXPECT_EQ(graph.node(0).op(), "Neg");
  EXPECT_EQ(graph.node(0).input(0), "x:1");
  EXPECT_EQ(graph.node(0).input(1), "^init");
  EXPECT_EQ(graph.node(0).device(), "/cpu:0");
  EXPECT_EQ(graph.node(0).attr().at("T").type(), proto::DT_FLOAT);
  EXPECT_EQ(graph.versions().producer(), 21);
  EXPECT_EQ(graph.versions().min_consumer(), 12);
  EXPECT_EQ(graph.SerializeAsString(), bytes);
}

TEST(Wire, TensorReadsPackedAndUnpackedValuesAndWritesPacked) {
  const std::string shape = Field(2, Field(2, {Varint(1), 2}));
  const std::string head = std::string{Varint(1), 3} + shape;
  const std::string packed = head + Field(7, {5, 6});
  const std::string unpacked = head + std::string{Varint(7), 5, Varint(7), 6};
  for (const std::string& bytes : {packed, unpacked}) {
    proto::TensorProto tensor;
    ASSERT_TRUE(tensor.ParseFromString(bytes));
    EXPECT_EQ(tensor.dtype(), proto::DT_INT32);
    EXPECT_EQ(tensor.tensor_shape().dim(0).size(), 2);
    ASSERT_EQ(tensor.int_val_size(), 2);
    EXPECT_EQ(tensor.int_val(1), 6);
    EXPECT_EQ(tensor.SerializeAsString(), packed);
  }
}

TEST(Wire, BundleEntryKeepsItsChecksumAsFourBytes) {
  const std::string bytes = std::string{Varint(1), 1} + Field(2, "") +
                            std::string{Varint(4), 16, Varint(5), 8, Fixed32(6), 1, 2, 3, 4};
  proto::BundleEntryProto entry;
  ASSERT_TRUE(entry.ParseFromString(bytes));
  EXPECT_EQ(entry.offset(), 16);
  EXPECT_EQ(entry.size(), 8);
  EXPECT_EQ(entry.crc32c(), 0x04030201u);
  EXPECT_EQ(entry.SerializeAsString(), bytes);
}

TEST(Wire, SliceExtentTellsNoLengthFromLengthZero) {
  proto::TensorSliceProto slice;
  ASSERT_TRUE(slice.ParseFromString(Field(1, "") + Field(1, {Varint(2), 0})));
  EXPECT_EQ(slice.extent(0).has_length_hack_case(),
            proto::TensorSliceProto::Extent::HAS_LENGTH_HACK_NOT_SET);
  EXPECT_EQ(slice.extent(1).has_length_hack_case(), proto::TensorSliceProto::Extent::kLength);
}

TEST(Wire, CollectionsKeepTheirKind) {
  proto::MetaGraphDef meta;
  ASSERT_TRUE(meta.ParseFromString(Field(4, Field(1, "v") + Field(2, Field(2, Field(1, "raw"))))));
  EXPECT_EQ(meta.collection_def().at("v").bytes_list().value(0), "raw");
}

TEST(Wire, ConfigReadsNegativeEnumValues) {
  // -1 as a varint: ten bytes.
  const std::string minus_one = std::string(9, '\xff') + '\x01';
  proto::GraphOptions options;
  ASSERT_TRUE(options.ParseFromString(Field(3, Varint(3) + minus_one)));
  EXPECT_EQ(options.optimizer_options().opt_level(), proto::OptimizerOptions::L0);
}

TEST(Wire, EventHoldsTheGraphAsBytes) {
  proto::Event event;
  ASSERT_TRUE(event.ParseFromString(std::string{Varint(2), 7} + Field(4, "not parsed")));
  EXPECT_EQ(event.step(), 7);
  EXPECT_EQ(event.what_case(), proto::Event::kGraphDef);
  EXPECT_EQ(event.graph_def(), "not parsed");
}

TEST(Wire, ExampleReadsAFloatFeature) {
  const std::string list = Field(2, Field(1, std::string("\0\0\x80\x3f", 4)));
  proto::Example example;
  ASSERT_TRUE(example.ParseFromString(Field(1, Field(1, Field(1, "x") + Field(2, list)))));
  EXPECT_EQ(example.features().feature().at("x").float_list().value(0), 1.0f);
}

TEST(Wire, FieldsOfALaterVersionSurviveARoundTrip) {
  const std::string bytes = Field(1, "w") + Field(15, "from the future");
  proto::NodeDef node;
  ASSERT_TRUE(node.ParseFromString(bytes));
  EXPECT_EQ(node.SerializeAsString(), bytes);
}

TEST(Wire, TruncatedBytesAreRefused) {
  const std::string bytes = Field(1, Field(1, "name") + Field(2, "NoOp"));
  proto::GraphDef graph;
  for (size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_FALSE(graph.ParseFromString(bytes.substr(0, size))) << size << " bytes";
  }
}

TEST(Wire, TextFormatUsesTensorFlowsNames) {
  proto::NodeDef node;
  ASSERT_TRUE(TextFormat::ParseFromString(
      "name: 'c' op: 'Const' attr { key: 'dtype' value { type: DT_BFLOAT16 } }", &node));
  EXPECT_EQ(node.attr().at("dtype").type(), proto::DT_BFLOAT16);
}

TEST(Wire, FilesAreKnownUnderWeirsOwnPath) {
  EXPECT_EQ(proto::GraphDef::descriptor()->file()->name(), "weir/proto/graph.proto");
  EXPECT_EQ(proto::GraphDef::descriptor()->full_name(), "weir.proto.GraphDef");
}

}  // namespace
}  // namespace weir
