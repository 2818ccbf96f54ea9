/* A client of weir/c_api.h in C11. Exits with 0 if a slope that is trained becomes 3. */
#include <stdio.h>

#include "weir/c_api.h"

static TF_Operation* Binary(TF_Graph* graph, const char* op, const char* name, TF_Output a,
                            TF_Output b, TF_Status* status) {
  TF_OperationDescription* desc = TF_NewOperation(graph, op, name);
  TF_AddInput(desc, a);
  TF_AddInput(desc, b);
  return TF_FinishOperation(desc, status);
}

int main(void) {
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_Operation* slope = weir_new_variable(graph, "slope", TF_FLOAT, NULL, 0, "zeros", NULL, status);
  TF_Operation* wanted = weir_new_variable(graph, "wanted", TF_FLOAT, NULL, 0, "constant value=3",
                                           "trainable=false", status);
  TF_Output value, target;
  weir_variable_value(graph, slope, &value, status);
  weir_variable_value(graph, wanted, &target, status);
  TF_Output loss = {Binary(graph, "SquaredDifference", "loss", value, target, status), 0};
  weir_optimizer* sgd = weir_new_optimizer(graph, "GradientDescent", "learning_rate=0.4", status);
  TF_Operation* train = weir_optimizer_minimize(sgd, &loss, NULL, NULL, 0, status);
  const TF_Operation* init = weir_variables_initializer(graph, "variables", status);
  TF_Session* session = TF_NewSession(graph, NULL, status);
  TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &init, 1, NULL, status);
  const TF_Operation* step = train;
  for (int i = 0; i < 20; ++i)
    TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &step, 1, NULL, status);
  TF_Tensor* result = NULL;
  TF_SessionRun(session, NULL, NULL, NULL, 0, &value, &result, 1, NULL, 0, NULL, status);
  if (TF_GetCode(status) != TF_OK) printf("%s\n", TF_Message(status));
  const float trained = result == NULL ? 0 : *(const float*)TF_TensorData(result);
  printf("Weir %s: the slope is %f\n", weir_version(), trained);
  TF_DeleteTensor(result);
  TF_DeleteSession(session, status);
  weir_delete_optimizer(sgd);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return trained > 2.999f && trained < 3.001f ? 0 : 1;
}
