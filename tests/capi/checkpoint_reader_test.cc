#include <gtest/gtest.h>

#include "tensorflow/c/c_api_experimental.h"
#include "weir/core/io/bundle.h"
#include "weir/tests/capi/api.h"

namespace weir::capi_test {
namespace {

using ReaderPtr =
    std::unique_ptr<TF_CheckpointReader, Deleter<TF_CheckpointReader, TF_DeleteCheckpointReader>>;

std::string Saved() {
  const std::string prefix = ::testing::TempDir() + "/reader";
  const std::vector<std::pair<std::string, Tensor>> tensors = {
      {"a", Tensor::Of<float>(Shape({2, 1}), {1, 2})},
      {"words", Tensor::Vector<std::string>({"x"})}};
  const auto writer = *BundleWriter::Create(prefix);
  for (const auto& [name, value] : tensors) EXPECT_TRUE(writer->Add(name, value).ok());
  EXPECT_TRUE(writer->Finish().ok());
  return prefix;
}

TEST(CheckpointReader, ListsAndReadsTensors) {
  const StatusPtr status(TF_NewStatus());
  const ReaderPtr reader(TF_NewCheckpointReader(Saved().c_str(), status.get()));
  ASSERT_NE(reader, nullptr) << TF_Message(status.get());
  ASSERT_EQ(TF_CheckpointReaderSize(reader.get()), 2);
  EXPECT_STREQ(TF_CheckpointReaderGetVariable(reader.get(), 1), "words");
  EXPECT_EQ(TF_CheckpointReaderGetVariable(reader.get(), 2), nullptr);
  EXPECT_TRUE(TF_CheckpointReaderHasTensor(reader.get(), "a"));
  EXPECT_FALSE(TF_CheckpointReaderHasTensor(reader.get(), "b"));
  EXPECT_EQ(TF_CheckpointReaderGetVariableDataType(reader.get(), "words"), TF_STRING);
  EXPECT_EQ(TF_CheckpointReaderGetVariableNumDims(reader.get(), "a"), 2);
  int64_t dims[2] = {};
  TF_CheckpointReaderGetVariableShape(reader.get(), "a", dims, 2, status.get());
  EXPECT_EQ(TF_GetCode(status.get()), TF_OK);
  EXPECT_EQ(dims[0], 2);
  EXPECT_EQ(dims[1], 1);
  const TensorPtr a(TF_CheckpointReaderGetTensor(reader.get(), "a", status.get()));
  ASSERT_NE(a, nullptr) << TF_Message(status.get());
  EXPECT_EQ(FloatAt(a, 1), 2);
  const TensorPtr words(TF_CheckpointReaderGetTensor(reader.get(), "words", status.get()));
  ASSERT_NE(words, nullptr) << TF_Message(status.get());
  EXPECT_STREQ(TF_StringGetDataPointer(static_cast<TF_TString*>(TF_TensorData(words.get()))), "x");
}

TEST(CheckpointReader, WhatIsNotThereIsAnError) {
  const StatusPtr status(TF_NewStatus());
  EXPECT_EQ(TF_NewCheckpointReader("/nowhere/model", status.get()), nullptr);
  EXPECT_EQ(TF_GetCode(status.get()), TF_NOT_FOUND);
  const ReaderPtr reader(TF_NewCheckpointReader(Saved().c_str(), status.get()));
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(TF_CheckpointReaderGetTensor(reader.get(), "b", status.get()), nullptr);
  EXPECT_EQ(TF_GetCode(status.get()), TF_NOT_FOUND);
  EXPECT_EQ(TF_CheckpointReaderGetVariableNumDims(reader.get(), "b"), -1);
  EXPECT_EQ(TF_CheckpointReaderGetVariableDataType(reader.get(), "b"), 0);
}

}  // namespace
}  // namespace weir::capi_test
