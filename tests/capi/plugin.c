/* A library of plug-ins, in C11: two ops and their kernels. It is linked with nothing. */
#include <stddef.h>
#include <stdlib.h>

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"

/* y = x * factor */
static void* CreateScale(TF_OpKernelConstruction* construction) {
  float* factor = calloc(1, sizeof *factor);
  TF_Status* status = TF_NewStatus();
  TF_OpKernelConstruction_GetAttrFloat(construction, "factor", factor, status);
  if (TF_GetCode(status) != TF_OK) TF_OpKernelConstruction_Failure(construction, status);
  TF_DeleteStatus(status);
  return factor;
}

static void ComputeScale(void* kernel, TF_OpKernelContext* context) {
  const float factor = *(const float*)kernel;
  TF_Status* status = TF_NewStatus();
  TF_Tensor* x = NULL;
  TF_Tensor* y = NULL;
  TF_GetInput(context, 0, &x, status);
  if (TF_GetCode(status) == TF_OK) {
    int64_t dims[8];
    for (int i = 0; i < TF_NumDims(x) && i < 8; ++i) dims[i] = TF_Dim(x, i);
    y = TF_AllocateOutput(context, 0, TF_ExpectedOutputDataType(context, 0), dims, TF_NumDims(x),
                          TF_TensorByteSize(x), status);
  }
  if (TF_GetCode(status) == TF_OK) {
    const float* from = TF_TensorData(x);
    float* to = TF_TensorData(y);
    for (int64_t i = 0; i < TF_TensorElementCount(x); ++i) to[i] = from[i] * factor;
  } else {
    TF_OpKernelContext_Failure(context, status);
  }
  TF_DeleteTensor(x);
  TF_DeleteTensor(y);
  TF_DeleteStatus(status);
}

/* Returns its input twice, one after the other: "ab" -> "abab". */
static void ComputeTwice(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_Tensor* x = NULL;
  TF_GetInput(context, 0, &x, status);
  TF_Tensor* y = TF_AllocateOutput(context, 0, TF_STRING, NULL, 0, 0, status);
  if (x != NULL && y != NULL) {
    const TF_TString* from = TF_TensorData(x);
    const size_t size = TF_StringGetSize(from);
    char* twice = malloc(2 * size + 1);
    for (size_t i = 0; i < 2 * size; ++i) twice[i] = TF_StringGetDataPointer(from)[i % size];
    TF_StringCopy(TF_TensorData(y), twice, 2 * size);
    free(twice);
  } else {
    TF_OpKernelContext_Failure(context, status);
  }
  TF_DeleteTensor(x);
  TF_DeleteTensor(y);
  TF_DeleteStatus(status);
}

static void SameShape(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeHandle* shape = TF_NewShapeHandle();
  TF_ShapeInferenceContextGetInput(context, 0, shape, status);
  if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(context, 0, shape, status);
  TF_DeleteShapeHandle(shape);
}

__attribute__((constructor)) static void RegisterOps(void) {
  TF_Status* status = TF_NewStatus();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("PluginScale");
  TF_OpDefinitionBuilderAddInput(op, "x: T");
  TF_OpDefinitionBuilderAddOutput(op, "y: T");
  TF_OpDefinitionBuilderAddAttr(op, "T: {float, double} = DT_FLOAT");
  TF_OpDefinitionBuilderAddAttr(op, "factor: float = 2.0");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, &SameShape);
  TF_RegisterOpDefinition(op, status);
  op = TF_NewOpDefinitionBuilder("PluginTwice");
  TF_OpDefinitionBuilderAddInput(op, "x: string");
  TF_OpDefinitionBuilderAddOutput(op, "y: string");
  TF_RegisterOpDefinition(op, status);
  TF_DeleteStatus(status);
}

TF_CAPI_EXPORT void TF_InitKernel(void) {
  TF_Status* status = TF_NewStatus();
  TF_KernelBuilder* kernel =
      TF_NewKernelBuilder("PluginScale", "CPU", &CreateScale, &ComputeScale, &free);
  TF_KernelBuilder_TypeConstraint(kernel, "T", TF_FLOAT, status);
  TF_RegisterKernelBuilder("PluginScale", kernel, status);
  kernel = TF_NewKernelBuilder("PluginTwice", "CPU", NULL, &ComputeTwice, NULL);
  TF_RegisterKernelBuilder("PluginTwice", kernel, status);
  TF_DeleteStatus(status);
}
