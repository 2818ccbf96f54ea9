// What the commands start from: as kernels, but optimised less.
#include "kernel_headers.h"
