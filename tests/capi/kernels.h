#ifndef WEIR_TESTS_CAPI_KERNELS_H_
#define WEIR_TESTS_CAPI_KERNELS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"
#include "weir/tests/capi/api.h"

// Ops and kernels of tests, and a graph with a session that runs them.
namespace weir::capi_test {

// Registers an op; each argument and attribute is "name: type".
inline TF_Code RegisterOp(const char* name, const std::vector<const char*>& inputs,
                          const std::vector<const char*>& outputs,
                          const std::vector<const char*>& attrs = {},
                          void (*shape)(TF_ShapeInferenceContext*, TF_Status*) = nullptr) {
  TF_OpDefinitionBuilder* const op = TF_NewOpDefinitionBuilder(name);
  for (const char* input : inputs) TF_OpDefinitionBuilderAddInput(op, input);
  for (const char* output : outputs) TF_OpDefinitionBuilderAddOutput(op, output);
  for (const char* attr : attrs) TF_OpDefinitionBuilderAddAttr(op, attr);
  if (shape != nullptr) TF_OpDefinitionBuilderSetShapeInferenceFunction(op, shape);
  const StatusPtr status(TF_NewStatus());
  TF_RegisterOpDefinition(op, status.get());
  return TF_GetCode(status.get());
}

// Registers a kernel for the CPU.
inline TF_Code RegisterKernel(const char* op, void (*compute)(void*, TF_OpKernelContext*),
                              const std::function<void(TF_KernelBuilder*)>& change = {}) {
  TF_KernelBuilder* const kernel = TF_NewKernelBuilder(op, "CPU", nullptr, compute, nullptr);
  if (change) change(kernel);
  const StatusPtr status(TF_NewStatus());
  TF_RegisterKernelBuilder(op, kernel, status.get());
  return TF_GetCode(status.get());
}

// A graph and its session.
class Runner : public Api {
 public:
  Runner() : session_(TF_NewSession(graph(), nullptr, status())) {}
  ~Runner() { TF_DeleteSession(session_, status()); }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Adds an operation; `change` sets its attributes.
  TF_Operation* Add(const char* op, const char* name, const std::vector<TF_Operation*>& inputs = {},
                    const std::function<void(TF_OperationDescription*)>& change = {}) {
    TF_OperationDescription* const desc = TF_NewOperation(graph(), op, name);
    for (TF_Operation* input : inputs) TF_AddInput(desc, {input, 0});
    if (change) change(desc);
    return TF_FinishOperation(desc, status());
  }
  TF_Operation* Strings(const char* name, const std::string& value) {
    const TensorPtr tensor(TF_AllocateTensor(TF_STRING, nullptr, 0, sizeof(TF_TString)));
    auto* const element = static_cast<TF_TString*>(TF_TensorData(tensor.get()));
    TF_StringCopy(element, value.data(), value.size());
    TF_Operation* const made = Add("Const", name, {}, [&](TF_OperationDescription* desc) {
      TF_SetAttrTensor(desc, "value", tensor.get(), status());
      TF_SetAttrType(desc, "dtype", TF_STRING);
    });
    TF_StringDealloc(element);
    return made;
  }
  // Runs an operation without a fetch.
  void RunTarget(TF_Operation* operation) {
    TF_SessionRun(session_, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, &operation, 1,
                  nullptr, status());
  }
  // Returns output 0 of an operation; null, and the status, after an error.
  TensorPtr Fetch(TF_Operation* operation) { return Run(session_, {}, {}, {operation, 0}); }

 private:
  TF_Session* session_;
};

}  // namespace weir::capi_test

#endif  // WEIR_TESTS_CAPI_KERNELS_H_
