#include "weir/core/import/attrs.h"

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/graph.pb.h"
#include "weir/tests/core/graph/test_ops.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

proto::NodeDef Def(const std::string& text) {
  proto::NodeDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def)) << text;
  return def;
}

absl::StatusOr<AttrMap> Attrs(const char* op, const std::string& text,
                              int64_t budget = kExpansionBudget) {
  return ImportAttrs(Def(text), *TestOps().Find(op), &budget);
}

constexpr char kDamagedTensor[] =
    "attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } "
    "tensor_content: 'abc' } } }";
constexpr char kFloat[] = "attr { key: 'dtype' value { type: DT_FLOAT } }";

TEST(ImportAttrs, AddsDefaultsAndDropsRecordedShapes) {
  const auto attrs = Attrs("MatMul",
                           "attr { key: 'T' value { type: DT_FLOAT } }"
                           "attr { key: 'transpose_b' value { b: true } }"
                           "attr { key: '_mark' value { i: 1 } }"
                           "attr { key: '_output_shapes' value { list { } } }");
  ASSERT_TRUE(attrs.ok()) << attrs.status();
  const AttrMap wanted = {{"T", AttrValue(DT_FLOAT)},
                          {"transpose_a", AttrValue(false)},
                          {"transpose_b", AttrValue(true)},
                          {"_mark", AttrValue(int64_t{1})}};
  EXPECT_EQ(*attrs, wanted);
}

TEST(ImportAttrs, ChecksAttributesAgainstTheOp) {
  EXPECT_THAT(Attrs("Identity", "").status().message(),
              HasSubstr("NodeDef missing attr 'T' from Op<Identity("));
  EXPECT_THAT(Attrs("NoOp", "attr { key: 'axis' value { i: 1 } }").status().message(),
              HasSubstr("NodeDef mentions attr 'axis' not in Op<NoOp"));
  EXPECT_THAT(Attrs("Identity", "attr { key: 'T' value { i: 1 } }").status().message(),
              HasSubstr("'T'"));
}

TEST(ImportAttrs, NamesTheAttributeThatCannotBeParsed) {
  const absl::Status status = Attrs("NoOp", "attr { key: '_k' value { type: 9999 } }").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("attr '_k'"));
}

TEST(ImportAttrs, ADamagedConstantKeepsTheReason) {
  const auto attrs = Attrs("Const", absl::StrCat(kFloat, kDamagedTensor));
  ASSERT_TRUE(attrs.ok()) << attrs.status();
  EXPECT_FALSE(attrs->find("value")->second.get_if<Tensor>()->initialized());
  EXPECT_THAT(*attrs->find("_value_error")->second.get_if<std::string>(),
              HasSubstr("has 3 bytes, not 12"));
}

TEST(ImportAttrs, OnlyTheValueOfAConstantMayBeDamaged) {
  OpRegistry ops;
  ops.Add(OpSpec("Mine").Attr("value: tensor"));
  int64_t budget = kExpansionBudget;
  EXPECT_FALSE(ImportAttrs(Def(kDamagedTensor), *ops.Find("Mine"), &budget).ok());
  EXPECT_FALSE(
      Attrs("Const", absl::StrCat(kFloat, "attr { key: 'value' value { type: 9999 } }")).ok());
}

TEST(ImportAttrs, TensorsTakeTheirBudget) {
  const std::string text = absl::StrCat(
      kFloat,
      "attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 100000 } } "
      "float_val: 1 } } }");
  EXPECT_TRUE(Attrs("Const", text).ok());
  EXPECT_EQ(Attrs("Const", text, 1000).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ReadableAttrs, LeavesOutWhatCannotBeParsed) {
  int64_t budget = kExpansionBudget;
  const AttrMap attrs =
      ReadableAttrs(Def(absl::StrCat(kDamagedTensor,
                                     "attr { key: 'k' value { i: 7 } }"
                                     "attr { key: '_output_shapes' value { list { } } }")),
                    &budget);
  EXPECT_EQ(attrs, (AttrMap{{"k", AttrValue(int64_t{7})}}));
}

TEST(HasDamagedValue, IsTrueForConstantsWithoutAValue) {
  Graph g(TestOps());
  const Output good = Constant(g, Tensor::Scalar<float>(1));
  const Output x = Placeholder(g, DT_FLOAT, Shape());
  EXPECT_FALSE(HasDamagedValue(*good.node));
  EXPECT_FALSE(HasDamagedValue(*x.node));
  g.SetAttr(good.node, "value", AttrValue(Tensor()));
  EXPECT_TRUE(HasDamagedValue(*good.node));
  g.SetAttr(x.node, "value", AttrValue(Tensor()));
  EXPECT_FALSE(HasDamagedValue(*x.node));
}

TEST(PrefixColocations, RenamesNodesOfTheGraphDef) {
  Graph g(TestOps());
  AttrMap attrs = {{"_class", AttrValue(std::vector<std::string>{"loc:@x", "other", "loc:@a/y"})}};
  ASSERT_TRUE(PrefixColocations("n", "in/", {{"x", 0}, {"a/y", 1}}, g, &attrs).ok());
  EXPECT_THAT(*attrs.find("_class")->second.get_if<std::vector<std::string>>(),
              ElementsAre("loc:@in/x", "other", "loc:@in/a/y"));
  AttrMap none;
  EXPECT_TRUE(PrefixColocations("n", "in/", {}, g, &none).ok());
  EXPECT_TRUE(none.empty());
}

TEST(PrefixColocations, AcceptsNodesOfTheGraphOnlyWithoutAPrefix) {
  Graph g(TestOps());
  Placeholder(g, DT_FLOAT, Shape(), "x");
  AttrMap attrs = {{"_class", AttrValue(std::vector<std::string>{"loc:@x"})}};
  EXPECT_TRUE(PrefixColocations("n", "", {}, g, &attrs).ok());
  EXPECT_THAT(*attrs.find("_class")->second.get_if<std::vector<std::string>>(),
              ElementsAre("loc:@x"));
  const absl::Status status = PrefixColocations("n", "in/", {}, g, &attrs);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "Node 'n' expects to be colocated with unknown node 'x'");
}

}  // namespace
}  // namespace weir
