#ifndef WEIR_OPS_LIB_RANKED_INTERNAL_H_
#define WEIR_OPS_LIB_RANKED_INTERNAL_H_

#include "absl/strings/string_view.h"
#include "weir/core/graph/op.h"

namespace weir {

// Returns a shape function that first checks the ranks of inputs by argument name and then calls
// `rule`: Ranked("value: >=1, lengths: 1, flow_in: 0", ScalarShape). Returns INVALID_ARGUMENT with
// TensorFlow's text ("Shape must be rank 0 but is rank 1") for a known rank that does not match. A
// name that the op does not have is ignored, so that ops of one family can share a text. A
// malformed text aborts the program.
ShapeFn Ranked(absl::string_view ranks, ShapeFn rule);

}  // namespace weir

#endif  // WEIR_OPS_LIB_RANKED_INTERNAL_H_
