// What commands and examples start from: as kernels, but optimised less.
#include "kernel_headers.h"
