#ifndef WEIR_TESTS_CAPI_API_H_
#define WEIR_TESTS_CAPI_API_H_

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/c/c_api.h"

// What the tests of the C API share: owners, tensors, and a graph with its sessions.
namespace weir::capi_test {

template <class T, void (*kDelete)(T*)>
struct Deleter {
  void operator()(T* object) const { kDelete(object); }
};
using StatusPtr = std::unique_ptr<TF_Status, Deleter<TF_Status, TF_DeleteStatus>>;
using TensorPtr = std::unique_ptr<TF_Tensor, Deleter<TF_Tensor, TF_DeleteTensor>>;
using BufferPtr = std::unique_ptr<TF_Buffer, Deleter<TF_Buffer, TF_DeleteBuffer>>;
using GraphPtr = std::unique_ptr<TF_Graph, Deleter<TF_Graph, TF_DeleteGraph>>;
using ImportOptionsPtr =
    std::unique_ptr<TF_ImportGraphDefOptions,
                    Deleter<TF_ImportGraphDefOptions, TF_DeleteImportGraphDefOptions>>;
using SessionOptionsPtr =
    std::unique_ptr<TF_SessionOptions, Deleter<TF_SessionOptions, TF_DeleteSessionOptions>>;

inline TensorPtr Floats(const std::vector<int64_t>& dims, const std::vector<float>& values) {
  TensorPtr tensor(TF_AllocateTensor(TF_FLOAT, dims.data(), static_cast<int>(dims.size()),
                                     values.size() * sizeof(float)));
  std::memcpy(TF_TensorData(tensor.get()), values.data(), values.size() * sizeof(float));
  return tensor;
}

inline float FloatAt(const TensorPtr& tensor, int i = 0) {
  return static_cast<const float*>(TF_TensorData(tensor.get()))[i];
}

// A graph with a status, in which nodes are built by one call each.
class Api {
 public:
  TF_Graph* graph() { return graph_.get(); }
  TF_Status* status() { return status_.get(); }
  TF_Code code() const { return TF_GetCode(status_.get()); }
  std::string message() const { return TF_Message(status_.get()); }

  TF_Operation* Placeholder(const char* name, const std::vector<int64_t>* shape = nullptr) {
    TF_OperationDescription* desc = TF_NewOperation(graph(), "Placeholder", name);
    TF_SetAttrType(desc, "dtype", TF_FLOAT);
    if (shape != nullptr)
      TF_SetAttrShape(desc, "shape", shape->data(), static_cast<int>(shape->size()));
    return TF_FinishOperation(desc, status());
  }
  TF_Operation* Const(const char* name, float value) {
    const TensorPtr tensor = Floats({}, {value});
    TF_OperationDescription* desc = TF_NewOperation(graph(), "Const", name);
    TF_SetAttrTensor(desc, "value", tensor.get(), status());
    TF_SetAttrType(desc, "dtype", TF_FLOAT);
    return TF_FinishOperation(desc, status());
  }
  TF_Operation* Binary(const char* op, const char* name, TF_Operation* a, TF_Operation* b) {
    TF_OperationDescription* desc = TF_NewOperation(graph(), op, name);
    TF_AddInput(desc, {a, 0});
    TF_AddInput(desc, {b, 0});
    return TF_FinishOperation(desc, status());
  }

  // Runs one fetch with feeds.
  TensorPtr Run(TF_Session* session, const std::vector<TF_Output>& feeds,
                const std::vector<TF_Tensor*>& values, TF_Output fetch) {
    TF_Tensor* fetched = nullptr;
    TF_SessionRun(session, nullptr, feeds.data(), values.data(), static_cast<int>(feeds.size()),
                  &fetch, &fetched, 1, nullptr, 0, nullptr, status());
    return TensorPtr(fetched);
  }

 private:
  StatusPtr status_{TF_NewStatus()};
  GraphPtr graph_{TF_NewGraph()};
};

}  // namespace weir::capi_test

#endif  // WEIR_TESTS_CAPI_API_H_
