#ifndef TENSORFLOW_C_KERNELS_H_
#define TENSORFLOW_C_KERNELS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"

// Kernels of a program or of a plug-in (TF_LoadLibrary): functions that compute the ops registered
// by ops.h.
//
//   TF_RegisterKernelBuilder(
//       "Halve", TF_NewKernelBuilder("Halve", "CPU", &Create, &Compute, &Delete), status);
//
// A session creates a kernel for each operation of a step, and deletes it when the session or the
// step's plan goes. Several threads may compute with one kernel at once, so its state must be
// thread-safe. What a function gets as context lives until it returns, for an asynchronous kernel
// until it is done; so does the memory of inputs: a kernel that keeps one copies it. Functions with
// a status set it; the others, given null or an index out of range, print a line on stderr and
// return NULL, 0 or -1.

#ifdef __cplusplus
extern "C" {
#endif

// A kernel under construction; what the creation of a kernel, and a computation, get; and what an
// asynchronous kernel calls when it is done.
typedef struct TF_KernelBuilder TF_KernelBuilder;
typedef struct TF_OpKernelConstruction TF_OpKernelConstruction;
typedef struct TF_OpKernelContext TF_OpKernelContext;
typedef struct TF_AsyncOpKernelDoneCallback TF_AsyncOpKernelDoneCallback;
// A stream of a pluggable device, of which there are none.
typedef struct SP_Stream_st* SP_Stream;

// ---- registration

// A plug-in may define this function, which TF_LoadLibrary calls once, to register its kernels.
void TF_InitKernel(void);

// Begin a kernel of an op for a type of devices, such as "CPU"; those for other types are listed,
// but never run. create_func returns the kernel's state, which compute_func gets and delete_func
// frees; both may be null. Of an asynchronous kernel, compute_async_func may return early, and
// something calls TF_RunAsyncOpKernelDoneCallback(done) once, also after a failure, from any
// thread. TF_RegisterKernelBuilder deletes the builder, or else TF_DeleteKernelBuilder.
TF_CAPI_EXPORT extern TF_KernelBuilder* TF_NewKernelBuilder(
    const char* op_name, const char* device_name, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_func)(void*, TF_OpKernelContext*), void (*delete_func)(void*));
TF_CAPI_EXPORT extern TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op_name, const char* device_name, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_async_func)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback* done),
    void (*delete_func)(void*));
TF_CAPI_EXPORT extern void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback* done);

// Restricts the kernel to operations whose attribute has this type. UNIMPLEMENTED for a type that
// Weir does not have.
TF_CAPI_EXPORT extern void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder* kernel_builder,
                                                           const char* attr_name, TF_DataType type,
                                                           TF_Status* status);
// Declares that an argument is in the memory of the CPU, as all of a CPU kernel are.
TF_CAPI_EXPORT extern void TF_KernelBuilder_HostMemory(TF_KernelBuilder* kernel_builder,
                                                       const char* arg_name);
// Sets the priority, 0 at first: of several kernels for an operation the highest one runs.
TF_CAPI_EXPORT extern void TF_KernelBuilder_Priority(TF_KernelBuilder* kernel_builder,
                                                     int32_t priority_number);
// Restricts the kernel to operations with this value of the attribute `_kernel`.
TF_CAPI_EXPORT extern void TF_KernelBuilder_Label(TF_KernelBuilder* kernel_builder,
                                                  const char* label);

// Registers a kernel and deletes the builder. The op may be registered later. The kernel's name is
// not used. UNIMPLEMENTED for a CPU kernel of an op that is built in.
TF_CAPI_EXPORT extern void TF_RegisterKernelBuilder(const char* kernel_name,
                                                    TF_KernelBuilder* builder, TF_Status* status);
// Same, with what a serialized KernelDef without zero bytes says in place of what the builder says;
// null: as above. INVALID_ARGUMENT for bytes that are no KernelDef.
TF_CAPI_EXPORT extern void TF_RegisterKernelBuilderWithKernelDef(const char* serialized_kernel_def,
                                                                 const char* name,
                                                                 TF_KernelBuilder* builder,
                                                                 TF_Status* status);
TF_CAPI_EXPORT extern void TF_DeleteKernelBuilder(TF_KernelBuilder* builder);

// ---- creation

// Fails the creation of the kernel, and so the step, with an error.
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* ctx,
                                                           TF_Status* status);
// Return the operation's name, and its serialized NodeDef, which the caller deletes.
TF_CAPI_EXPORT extern TF_StringView TF_OpKernelConstruction_GetName(TF_OpKernelConstruction* ctx);
TF_CAPI_EXPORT extern TF_Buffer* TF_OpKernelConstruction_GetNodeDef(TF_OpKernelConstruction* ctx,
                                                                    TF_Status* status);
TF_CAPI_EXPORT extern bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction* ctx,
                                                           const char* attr_name,
                                                           TF_Status* status);
// Returns the length of an attribute that is a list, otherwise -1; and the bytes of all strings,
// the dimensions of a shape (-1: unknown rank) or of all shapes, otherwise -1.
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction* ctx,
                                                               const char* attr_name,
                                                               int32_t* list_size,
                                                               int32_t* total_size,
                                                               TF_Status* status);
// Return an attribute. An error if there is none (NOT_FOUND, for a list INVALID_ARGUMENT), or if it
// is of another kind or too large (INVALID_ARGUMENT). At most max_length bytes and max_vals values
// are written. Strings of a list are written one after the other into `storage`. The caller deletes
// tensors, and the buffer of a function: a serialized NameAttrList.
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrType(TF_OpKernelConstruction* ctx,
                                                               const char* attr_name,
                                                               TF_DataType* val, TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction* ctx,
                                                                const char* attr_name, int32_t* val,
                                                                TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrInt64(TF_OpKernelConstruction* ctx,
                                                                const char* attr_name, int64_t* val,
                                                                TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction* ctx,
                                                                const char* attr_name, float* val,
                                                                TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction* ctx,
                                                               const char* attr_name, TF_Bool* val,
                                                               TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction* ctx,
                                                                 const char* attr_name, char* val,
                                                                 size_t max_length,
                                                                 TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrTensor(TF_OpKernelConstruction* ctx,
                                                                 const char* attr_name,
                                                                 TF_Tensor** val,
                                                                 TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrTypeList(TF_OpKernelConstruction* ctx,
                                                                   const char* attr_name,
                                                                   TF_DataType* vals, int max_vals,
                                                                   TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrInt32List(TF_OpKernelConstruction* ctx,
                                                                    const char* attr_name,
                                                                    int32_t* vals, int max_vals,
                                                                    TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrInt64List(TF_OpKernelConstruction* ctx,
                                                                    const char* attr_name,
                                                                    int64_t* vals, int max_vals,
                                                                    TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrFloatList(TF_OpKernelConstruction* ctx,
                                                                    const char* attr_name,
                                                                    float* vals, int max_vals,
                                                                    TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrBoolList(TF_OpKernelConstruction* ctx,
                                                                   const char* attr_name,
                                                                   TF_Bool* vals, int max_vals,
                                                                   TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrStringList(
    TF_OpKernelConstruction* ctx, const char* attr_name, char** values, size_t* lengths,
    int max_values, void* storage, size_t storage_size, TF_Status* status);
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_GetAttrTensorList(TF_OpKernelConstruction* ctx,
                                                                     const char* attr_name,
                                                                     TF_Tensor** vals,
                                                                     int max_values,
                                                                     TF_Status* status);
TF_CAPI_EXPORT extern TF_Buffer* TF_OpKernelConstruction_GetAttrFunction(
    TF_OpKernelConstruction* ctx, const char* attr_name, TF_Status* status);

// ---- computation: values

// Fails the step with an error. The kernel returns, or calls `done`, as usual.
TF_CAPI_EXPORT extern void TF_OpKernelContext_Failure(TF_OpKernelContext* ctx, TF_Status* status);

TF_CAPI_EXPORT extern int TF_NumInputs(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT extern int TF_NumOutputs(TF_OpKernelContext* ctx);
// Returns a tensor that shares the elements of input i, which the kernel must not write, but copies
// strings; the caller deletes it. OUT_OF_RANGE if there is no such input.
TF_CAPI_EXPORT extern void TF_GetInput(TF_OpKernelContext* ctx, int i, TF_Tensor** tensor,
                                       TF_Status* status);
// Return the types of an input and of an output.
TF_CAPI_EXPORT extern TF_DataType TF_InputDatatype(TF_OpKernelContext* ctx, int index);
TF_CAPI_EXPORT extern TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext* ctx, int i);
// Return whether a value is in the memory of the CPU. OUT_OF_RANGE if there is no such value.
TF_CAPI_EXPORT extern bool TF_IsHostMemoryInput(TF_OpKernelContext* ctx, int i, TF_Status* status);
TF_CAPI_EXPORT extern bool TF_IsHostMemoryOutput(TF_OpKernelContext* ctx, int i, TF_Status* status);

// The inputs [start, stop) of an argument. The caller sets `struct_size` and `status`.
typedef struct TF_InputRange_Args {
  size_t struct_size;
  void* priv;
  int start;
  int stop;
  TF_Status* status;
} TF_InputRange_Args;
#define TF_InputRange_Args_STRUCT_SIZE TF_OFFSET_OF_END(TF_InputRange_Args, status)
// Sets start and stop; -1 and INVALID_ARGUMENT if the op has no such argument.
TF_CAPI_EXPORT extern void TF_InputRange(TF_OpKernelContext* ctx, const char* name,
                                         TF_InputRange_Args* args);

// Sets output i to a tensor, whose elements it shares, but copies strings. OUT_OF_RANGE if there is
// no such output, INVALID_ARGUMENT for a tensor of another type.
TF_CAPI_EXPORT extern void TF_SetOutput(TF_OpKernelContext* ctx, int i, const TF_Tensor* tensor,
                                        TF_Status* status);
// Returns a tensor whose elements become output `index`: strings when the computation ends, others
// at once. `len` is not used. The caller deletes the tensor. OUT_OF_RANGE if there is no such
// output, INVALID_ARGUMENT for another type than the output's or for an invalid shape.
TF_CAPI_EXPORT extern TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int index,
                                                   TF_DataType dtype, const int64_t* dims,
                                                   int num_dims, size_t len, TF_Status* status);
// Same, of the output's type. No input is ever overwritten: `forwarded_input` becomes -1.
TF_CAPI_EXPORT extern TF_Tensor* TF_ForwardInputOrAllocateOutput(
    TF_OpKernelContext* context, const int* candidate_input_indices,
    int num_candidate_input_indices, int output_index, const int64_t* output_dims,
    int output_num_dims, int* forwarded_input, TF_Status* status);
// Returns a tensor that shares the elements of an output that has been set or allocated.
// FAILED_PRECONDITION if it has not.
TF_CAPI_EXPORT extern TF_Tensor* TF_GetMutableOutput(TF_OpKernelContext* ctx, int i,
                                                     TF_Status* status);
// Returns a tensor for intermediate results, which the caller deletes.
TF_CAPI_EXPORT extern TF_Tensor* TF_AllocateTemp(TF_OpKernelContext* context, TF_DataType dtype,
                                                 const int64_t* dims, int num_dims,
                                                 TF_AllocatorAttributes* alloc_attrs,
                                                 TF_Status* status);

// ---- computation: the operation, the step and the device

// Return the operation's name, and an input as the NodeDef has it, such as "a:1".
TF_CAPI_EXPORT extern TF_StringView TF_GetOpKernelName(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT extern TF_StringView TF_GetOpKernelRequestedInput(TF_OpKernelContext* ctx,
                                                                 size_t index);
// Returns the producer version of the graph.
TF_CAPI_EXPORT extern int TF_GetGraphDefVersion(TF_OpKernelContext* ctx);
// Return the number of the step.
TF_CAPI_EXPORT extern int64_t TF_StepId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT extern int64_t TF_GetStepId(TF_OpKernelContext* ctx);
// Return the frame and the iteration of the loop that the operation is in. Weir numbers neither for
// a kernel: both are 0.
TF_CAPI_EXPORT extern uint64_t TF_GetFrameId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT extern int64_t TF_GetIterId(TF_OpKernelContext* ctx);
// Return the number of the device among those of its type, and its full name.
TF_CAPI_EXPORT extern int TF_GetDeviceId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT extern TF_StringView TF_GetDeviceName(TF_OpKernelContext* ctx);
// Returns the container of resources that name none: "localhost".
TF_CAPI_EXPORT extern TF_StringView TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext* ctx);
// Null, and FAILED_PRECONDITION: a CPU has no stream.
TF_CAPI_EXPORT extern SP_Stream TF_GetStream(TF_OpKernelContext* ctx, TF_Status* status);

// Return serialized messages, in a buffer that is replaced: the graph's FunctionDefLibrary; the
// session's ConfigProto, which Weir does not keep (UNIMPLEMENTED); and the ResourceHandleProto of
// the handle that input i is (INVALID_ARGUMENT if it is none).
TF_CAPI_EXPORT extern void TF_GetSerializedFunctionDefLibrary(
    TF_OpKernelContext* ctx, TF_Buffer* serialized_function_def_library, TF_Status* status);
TF_CAPI_EXPORT extern void TF_GetSerializedConfigProto(TF_OpKernelContext* ctx,
                                                       TF_Buffer* serialized_config_proto,
                                                       TF_Status* status);
TF_CAPI_EXPORT extern void TF_GetSerializedResourceHandleProto(
    TF_OpKernelContext* ctx, int i, TF_Buffer* serialized_resource_handle_proto, TF_Status* status);

// Mark the begin and the end of work that a kernel leaves on a device when it returns: nothing on a
// CPU.
TF_CAPI_EXPORT extern void TF_IncNumDeferredOps(TF_OpKernelContext* context);
TF_CAPI_EXPORT extern void TF_DecNumDeferredOps(TF_OpKernelContext* context);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TENSORFLOW_C_KERNELS_H_
