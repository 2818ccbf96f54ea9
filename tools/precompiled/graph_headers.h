// The headers that sources in ops/ include.
#include "library_headers.h"
#include "weir/core/scope.h"
#include "weir/core/shape_context.h"
