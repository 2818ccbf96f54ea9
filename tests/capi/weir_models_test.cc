#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "weir/tests/capi/weir_api.h"

namespace weir::capi_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Models : public Line {
 protected:
  Models() {
    fed_ = {api_.Placeholder("fed"), 0};
    product_ = {Binary("Mul", "product", fed_, value_), 0};
    Run(init_);
    SetSlope(4);
  }
  // Runs "product" of another graph for the input 3.
  float ProductIn(Api& api, TF_Session* session) {
    const TensorPtr three = Floats({}, {3});
    const TF_Output fed = {TF_GraphOperationByName(api.graph(), "fed"), 0};
    const TF_Output product = {TF_GraphOperationByName(api.graph(), "product"), 0};
    const TensorPtr value = api.Run(session, {fed}, {three.get()}, product);
    return value == nullptr ? NAN : FloatAt(value);
  }

  TF_Output fed_, product_;
};

TEST_F(Models, AreExportedWithTheirVariables) {
  const std::string folder = ::testing::TempDir() + "weir_models";
  std::filesystem::remove_all(folder);
  const char* const signatures =
      "serving_default/inputs/x=fed:0 serving_default/outputs/y=product:0";
  weir_export_saved_model(session_, folder.c_str(), signatures, "tags=serve,mine synced=false",
                          status());
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  Api loaded;
  const char* const tags[] = {"serve", "mine"};
  TF_Session* const session = TF_LoadSessionFromSavedModel(
      nullptr, nullptr, folder.c_str(), tags, 2, loaded.graph(), nullptr, loaded.status());
  ASSERT_NE(session, nullptr) << loaded.message();
  EXPECT_EQ(ProductIn(loaded, session), 12);
  TF_DeleteSession(session, loaded.status());

  weir_export_saved_model(session_, folder.c_str(), signatures, nullptr, status());
  EXPECT_EQ(api_.code(), TF_ALREADY_EXISTS);
  const std::string other = folder + "_other";
  weir_export_saved_model(session_, other.c_str(), "serving_default/x=fed:0", nullptr, status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  weir_export_saved_model(session_, other.c_str(), "f/inputs/x=absent:0", nullptr, status());
  EXPECT_EQ(api_.code(), TF_NOT_FOUND) << api_.message();
  weir_export_saved_model(session_, other.c_str(), signatures, "init_op=absent", status());
  EXPECT_EQ(api_.message(), "the graph has no operation 'absent'");
}

TEST_F(Models, AreFrozen) {
  const BufferPtr frozen(TF_NewBuffer());
  weir_freeze(session_, &product_, 1, "clear_devices=true", frozen.get(), status());
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  Api copy;
  TF_GraphImportGraphDef(copy.graph(), frozen.get(), nullptr, copy.status());
  ASSERT_EQ(copy.code(), TF_OK) << copy.message();
  EXPECT_STREQ(TF_OperationOpType(TF_GraphOperationByName(copy.graph(), "slope")), "Const");
  TF_Session* const session = TF_NewSession(copy.graph(), nullptr, copy.status());
  EXPECT_EQ(ProductIn(copy, session), 12);
  TF_DeleteSession(session, copy.status());
  weir_freeze(session_, nullptr, 0, nullptr, frozen.get(), status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT) << api_.message();
  weir_freeze(session_, nullptr, 1, nullptr, frozen.get(), status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
}

TEST_F(Models, StepsAreTraced) {
  const TensorPtr three = Floats({}, {3});
  const BufferPtr trace(TF_NewBuffer());
  TF_Tensor *value = three.get(), *fetched = nullptr;
  weir_session_run_traced(session_, &fed_, &value, 1, &product_, &fetched, 1, nullptr, 0,
                          trace.get(), status());
  const TensorPtr product(fetched);
  ASSERT_NE(product, nullptr) << api_.message();
  EXPECT_EQ(FloatAt(product), 12);
  EXPECT_THAT(TextOf(trace), HasSubstr("\"traceEvents\""));
  EXPECT_THAT(TextOf(trace), HasSubstr("\"name\":\"product\""));
  fetched = nullptr;
  weir_session_run_traced(session_, nullptr, nullptr, 0, &product_, &fetched, 1, nullptr, 0,
                          trace.get(), status());
  EXPECT_EQ(fetched, nullptr);
  EXPECT_EQ(api_.message(),
            "You must feed a value for placeholder tensor 'fed' with dtype float\n\t "
            "[[{{node fed}}]]");
}

TEST_F(Models, CollectionsHaveItemsOfAllKinds) {
  weir_collection_add_tensor(graph(), "mine", &product_, status());
  weir_collection_add_operation(graph(), "mine", init_, status());
  weir_collection_add_variable(graph(), "mine", slope_, status());
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  const BufferPtr names(TF_NewBuffer());
  weir_collection_names(graph(), "mine", names.get(), status());
  EXPECT_THAT(ListOf(names), ElementsAre("product:0", "init", "slope:0"));
  TF_Output items[2];
  EXPECT_EQ(weir_collection_items(graph(), "mine", items, 2, status()), 3);
  EXPECT_EQ(items[0].oper, product_.oper);
  EXPECT_EQ(items[1].oper, init_);
  EXPECT_EQ(items[1].index, -1);
  weir_graph_collections(graph(), names.get(), status());
  EXPECT_THAT(ListOf(names), Contains("mine"));
  weir_collection_clear(graph(), "mine", status());
  EXPECT_EQ(weir_collection_items(graph(), "mine", nullptr, 0, status()), 0);
  const TF_Output absent = {product_.oper, 3};
  weir_collection_add_tensor(graph(), "mine", &absent, status());
  EXPECT_EQ(api_.code(), TF_OUT_OF_RANGE);
  weir_collection_add_variable(graph(), "mine", x_, status());
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
  Api other;
  weir_collection_add_operation(other.graph(), "mine", init_, other.status());
  EXPECT_EQ(other.code(), TF_INVALID_ARGUMENT);
  weir_collection_names(graph(), nullptr, names.get(), status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
}

TEST_F(Models, MetaGraphsAreImportedInAScope) {
  const BufferPtr meta(TF_NewBuffer()), def(TF_NewBuffer());
  weir_graph_export_meta_graph(graph(), nullptr, "tags=serve", meta.get(), status());
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  weir_graph_import_meta_graph(graph(), meta.get(), "import_scope=copy", def.get(), status());
  ASSERT_EQ(api_.code(), TF_OK) << api_.message();
  EXPECT_EQ(def->length, 0);
  EXPECT_NE(TF_GraphOperationByName(graph(), "copy/product"), nullptr);
  EXPECT_EQ(weir_variables(graph(), "variables", nullptr, 0, status()), 2);
  const BufferPtr junk(TF_NewBufferFromString("\xff\xff", 2));
  weir_graph_import_meta_graph(graph(), junk.get(), nullptr, nullptr, status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  weir_graph_export_meta_graph(graph(), nullptr, "tag=serve", meta.get(), status());
  EXPECT_EQ(api_.message(),
            "unknown option 'tag'; the options are: tags, clear_devices, export_scope");
}

TEST(Library, HasAVersionAndReleasesTensors) {
  EXPECT_THAT(weir_version(), ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+.*"));
  alignas(64) float data[4] = {1, 2, 3, 4};
  int32_t released = 0;
  const int64_t dims[] = {4};
  TF_DeleteTensor(
      TF_NewTensor(TF_FLOAT, dims, 1, data, sizeof(data), weir_set_released, &released));
  EXPECT_EQ(released, 1);
  weir_set_released(data, 0, nullptr);
}

}  // namespace
}  // namespace weir::capi_test
