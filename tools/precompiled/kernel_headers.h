// What sources of kernels/ include, and those of the folders after it.
#include "library_headers.h"
#include "weir/core/kernel.h"
