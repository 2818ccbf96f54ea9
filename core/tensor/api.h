// WEIR_API exports what a public header declares from the shared library libweir.so:
//
//     namespace WEIR_API weir {
//
// Sources are compiled with -fvisibility=hidden, so a declaration outside such a namespace stays
// inside the library. It has no effect in programs that link the static library.
//
// Every installed header uses it, and no other header does (tests/docs/public_headers_test.py).

#ifndef WEIR_CORE_TENSOR_API_H_
#define WEIR_CORE_TENSOR_API_H_

#define WEIR_API [[gnu::visibility("default")]]

#endif  // WEIR_CORE_TENSOR_API_H_
