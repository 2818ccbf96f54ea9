#ifndef TENSORFLOW_C_TF_BUFFER_H_
#define TENSORFLOW_C_TF_BUFFER_H_

#include <stddef.h>

#include "tensorflow/c/c_api_macros.h"

// Bytes with a length, such as a serialized message of TensorFlow.

#ifdef __cplusplus
extern "C" {
#endif

// The bytes, and what frees them; null: nothing does. A program may fill in the fields.
typedef struct TF_Buffer {
  const void* data;
  size_t length;
  void (*data_deallocator)(void* data, size_t length);
} TF_Buffer;

// Returns a buffer with a copy of the bytes.
TF_CAPI_EXPORT extern TF_Buffer* TF_NewBufferFromString(const void* proto, size_t proto_len);
// Returns an empty buffer, for the results of calls.
TF_CAPI_EXPORT extern TF_Buffer* TF_NewBuffer(void);
// Frees the buffer, and its bytes by data_deallocator. Null is allowed.
TF_CAPI_EXPORT extern void TF_DeleteBuffer(TF_Buffer*);
// Returns the fields; all zero for null.
TF_CAPI_EXPORT extern TF_Buffer TF_GetBuffer(TF_Buffer* buffer);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TENSORFLOW_C_TF_BUFFER_H_
