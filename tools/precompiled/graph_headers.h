// The headers that sources in ops/ include.
#include "library_headers.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
