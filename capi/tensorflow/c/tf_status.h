#ifndef TENSORFLOW_C_TF_STATUS_H_
#define TENSORFLOW_C_TF_STATUS_H_

#include "tensorflow/c/c_api_macros.h"

// The outcome of a call: a code and a message.

#ifdef __cplusplus
extern "C" {
#endif

// A status, which functions that can fail fill in. It may be used again after an error: every call
// overwrites it. One thread at a time may use a status.
typedef struct TSL_Status TF_Status;

// The codes of errors, those of google.rpc.Code.
typedef enum TF_Code {
  TF_OK = 0,
  TF_CANCELLED = 1,
  TF_UNKNOWN = 2,
  TF_INVALID_ARGUMENT = 3,
  TF_DEADLINE_EXCEEDED = 4,
  TF_NOT_FOUND = 5,
  TF_ALREADY_EXISTS = 6,
  TF_PERMISSION_DENIED = 7,
  TF_UNAUTHENTICATED = 16,
  TF_RESOURCE_EXHAUSTED = 8,
  TF_FAILED_PRECONDITION = 9,
  TF_ABORTED = 10,
  TF_OUT_OF_RANGE = 11,
  TF_UNIMPLEMENTED = 12,
  TF_INTERNAL = 13,
  TF_UNAVAILABLE = 14,
  TF_DATA_LOSS = 15,
} TF_Code;

// Returns a new status, which is TF_OK. The caller deletes it; null is allowed there.
TF_CAPI_EXPORT extern TF_Status* TF_NewStatus(void);
TF_CAPI_EXPORT extern void TF_DeleteStatus(TF_Status*);

// Sets code and message. With TF_OK the message is dropped.
TF_CAPI_EXPORT extern void TF_SetStatus(TF_Status* s, TF_Code code, const char* msg);
// Sets the status of a failed system call from its errno; `context` begins the message.
TF_CAPI_EXPORT extern void TF_SetStatusFromIOError(TF_Status* s, int error_code,
                                                   const char* context);

// Attaches a value to an error under a key, which is a URL of its type. Payloads are not in the
// message. None is attached to TF_OK.
TF_CAPI_EXPORT extern void TF_SetPayload(TF_Status* s, const char* key, const char* value);
// Calls `visitor` with each of them; null for the status or the visitor does nothing.
typedef void (*TF_PayloadVisitor)(const char* key, const char* value, void* capture);
TF_CAPI_EXPORT extern void TF_ForEachPayload(const TF_Status* s, TF_PayloadVisitor visitor,
                                             void* capture);

// Returns the code; TF_INVALID_ARGUMENT for null.
TF_CAPI_EXPORT extern TF_Code TF_GetCode(const TF_Status* s);
// Returns the message, "" if there is none. Valid until the status changes.
TF_CAPI_EXPORT extern const char* TF_Message(const TF_Status* s);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TENSORFLOW_C_TF_STATUS_H_
