#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "weir/proto/api_def.pb.h"
#include "weir/proto/op_def.pb.h"
#include "weir/tests/capi/api.h"

// Texts and codes are those of TensorFlow 2.21.
namespace weir::capi_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using MapPtr = std::unique_ptr<TF_ApiDefMap, Deleter<TF_ApiDefMap, TF_DeleteApiDefMap>>;

class ApiDefs : public ::testing::Test {
 protected:
  ApiDefs() {
    proto::OpDef& op = *ops_.add_op();
    op.set_name("Join");
    op.set_summary("Joins `left` by `Join`.");
    op.set_description("Described.");
    for (const char* name : {"left", "right"}) {
      auto* const arg = op.add_input_arg();
      arg->set_name(name);
      arg->set_description(absl::StrCat("the ", name, " of `left`"));
    }
    op.add_output_arg()->set_name("out");
    auto* const attr = op.add_attr();
    attr->set_name("sep");
    attr->mutable_default_value()->set_s(",");
    const std::string bytes = ops_.SerializeAsString();
    const BufferPtr buffer(TF_NewBufferFromString(bytes.data(), bytes.size()));
    map_.reset(TF_NewApiDefMap(buffer.get(), status_.get()));
  }
  TF_Code Put(const std::string& text) {
    TF_ApiDefMapPut(map_.get(), text.data(), text.size(), status_.get());
    return TF_GetCode(status_.get());
  }
  proto::ApiDef Get() {
    const BufferPtr bytes(TF_ApiDefMapGet(map_.get(), "Join", 4, status_.get()));
    proto::ApiDef def;
    EXPECT_TRUE(bytes != nullptr && def.ParseFromArray(bytes->data, bytes->length));
    return def;
  }

  proto::OpList ops_;
  StatusPtr status_{TF_NewStatus()};
  MapPtr map_;
};

TEST_F(ApiDefs, AreMadeFromSignatures) {
  const proto::ApiDef def = Get();
  EXPECT_EQ(def.graph_op_name(), "Join");
  EXPECT_EQ(def.visibility(), proto::ApiDef::VISIBLE);
  ASSERT_EQ(def.endpoint_size(), 1);
  EXPECT_EQ(def.endpoint(0).name(), "Join");
  ASSERT_EQ(def.in_arg_size(), 2);
  EXPECT_EQ(def.in_arg(1).name(), "right");
  EXPECT_EQ(def.in_arg(1).rename_to(), "right");
  EXPECT_EQ(def.in_arg(1).description(), "the right of `left`");
  EXPECT_THAT(def.arg_order(), ElementsAre("left", "right"));
  ASSERT_EQ(def.out_arg_size(), 1);
  EXPECT_EQ(def.out_arg(0).rename_to(), "out");
  ASSERT_EQ(def.attr_size(), 1);
  EXPECT_EQ(def.attr(0).default_value().s(), ",");
  EXPECT_EQ(def.summary(), "Joins `left` by `Join`.");
  EXPECT_EQ(def.description(), "Described.");
}

TEST_F(ApiDefs, TextsAreMergedAndNamesInThemRenamed) {
  EXPECT_EQ(Put(R"(op { graph_op_name: "Join" visibility: HIDDEN endpoint { name: "strings.join" }
                      in_arg { name: "left" rename_to: "first" } arg_order: "right" arg_order: "left"
                      attr { name: "sep" default_value { s: ";" } description: "of `Join`" }
                      description_suffix: "Last." }
                    op { graph_op_name: "Other" summary: "skipped" })"),
            TF_OK)
      << TF_Message(status_.get());
  const proto::ApiDef def = Get();
  EXPECT_EQ(def.visibility(), proto::ApiDef::HIDDEN);
  EXPECT_EQ(def.endpoint(0).name(), "strings.join");
  EXPECT_EQ(def.in_arg(0).rename_to(), "first");
  EXPECT_EQ(def.in_arg(0).description(), "the left of `first`");
  EXPECT_THAT(def.arg_order(), ElementsAre("right", "left"));
  EXPECT_EQ(def.attr(0).default_value().s(), ";");
  EXPECT_EQ(def.attr(0).description(), "of `strings.join`");
  EXPECT_EQ(def.summary(), "Joins `first` by `strings.join`.");
  EXPECT_EQ(def.description(), "Described.\nLast.");
}

TEST_F(ApiDefs, StringsOfSeveralLines) {
  EXPECT_EQ(
      Put("op {\n  graph_op_name: \"Join\"\n  summary: <<END\nOne \"line\".\nAnother.\nEND\n}"),
      TF_OK)
      << TF_Message(status_.get());
  EXPECT_EQ(Get().summary(), "One \"line\".\nAnother.");
}

TEST_F(ApiDefs, MistakesAreErrorsAndChangeNothing) {
  EXPECT_EQ(Put("op { nonsense"), TF_INVALID_ARGUMENT);
  EXPECT_EQ(Put(R"(op { graph_op_name: "Join" summary: "new" in_arg { name: "middle" } })"),
            TF_FAILED_PRECONDITION);
  EXPECT_STREQ(TF_Message(status_.get()), "Argument middle not defined in base api for Join");
  EXPECT_EQ(Put(R"(op { graph_op_name: "Join" attr { name: "none" } })"), TF_FAILED_PRECONDITION);
  EXPECT_STREQ(TF_Message(status_.get()), "Attribute none not defined in base api for Join");
  EXPECT_EQ(Put(R"(op { graph_op_name: "Join" arg_order: "left" })"), TF_FAILED_PRECONDITION);
  EXPECT_STREQ(TF_Message(status_.get()), "Invalid number of arguments 1 for Join. Expected: 2");
  EXPECT_EQ(Put(R"(op { graph_op_name: "Join" arg_order: "left" arg_order: "left" })"),
            TF_FAILED_PRECONDITION);
  EXPECT_THAT(TF_Message(status_.get()), HasSubstr("must match base arg_order: left, right"));
  EXPECT_EQ(Get().summary(), "Joins `left` by `Join`.");
  EXPECT_EQ(Put(""), TF_FAILED_PRECONDITION);
  EXPECT_STREQ(TF_Message(status_.get()),
               "TF_ApiDefMapPut cannot be called after TF_ApiDefMapGet has been called.");
}

TEST_F(ApiDefs, AnAbsentOpIsNull) {
  EXPECT_EQ(TF_ApiDefMapGet(map_.get(), "Nope", 4, status_.get()), nullptr);
  EXPECT_EQ(TF_GetCode(status_.get()), TF_OK);
  const BufferPtr garbage(TF_NewBufferFromString("\xff\xff", 2));
  EXPECT_EQ(TF_NewApiDefMap(garbage.get(), status_.get()), nullptr);
  EXPECT_STREQ(TF_Message(status_.get()), "Unparseable OpList");
}

TEST(AllApiDefs, OfTheOpsThatAreThere) {
  const StatusPtr status(TF_NewStatus());
  const BufferPtr ops(TF_GetAllOpList());
  const MapPtr map(TF_NewApiDefMap(ops.get(), status.get()));
  const BufferPtr bytes(TF_ApiDefMapGet(map.get(), "MatMul", 6, status.get()));
  proto::ApiDef def;
  ASSERT_TRUE(bytes != nullptr && def.ParseFromArray(bytes->data, bytes->length));
  EXPECT_THAT(def.arg_order(), ElementsAre("a", "b"));
  EXPECT_EQ(def.out_arg(0).name(), "product");
  EXPECT_EQ(def.attr(0).name(), "transpose_a");
}

}  // namespace
}  // namespace weir::capi_test
