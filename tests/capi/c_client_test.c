/* A client in C11: the headers need nothing of C++. Exits with 0 if 3 + 4 is 7. */
#include <stdio.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api_experimental.h"

static TF_Tensor* Scalar(float value) {
  TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, NULL, 0, sizeof value);
  memcpy(TF_TensorData(tensor), &value, sizeof value);
  return tensor;
}

int main(void) {
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_OperationDescription* desc = TF_NewOperation(graph, "Placeholder", "x");
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_Output x = {TF_FinishOperation(desc, status), 0};
  TF_Tensor* four = Scalar(4);
  desc = TF_NewOperation(graph, "Const", "four");
  TF_SetAttrTensor(desc, "value", four, status);
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_Output constant = {TF_FinishOperation(desc, status), 0};
  desc = TF_NewOperation(graph, "Add", "sum");
  TF_AddInput(desc, x);
  TF_AddInput(desc, constant);
  TF_Output sum = {TF_FinishOperation(desc, status), 0};
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph, options, status);
  TF_Tensor *three = Scalar(3), *result = NULL;
  TF_SessionRun(session, NULL, &x, &three, 1, &sum, &result, 1, NULL, 0, NULL, status);
  if (TF_GetCode(status) != TF_OK) printf("%s\n", TF_Message(status));
  const int is_seven = result != NULL && *(const float*)TF_TensorData(result) == 7;
  TF_DeleteTensor(result);
  TF_DeleteTensor(three);
  TF_DeleteTensor(four);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return is_seven ? 0 : 1;
}
