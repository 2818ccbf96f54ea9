#ifndef WEIR_OPS_PARSING_INTERNAL_H_
#define WEIR_OPS_PARSING_INTERNAL_H_

#include "weir/core/op.h"

namespace weir {

// The part of AddParsingOps that is about examples (parse_example.cc).
void AddParseExampleOps(OpRegistry* ops);

}  // namespace weir

#endif  // WEIR_OPS_PARSING_INTERNAL_H_
