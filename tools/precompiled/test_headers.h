// What most tests include, parsed once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "library_headers.h"
