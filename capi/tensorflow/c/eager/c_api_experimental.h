#ifndef TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_
#define TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_

#include <stdbool.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/eager/c_api.h"

// What clients use of the part of TensorFlow's eager API that TensorFlow may change: executors, ops
// that are used again, attributes as a whole.

#ifdef __cplusplus
extern "C" {
#endif

// Makes an op another one, without attributes and inputs, as TFE_NewOp and TFE_OpSetDevice do. An
// op that cannot be made is unchanged.
TF_CAPI_EXPORT extern void TFE_OpReset(TFE_Op* op_to_reset, const char* op_or_function_name,
                                       const char* raw_device_name, TF_Status* status);

// Whether another runtime is used. There is none: TFE_NewContext is then UNIMPLEMENTED.
TF_CAPI_EXPORT extern void TFE_ContextOptionsSetTfrt(TFE_ContextOptions*, bool use_tfrt);

// ---- executors

// An executor runs ops one after another: asynchronously, on a thread of its own, or on the thread
// that executes them. After an error, an asynchronous one drops the ops that wait, whose outputs
// get the error, and takes no more until it is cleared.
typedef struct TFE_Executor TFE_Executor;
// `in_flight_nodes_limit` bounds the number of ops that wait; 0: any number. TFE_Execute waits
// while there are as many. `enable_streaming_enqueue` is of servers, and has no effect.
TF_CAPI_EXPORT extern TFE_Executor* TFE_NewExecutor(bool is_async, bool enable_streaming_enqueue,
                                                    int in_flight_nodes_limit);
// Drops the ops that wait, unless the executor is a context's own.
TF_CAPI_EXPORT extern void TFE_DeleteExecutor(TFE_Executor*);
TF_CAPI_EXPORT extern bool TFE_ExecutorIsAsync(TFE_Executor*);
// Waits for the ops that were executed before. Returns the executor's error, if there is one.
TF_CAPI_EXPORT extern void TFE_ExecutorWaitForAllPendingNodes(TFE_Executor*, TF_Status* status);
TF_CAPI_EXPORT extern void TFE_ExecutorClearError(TFE_Executor*);
// Sets the executor of the calling thread in a context, until it is deleted.
TF_CAPI_EXPORT extern void TFE_ContextSetExecutorForThread(TFE_Context*, TFE_Executor*);
// Returns a handle to the executor of the calling thread, to be deleted: by default that of the
// context.
TF_CAPI_EXPORT extern TFE_Executor* TFE_ContextGetExecutorForThread(TFE_Context*);
// Waits for all executors of the context. Returns the first error, and clears all.
TF_CAPI_EXPORT extern void TFE_ContextAsyncWait(TFE_Context* ctx, TF_Status* status);

// ---- attributes

// All attributes of an op that have been set, also by its inputs. Valid as long as the op.
typedef struct TFE_OpAttrs TFE_OpAttrs;
TF_CAPI_EXPORT extern const TFE_OpAttrs* TFE_OpGetAttrs(const TFE_Op* op);
// Sets those that `op` does not have.
TF_CAPI_EXPORT extern void TFE_OpAddAttrs(TFE_Op* op, const TFE_OpAttrs* attrs);
// Writes a serialized NameAttrList: the name of the op, and its attributes with defaults.
TF_CAPI_EXPORT extern void TFE_OpAttrsSerialize(const TFE_OpAttrs* attrs, TF_Buffer* buf,
                                                TF_Status* status);
// Sets an attribute to a serialized AttrValue.
TF_CAPI_EXPORT extern void TFE_OpSetAttrValueProto(const TFE_Op* op, const char* attr_name,
                                                   const void* proto, size_t proto_len,
                                                   TF_Status* status);

// ---- tensors

// Returns a tensor as TF_AllocateTensor does, of as many bytes as the shape needs. INVALID_ARGUMENT
// for an unknown type or shape, RESOURCE_EXHAUSTED if there is no memory.
TF_CAPI_EXPORT extern TF_Tensor* TFE_AllocateHostTensor(TFE_Context* ctx, TF_DataType dtype,
                                                        const int64_t* dims, int num_dims,
                                                        TF_Status* status);
// Same as TFE_NewTensorHandle.
TF_CAPI_EXPORT extern TFE_TensorHandle* TFE_NewTensorHandleFromTensor(TFE_Context* ctx,
                                                                      TF_Tensor* t,
                                                                      TF_Status* status);

// ---- devices

// Returns false: there are no devices of clients.
TF_CAPI_EXPORT extern bool TFE_IsCustomDevice(TFE_Context* ctx, const char* device_name);
// Whether each execution prints the op and its device on stderr.
TF_CAPI_EXPORT extern void TFE_ContextSetLogDevicePlacement(TFE_Context* ctx, unsigned char enable,
                                                            TF_Status* status);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_
