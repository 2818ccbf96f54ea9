#include "weir/ops/text/proto_fields.h"

#include <google/protobuf/descriptor.pb.h>

#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/recorded.h"

// Fields of messages as tensors and back ("DecodeProtoV2", "EncodeProto"). The expected bytes are
// written by hand after protobuf's description of the wire format; op_calls_proto.py compares
// random messages with TensorFlow.
namespace weir {
namespace {

using google::protobuf::FieldDescriptorProto;
using testing::ElementsAre;
using testing::HasSubstr;

FieldDescriptorProto* AddField(google::protobuf::DescriptorProto* message, const char* name,
                               int number, FieldDescriptorProto::Type type, bool repeated = false) {
  FieldDescriptorProto* const field = message->add_field();
  field->set_name(name);
  field->set_number(number);
  field->set_type(type);
  field->set_label(repeated ? FieldDescriptorProto::LABEL_REPEATED
                            : FieldDescriptorProto::LABEL_OPTIONAL);
  return field;
}

// message M { optional int32 i = 1 [default = -7]; repeated sint64 z = 2 [packed]; optional float f
// = 3; repeated string s = 4; optional M m = 5; repeated fixed32 x = 6; optional bool b = 7
// [default = true]; }
std::string Descriptors() {
  google::protobuf::FileDescriptorSet set;
  google::protobuf::FileDescriptorProto* const file = set.add_file();
  file->set_name("m.proto");
  file->set_package("test");
  google::protobuf::DescriptorProto* const m = file->add_message_type();
  m->set_name("M");
  AddField(m, "i", 1, FieldDescriptorProto::TYPE_INT32)->set_default_value("-7");
  AddField(m, "z", 2, FieldDescriptorProto::TYPE_SINT64, true)->mutable_options()->set_packed(true);
  AddField(m, "f", 3, FieldDescriptorProto::TYPE_FLOAT);
  AddField(m, "s", 4, FieldDescriptorProto::TYPE_STRING, true);
  AddField(m, "m", 5, FieldDescriptorProto::TYPE_MESSAGE)->set_type_name(".test.M");
  AddField(m, "x", 6, FieldDescriptorProto::TYPE_FIXED32, true);
  AddField(m, "b", 7, FieldDescriptorProto::TYPE_BOOL)->set_default_value("true");
  return set.SerializeAsString();
}

// i: 5, z: [1, -1, 64], f: 1.5, s: ["a", ""], m: {i: 2}
const char kMessage[] =
    "\x08\x05\x12\x04\x02\x01\x80\x01\x1d\x00\x00\xc0\x3f\x22\x01\x61\x22\x00\x2a\x02\x08\x02";
std::string Message() { return recorded::Raw(kMessage); }

absl::StatusOr<Tensors> Decode(const std::vector<std::string>& messages,
                               const std::vector<std::string>& fields,
                               const std::vector<DataType>& types, DecodeProtoOptions options = {},
                               const char* type = "test.M") {
  if (options.descriptor_source.empty()) options.descriptor_source = "bytes://" + Descriptors();
  Graph g;
  const Output bytes = Const(g, Tensor::Vector<std::string>(messages));
  const DecodedProto decoded = DecodeProto(bytes, type, fields, types, options);
  if (!g.status().ok()) return g.status();
  Outputs all = decoded.values;
  all.push_back(decoded.sizes);
  return Evaluate(g, all);
}

TEST(ProtoFields, AreDecodedWithTheirDefaults) {
  const auto out = Decode({Message(), ""}, {"z", "i", "s", "m", "f", "b"},
                          {DT_INT64, DT_INT32, DT_STRING, DT_STRING, DT_DOUBLE, DT_BOOL});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<int64_t>(), ElementsAre(1, -1, 64, 0, 0, 0));
  EXPECT_THAT((*out)[1].flat<int32_t>(), ElementsAre(5, -7));
  EXPECT_THAT((*out)[2].flat<std::string>(), ElementsAre("a", "", "", ""));
  EXPECT_THAT((*out)[3].flat<std::string>(), ElementsAre("\x08\x02", ""));
  EXPECT_THAT((*out)[4].flat<double>(), ElementsAre(1.5, 0));
  EXPECT_EQ((*out)[4].shape(), Shape({2, 1}));
  EXPECT_THAT((*out)[5].flat<bool>(), ElementsAre(true, true));
  EXPECT_THAT((*out)[6].flat<int32_t>(), ElementsAre(3, 1, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0));
}

// Repeated numbers may be packed or not, whatever the descriptor says; of an optional field, the
// last value counts; fields of another wire type and unknown fields are skipped.
TEST(ProtoFields, AreReadFromAnyEncoding) {
  const auto out = Decode(
      {recorded::Raw(
          "\x10\x04\x12\x01\x03\x08\x01\x08\x02\x35\x07\x00\x00\x00\x7a\x01x\x0d\x01\x00\x00\x00")},
      {"z", "i", "x"}, {DT_INT64, DT_INT64, DT_UINT64});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<int64_t>(), ElementsAre(2, -2));
  EXPECT_THAT((*out)[1].flat<int64_t>(), ElementsAre(2));
  EXPECT_THAT((*out)[2].flat<uint64_t>(), ElementsAre(7));
}

TEST(ProtoFields, MayBeTextOrSanitized) {
  const auto text = Decode({"i: 5 z: [1, -1, 64] f: 1.5 s: 'a' s: '' m { i: 2 }"}, {"z", "m"},
                           {DT_INT64, DT_STRING}, {.message_format = "text"});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT((*text)[0].flat<int64_t>(), ElementsAre(1, -1, 64));
  EXPECT_THAT((*text)[1].flat<std::string>(), ElementsAre("\x08\x02"));
  const auto twice = Decode({recorded::Raw("\x2a\x02\x08\x02\x2a\x02\x08\x03")}, {"m"}, {DT_STRING},
                            {.sanitize = true});
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_THAT((*twice)[0].flat<std::string>(), ElementsAre("\x08\x03")) << "merged";
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "m{";
  EXPECT_EQ(Decode({deep}, {"i"}, {DT_INT32}, {.message_format = "text"}).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(ProtoFields, DamagedMessagesAreRefused) {
  for (const std::string& bytes :
       {std::string("\x08"), recorded::Raw("\x12\x05\x02"), recorded::Raw("\x12\x01\x80"),
        std::string("\x1d\x00", 1), recorded::Raw("\x22\x7f\x61"), recorded::Raw("\x0c"),
        recorded::Raw("\x7a\x7f"), recorded::Raw("\x0a\xff\xff\xff\xff\x0f"),
        std::string("\xff")}) {
    for (const bool sanitize : {false, true}) {
      const auto out = Decode({bytes}, {"i", "z", "f", "s"},
                              {DT_INT32, DT_INT64, DT_FLOAT, DT_STRING}, {.sanitize = sanitize});
      EXPECT_EQ(out.status().code(), absl::StatusCode::kDataLoss) << out.status();
    }
  }
}

TEST(ProtoFields, TypesComeFromSeveralSources) {
  const std::string path = ::testing::TempDir() + "m.desc";
  std::ofstream(path, std::ios::binary) << Descriptors();
  const auto file = Decode({Message()}, {"i"}, {DT_INT32}, {.descriptor_source = path});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT((*file)[0].flat<int32_t>(), ElementsAre(5));
  const auto local = Decode({recorded::Raw("\x0a\x02\x0a\x00")}, {"features"}, {DT_STRING},
                            {.descriptor_source = "local://"}, "tensorflow.Example");
  ASSERT_TRUE(local.ok()) << local.status();
  EXPECT_THAT((*local)[0].flat<std::string>(), ElementsAre(recorded::Raw("\x0a\x00")));
  const auto words = [](const std::string& source, const char* type) {
    const auto out = Decode({""}, {}, {}, {.descriptor_source = source}, type);
    EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument) << out.status();
    return std::string(out.status().message());
  };
  EXPECT_THAT(words(path, "test.N"), HasSubstr("No descriptor found for message type test.N"));
  EXPECT_THAT(words("/none", "test.M"), HasSubstr("Source does not represent serialized file"));
  EXPECT_THAT(words("bytes://\x01", "test.M"), HasSubstr("Source does not represent serialized"));
}

// message M { repeated group G = 1 {} }
TEST(ProtoFields, AGroupIsNeverPacked) {
  google::protobuf::FileDescriptorSet set;
  google::protobuf::FileDescriptorProto* const file = set.add_file();
  file->set_name("m.proto");
  google::protobuf::DescriptorProto* const m = file->add_message_type();
  m->set_name("M");
  m->add_nested_type()->set_name("G");
  AddField(m, "g", 1, FieldDescriptorProto::TYPE_GROUP, true)->set_type_name(".M.G");
  const auto out = Decode({"\x0a\x08" + std::string(8, 'x')}, {"g"}, {DT_STRING},
                          {.descriptor_source = "bytes://" + set.SerializeAsString()}, "M");
  EXPECT_EQ(out.status().code(), absl::StatusCode::kDataLoss) << out.status();
}

// A { Any any = 1; extensions 100 to 199; }, extend A { T0 e = 100; }, B { Any any = 1; }, and T0 {
// T1 m = 1; } to T2999 {}
TEST(ProtoFields, TypesOfExtensionsAndAnysAreLimited) {
  google::protobuf::FileDescriptorSet set;
  google::protobuf::FileDescriptorProto* const any = set.add_file();
  any->set_name("any.proto");
  any->set_package("google.protobuf");
  google::protobuf::DescriptorProto* const type = any->add_message_type();
  type->set_name("Any");
  AddField(type, "type_url", 1, FieldDescriptorProto::TYPE_STRING);
  AddField(type, "value", 2, FieldDescriptorProto::TYPE_BYTES);
  google::protobuf::FileDescriptorProto* const file = set.add_file();
  file->set_name("m.proto");
  file->add_dependency("any.proto");
  google::protobuf::DescriptorProto* message = nullptr;
  for (const char* const name : {"B", "A"}) {
    message = file->add_message_type();
    message->set_name(name);
    AddField(message, "any", 1, FieldDescriptorProto::TYPE_MESSAGE)
        ->set_type_name(".google.protobuf.Any");
  }
  message->add_extension_range()->set_start(100);
  message->mutable_extension_range(0)->set_end(200);
  FieldDescriptorProto* const e = file->add_extension();
  e->set_name("e");
  e->set_number(100);
  e->set_extendee(".A");
  e->set_label(FieldDescriptorProto::LABEL_OPTIONAL);
  e->set_type(FieldDescriptorProto::TYPE_MESSAGE);
  e->set_type_name(".T0");
  for (int i = 0; i < 3000; ++i) {
    message = file->add_message_type();
    message->set_name("T" + std::to_string(i));
    if (i == 2999) break;
    AddField(message, "m", 1, FieldDescriptorProto::TYPE_MESSAGE)
        ->set_type_name(".T" + std::to_string(i + 1));
  }
  const std::string source = "bytes://" + set.SerializeAsString();
  const auto code = [&](const char* name, const char* text) {
    DecodeProtoOptions options = {.descriptor_source = source, .message_format = "text"};
    return Decode({text}, {"any"}, {DT_STRING}, options, name).status().code();
  };
  EXPECT_EQ(code("A", "[e] {}"), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code("B", "any { [type.googleapis.com/T0] {} }"), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code("B", "any { [type.googleapis.com/T2999] {} }"), absl::StatusCode::kOk);
}

TEST(ProtoFields, DescriptorsThatTakeLongToCheckAreRefused) {
  google::protobuf::FileDescriptorSet ranges, imports;
  google::protobuf::DescriptorProto* const m = ranges.add_file()->add_message_type();
  m->set_name("M");
  for (int i = 0; i < 10000; ++i) {
    auto* const range = m->add_extension_range();
    range->set_start(2 * i + 1);
    range->set_end(2 * i + 2);
  }
  for (int i = 0; i < 5000; ++i) {
    google::protobuf::FileDescriptorProto* const file = imports.add_file();
    file->set_name(std::to_string(i));
    if (i == 0) continue;
    file->add_dependency(std::to_string(i - 1));
    file->add_public_dependency(0);
  }
  for (const auto& set : {ranges, imports}) {
    const auto out =
        Decode({""}, {}, {}, {.descriptor_source = "bytes://" + set.SerializeAsString()}, "M");
    EXPECT_EQ(out.status().code(), absl::StatusCode::kResourceExhausted) << out.status();
  }
}

TEST(ProtoFields, AreEncoded) {
  Graph g;
  const Output sizes = Const(g, Tensor::Of<int32_t>({2, 4}, {2, 1, 3, 1, 0, 0, 0, 0}));
  const Output s = Const(g, Tensor::Of<std::string>({2, 2}, {"a", "", "b", "c"}));
  const Output f = Const(g, Tensor::Of<double>({2, 1}, {1.5, 2.5}));
  const Output z = Const(g, Tensor::Of<int64_t>({2, 3}, {1, -1, 64, 0, 0, 0}));
  const Output i = Const(g, Tensor::Of<int32_t>({2, 1}, {5, 6}));
  const Output bytes =
      EncodeProto(sizes, {s, f, z, i}, {"s", "f", "z", "i"}, "test.M", "bytes://" + Descriptors());
  const auto out = Evaluate(g, {bytes});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<std::string>(), ElementsAre(Message().substr(0, 18), ""));
}

TEST(ProtoFields, RejectSizesAndTypes) {
  const auto words = [](const Tensor& sizes, const Tensor& values) {
    Graph g;
    const auto out = Evaluate(g, {EncodeProto(Const(g, sizes), {Const(g, values)}, {"i"}, "test.M",
                                              "bytes://" + Descriptors())});
    EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument) << out.status();
    return std::string(out.status().message());
  };
  const Tensor one = Tensor::Of<int32_t>({1, 1}, {1});
  EXPECT_THAT(words(Tensor::Of<int32_t>({1, 1}, {2}), one), HasSubstr("saw: 2 > 1 at message 0"));
  EXPECT_THAT(words(Tensor::Of<int32_t>({1, 1}, {-1}), one), HasSubstr("saw: -1"));
  EXPECT_THAT(words(Tensor::Of<int32_t>({1, 2}, {1, 1}), one), HasSubstr("sizes should be"));
  EXPECT_THAT(words(one, Tensor::Of<float>({1, 1}, {1})),
              HasSubstr("Incompatible type for field i"));
  EXPECT_THAT(words(one, Tensor::Vector<int32_t>({1})), HasSubstr("rank"));
  EXPECT_THAT(Decode({""}, {"i"}, {DT_FLOAT}).status().message(),
              HasSubstr("Unexpected output type for test.M.i"));
  EXPECT_THAT(Decode({""}, {"q"}, {DT_FLOAT}).status().message(), HasSubstr("Unknown field: q"));
  EXPECT_THAT(Decode({""}, {"i"}, {}).status().message(), HasSubstr("must have the same length"));
  EXPECT_THAT(Decode({}, {"i"}, {DT_INT32}).status().message(), HasSubstr("at least one value"));
}

}  // namespace
}  // namespace weir
