#include "weir/core/import/definitions.h"

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "weir/core/graph/signature.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/op_def.pb.h"
#include "weir/tests/core/graph/test_ops.h"

namespace weir {
namespace {

using ::testing::ElementsAre;

// A serialized OpList with one op.
std::string OpListWith(const std::string& text) {
  proto::OpList list;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, list.add_op())) << text;
  return list.SerializeAsString();
}

std::string Relu9000() {
  return OpListWith(
      "name: 'Relu9000' input_arg { name: 'x' type_attr: 'T' }"
      "output_arg { name: 'y' type_attr: 'T' number_attr: 'N' }"
      "attr { name: 'T' type: 'type' }"
      "attr { name: 'N' type: 'int' default_value { i: 2 } }");
}

std::optional<OpDefinition> Find(const std::string& list, absl::string_view name) {
  int64_t budget = kExpansionBudget;
  return OpDefinitions(list).Find(name, &budget);
}

TEST(OpDefinitions, FindsOpsOfTheListWithTheirDefaults) {
  const auto found = Find(Relu9000(), "Relu9000");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->spec.name(), "Relu9000");
  EXPECT_EQ(found->spec.inputs().size(), 1u);
  EXPECT_EQ(found->defaults, (AttrMap{{"N", AttrValue(int64_t{2})}}));
  EXPECT_FALSE(Find(Relu9000(), "Relu9001").has_value());
}

TEST(OpDefinitions, PythonFunctionsNeedNoList) {
  EXPECT_TRUE(Find("", "PyFunc").has_value());
  EXPECT_FALSE(Find("", "Relu9000").has_value());
}

TEST(OpDefinitions, DamagedListsAndMalformedOpsDefineNothing) {
  EXPECT_FALSE(Find(Relu9000().substr(0, 20), "Relu9000").has_value());
  EXPECT_FALSE(
      Find(OpListWith("name: 'Bad' attr { name: 'T' type: 'nonsense' }"), "Bad").has_value());
}

class TypesByDefinitionTest : public ::testing::Test {
 protected:
  Graph graph_{TestOps()};
  const Output x_ = Placeholder(graph_, DT_FLOAT, Shape());
  const std::optional<OpDefinition> relu_ = Find(Relu9000(), "Relu9000");
  const AttrMap float_ = {{"T", AttrValue(DT_FLOAT)}};
};

TEST_F(TypesByDefinitionTest, AttributesAndDefaultsGiveTheTypes) {
  const auto types = TypesByDefinition(*relu_, float_, {x_}, kMaxNodeArity);
  ASSERT_TRUE(types.has_value());
  EXPECT_THAT(types->inputs, ElementsAre(DT_FLOAT));
  EXPECT_THAT(types->outputs, ElementsAre(DT_FLOAT, DT_FLOAT));
  AttrMap three = float_;
  three.emplace("N", AttrValue(int64_t{3}));
  EXPECT_EQ(TypesByDefinition(*relu_, three, {x_}, kMaxNodeArity)->outputs.size(), 3u)
      << "a default does not replace an attribute";
}

TEST_F(TypesByDefinitionTest, ANodeThatDoesNotMatchHasNoTypes) {
  const AttrMap ints = {{"T", AttrValue(DT_INT32)}};
  EXPECT_FALSE(TypesByDefinition(*relu_, {}, {x_}, kMaxNodeArity)) << "no T";
  EXPECT_FALSE(TypesByDefinition(*relu_, ints, {x_}, kMaxNodeArity)) << "another type";
  EXPECT_FALSE(TypesByDefinition(*relu_, float_, {}, kMaxNodeArity)) << "an input is missing";
  EXPECT_FALSE(TypesByDefinition(*relu_, float_, {x_, x_}, kMaxNodeArity)) << "too many inputs";
  EXPECT_FALSE(TypesByDefinition(*relu_, float_, {x_}, 1)) << "too many outputs";
}

}  // namespace
}  // namespace weir
