#ifndef WEIR_OPS_RANKED_INTERNAL_H_
#define WEIR_OPS_RANKED_INTERNAL_H_

#include "absl/strings/string_view.h"
#include "weir/core/op.h"

namespace weir {

// A shape rule that first looks at the ranks of inputs, by the names of arguments, and then calls
// `rule`: Ranked("value: >=1, lengths: 1, flow_in: 0", ScalarShape). INVALID_ARGUMENT in
// TensorFlow's words ("Shape must be rank 0 but is rank 1") for a rank that is known and another. A
// name that the op does not have asks for nothing, so that ops of one family can share a text. A
// mistake in the text aborts the program.
ShapeFn Ranked(absl::string_view ranks, ShapeFn rule);

}  // namespace weir

#endif  // WEIR_OPS_RANKED_INTERNAL_H_
