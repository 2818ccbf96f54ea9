// Lists, maps and optionals as bytes: those that tf.io.serialize_tensor of TensorFlow 2.21 returns.

#include <string>

#include "gmock/gmock.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/kernels/lib/graph_fixture.h"

namespace weir {
namespace {

using ::testing::ElementsAre;

class StoredValueCodecs : public GraphFixture {
 protected:
  static Output Serialize(const Output& value) { return AddOp("SerializeTensor", {value}); }
  static Output Parse(const Output& text) {
    return AddOp("ParseTensor", {text}, {{"out_type", DT_VARIANT}});
  }
  std::string Bytes(const Output& value) { return Run(Serialize(value)).scalar<std::string>(); }
  static Output Again(const Output& value) { return Parse(Serialize(value)); }
  Output Text(std::string bytes) { return Const(g_, std::move(bytes)); }

  // [none, {1, 2}, none], of elements of shape {2}.
  Output List() {
    const Output list =
        AddOp("TensorListReserve", {Const(g_, {2}), Const(g_, 3)}, {{"element_dtype", DT_FLOAT}});
    return AddOp("TensorListSetItem", {list, Const(g_, 1), Const(g_, {1.f, 2.f})});
  }
  Output Element(const Output& list, int i) {
    return AddOp("TensorListGetItem", {list, Const(g_, i), Const(g_, -1)},
                 {{"element_dtype", DT_FLOAT}});
  }
};

// Returns the text with its length, which is at most 127, before it.
std::string Sized(absl::string_view text) {
  return std::string(1, static_cast<char>(text.size())) + std::string(text);
}
// Returns a serialized scalar with this VariantTensorDataProto.
std::string Scalar(absl::string_view variant) {
  return std::string("\x08\x15\x12\0\x22", 5) + Sized(Sized(variant));
}
std::string ListOf(absl::string_view metadata, absl::string_view tensors = "") {
  return Scalar("\n\x16tensorflow::TensorList\x12" + Sized(metadata) + std::string(tensors));
}

TEST_F(StoredValueCodecs, Lists) {
  const std::string element("\x1a\x12\x08\x01\x12\x04\x12\x02\x08\x02*\x08\0\0\x80?\0\0\0@", 20);
  EXPECT_EQ(Bytes(List()), ListOf(absl::string_view("\x02\0\x02\x01\xff\xff\xff\xff\xff\xff\xff"
                                                    "\xff\xff\x01\x12\x02\x08\x02",
                                                    18),
                                  element));
  const Output empty =
      AddOp("EmptyTensorList", {Const(g_, -1), Const(g_, 5)}, {{"element_dtype", DT_INT64}});
  EXPECT_EQ(Bytes(empty), ListOf(absl::string_view("\0\x09\x05\x18\x01", 5)));

  const Output list = Again(List());
  EXPECT_EQ(Run(AddOp("TensorListLength", {list})).scalar<int32_t>(), 3);
  EXPECT_THAT(Floats(Element(list, 0)), ElementsAre(0, 0));
  EXPECT_THAT(Floats(Element(list, 1)), ElementsAre(1, 2));
  const Output nested = AddOp(
      "TensorListPushBack",
      {AddOp("EmptyTensorList", {Const(g_, -1), Const(g_, -1)}, {{"element_dtype", DT_VARIANT}}),
       List()});
  const Output inner = AddOp("TensorListGetItem", {Again(nested), Const(g_, 0), Const(g_, -1)},
                             {{"element_dtype", DT_VARIANT}});
  EXPECT_THAT(Floats(Element(inner, 1)), ElementsAre(1, 2));
  const Output several = Again(AddOp("Pack", {Outputs{List(), List()}}));
  EXPECT_THAT(Floats(Element(StridedSlice(several, {1}), 1)), ElementsAre(1, 2));
}

TEST_F(StoredValueCodecs, Maps) {
  const Output map = AddOp("TensorMapInsert", {Output(AddNode(g_, "EmptyTensorMap", {})),
                                               Const(g_, 3), Const(g_, {1.5f})});
  EXPECT_EQ(Bytes(map),
            Scalar(absl::string_view("\n\x15tensorflow::TensorMap\x1a\x07\x08\x03\x12\0:\x01\x03"
                                     "\x1a\x0e\x08\x01\x12\x04\x12\x02\x08\x01*\x04\0\0\xc0?",
                                     48)));
  const Output found =
      AddOp("TensorMapLookup", {Again(map), Const(g_, 3)}, {{"value_dtype", DT_FLOAT}});
  EXPECT_THAT(Floats(found), ElementsAre(1.5));
}

TEST_F(StoredValueCodecs, Optionals) {
  const Output some =
      AddOp("OptionalFromValue", {Outputs{Const(g_, 7), Const<std::string>(g_, {1}, {"a"})}});
  constexpr char kSome[] =
      "\n\x1atensorflow::data::Optional\x12\x01\x01\x1a\x07\x08\x03\x12\0:\x01\x07"
      "\x1a\x0b\x08\x07\x12\x04\x12\x02\x08\x01"
      "B\x01"
      "a";
  EXPECT_EQ(Bytes(some), Scalar(absl::string_view(kSome, sizeof kSome - 1)));
  const Output none = Output(AddNode(g_, "OptionalNone", {}));
  EXPECT_EQ(Bytes(none),
            Scalar(absl::string_view("\n\x1atensorflow::data::Optional\x12\x01\0", 31)));
  EXPECT_TRUE(Run(AddOp("OptionalHasValue", {Again(some)})).scalar<bool>());
  EXPECT_FALSE(Run(AddOp("OptionalHasValue", {Again(none)})).scalar<bool>());
}

TEST_F(StoredValueCodecs, WhatIsDamagedIsRejected) {
  const std::string element("\x1a\x0a\x08\x01\x12\0*\x04\0\0\x80?", 12);
  const auto metadata = [](absl::string_view bytes) { return std::string(bytes); };
  const struct {
    std::string bytes;
    const char* message;
  } kCases[] = {
      {ListOf(""), "end within the empty positions"},
      {ListOf("\x7f"), "end within the empty positions"},
      {ListOf(metadata({"\x01\x05\x01\x01", 4})), "not ascending positions"},
      {ListOf(metadata({"\x02\x01\0\x01\x01", 5})), "not ascending positions"},
      {ListOf(metadata({"\0\x01", 2})), "end within the type and shape"},
      {ListOf(metadata({"\0\x01\x01\x12\x7f", 5})), "end within the type and shape"},
      {ListOf(metadata({"\0\x7f\x01\x18\x01", 5})), "unknown type 127"},
      {ListOf(metadata({"\0\x03\x01\x18\x01", 5}), element), "element 0 is float[]"},
      {ListOf(metadata({"\0\x01\x01\x12\x02\x08\x02", 7}), element), "element 0 is float[]"},
      {Scalar("\n\x15tensorflow::TensorMap" + element), "its last key has no value"},
      {Scalar("\n\x1atensorflow::data::Optional"), "are not one byte"},
      {std::string("\x08\x15\x12\0\x22\x02\x01\xff", 8), "element 0 is no variant"},
      {std::string("\x08\x15\x12\0\x22\x02\x05\x01", 8), "bytes of elements, not 5"},
  };
  for (const auto& each : kCases) ExpectError(Parse(Text(each.bytes)), each.message);
}

TEST_F(StoredValueCodecs, ReadingIsNotRecursiveWithoutLimit) {
  std::string variant = "\n\x01x";
  for (int i = 0; i < 2000; ++i) {
    const auto sized = [](const std::string& text) {
      std::string length;
      for (size_t n = text.size(); n >= 128; n >>= 7) length.push_back(static_cast<char>(n | 128));
      size_t last = text.size();
      while (last >= 128) last >>= 7;
      length.push_back(static_cast<char>(last));
      return length + text;
    };
    // Every variant has a tensor whose content is the next one.
    const std::string tensor = std::string("\x08\x15\x12\0\x22", 5) + sized(sized(variant));
    variant = "\n\x01x\x1a" + sized(tensor);
    if (i == 1999) ExpectError(Parse(Text(tensor)), "nested more than");
  }
}

TEST_F(StoredValueCodecs, DataSetsStayInTheProcess) {
  const Output range = AddOp(
      "RangeDataset", {Const(g_, int64_t{0}), Const(g_, int64_t{3}), Const(g_, int64_t{1})},
      {{"output_types", DataTypes{DT_INT64}}, {"output_shapes", std::vector<Shape>{Shape()}}});
  const absl::Status status = Evaluate(g_, {Serialize(range)}).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(status.message(), ::testing::HasSubstr("tensorflow::DatasetVariantWrapper"));
}

}  // namespace
}  // namespace weir
