// What the commands start from (see library_headers.h): each of them parses arguments.
#include <CLI/CLI.hpp>

#include "kernel_headers.h"
