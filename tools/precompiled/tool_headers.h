// The headers of commands and examples: like kernel_headers.h, but compiled with less optimization.
#include "kernel_headers.h"
