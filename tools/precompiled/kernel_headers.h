// The headers that sources in kernels/ and in the folders after it include.
#include "library_headers.h"
#include "weir/core/runtime/kernel.h"
