#ifndef TENSORFLOW_C_TF_TENSOR_H_
#define TENSORFLOW_C_TF_TENSOR_H_

#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tstring.h"

// Tensors: a type, a shape and the elements in row-major order. Elements of TF_STRING are
// TF_TStrings.
//
// Tensors may share their elements, also with a session: who runs a step must not change a value
// that it feeds meanwhile, or write to one that it has fetched. Functions without a status return
// NULL, 0 or -1 for arguments that are wrong, and print a line on stderr.

#ifdef __cplusplus
extern "C" {
#endif

// Where memory is allocated.
typedef struct TF_AllocatorAttributes {
  size_t struct_size;
  TF_Bool on_host;  // in the memory of the CPU, also for a kernel of another device
} TF_AllocatorAttributes;
#define TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE TF_OFFSET_OF_END(TF_AllocatorAttributes, on_host)

// A tensor; the caller deletes it.
typedef struct TF_Tensor TF_Tensor;

// Returns a tensor on `len` bytes of the caller, without a copy. They are given to `deallocator`
// when no tensor uses them any more, also after an error; memory that is not aligned for the type,
// and up to 4096 bytes that are not aligned for vectors (TF_TensorDefaultAlignment), are copied and
// given back at once. Null if a dimension is negative, if the elements need more
// than `len` bytes or the type is unknown. The deallocator may be called from any thread.
TF_CAPI_EXPORT extern TF_Tensor* TF_NewTensor(
    TF_DataType, const int64_t* dims, int num_dims, void* data, size_t len,
    void (*deallocator)(void* data, size_t len, void* arg), void* deallocator_arg);
// Returns a tensor with new memory of `len` bytes, uninitialized except for TF_STRING, whose
// elements are empty. Null as above, and if there is no memory. Who puts strings into the tensor
// frees them with TF_StringDealloc before it deletes the tensor.
TF_CAPI_EXPORT extern TF_Tensor* TF_AllocateTensor(TF_DataType, const int64_t* dims, int num_dims,
                                                   size_t len);
// Returns the tensor if it has memory of its own, which nobody shares, and leaves it to the caller;
// null otherwise.
TF_CAPI_EXPORT extern TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor);
// Null is allowed.
TF_CAPI_EXPORT extern void TF_DeleteTensor(TF_Tensor*);

// Return the type, the number of dimensions, one of them, the bytes that the elements take, their
// address, and their number.
TF_CAPI_EXPORT extern TF_DataType TF_TensorType(const TF_Tensor*);
TF_CAPI_EXPORT extern int TF_NumDims(const TF_Tensor*);
TF_CAPI_EXPORT extern int64_t TF_Dim(const TF_Tensor* tensor, int dim_index);
TF_CAPI_EXPORT extern size_t TF_TensorByteSize(const TF_Tensor*);
TF_CAPI_EXPORT extern void* TF_TensorData(const TF_Tensor*);
TF_CAPI_EXPORT extern int64_t TF_TensorElementCount(const TF_Tensor* tensor);

// Gives a tensor another shape of as many elements. A shape that needs more is refused, with a line
// on stderr.
TF_CAPI_EXPORT extern void TF_SetShape(TF_Tensor* tensor, const int64_t* dims, int num_dims);
// Lets `to` share the elements of `from`, as another type or shape of as many bytes.
// INVALID_ARGUMENT for other sizes, and for strings and resources unless the type is the same.
TF_CAPI_EXPORT extern void TF_TensorBitcastFrom(const TF_Tensor* from, TF_DataType type,
                                                TF_Tensor* to, const int64_t* new_dims,
                                                int num_new_dims, TF_Status* status);
// Replaces a tensor by the value of a serialized TensorProto. INVALID_ARGUMENT if it is none.
TF_CAPI_EXPORT extern void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to,
                                              TF_Status* status);
// The alignment of what TF_AllocateTensor returns, in bytes.
TF_CAPI_EXPORT extern size_t TF_TensorDefaultAlignment(void);
// Returns whether the elements are 64-byte aligned.
TF_CAPI_EXPORT extern TF_Bool TF_TensorIsAligned(const TF_Tensor*);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TENSORFLOW_C_TF_TENSOR_H_
