#ifndef WEIR_CAPI_SERVER_LIBRARY_H_
#define WEIR_CAPI_SERVER_LIBRARY_H_

#include <stddef.h>

#include "tensorflow/c/tf_status.h"

// What libweir_server.so has, in which TF_NewServer finds a server: gRPC makes it too large for the
// library of the C API, and few programs are servers. It exports one function, WeirServerLibrary,
// which returns its functions.

#ifdef __cplusplus
extern "C" {
#endif

// Sets a status, as TF_SetStatus; the library of the server does not link the C API.
typedef void (*WeirSetStatus)(TF_Status*, TF_Code, const char* message);

// The functions of a server, which are those of TF_Server in c_api.h.
typedef struct WeirServerFunctions {
  int version;  // kWeirServerVersion
  void* (*create)(const void* server_def, size_t size, WeirSetStatus set, TF_Status* status);
  void (*start)(void* server, WeirSetStatus set, TF_Status* status);
  void (*stop)(void* server, WeirSetStatus set, TF_Status* status);
  void (*join)(void* server, WeirSetStatus set, TF_Status* status);
  const char* (*target)(void* server);
  void (*destroy)(void* server);
} WeirServerFunctions;

enum { kWeirServerVersion = 1 };
typedef const WeirServerFunctions* (*WeirServerLibraryFn)(void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // WEIR_CAPI_SERVER_LIBRARY_H_
