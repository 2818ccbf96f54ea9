#include "weir/core/graph/op.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/tests/core/graph/test_ops.h"

namespace weir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(OpSpec, DistinguishesFixedTypesAttributesAndLists) {
  OpSpec op("Op");
  op.In("a: T, b: N * T, c: Ref(T), d: float, e: Tin, f: N * int64")
      .Attr("N: int >= 1")
      .Attr("T: type")
      .Attr("Tin: list(type)");
  ASSERT_TRUE(op.Resolve().ok()) << op.status();
  const std::vector<ArgSpec>& in = op.inputs();
  ASSERT_EQ(in.size(), 6u);
  EXPECT_EQ(in[0].type_attr, "T");
  EXPECT_EQ(in[1].number_attr, "N");
  EXPECT_EQ(in[1].type_attr, "T");
  EXPECT_TRUE(in[2].is_ref);
  EXPECT_EQ(in[3].type, DT_FLOAT);
  EXPECT_EQ(in[4].type_list_attr, "Tin");
  EXPECT_EQ(in[4].type_attr, "");
  EXPECT_EQ(in[5].type, DT_INT64);
}

TEST(OpSpec, SignatureIsOneLine) {
  EXPECT_EQ(
      TestOps().Find("MatMul")->Signature(),
      "MatMul(a: T, b: T) -> (product: T); transpose_a: bool = false; transpose_b: bool = false; "
      "T: {half, float, double, int32}");
  EXPECT_EQ(TestOps().Find("Assign")->Signature(),
            "Assign(ref: Ref(T), value: T) -> (output_ref: Ref(T)); T: type; validate_shape: bool "
            "= true; "
            "use_locking: bool = true");
  EXPECT_EQ(
      TestOps().Find("Split")->Signature(),
      "Split(split_dim: int32, value: T) -> (output: num_split * T); num_split: int >= 1; T: type");
}

TEST(OpSpec, TheFirstMistakeIsKept) {
  OpSpec op("Op");
  op.In("no colon").Attr("T: typo");
  EXPECT_THAT(op.status().message(), HasSubstr("no colon"));
  const auto message = [](OpSpec spec) { return std::string(spec.Resolve().message()); };
  EXPECT_THAT(message(OpSpec("Op").In("x: T")), HasSubstr("type attribute 'T'"));
  EXPECT_THAT(message(OpSpec("Op").In("x: N * float")), HasSubstr("int attribute 'N'"));
  EXPECT_THAT(message(OpSpec("Op").In("x: N * float").Attr("N: type")), HasSubstr("'N'"));
  EXPECT_THAT(message(OpSpec("Op").Attr("a: int").Attr("a: int")),
              HasSubstr("'a' is declared twice"));
  EXPECT_THAT(message(OpSpec("Op").In("x: Ref(float")), HasSubstr("expected ')'"));
}

TEST(OpRegistry, LookupOfAnUnknownOpSuggestsSimilarNames) {
  const auto op = TestOps().Lookup("Matmul");
  ASSERT_EQ(op.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(op.status().message(),
              AllOf(HasSubstr("Op type not registered 'Matmul' in binary running on "),
                    HasSubstr(". Did you mean 'MatMul'")));
  EXPECT_THAT(TestOps().Lookup("Zyxwvut").status().message(), Not(HasSubstr("Did you mean")));
}

TEST(OpRegistry, IsLayeredOverAnother) {
  OpRegistry mine(&TestOps());
  mine.Add(OpSpec("Mine"));
  EXPECT_NE(mine.Find("Mine"), nullptr);
  EXPECT_EQ(mine.Find("MatMul"), TestOps().Find("MatMul"));
  EXPECT_EQ(TestOps().Find("Mine"), nullptr);
  EXPECT_EQ(mine.All().size(), TestOps().All().size() + 1);
  const std::vector<const OpSpec*> all = mine.All();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const OpSpec* a, const OpSpec* b) {
    return a->name() < b->name();
  }));
}

TEST(OpRegistryDeathTest, RejectsDuplicateAndInvalidRecords) {
  OpRegistry ops(&TestOps());
  EXPECT_DEATH(ops.Add(OpSpec("MatMul")), "'MatMul'.*already registered");
  EXPECT_DEATH(ops.Add(OpSpec("Bad").Attr("T: typo")), "op 'Bad'.*'typo'");
}

}  // namespace
}  // namespace weir
