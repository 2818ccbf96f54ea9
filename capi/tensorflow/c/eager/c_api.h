#ifndef TENSORFLOW_C_EAGER_C_API_H_
#define TENSORFLOW_C_EAGER_C_API_H_

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"

// TensorFlow's eager C API: ops and functions that run one at a time, on tensors behind handles,
// with the types, values and names of TensorFlow's own header.
//
//   TFE_Op* op = TFE_NewOp(context, "AddV2", status);
//   TFE_OpAddInput(op, x, status);
//   TFE_OpAddInput(op, y, status);
//   int count = 1;
//   TFE_Execute(op, &sum, &count, status);
//
// The first execution of an op with some attributes and types of inputs prepares it; later ones
// take microseconds. A context and its handles may be used by several threads at once, which run
// ops at the same time; an op, options and an executor's handle by one at a time. A context is
// deleted after its ops.
//
// Wrong arguments are treated as in c_api.h: a function with a status sets it on every call, others
// change nothing, print a line on stderr and return NULL, 0 or -1.

#ifdef __cplusplus
extern "C" {
#endif

// ---- contexts

// What a context is made with. Deleting null is allowed, as for all objects below.
typedef struct TFE_ContextOptions TFE_ContextOptions;
TF_CAPI_EXPORT extern TFE_ContextOptions* TFE_NewContextOptions(void);
TF_CAPI_EXPORT extern void TFE_DeleteContextOptions(TFE_ContextOptions*);
// Takes a serialized ConfigProto. INVALID_ARGUMENT if it is none.
TF_CAPI_EXPORT extern void TFE_ContextOptionsSetConfig(TFE_ContextOptions* options,
                                                       const void* proto, size_t proto_len,
                                                       TF_Status* status);
// Whether TFE_Execute returns before the op has run. The default is 0.
TF_CAPI_EXPORT extern void TFE_ContextOptionsSetAsync(TFE_ContextOptions*, unsigned char enable);

// What happens to an input that is on another device than the op. All tensors here are in the
// memory of the CPU, so a policy is kept and returned, but decides nothing.
typedef enum TFE_ContextDevicePlacementPolicy {
  TFE_DEVICE_PLACEMENT_EXPLICIT = 0,          // an error
  TFE_DEVICE_PLACEMENT_WARN = 1,              // it is copied, with a warning
  TFE_DEVICE_PLACEMENT_SILENT = 2,            // it is copied: the default
  TFE_DEVICE_PLACEMENT_SILENT_FOR_INT32 = 3,  // int32 is copied, other types are an error
} TFE_ContextDevicePlacementPolicy;
TF_CAPI_EXPORT extern void TFE_ContextOptionsSetDevicePlacementPolicy(
    TFE_ContextOptions*, TFE_ContextDevicePlacementPolicy);

// A context: devices, functions, and the variables, tables and iterators that ops make, which live
// until it is deleted. Deleting it waits for the ops of its executors.
typedef struct TFE_Context TFE_Context;
TF_CAPI_EXPORT extern TFE_Context* TFE_NewContext(const TFE_ContextOptions* opts,
                                                  TF_Status* status);
TF_CAPI_EXPORT extern void TFE_DeleteContext(TFE_Context* ctx);
// The caller deletes the list.
TF_CAPI_EXPORT extern TF_DeviceList* TFE_ContextListDevices(TFE_Context* ctx, TF_Status* status);
// Forgets prepared ops: random ops with seeds begin again, and threads use the default executor.
TF_CAPI_EXPORT extern void TFE_ContextClearCaches(TFE_Context* ctx);
// Set the policy of the calling thread, and return the policy in effect for it.
TF_CAPI_EXPORT extern void TFE_ContextSetThreadLocalDevicePlacementPolicy(
    TFE_Context* ctx, TFE_ContextDevicePlacementPolicy policy);
TF_CAPI_EXPORT extern TFE_ContextDevicePlacementPolicy TFE_ContextGetDevicePlacementPolicy(
    TFE_Context* ctx);
// UNIMPLEMENTED: a context has the devices of its process.
TF_CAPI_EXPORT extern void TFE_ContextSetServerDef(TFE_Context* ctx, int keep_alive_secs,
                                                   const void* proto, size_t proto_len,
                                                   TF_Status* status);

// ---- tensors

// A handle to a tensor that exists, or that an op is still to compute. Functions that need the
// value wait for it; if the op failed, they return its error.
typedef struct TFE_TensorHandle TFE_TensorHandle;
// Returns a handle that shares the elements of a tensor, but copies strings.
TF_CAPI_EXPORT extern TFE_TensorHandle* TFE_NewTensorHandle(const TF_Tensor* t, TF_Status* status);
TF_CAPI_EXPORT extern void TFE_DeleteTensorHandle(TFE_TensorHandle* h);
// Return the type; and the number of dimensions and elements, and one dimension: -1 on an error.
TF_CAPI_EXPORT extern TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle* h);
TF_CAPI_EXPORT extern int TFE_TensorHandleNumDims(TFE_TensorHandle* h, TF_Status* status);
TF_CAPI_EXPORT extern int64_t TFE_TensorHandleNumElements(TFE_TensorHandle* h, TF_Status* status);
TF_CAPI_EXPORT extern int64_t TFE_TensorHandleDim(TFE_TensorHandle* h, int dim_index,
                                                  TF_Status* status);
// Return the names of the device that computed the tensor, and of that in whose memory it is. Both
// live as long as the program.
TF_CAPI_EXPORT extern const char* TFE_TensorHandleDeviceName(TFE_TensorHandle* h,
                                                             TF_Status* status);
TF_CAPI_EXPORT extern const char* TFE_TensorHandleBackingDeviceName(TFE_TensorHandle* h,
                                                                    TF_Status* status);
// Returns another handle to the same tensor, to be deleted as well.
TF_CAPI_EXPORT extern TFE_TensorHandle* TFE_TensorHandleCopySharingTensor(TFE_TensorHandle* h,
                                                                          TF_Status* status);
// Returns a tensor that shares the elements, but copies strings. The caller must not write to it
// while others use them.
TF_CAPI_EXPORT extern TF_Tensor* TFE_TensorHandleResolve(TFE_TensorHandle* h, TF_Status* status);
// Returns a handle to the tensor on a device; null and "" are the CPU. INVALID_ARGUMENT for a
// device that the context does not have.
TF_CAPI_EXPORT extern TFE_TensorHandle* TFE_TensorHandleCopyToDevice(TFE_TensorHandle* h,
                                                                     TFE_Context* ctx,
                                                                     const char* device_name,
                                                                     TF_Status* status);

// How a tensor is laid out on its device: as on the host.
typedef struct TFE_TensorDebugInfo TFE_TensorDebugInfo;
TF_CAPI_EXPORT extern TFE_TensorDebugInfo* TFE_TensorHandleTensorDebugInfo(TFE_TensorHandle* h,
                                                                           TF_Status* status);
TF_CAPI_EXPORT extern void TFE_DeleteTensorDebugInfo(TFE_TensorDebugInfo* debug_info);
TF_CAPI_EXPORT extern int TFE_TensorDebugInfoOnDeviceNumDims(TFE_TensorDebugInfo* debug_info);
TF_CAPI_EXPORT extern int64_t TFE_TensorDebugInfoOnDeviceDim(TFE_TensorDebugInfo* debug_info,
                                                             int dim_index);

// ---- ops

// An op or a call of a function, with the attributes and inputs given so far. It may be executed
// several times.
typedef struct TFE_Op TFE_Op;
// NOT_FOUND if there is neither an op nor a function of this name.
TF_CAPI_EXPORT extern TFE_Op* TFE_NewOp(TFE_Context* ctx, const char* op_or_function_name,
                                        TF_Status* status);
TF_CAPI_EXPORT extern void TFE_DeleteOp(TFE_Op* op);
// Return what the op was made with. The name lives as long as the op.
TF_CAPI_EXPORT extern const char* TFE_OpGetName(const TFE_Op* op, TF_Status* status);
TF_CAPI_EXPORT extern TFE_Context* TFE_OpGetContext(const TFE_Op* op, TF_Status* status);
// Sets the device; null and "" are any. INVALID_ARGUMENT for text that names no device. Whether the
// context has the device is checked by TFE_Execute.
TF_CAPI_EXPORT extern void TFE_OpSetDevice(TFE_Op* op, const char* device_name, TF_Status* status);
// Returns the full form of the device's name, "" for any. Valid until the op changes.
TF_CAPI_EXPORT extern const char* TFE_OpGetDevice(const TFE_Op* op, TF_Status* status);

// Add the next argument: one tensor, or a list of them. The op shares the handles. Attributes that
// arguments determine, such as T and N, are set, unless they are set already. The tensors of a list
// may also be added one by one; the client then sets the attributes itself.
TF_CAPI_EXPORT extern void TFE_OpAddInput(TFE_Op* op, TFE_TensorHandle* input, TF_Status* status);
TF_CAPI_EXPORT extern void TFE_OpAddInputList(TFE_Op* op, TFE_TensorHandle** inputs, int num_inputs,
                                              TF_Status* status);
// Return the number of tensors added, and one of them, which is the op's: OUT_OF_RANGE if there is
// none.
TF_CAPI_EXPORT extern int TFE_OpGetFlatInputCount(const TFE_Op* op, TF_Status* status);
TF_CAPI_EXPORT extern TFE_TensorHandle* TFE_OpGetFlatInput(const TFE_Op* op, int index,
                                                           TF_Status* status);

// Return the kind of an attribute of the op's signature, and whether it is a list. INVALID_ARGUMENT
// if the op does not have it.
TF_CAPI_EXPORT extern TF_AttrType TFE_OpGetAttrType(TFE_Op* op, const char* attr_name,
                                                    unsigned char* is_list, TF_Status* status);
TF_CAPI_EXPORT extern TF_AttrType TFE_OpNameGetAttrType(TFE_Context* ctx,
                                                        const char* op_or_function_name,
                                                        const char* attr_name,
                                                        unsigned char* is_list, TF_Status* status);

// Set attributes. An attribute keeps the first value that is set. Values are copied. A value that
// is not valid is reported at once where there is a status, otherwise by TFE_Execute; so is an
// attribute that the op does not have. Of num_dims, -1 is an unknown rank; of a dimension, -1 is
// unknown.
TF_CAPI_EXPORT extern void TFE_OpSetAttrString(TFE_Op* op, const char* attr_name, const void* value,
                                               size_t length);
TF_CAPI_EXPORT extern void TFE_OpSetAttrInt(TFE_Op* op, const char* attr_name, int64_t value);
TF_CAPI_EXPORT extern void TFE_OpSetAttrFloat(TFE_Op* op, const char* attr_name, float value);
TF_CAPI_EXPORT extern void TFE_OpSetAttrBool(TFE_Op* op, const char* attr_name,
                                             unsigned char value);
TF_CAPI_EXPORT extern void TFE_OpSetAttrType(TFE_Op* op, const char* attr_name, TF_DataType value);
TF_CAPI_EXPORT extern void TFE_OpSetAttrShape(TFE_Op* op, const char* attr_name,
                                              const int64_t* dims, const int num_dims,
                                              TF_Status* out_status);
TF_CAPI_EXPORT extern void TFE_OpSetAttrTensor(TFE_Op* op, const char* attr_name, TF_Tensor* tensor,
                                               TF_Status* status);
// A function: that which another op calls, with its attributes; or by its name.
TF_CAPI_EXPORT extern void TFE_OpSetAttrFunction(TFE_Op* op, const char* attr_name,
                                                 const TFE_Op* value);
TF_CAPI_EXPORT extern void TFE_OpSetAttrFunctionName(TFE_Op* op, const char* attr_name,
                                                     const char* data, size_t length);
TF_CAPI_EXPORT extern void TFE_OpSetAttrStringList(TFE_Op* op, const char* attr_name,
                                                   const void* const* values, const size_t* lengths,
                                                   int num_values);
TF_CAPI_EXPORT extern void TFE_OpSetAttrIntList(TFE_Op* op, const char* attr_name,
                                                const int64_t* values, int num_values);
TF_CAPI_EXPORT extern void TFE_OpSetAttrFloatList(TFE_Op* op, const char* attr_name,
                                                  const float* values, int num_values);
TF_CAPI_EXPORT extern void TFE_OpSetAttrBoolList(TFE_Op* op, const char* attr_name,
                                                 const unsigned char* values, int num_values);
TF_CAPI_EXPORT extern void TFE_OpSetAttrTypeList(TFE_Op* op, const char* attr_name,
                                                 const TF_DataType* values, int num_values);
TF_CAPI_EXPORT extern void TFE_OpSetAttrShapeList(TFE_Op* op, const char* attr_name,
                                                  const int64_t** dims, const int* num_dims,
                                                  int num_values, TF_Status* out_status);
TF_CAPI_EXPORT extern void TFE_OpSetAttrFunctionList(TFE_Op* op, const char* attr_name,
                                                     const TFE_Op** value, int num_values);

// Return the number of tensors of an argument of the op's signature; -1 on an error:
// INVALID_ARGUMENT if there is no such argument, NOT_FOUND while the attribute that determines the
// number is not set.
TF_CAPI_EXPORT extern int TFE_OpGetInputLength(TFE_Op* op, const char* input_name,
                                               TF_Status* status);
TF_CAPI_EXPORT extern int TFE_OpGetOutputLength(TFE_Op* op, const char* output_name,
                                                TF_Status* status);

// Executes the op. `*num_retvals` is the length of `retvals`, and becomes the number of outputs,
// each of which the caller deletes; on an error, and beyond them, `retvals` is unchanged. A length
// that is too small is INVALID_ARGUMENT.
//
// With an asynchronous executor, mistakes in the signature are reported at once, and errors of the
// kernel by the handles and the executor. An input whose only holder is the op may lend its memory
// to an output; another execution of the op then is FAILED_PRECONDITION.
TF_CAPI_EXPORT extern void TFE_Execute(TFE_Op* op, TFE_TensorHandle** retvals, int* num_retvals,
                                       TF_Status* status);

// ---- functions

// Add a function to the context, where ops call it by its name: from a serialized FunctionDef, or a
// copy of one. INVALID_ARGUMENT if there is a different function of this name. A function that was
// added twice is removed twice.
TF_CAPI_EXPORT extern void TFE_ContextAddFunctionDef(TFE_Context* ctx,
                                                     const char* serialized_function_def,
                                                     size_t size, TF_Status* status);
TF_CAPI_EXPORT extern void TFE_ContextAddFunction(TFE_Context* ctx, TF_Function* function,
                                                  TF_Status* status);
// INVALID_ARGUMENT if there is no such function.
TF_CAPI_EXPORT extern void TFE_ContextRemoveFunction(TFE_Context* ctx, const char* name,
                                                     TF_Status* status);
TF_CAPI_EXPORT extern unsigned char TFE_ContextHasFunction(TFE_Context* ctx, const char* name);

// ---- records of runs

// Begin and end to record when ops run. Export waits for the executors, and moves what has been
// recorded to a buffer, as a serialized RunMetadata.
TF_CAPI_EXPORT extern void TFE_ContextEnableRunMetadata(TFE_Context* ctx);
TF_CAPI_EXPORT extern void TFE_ContextDisableRunMetadata(TFE_Context* ctx);
TF_CAPI_EXPORT extern void TFE_ContextExportRunMetadata(TFE_Context* ctx, TF_Buffer* buf,
                                                        TF_Status* status);

// Mark the beginning and the end of a step of the client. Each end needs a beginning.
TF_CAPI_EXPORT extern void TFE_ContextStartStep(TFE_Context* ctx);
TF_CAPI_EXPORT extern void TFE_ContextEndStep(TFE_Context* ctx);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TENSORFLOW_C_EAGER_C_API_H_
