#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/tests/capi/api.h"

// Codes and messages are those of TensorFlow 2.21's library.
namespace weir::capi_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Graph, BuildsAndReads) {
  Api api;
  TF_Operation* const a = api.Placeholder("a");
  TF_Operation* const b = api.Const("b", 2);
  TF_Operation* const add = api.Binary("Add", "add", a, b);
  ASSERT_NE(add, nullptr) << api.message();
  EXPECT_STREQ(TF_OperationName(add), "add");
  EXPECT_STREQ(TF_OperationOpType(add), "Add");
  EXPECT_STREQ(TF_OperationDevice(add), "");
  EXPECT_EQ(TF_OperationNumInputs(add), 2);
  EXPECT_EQ(TF_OperationNumOutputs(add), 1);
  EXPECT_EQ(TF_OperationOutputType({add, 0}), TF_FLOAT);
  EXPECT_EQ(TF_OperationInputType({add, 1}), TF_FLOAT);
  EXPECT_EQ(TF_OperationInput({add, 1}).oper, b);
  EXPECT_EQ(TF_OperationInputListLength(add, "y", api.status()), 1);
  EXPECT_EQ(TF_OperationOutputListLength(add, "w", api.status()), -1);
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  TF_Input user;
  EXPECT_EQ(TF_OperationOutputConsumers({a, 0}, &user, 1), 1);
  EXPECT_EQ(user.oper, add);
  EXPECT_EQ(user.index, 0);
  EXPECT_EQ(TF_GraphOperationByName(api.graph(), "add"), add);
  EXPECT_EQ(TF_GraphOperationByName(api.graph(), "none"), nullptr);
  size_t position = 0;
  std::vector<TF_Operation*> all;
  while (TF_Operation* next = TF_GraphNextOperation(api.graph(), &position)) all.push_back(next);
  EXPECT_EQ(all, (std::vector<TF_Operation*>{a, b, add}));
}

TEST(Graph, ControlInputsAndColocations) {
  Api api;
  TF_Operation* const a = api.Const("a", 1);
  TF_OperationDescription* desc = TF_NewOperation(api.graph(), "NoOp", "after");
  TF_AddControlInput(desc, a);
  TF_ColocateWith(desc, a);
  TF_Operation* const after = TF_FinishOperation(desc, api.status());
  ASSERT_NE(after, nullptr) << api.message();
  TF_Operation* found = nullptr;
  EXPECT_EQ(TF_OperationGetControlInputs(after, &found, 1), 1);
  EXPECT_EQ(found, a);
  EXPECT_EQ(TF_OperationNumControlOutputs(a), 1);
  EXPECT_EQ(TF_OperationGetControlOutputs(a, &found, 1), 1);
  EXPECT_EQ(found, after);
}

TEST(Graph, ErrorsOfOperations) {
  Api api;
  TF_Operation* const a = api.Placeholder("a");
  EXPECT_EQ(api.Placeholder("a"), nullptr);
  EXPECT_EQ(api.message(), "Duplicate node name in graph: 'a'");
  EXPECT_EQ(api.Binary("NoSuchOp", "x", a, a), nullptr);
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  EXPECT_THAT(api.message(), HasSubstr("Op type not registered 'NoSuchOp'"));
  TF_OperationDescription* desc = TF_NewOperation(api.graph(), "Add", "bad");
  TF_AddInput(desc, {a, 0});
  EXPECT_EQ(TF_FinishOperation(desc, api.status()), nullptr);
  EXPECT_THAT(api.message(), HasSubstr("1 inputs specified of 2 inputs in Op while building"));
  TF_OperationDescription* const integer = TF_NewOperation(api.graph(), "Placeholder", "integer");
  TF_SetAttrType(integer, "dtype", TF_INT32);
  TF_Operation* const n = TF_FinishOperation(integer, api.status());
  EXPECT_EQ(api.Binary("Add", "mixed", a, n), nullptr);
  EXPECT_THAT(api.message(),
              StartsWith("Inconsistent values for attr 'T' DT_FLOAT vs. DT_INT32 while building "
                         "NodeDef 'mixed' using Op<name=Add;"));
  desc = TF_NewOperation(api.graph(), "FakeQuantWithMinMaxArgs", "fixed");
  TF_AddInput(desc, {n, 0});
  TF_AddInput(desc, {n, 0});
  EXPECT_EQ(TF_FinishOperation(desc, api.status()), nullptr);
  EXPECT_THAT(api.message(), StartsWith("2 errors while building NodeDef 'fixed' using Op<"));
  EXPECT_THAT(api.message(), HasSubstr(":\nInput 'inputs' passed int32 expected float\n"
                                       "More Input() calls than the 1 input_args"));
  desc = TF_NewOperation(api.graph(), "AddN", "list");
  TF_AddInput(desc, {a, 0});
  EXPECT_EQ(TF_FinishOperation(desc, api.status()), nullptr);
  EXPECT_THAT(api.message(), StartsWith("Single tensor passed to 'inputs', expected list"));
  const TF_Output both[] = {{a, 0}, {n, 0}};
  desc = TF_NewOperation(api.graph(), "AddN", "list");
  TF_AddInputList(desc, both, 2);
  EXPECT_EQ(TF_FinishOperation(desc, api.status()), nullptr);
  EXPECT_THAT(api.message(), StartsWith("Input 'inputs' passed int32 expected float while"));
  desc = TF_NewOperation(api.graph(), "Neg", "single");
  TF_AddInputList(desc, both, 1);
  EXPECT_EQ(TF_FinishOperation(desc, api.status()), nullptr);
  EXPECT_THAT(api.message(),
              StartsWith("List provided to input 'x' when single Tensor expected while"));
  desc = TF_NewOperation(api.graph(), "Placeholder", "untyped");
  EXPECT_EQ(TF_FinishOperation(desc, api.status()), nullptr);
  EXPECT_THAT(api.message(), HasSubstr("NodeDef missing attr 'dtype' from Op<"));
  EXPECT_THAT(api.message(), HasSubstr("NodeDef: {{node untyped}}"));
  desc = TF_NewOperation(api.graph(), "Identity", "outside");
  TF_AddInput(desc, {a, 7});
  EXPECT_EQ(TF_FinishOperation(desc, api.status()), nullptr);
  EXPECT_EQ(api.code(), TF_OUT_OF_RANGE);
  desc = TF_NewOperation(api.graph(), "Identity", "null");
  TF_AddInput(desc, {nullptr, 0});
  EXPECT_EQ(TF_FinishOperation(desc, api.status()), nullptr);
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  // The graph is as it was.
  EXPECT_NE(api.Binary("Add", "add", a, a), nullptr) << api.message();
}

TEST(Graph, ErrorOfAShapeFunctionHasTensorFlowsText) {
  Api api;
  const std::vector<int64_t> left = {2, 3}, right = {4, 5};
  TF_Operation* const m = api.Placeholder("m", &left);
  TF_Operation* const n = api.Placeholder("n", &right);
  EXPECT_EQ(api.Binary("MatMul", "mm", m, n), nullptr);
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(api.message(),
            "Dimensions must be equal, but are 3 and 4 for '{{node mm}} = MatMul[T=DT_FLOAT, "
            "grad_a=false, grad_b=false, transpose_a=false, transpose_b=false](m, n)' with input "
            "shapes: [2,3], [4,5].");
}

TEST(Graph, Shapes) {
  Api api;
  const std::vector<int64_t> shape = {2, -1};
  TF_Operation* const m = api.Placeholder("m", &shape);
  TF_Operation* const any = api.Placeholder("any");
  EXPECT_EQ(TF_GraphGetTensorNumDims(api.graph(), {any, 0}, api.status()), -1);
  EXPECT_EQ(TF_GraphGetTensorNumDims(api.graph(), {m, 0}, api.status()), 2);
  const int64_t refined[] = {2, 5}, wrong[] = {3, 5};
  TF_GraphSetTensorShape(api.graph(), {m, 0}, refined, 2, api.status());
  EXPECT_EQ(api.code(), TF_OK) << api.message();
  int64_t dims[2] = {};
  TF_GraphGetTensorShape(api.graph(), {m, 0}, dims, 2, api.status());
  EXPECT_EQ(dims[1], 5);
  TF_GraphGetTensorShape(api.graph(), {m, 0}, dims, 1, api.status());
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  TF_GraphSetTensorShape(api.graph(), {m, 0}, wrong, 2, api.status());
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_GraphGetTensorNumDims(api.graph(), {m, 9}, api.status()), -1);
  EXPECT_EQ(api.code(), TF_OUT_OF_RANGE);
}

class Import : public ::testing::Test {
 protected:
  Import() {
    TF_Operation* const a = source_.Placeholder("a");
    source_.Binary("Add", "add", a, source_.Const("b", 2));
    TF_GraphToGraphDef(source_.graph(), bytes_.get(), source_.status());
  }
  void Run() { TF_GraphImportGraphDef(api_.graph(), bytes_.get(), options_.get(), api_.status()); }
  bool Has(const char* name) { return TF_GraphOperationByName(api_.graph(), name) != nullptr; }

  Api source_, api_;
  BufferPtr bytes_{TF_NewBuffer()};
  ImportOptionsPtr options_{TF_NewImportGraphDefOptions()};
};

TEST_F(Import, PrefixesAndUniqueNames) {
  Run();
  EXPECT_EQ(api_.code(), TF_OK) << api_.message();
  Run();
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(api_.message(), "Node name 'a' already exists in the Graph");
  TF_ImportGraphDefOptionsSetPrefix(options_.get(), "p");
  Run();
  EXPECT_TRUE(Has("p/add"));
  TF_ImportGraphDefOptionsSetUniquifyNames(options_.get(), 1);
  Run();
  EXPECT_EQ(api_.code(), TF_OK) << api_.message();
  ASSERT_TRUE(Has("p/add_1"));
  EXPECT_EQ(TF_OperationInput({TF_GraphOperationByName(api_.graph(), "p/add_1"), 0}).oper,
            TF_GraphOperationByName(api_.graph(), "p/a_1"));
  TF_ImportGraphDefOptionsSetUniquifyPrefix(options_.get(), 1);
  Run();
  EXPECT_TRUE(Has("p_1/add"));
}

TEST_F(Import, MapsInputsAddsControlsAndReturns) {
  TF_Operation* const x = api_.Placeholder("x");
  TF_Operation* const first = api_.Const("first", 1);
  TF_ImportGraphDefOptionsAddInputMapping(options_.get(), "a", 0, {x, 0});
  TF_ImportGraphDefOptionsAddInputMapping(options_.get(), "nowhere", 3, {x, 0});
  TF_ImportGraphDefOptionsAddControlDependency(options_.get(), first);
  TF_ImportGraphDefOptionsSetDefaultDevice(options_.get(), "/device:CPU:0");
  TF_ImportGraphDefOptionsSetPrefix(options_.get(), "q");
  TF_ImportGraphDefOptionsAddReturnOutput(options_.get(), "add", 0);
  TF_ImportGraphDefOptionsAddReturnOutput(options_.get(), "a", 0);
  TF_ImportGraphDefOptionsAddReturnOperation(options_.get(), "b");
  TF_ImportGraphDefResults* const results =
      TF_GraphImportGraphDefWithResults(api_.graph(), bytes_.get(), options_.get(), api_.status());
  ASSERT_NE(results, nullptr) << api_.message();
  int count = 0;
  TF_Output* outputs = nullptr;
  TF_ImportGraphDefResultsReturnOutputs(results, &count, &outputs);
  ASSERT_EQ(count, 2);
  EXPECT_STREQ(TF_OperationName(outputs[0].oper), "q/add");
  EXPECT_EQ(outputs[1].oper, x);
  EXPECT_EQ(TF_OperationInput({outputs[0].oper, 0}).oper, x);
  TF_Operation** operations = nullptr;
  TF_ImportGraphDefResultsReturnOperations(results, &count, &operations);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(TF_OperationNumControlInputs(operations[0]), 1);
  EXPECT_EQ(TF_OperationNumControlInputs(outputs[0].oper), 0);  // follows q/b
  EXPECT_STREQ(TF_OperationDevice(operations[0]), "/device:CPU:0");
  const char** names = nullptr;
  int* indexes = nullptr;
  TF_ImportGraphDefResultsMissingUnusedInputMappings(results, &count, &names, &indexes);
  ASSERT_EQ(count, 1);
  EXPECT_STREQ(names[0], "nowhere");
  EXPECT_EQ(indexes[0], 3);
  TF_DeleteImportGraphDefResults(results);
}

TEST_F(Import, RejectsGarbageAndUnknownOps) {
  bytes_.reset(TF_NewBufferFromString("\xff\xffgarbage", 9));
  Run();
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(api_.message(), "Invalid GraphDef");
  // node { name: "x" op: "NoSuchOp" }
  bytes_.reset(TF_NewBufferFromString("\x0a\x0d\x0a\x01x\x12\x08NoSuchOp", 15));
  Run();
  EXPECT_EQ(api_.code(), TF_NOT_FOUND) << api_.message();
  EXPECT_FALSE(Has("x"));
}

TEST(Library, ListsOps) {
  const BufferPtr ops(TF_GetAllOpList());
  EXPECT_GT(ops->length, 100000);
  EXPECT_STREQ(TF_Version(), "2.21.0");
}

TEST(Graph, NullArgumentsAreErrors) {
  Api api;
  EXPECT_EQ(TF_NewOperation(nullptr, "Add", "x"), nullptr);
  EXPECT_EQ(TF_NewOperation(api.graph(), nullptr, "x"), nullptr);
  EXPECT_EQ(TF_FinishOperation(nullptr, api.status()), nullptr);
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_OperationName(nullptr), nullptr);
  EXPECT_EQ(TF_OperationNumInputs(nullptr), -1);
  EXPECT_EQ(TF_OperationOutputType({nullptr, 0}), TF_DataType{});
  EXPECT_EQ(TF_GraphNextOperation(api.graph(), nullptr), nullptr);
  TF_GraphToGraphDef(api.graph(), nullptr, api.status());
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  TF_Operation* const a = api.Placeholder("a");
  EXPECT_EQ(TF_OperationOutputType({a, 5}), TF_DataType{});
  EXPECT_EQ(TF_OperationInputType({a, 0}), TF_DataType{});
  EXPECT_EQ(TF_OperationInput({a, 0}).oper, nullptr);
  TF_DeleteGraph(nullptr);
}

}  // namespace
}  // namespace weir::capi_test
