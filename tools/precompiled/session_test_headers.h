// The additional headers of tests that run graphs.
#include "test_headers.h"
#include "weir/session/session.h"
