#include <numeric>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/core/tensor/resource_handle.h"
#include "weir/core/tensor/variant.h"
#include "weir/proto/attr_value.pb.h"
#include "weir/proto/op_def.pb.h"
#include "weir/proto/tensor.pb.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Hex(const std::string& bytes) {
  std::string out;
  for (const unsigned char c : bytes) {
    out += "0123456789abcdef"[c >> 4];
    out += "0123456789abcdef"[c & 15];
  }
  return out;
}

std::string Wire(const Tensor& t) {
  proto::TensorProto p;
  TensorToProto(t, &p);
  return Hex(p.SerializeAsString());
}

absl::StatusOr<Tensor> FromText(const std::string& text) {
  proto::TensorProto p;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &p)) << text;
  return TensorFromProto(p);
}

// Expected bytes: tf.make_tensor_proto of TensorFlow 2.21.
TEST(TensorToProto, MatchesMakeTensorProto) {
  EXPECT_EQ(Wire(Tensor::Scalar(1.5f)), "080112002a040000c03f");
  EXPECT_EQ(Wire(Tensor::Scalar(0.0f)), "080112002a0400000000");
  EXPECT_EQ(Wire(Tensor::Vector<float>({1.5f})), "08011204120208012a040000c03f");
  EXPECT_EQ(Wire(Tensor::Vector<float>({1, 2})), "080112041202080222080000803f00000040");
  EXPECT_EQ(Wire(Tensor::Of<float>(Shape({2, 2}), {1, 2, 3, 4})),
            "08011208120208021202080222100000803f000000400000404000008040");
  EXPECT_EQ(Wire(Tensor::Scalar(2.0)), "0802120032080000000000000040");
  EXPECT_EQ(Wire(Tensor::Scalar<int32_t>(7)), "080312003a0107");
  EXPECT_EQ(Wire(Tensor::Scalar<int64_t>(7)), "08091200520107");
  EXPECT_EQ(Wire(Tensor::Vector<int32_t>({1, 2, 3})),
            "0803120412020803220c010000000200000003000000");
  EXPECT_EQ(Wire(Tensor::Vector<bool>({true, false})), "080a1204120208025a020100");
  EXPECT_EQ(Wire(Tensor::Scalar("abc")), "080712004203616263");
  EXPECT_EQ(Wire(Tensor::Vector<std::string>({"a", "bc", ""})),
            "0807120412020803420161420262634200");
  EXPECT_EQ(Wire(Tensor(DT_FLOAT, Shape({0}))), "080112021200" + std::string());
  EXPECT_EQ(Wire(Tensor(DT_FLOAT, Shape({0, 3}))), "08011206120012020803");
  EXPECT_EQ(Wire(Tensor::Scalar(half(1.5f))), "081312006a02807c");
  EXPECT_EQ(Wire(Tensor::Vector<half>({half(1.5f), half(2.0f)})), "08131204120208022204003e0040");
  EXPECT_EQ(Wire(Tensor::Scalar(bfloat16(1.5f))), "080e12006a02c07f");
  EXPECT_EQ(Wire(Tensor::Scalar(std::complex<float>(1, 2))), "080812004a080000803f00000040");
  EXPECT_EQ(Wire(Tensor::Vector<std::complex<float>>({{1, 2}, {3, 0}})),
            "08081204120208024a100000803f000000400000404000000000");
  EXPECT_EQ(Wire(Tensor::Scalar(std::complex<double>(1, 2))),
            "081212006210000000000000f03f0000000000000040");
  EXPECT_EQ(Wire(Tensor::Scalar<uint8_t>(200)), "080412003a02c801");
  EXPECT_EQ(Wire(Tensor::Scalar<int8_t>(-3)), "080612003a0afdffffffffffffffff01");
  EXPECT_EQ(Wire(Tensor::Vector<uint16_t>({1, 2})), "08111204120208023a020102");
  EXPECT_EQ(Wire(Tensor::Scalar<uint32_t>(4000000000u)), "0816120082010580d0acf30e");
  EXPECT_EQ(Wire(Tensor::Vector<uint32_t>({1, 2})), "081612041202080222080100000002000000");
  EXPECT_EQ(Wire(Tensor::Scalar<uint64_t>(uint64_t{1} << 63)),
            "081712008a010a80808080808080808001");
  EXPECT_EQ(Wire(Tensor::Vector<qint8>({{1}, {2}})), "080b12041202080222020102");
}

template <class T>
class TensorRoundTrip : public testing::Test {};
using PlainTypes =
    testing::Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                   uint64_t, bool, half, bfloat16, std::complex<float>, std::complex<double>, qint8,
                   quint8, qint16, quint16, qint32, int4, uint4, float8_e5m2, float8_e4m3fn,
                   float8_e4m3fnuz, float8_e4m3b11fnuz, float8_e5m2fnuz>;
TYPED_TEST_SUITE(TensorRoundTrip, PlainTypes);

TYPED_TEST(TensorRoundTrip, KeepsTypeShapeAndBits) {
  for (const Shape& shape : {Shape(), Shape({1}), Shape({3}), Shape({2, 2}), Shape({0, 4})}) {
    Tensor t = Tensor::Zeros(DataTypeOf<TypeParam>::value, shape);
    unsigned char* bytes = static_cast<unsigned char*>(t.raw());
    for (size_t i = 0; i < t.num_bytes(); i += sizeof(TypeParam))
      bytes[i] = (i / sizeof(TypeParam) + 1) % 2;
    proto::TensorProto p;
    TensorToProto(t, &p);
    const absl::StatusOr<Tensor> back = TensorFromProto(p);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(IdenticalTensors(*back, t)) << t.Description();
  }
}

TEST(TensorFromProto, AdoptsLargeContentOfAnRvalueMessage) {
  Tensor value(DT_INT32, Shape({100, 1000}));
  std::iota(value.flat<int32_t>().begin(), value.flat<int32_t>().end(), 0);
  proto::TensorProto p;
  TensorToProto(value, &p);
  const void* content = p.tensor_content().data();
  absl::StatusOr<Tensor> copied = TensorFromProto(p);
  ASSERT_TRUE(copied.ok());
  EXPECT_NE(copied->raw(), content);
  absl::StatusOr<Tensor> taken = TensorFromProto(std::move(p));
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->raw(), content);
  EXPECT_TRUE(taken->OwnsBufferAlone());
  EXPECT_TRUE(IdenticalTensors(*taken, value));
}

TEST(TensorFromProto, RejectsContentOfTheWrongSize) {
  for (const int delta : {-1, 1}) {
    proto::TensorProto p;
    TensorToProto(Tensor::Zeros(DT_FLOAT, Shape({1 << 16})), &p);
    p.mutable_tensor_content()->resize(p.tensor_content().size() + delta);
    EXPECT_TRUE(absl::IsInvalidArgument(TensorFromProto(p).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(TensorFromProto(std::move(p)).status()));
  }
}

TEST(TensorFromProto, BoolContentIsNotAdopted) {
  proto::TensorProto p;
  p.set_dtype(proto::DT_BOOL);
  p.mutable_tensor_shape()->add_dim()->set_size(1 << 17);
  p.set_tensor_content(std::string(1 << 17, '\x7f'));
  const absl::StatusOr<Tensor> t = TensorFromProto(std::move(p));
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(static_cast<const uint8_t*>(t->raw())[5], 1);
}

TEST(TensorFromProto, TheLastValueRepeatsAndNoneMeansZero) {
  const auto shape = [](int n) { return absl::StrCat("tensor_shape { dim { size: ", n, " } } "); };
  EXPECT_THAT(FromText("dtype: DT_FLOAT float_val: [1, 2] " + shape(4))->flat<float>(),
              ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(FromText("dtype: DT_INT32 " + shape(2))->flat<int32_t>(), ElementsAre(0, 0));
  EXPECT_THAT(FromText("dtype: DT_INT8 int_val: [1, -2, 3] " + shape(2))->flat<int8_t>(),
              ElementsAre(1, -2));
  EXPECT_THAT(FromText("dtype: DT_STRING string_val: 'a' " + shape(3))->flat<std::string>(),
              ElementsAre("a", "a", "a"));
  EXPECT_THAT(FromText("dtype: DT_STRING " + shape(2))->flat<std::string>(), ElementsAre("", ""));
  EXPECT_THAT(
      FromText("dtype: DT_COMPLEX64 scomplex_val: [1, 2] " + shape(2))->flat<std::complex<float>>(),
      ElementsAre(std::complex<float>(1, 2), std::complex<float>(1, 2)));
  EXPECT_EQ(FromText("dtype: DT_HALF half_val: 15872")->scalar<half>().bits, 15872);
}

TEST(TensorFromProto, StringContentIsLengthsThenBytes) {
  const std::string shape = "tensor_shape { dim { size: 2 } } dtype: DT_STRING ";
  EXPECT_THAT(FromText(shape + "tensor_content: '\\001\\002abc'")->flat<std::string>(),
              ElementsAre("a", "bc"));
  for (const char* content : {"\\001", "\\001\\002ab", "\\001\\002abcd",
                              "\\377\\377\\377\\377\\377\\001", "\\001\\200"}) {
    EXPECT_EQ(FromText(absl::StrCat(shape, "tensor_content: '", content, "'")).status().code(),
              absl::StatusCode::kInvalidArgument)
        << content;
  }
}

TEST(TensorFromProto, BoolBytesBecomeTrueAndFalse) {
  const auto t =
      FromText("dtype: DT_BOOL tensor_shape { dim { size: 2 } } tensor_content: '\\002\\000'");
  EXPECT_THAT(t->flat<bool>(), ElementsAre(true, false));
}

TEST(TensorFromProto, RejectsMalformedTensors) {
  for (const char* text :
       {"", "dtype: DT_FLOAT_REF", "dtype: 99", "dtype: -1", "dtype: 300",
        "dtype: DT_FLOAT tensor_shape { unknown_rank: true }",
        "dtype: DT_FLOAT tensor_shape { dim { size: -1 } }",
        "dtype: DT_FLOAT tensor_shape { dim { size: -7 } }",
        "dtype: DT_FLOAT tensor_shape { dim { size: 3 } } tensor_content: 'abcd'",
        "dtype: DT_FLOAT tensor_content: 'abcdefgh'",
        "dtype: DT_FLOAT tensor_shape { dim { size: 4611686018427387904 } dim { size: 4 } }",
        "dtype: DT_INT8 tensor_shape { dim { size: 4611686018427387904 } } tensor_content: 'a'",
        "dtype: DT_RESOURCE tensor_content: 'a'",
        "dtype: DT_FLOAT tensor_shape { dim { size: 1 } unknown_rank: true }"}) {
    const absl::Status status = FromText(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text << status;
  }
}

TEST(TensorFromProto, AFewBytesCannotRequireUnlimitedMemory) {
  const char* const kCases[] = {
      "dtype: DT_FLOAT tensor_shape { dim { size: 10000000000 } } float_val: 1",
      "dtype: DT_STRING tensor_shape { dim { size: 100000000 } } string_val: 'a'",
      "dtype: DT_STRING tensor_shape { dim { size: 10000000000 } }",
      "dtype: DT_VARIANT tensor_shape { dim { size: 1000000000 } }"};
  for (const char* text : kCases) {
    const absl::Status status = FromText(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << text;
    EXPECT_THAT(status.message(), HasSubstr("limit"));
  }
  const std::string long_text = std::string(1 << 20, 'x');
  const auto status =
      FromText(absl::StrCat("dtype: DT_STRING tensor_shape { dim { size: 10000 } } string_val: '",
                            long_text, "'"))
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

TEST(TensorFromProto, TensorsOfOneGraphShareALimit) {
  proto::TensorProto p;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "dtype: DT_FLOAT tensor_shape { dim { size: 10 } } float_val: 1", &p));
  int64_t budget = 80;
  EXPECT_TRUE(TensorFromProto(p, &budget).ok());
  EXPECT_EQ(budget, 44);
  EXPECT_TRUE(TensorFromProto(p, &budget).ok());
  EXPECT_EQ(TensorFromProto(p, &budget).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(TensorFromProto, HandlesAndVariantsKeepTheirParts) {
  const auto handle =
      FromText("dtype: DT_RESOURCE resource_handle_val { device: 'd' container: 'c' name: 'n' }");
  ASSERT_TRUE(handle.ok());
  EXPECT_EQ(handle->scalar<ResourceHandle>().container, "c");
  const std::string text =
      "dtype: DT_VARIANT tensor_shape {} variant_val { type_name: 'T' metadata: 'm' tensors { "
      "dtype: DT_INT32 "
      "tensor_shape {} int_val: 5 } }";
  const auto variant = FromText(text);
  ASSERT_TRUE(variant.ok()) << variant.status();
  proto::TensorProto back, want;
  TensorToProto(*variant, &back);
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &want));
  EXPECT_EQ(back.SerializeAsString(), want.SerializeAsString());
}

TEST(ShapeProto, RoundTripsPartialShapes) {
  for (const Shape& shape : {Shape(), Shape({2, -1, 0}), Shape::UnknownRank()}) {
    proto::TensorShapeProto p;
    ShapeToProto(shape, &p);
    EXPECT_EQ(*ShapeFromProto(p), shape);
  }
  proto::TensorShapeProto deep;
  for (int i = 0; i < 255; ++i) deep.add_dim()->set_size(1);
  EXPECT_EQ(ShapeFromProto(deep).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(AttrProto, RoundTripsEveryKind) {
  const FunctionRef f{"f", std::make_shared<AttrMap>(AttrMap{{"T", AttrValue(DT_FLOAT)}})};
  const AttrValue kValues[] = {AttrValue("text"),
                               AttrValue(int64_t{-5}),
                               AttrValue(1.5f),
                               AttrValue(false),
                               AttrValue(DT_HALF),
                               AttrValue(Shape({2, -1})),
                               AttrValue(Tensor::Vector<float>({1, 2})),
                               AttrValue(f),
                               AttrValue(AttrPlaceholder{"p"}),
                               AttrValue(AttrValue::EmptyList{}),
                               AttrValue(std::vector<std::string>{"a", ""}),
                               AttrValue(std::vector<int64_t>{0, -1}),
                               AttrValue(std::vector<float>{0.0f}),
                               AttrValue(std::vector<bool>{true, false}),
                               AttrValue(DataTypes{DT_INT32, DT_STRING}),
                               AttrValue(std::vector<Shape>{Shape(), Shape::UnknownRank()}),
                               AttrValue(std::vector<Tensor>{Tensor::Scalar("s")}),
                               AttrValue(std::vector<FunctionRef>{f, FunctionRef{"g", nullptr}}),
                               AttrValue()};
  for (const AttrValue& value : kValues) {
    proto::AttrValue p;
    AttrToProto(value, &p);
    const absl::StatusOr<AttrValue> back = AttrFromProto(p);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, value) << value.ToString();
  }
}

TEST(AttrProto, RefusesMixedListsAndTypesOutOfRange) {
  for (const char* text :
       {"list { i: 1 s: 'a' }", "type: 1000", "list { type: [1, -4] }",
        "shape { dim { size: -9 } }", "func { name: 'f' attr { key: 'a' value { type: 256 } } }"}) {
    proto::AttrValue p;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &p)) << text;
    EXPECT_EQ(AttrFromProto(p).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(OpToProto, WritesTheWholeSignature) {
  OpSpec op("Op");
  op.In("x: N * T, ref: Ref(float)")
      .Out("y: Tout")
      .Attr("N: int >= 1")
      .Attr("T: {half, float} = DT_FLOAT");
  op.Attr("Tout: list(type)").Attr("mode: {'A', 'B'} = 'A'").Stateful().Deprecated(9, "Use Op2");
  ASSERT_TRUE(op.Resolve().ok());
  proto::OpDef def, want;
  OpToProto(op, &def);
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(name: 'Op'
         input_arg { name: 'x' type_attr: 'T' number_attr: 'N' }
         input_arg { name: 'ref' type: DT_FLOAT is_ref: true }
         output_arg { name: 'y' type_list_attr: 'Tout' }
         attr { name: 'N' type: 'int' has_minimum: true minimum: 1 }
         attr { name: 'T' type: 'type' default_value { type: DT_FLOAT }
                allowed_values { list { type: [DT_HALF, DT_FLOAT] } } }
         attr { name: 'Tout' type: 'list(type)' }
         attr { name: 'mode' type: 'string' default_value { s: 'A' } allowed_values { list { s: ['A', 'B'] } } }
         deprecation { version: 9 explanation: 'Use Op2' }
         is_stateful: true)",
      &want));
  EXPECT_EQ(def.DebugString(), want.DebugString());
}

}  // namespace
}  // namespace weir
