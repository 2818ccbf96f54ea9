#ifndef WEIR_TESTS_CAPI_EAGER_API_H_
#define WEIR_TESTS_CAPI_EAGER_API_H_

#include <string>
#include <vector>

#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"
#include "weir/tests/capi/api.h"

// What the tests of the eager API share: owners, and a context that executes ops in a line.
namespace weir::capi_test {

using HandlePtr =
    std::unique_ptr<TFE_TensorHandle, Deleter<TFE_TensorHandle, TFE_DeleteTensorHandle>>;
using OpPtr = std::unique_ptr<TFE_Op, Deleter<TFE_Op, TFE_DeleteOp>>;
using ContextPtr = std::unique_ptr<TFE_Context, Deleter<TFE_Context, TFE_DeleteContext>>;
using ContextOptionsPtr =
    std::unique_ptr<TFE_ContextOptions, Deleter<TFE_ContextOptions, TFE_DeleteContextOptions>>;
using ExecutorPtr = std::unique_ptr<TFE_Executor, Deleter<TFE_Executor, TFE_DeleteExecutor>>;

// A context with a status.
class Eager {
 public:
  explicit Eager(bool is_async = false) {
    const ContextOptionsPtr options(TFE_NewContextOptions());
    TFE_ContextOptionsSetAsync(options.get(), is_async ? 1 : 0);
    context_.reset(TFE_NewContext(options.get(), status()));
  }
  TFE_Context* context() { return context_.get(); }
  TF_Status* status() { return status_.get(); }
  TF_Code code() const { return TF_GetCode(status_.get()); }
  std::string message() const { return TF_Message(status_.get()); }

  HandlePtr Handle(const TensorPtr& tensor) {
    return HandlePtr(TFE_NewTensorHandle(tensor.get(), status()));
  }
  HandlePtr Floats(const std::vector<int64_t>& dims, const std::vector<float>& values) {
    return Handle(capi_test::Floats(dims, values));
  }
  HandlePtr Scalar(float value) { return Floats({}, {value}); }

  OpPtr Op(const char* name, const std::vector<TFE_TensorHandle*>& inputs = {}) {
    OpPtr op(TFE_NewOp(context(), name, status()));
    for (TFE_TensorHandle* input : inputs) TFE_OpAddInput(op.get(), input, status());
    return op;
  }
  // Executes an op with one output; null on an error.
  HandlePtr Execute(const OpPtr& op) {
    TFE_TensorHandle* output = nullptr;
    int count = 1;
    TFE_Execute(op.get(), &output, &count, status());
    return HandlePtr(output);
  }
  HandlePtr Execute(const char* name, const std::vector<TFE_TensorHandle*>& inputs) {
    return Execute(Op(name, inputs));
  }
  // The elements; none on an error.
  std::vector<float> Values(const HandlePtr& handle) {
    const TensorPtr tensor(TFE_TensorHandleResolve(handle.get(), status()));
    if (tensor == nullptr) return {};
    const auto* const values = static_cast<const float*>(TF_TensorData(tensor.get()));
    return {values, values + TF_TensorElementCount(tensor.get())};
  }

 private:
  StatusPtr status_{TF_NewStatus()};
  ContextPtr context_;
};

}  // namespace weir::capi_test

#endif  // WEIR_TESTS_CAPI_EAGER_API_H_
