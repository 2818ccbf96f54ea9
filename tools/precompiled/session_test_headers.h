// And what tests include that run graphs.
#include "test_headers.h"
#include "weir/session/session.h"
