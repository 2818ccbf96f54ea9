#ifndef TENSORFLOW_C_TF_TSTRING_H_
#define TENSORFLOW_C_TF_TSTRING_H_

#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"

// The elements of tensors of TF_STRING: 24 bytes each.
//
// The two lowest bits of the first byte are the type. The size is stored above them: in the rest of
// the byte (small), or of the first 8 or 4 bytes.

#ifdef __cplusplus
extern "C" {
#endif

// Where the bytes of a string are.
typedef enum TF_TString_Type {
  TF_TSTR_SMALL = 0,   // in the string itself: up to 22, and a zero
  TF_TSTR_LARGE = 1,   // in memory of malloc that the string owns
  TF_TSTR_OFFSET = 2,  // `offset` bytes after the string; not owned
  TF_TSTR_VIEW = 3,    // elsewhere; not owned
} TF_TString_Type;

// The four forms. An element that is all zero is an empty string.
typedef struct TF_TString_Large {
  size_t size;
  size_t cap;
  char* ptr;
} TF_TString_Large;
typedef struct TF_TString_Offset {
  uint32_t size;
  uint32_t offset;
  uint32_t count;
} TF_TString_Offset;
typedef struct TF_TString_View {
  size_t size;
  const char* ptr;
} TF_TString_View;
typedef struct TF_TString_Raw {
  uint8_t raw[24];
} TF_TString_Raw;
typedef union TF_TString_Union {
  TF_TString_Large large;
  TF_TString_Offset offset;
  TF_TString_View view;
  TF_TString_Raw raw;
} TF_TString_Union;
typedef struct TF_TString_Small {
  uint8_t size;
  char str[sizeof(TF_TString_Union) - sizeof(uint8_t)];
} TF_TString_Small;
typedef struct TF_TString {
  union {
    TF_TString_Small smll;
    TF_TString_Large large;
    TF_TString_Offset offset;
    TF_TString_View view;
    TF_TString_Raw raw;
  } u;
} TF_TString;

// Makes an empty string of uninitialized memory.
TF_CAPI_EXPORT extern void TF_StringInit(TF_TString* t);
// Replaces the string by a copy of the bytes. If there is no memory for them, it is then empty.
TF_CAPI_EXPORT extern void TF_StringCopy(TF_TString* dst, const char* src, size_t size);
// Replaces the string by a view of bytes, which outlive it.
TF_CAPI_EXPORT extern void TF_StringAssignView(TF_TString* dst, const char* src, size_t size);
// Return the bytes, the form, the number of bytes and the number that fits without allocation; of
// null: null, TF_TSTR_SMALL and 0.
TF_CAPI_EXPORT extern const char* TF_StringGetDataPointer(const TF_TString* tstr);
TF_CAPI_EXPORT extern TF_TString_Type TF_StringGetType(const TF_TString* str);
TF_CAPI_EXPORT extern size_t TF_StringGetSize(const TF_TString* tstr);
TF_CAPI_EXPORT extern size_t TF_StringGetCapacity(const TF_TString* str);
// Frees what the string owns; it is then empty.
TF_CAPI_EXPORT extern void TF_StringDealloc(TF_TString* tstr);

// The names under which clients find the same functions in TensorFlow's headers.
static inline void TF_TString_Init(TF_TString* t) { TF_StringInit(t); }
static inline void TF_TString_Copy(TF_TString* dst, const char* src, size_t size) {
  TF_StringCopy(dst, src, size);
}
static inline void TF_TString_AssignView(TF_TString* dst, const char* src, size_t size) {
  TF_StringAssignView(dst, src, size);
}
static inline const char* TF_TString_GetDataPointer(const TF_TString* str) {
  return TF_StringGetDataPointer(str);
}
static inline TF_TString_Type TF_TString_GetType(const TF_TString* str) {
  return TF_StringGetType(str);
}
static inline size_t TF_TString_GetSize(const TF_TString* str) { return TF_StringGetSize(str); }
static inline size_t TF_TString_GetCapacity(const TF_TString* str) {
  return TF_StringGetCapacity(str);
}
static inline void TF_TString_Dealloc(TF_TString* str) { TF_StringDealloc(str); }

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TENSORFLOW_C_TF_TSTRING_H_
