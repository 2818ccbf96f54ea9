// What commands and examples start from: as kernels, but optimized less.
#include "kernel_headers.h"
