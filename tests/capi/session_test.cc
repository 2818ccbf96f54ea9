#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "weir/tests/capi/api.h"

// Codes and messages are those of TensorFlow 2.21's library.
namespace weir::capi_test {
namespace {

using ::testing::HasSubstr;

class Session : public ::testing::Test {
 protected:
  Session() : a_(api_.Placeholder("a")), b_(api_.Const("b", 2)) {
    add_ = api_.Binary("Add", "add", a_, b_);
    session_ = TF_NewSession(api_.graph(), nullptr, api_.status());
  }
  ~Session() override { TF_DeleteSession(session_, api_.status()); }

  Api api_;
  TF_Operation *a_, *b_, *add_;
  TF_Session* session_;
};

TEST_F(Session, RunsAndGrows) {
  const TensorPtr three = Floats({}, {3});
  TensorPtr sum = api_.Run(session_, {{a_, 0}}, {three.get()}, {add_, 0});
  ASSERT_NE(sum, nullptr) << api_.message();
  EXPECT_EQ(FloatAt(sum), 5);
  TF_Operation* const product = api_.Binary("Mul", "product", add_, add_);
  const TensorPtr square = api_.Run(session_, {{a_, 0}}, {three.get()}, {product, 0});
  ASSERT_NE(square, nullptr) << api_.message();
  EXPECT_EQ(FloatAt(square), 25);
}

TEST_F(Session, ErrorsOfRuns) {
  const TensorPtr one = Floats({}, {1});
  EXPECT_EQ(api_.Run(session_, {}, {}, {add_, 0}), nullptr);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(api_.message(),
            "You must feed a value for placeholder tensor 'a' with dtype float\n\t [[{{node a}}]]");
  const TensorPtr number(TF_AllocateTensor(TF_INT32, nullptr, 0, 4));
  EXPECT_EQ(api_.Run(session_, {{a_, 0}}, {number.get()}, {add_, 0}), nullptr);
  EXPECT_EQ(api_.message(), "Expects arg[0] to be float but int32 is provided");
  EXPECT_EQ(api_.Run(session_, {{a_, 0}}, {one.get()}, {add_, 1}), nullptr);
  EXPECT_EQ(api_.code(), TF_OUT_OF_RANGE);
  EXPECT_EQ(api_.message(), "Node 'add' (type: 'Add', num of outputs: 1) does not have output 1");
  EXPECT_EQ(api_.Run(session_, {{a_, 0}, {a_, 0}}, {one.get(), one.get()}, {add_, 0}), nullptr);
  EXPECT_EQ(api_.message(), "Endpoint \"a:0\" fed more than once.");
  EXPECT_EQ(api_.Run(session_, {{a_, 0}}, {one.get()}, {a_, 0}), nullptr);
  EXPECT_EQ(api_.message(), "a:0 is both fed and fetched.");
  EXPECT_EQ(api_.Run(session_, {{nullptr, 0}}, {one.get()}, {add_, 0}), nullptr);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(api_.Run(session_, {{a_, 0}}, {nullptr}, {add_, 0}), nullptr);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  Api other;
  EXPECT_EQ(api_.Run(session_, {}, {}, {other.Const("c", 1), 0}), nullptr);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
}

TEST_F(Session, WritesMetadata) {
  const TensorPtr three = Floats({}, {3});
  const BufferPtr metadata(TF_NewBuffer());
  const BufferPtr options(TF_NewBufferFromString("\x08\x03", 2));  // trace_level: FULL_TRACE
  const TF_Output feed = {a_, 0}, fetch = {add_, 0};
  TF_Tensor *value = three.get(), *fetched = nullptr;
  const auto run = [&] {
    TF_SessionRun(session_, options.get(), &feed, &value, 1, &fetch, &fetched, 1, nullptr, 0,
                  metadata.get(), api_.status());
    TF_DeleteTensor(fetched);
  };
  run();
  EXPECT_EQ(api_.code(), TF_OK) << api_.message();
  EXPECT_GT(metadata->length, 0);
  run();
  EXPECT_EQ(api_.message(), "Passing non-empty run_metadata is invalid.");
}

TEST_F(Session, ClosedSessionIsCancelled) {
  TF_CloseSession(session_, api_.status());
  EXPECT_EQ(api_.code(), TF_OK);
  const TensorPtr three = Floats({}, {3});
  EXPECT_EQ(api_.Run(session_, {{a_, 0}}, {three.get()}, {add_, 0}), nullptr);
  EXPECT_EQ(api_.code(), TF_CANCELLED);
  EXPECT_EQ(api_.message(), "Session has been closed.");
}

TEST_F(Session, ThreadsRunWhileTheGraphGrows) {
  std::vector<std::thread> threads;
  std::vector<float> sums(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const StatusPtr status(TF_NewStatus());
      const TensorPtr x = Floats({}, {static_cast<float>(t)});
      const TF_Output feed = {a_, 0}, fetch = {add_, 0};
      for (int i = 0; i < 50; ++i) {
        TF_Tensor *value = x.get(), *fetched = nullptr;
        TF_SessionRun(session_, nullptr, &feed, &value, 1, &fetch, &fetched, 1, nullptr, 0, nullptr,
                      status.get());
        const TensorPtr owned(fetched);
        if (owned != nullptr) sums[t] += FloatAt(owned);
      }
    });
  }
  for (int i = 0; i < 50; ++i) EXPECT_NE(api_.Const(("n" + std::to_string(i)).c_str(), 1), nullptr);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums, (std::vector<float>{100, 150, 200, 250}));
}

TEST(SessionOptions, ConfigIsParsed) {
  Api api;
  const SessionOptionsPtr options(TF_NewSessionOptions());
  TF_SetConfig(options.get(), "\xff\xff", 2, api.status());
  EXPECT_EQ(api.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(api.message(), "Unparseable ConfigProto");
  TF_SetConfig(options.get(), "\x10\x01\x28\x01", 4, api.status());
  EXPECT_EQ(api.code(), TF_OK) << api.message();
  TF_Session* const session = TF_NewSession(api.graph(), options.get(), api.status());
  EXPECT_NE(session, nullptr) << api.message();
  TF_DeleteSession(session, api.status());
}

TEST(SessionLifetime, OutlivesTheCallersGraph) {
  const StatusPtr status(TF_NewStatus());
  TF_Graph* const graph = TF_NewGraph();
  TF_Session* const session = TF_NewSession(graph, nullptr, status.get());
  TF_DeleteGraph(graph);
  TF_DeleteSession(session, status.get());
  EXPECT_EQ(TF_GetCode(status.get()), TF_OK);
  EXPECT_EQ(TF_NewSession(nullptr, nullptr, status.get()), nullptr);
  EXPECT_EQ(TF_GetCode(status.get()), TF_INVALID_ARGUMENT);
  TF_DeleteSession(nullptr, status.get());
}

TEST(Strings, CrossTheBorder) {
  Api api;
  TF_OperationDescription* desc = TF_NewOperation(api.graph(), "Placeholder", "s");
  TF_SetAttrType(desc, "dtype", TF_STRING);
  TF_Operation* const s = TF_FinishOperation(desc, api.status());
  TF_Operation* const joined = [&] {
    TF_OperationDescription* join = TF_NewOperation(api.graph(), "StringJoin", "joined");
    const TF_Output both[] = {{s, 0}, {s, 0}};
    TF_AddInputList(join, both, 2);
    return TF_FinishOperation(join, api.status());
  }();
  ASSERT_NE(joined, nullptr) << api.message();
  const int64_t dims[] = {2};
  const TensorPtr fed(TF_AllocateTensor(TF_STRING, dims, 1, 2 * sizeof(TF_TString)));
  auto* const strings = static_cast<TF_TString*>(TF_TensorData(fed.get()));
  const std::string large(40, 'x');
  TF_StringCopy(&strings[0], "a", 1);
  TF_StringCopy(&strings[1], large.data(), large.size());
  TF_Session* const session = TF_NewSession(api.graph(), nullptr, api.status());
  const TensorPtr result = api.Run(session, {{s, 0}}, {fed.get()}, {joined, 0});
  ASSERT_NE(result, nullptr) << api.message();
  EXPECT_EQ(TF_TensorByteSize(result.get()), 48);
  const auto* const got = static_cast<const TF_TString*>(TF_TensorData(result.get()));
  EXPECT_EQ(std::string(TF_StringGetDataPointer(&got[0]), TF_StringGetSize(&got[0])), "aa");
  EXPECT_EQ(std::string(TF_StringGetDataPointer(&got[1]), TF_StringGetSize(&got[1])),
            large + large);
  TF_StringDealloc(&strings[1]);
  TF_DeleteSession(session, api.status());
}

TEST(SavedModel, AbsentOneIsNotFound) {
  Api api;
  const char* const tags[] = {"serve"};
  EXPECT_EQ(TF_LoadSessionFromSavedModel(nullptr, nullptr, "/nonexistent", tags, 1, api.graph(),
                                         nullptr, api.status()),
            nullptr);
  EXPECT_EQ(api.code(), TF_NOT_FOUND);
  EXPECT_THAT(api.message(), HasSubstr("Could not find SavedModel .pb or .pbtxt at supplied export "
                                       "directory path: /nonexistent."));
}

TEST(SavedModel, LoadsIntoAnEmptyGraph) {
  Api api;
  const char* const tags[] = {"serve"};
  const char* const directory = "tests/session/golden/saved_model";
  const BufferPtr meta(TF_NewBuffer());
  TF_Session* const session = TF_LoadSessionFromSavedModel(nullptr, nullptr, directory, tags, 1,
                                                           api.graph(), meta.get(), api.status());
  ASSERT_NE(session, nullptr) << api.message();
  EXPECT_GT(meta->length, 0);
  size_t position = 0;
  EXPECT_NE(TF_GraphNextOperation(api.graph(), &position), nullptr);
  EXPECT_EQ(TF_LoadSessionFromSavedModel(nullptr, nullptr, directory, tags, 1, api.graph(), nullptr,
                                         api.status()),
            nullptr);
  EXPECT_EQ(api.message(), "Graph is non-empty.");
  TF_DeleteSession(session, api.status());
}

TEST(SavedModel, OtherTagsAreNotFound) {
  Api api;
  EXPECT_EQ(TF_LoadSessionFromSavedModel(nullptr, nullptr, "tests/session/golden/saved_model",
                                         nullptr, 0, api.graph(), nullptr, api.status()),
            nullptr);
  EXPECT_EQ(api.code(), TF_NOT_FOUND) << api.message();
}

}  // namespace
}  // namespace weir::capi_test
