#include <gtest/gtest.h>

#include "weir/proto/tensor.pb.h"
#include "weir/tests/capi/api.h"

// Expected values and sizes are those of TensorFlow 2.21's library.
namespace weir::capi_test {
namespace {

TEST(DataTypeSize, IsTensorFlows) {
  const std::vector<size_t> sizes = {0, 4, 8,  4, 1, 2, 1, 0, 8, 8, 1, 1, 1, 4, 2, 2,
                                     2, 2, 16, 2, 0, 0, 4, 8, 1, 1, 1, 1, 1, 1, 1, 1};
  for (size_t i = 0; i < sizes.size(); ++i)
    EXPECT_EQ(TF_DataTypeSize(static_cast<TF_DataType>(i)), sizes[i]) << i;
  EXPECT_EQ(TF_DataTypeSize(static_cast<TF_DataType>(12345)), 0);
}

TEST(Status, HoldsCodeAndMessage) {
  const StatusPtr status(TF_NewStatus());
  EXPECT_EQ(TF_GetCode(status.get()), TF_OK);
  EXPECT_STREQ(TF_Message(status.get()), "");
  TF_SetStatus(status.get(), TF_CANCELLED, "cancel");
  EXPECT_EQ(TF_GetCode(status.get()), TF_CANCELLED);
  EXPECT_STREQ(TF_Message(status.get()), "cancel");
  TF_SetStatus(status.get(), TF_OK, "dropped");
  EXPECT_STREQ(TF_Message(status.get()), "");
}

TEST(Tensor, SharesTheCallersMemoryAndGivesItBack) {
  alignas(64) float values[6] = {1, 2, 3, 4, 5, 6};
  int released = 0;
  const auto release = [](void*, size_t, void* count) { ++*static_cast<int*>(count); };
  const int64_t dims[] = {2, 3};
  TF_Tensor* const tensor =
      TF_NewTensor(TF_FLOAT, dims, 2, values, sizeof(values), release, &released);
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(TF_TensorData(tensor), values);
  EXPECT_EQ(TF_TensorByteSize(tensor), sizeof(values));
  EXPECT_EQ(TF_NumDims(tensor), 2);
  EXPECT_EQ(TF_Dim(tensor, 1), 3);
  EXPECT_EQ(TF_TensorElementCount(tensor), 6);
  EXPECT_EQ(released, 0);
  TF_DeleteTensor(tensor);
  EXPECT_EQ(released, 1);
}

TEST(Tensor, CopiesSmallMemoryThatIsNotAlignedForVectors) {
  alignas(64) static float values[2048] = {0, 1};
  int released = 0;
  const auto release = [](void*, size_t, void* count) { ++*static_cast<int*>(count); };
  const int64_t small = 3, large = 2000;
  const TensorPtr copy(TF_NewTensor(TF_FLOAT, &small, 1, values + 1, 12, release, &released));
  EXPECT_EQ(released, 1);
  EXPECT_NE(TF_TensorData(copy.get()), values + 1);
  EXPECT_EQ(FloatAt(copy), 1);
  EXPECT_TRUE(TF_TensorIsAligned(copy.get()));
  EXPECT_EQ(TF_TensorDefaultAlignment(), 64);
  TensorPtr shared(TF_NewTensor(TF_FLOAT, &large, 1, values + 1, 8000, release, &released));
  EXPECT_EQ(TF_TensorData(shared.get()), values + 1);
  shared.reset();
  EXPECT_EQ(released, 2);
}

TEST(Tensor, FromProto) {
  proto::TensorProto message;
  message.set_dtype(proto::DT_FLOAT);
  message.mutable_tensor_shape()->add_dim()->set_size(2);
  message.add_float_val(7);  // of both elements
  const std::string bytes = message.SerializeAsString();
  const BufferPtr buffer(TF_NewBufferFromString(bytes.data(), bytes.size()));
  const TensorPtr tensor = Floats({1}, {0});
  const StatusPtr status(TF_NewStatus());
  TF_TensorFromProto(buffer.get(), tensor.get(), status.get());
  EXPECT_EQ(TF_GetCode(status.get()), TF_OK) << TF_Message(status.get());
  EXPECT_EQ(TF_Dim(tensor.get(), 0), 2);
  EXPECT_EQ(FloatAt(tensor, 1), 7);
  const BufferPtr wrong(TF_NewBufferFromString("?", 1));
  TF_TensorFromProto(wrong.get(), tensor.get(), status.get());
  EXPECT_EQ(TF_GetCode(status.get()), TF_INVALID_ARGUMENT);
  EXPECT_EQ(FloatAt(tensor, 1), 7);
}

TEST(Status, HasPayloads) {
  const StatusPtr status(TF_NewStatus());
  TF_SetStatus(status.get(), TF_CANCELLED, "cancel");
  TF_SetPayload(status.get(), "type/a", "value");
  std::string seen;
  TF_ForEachPayload(
      status.get(),
      [](const char* key, const char* value, void* to) {
        *static_cast<std::string*>(to) += std::string(key) + "=" + value;
      },
      &seen);
  EXPECT_EQ(seen, "type/a=value");
  EXPECT_STREQ(TF_Message(status.get()), "cancel");
}

TEST(Tensor, TakesAnotherShape) {
  const TensorPtr tensor = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const int64_t three[] = {3, 2}, five[] = {5};
  TF_SetShape(tensor.get(), three, 2);
  EXPECT_EQ(TF_Dim(tensor.get(), 0), 3);
  TF_SetShape(tensor.get(), five, 1);
  EXPECT_EQ(TF_NumDims(tensor.get()), 2);
  EXPECT_EQ(FloatAt(tensor, 5), 6);
}

TEST(Tensor, OnlyOwnMemoryMoves) {
  alignas(64) float values[2] = {1, 2};
  const int64_t two = 2;
  const auto release = [](void*, size_t, void*) {};
  const TensorPtr shared(TF_NewTensor(TF_FLOAT, &two, 1, values, 8, release, nullptr));
  EXPECT_EQ(TF_TensorMaybeMove(shared.get()), nullptr);
  const TensorPtr own = Floats({2}, {1, 2});
  EXPECT_EQ(TF_TensorMaybeMove(own.get()), own.get());
}

TEST(String, HasTensorFlowsNames) {
  TF_TString string;
  TF_TString_Init(&string);
  TF_TString_Copy(&string, "a longer string than fits inside", 32);
  EXPECT_EQ(TF_TString_GetSize(&string), 32);
  EXPECT_EQ(TF_TString_GetType(&string), TF_TSTR_LARGE);
  EXPECT_GE(TF_TString_GetCapacity(&string), 32);
  EXPECT_STREQ(TF_TString_GetDataPointer(&string), "a longer string than fits inside");
  TF_TString_AssignView(&string, "view", 4);
  EXPECT_EQ(TF_TString_GetType(&string), TF_TSTR_VIEW);
  TF_TString_Dealloc(&string);
}

TEST(Tensor, CopiesUnalignedMemory) {
  alignas(4) char bytes[9] = {};
  int released = 0;
  const auto release = [](void*, size_t, void* count) { ++*static_cast<int*>(count); };
  const int64_t dims[] = {2};
  const TensorPtr tensor(TF_NewTensor(TF_FLOAT, dims, 1, bytes + 1, 8, release, &released));
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(released, 1);
  EXPECT_NE(TF_TensorData(tensor.get()), bytes + 1);
}

TEST(Tensor, RejectsWhatDoesNotFit) {
  char byte = 0;
  int released = 0;
  const auto release = [](void*, size_t, void* count) { ++*static_cast<int*>(count); };
  EXPECT_EQ(TF_NewTensor(TF_FLOAT, nullptr, 0, &byte, 1, release, &released), nullptr);
  EXPECT_EQ(released, 1);
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(TF_AllocateTensor(TF_FLOAT, huge, 2, SIZE_MAX), nullptr);
  const int64_t large[] = {int64_t{1} << 60};
  EXPECT_EQ(TF_AllocateTensor(TF_UINT8, large, 1, size_t{1} << 60), nullptr);
  const int64_t negative[] = {-1};
  EXPECT_EQ(TF_AllocateTensor(TF_FLOAT, negative, 1, 64), nullptr);
  EXPECT_EQ(TF_AllocateTensor(TF_FLOAT, nullptr, 3, 64), nullptr);
  EXPECT_EQ(TF_AllocateTensor(static_cast<TF_DataType>(99), nullptr, 0, 64), nullptr);
}

TEST(Tensor, WrongArgumentsGetAValue) {
  const TensorPtr tensor = Floats({2}, {1, 2});
  EXPECT_EQ(TF_Dim(tensor.get(), 1), -1);
  EXPECT_EQ(TF_Dim(tensor.get(), -1), -1);
  EXPECT_EQ(TF_TensorData(nullptr), nullptr);
  EXPECT_EQ(TF_NumDims(nullptr), -1);
  EXPECT_EQ(TF_TensorByteSize(nullptr), 0);
  TF_DeleteTensor(nullptr);
  TF_DeleteBuffer(nullptr);
  TF_DeleteStatus(nullptr);
}

TEST(Tensor, BitcastSharesElements) {
  const TensorPtr from = Floats({2, 3}, {1, 2, 3, 4, 5, 6}), to = Floats({}, {0});
  const StatusPtr status(TF_NewStatus());
  const int64_t dims[] = {6};
  TF_TensorBitcastFrom(from.get(), TF_INT32, to.get(), dims, 1, status.get());
  EXPECT_EQ(TF_GetCode(status.get()), TF_OK) << TF_Message(status.get());
  EXPECT_EQ(TF_TensorData(to.get()), TF_TensorData(from.get()));
  EXPECT_EQ(TF_TensorType(to.get()), TF_INT32);
  EXPECT_EQ(TF_Dim(to.get(), 0), 6);
  const int64_t five[] = {5};
  TF_TensorBitcastFrom(from.get(), TF_INT32, to.get(), five, 1, status.get());
  EXPECT_EQ(TF_GetCode(status.get()), TF_INVALID_ARGUMENT);
}

TEST(String, HasItsFormsAndSizes) {
  TF_TString string;
  TF_StringInit(&string);
  EXPECT_EQ(TF_StringGetSize(&string), 0);
  const std::string small(22, 's'), large(23, 'l'), again = "again";
  TF_StringCopy(&string, small.data(), small.size());
  EXPECT_EQ(TF_StringGetType(&string), TF_TSTR_SMALL);
  EXPECT_EQ(std::string(TF_StringGetDataPointer(&string), TF_StringGetSize(&string)), small);
  TF_StringCopy(&string, large.data(), large.size());
  EXPECT_EQ(TF_StringGetType(&string), TF_TSTR_LARGE);
  EXPECT_EQ(std::string(TF_StringGetDataPointer(&string), TF_StringGetSize(&string)), large);
  EXPECT_GE(TF_StringGetCapacity(&string), large.size());
  TF_StringAssignView(&string, again.data(), again.size());
  EXPECT_EQ(TF_StringGetType(&string), TF_TSTR_VIEW);
  EXPECT_EQ(TF_StringGetDataPointer(&string), again.data());
  EXPECT_EQ(TF_StringGetSize(&string), again.size());
  TF_StringDealloc(&string);
  EXPECT_EQ(TF_StringGetSize(&string), 0);
  TF_StringDealloc(nullptr);
  EXPECT_EQ(TF_StringGetDataPointer(nullptr), nullptr);
}

TEST(Buffer, OwnsACopy) {
  const BufferPtr buffer(TF_NewBufferFromString("abc", 3));
  EXPECT_EQ(std::string(static_cast<const char*>(buffer->data), buffer->length), "abc");
  EXPECT_EQ(TF_GetBuffer(buffer.get()).length, 3);
  EXPECT_EQ(TF_GetBuffer(nullptr).data, nullptr);
}

}  // namespace
}  // namespace weir::capi_test
