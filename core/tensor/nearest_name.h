#ifndef WEIR_CORE_TENSOR_NEAREST_NAME_H_
#define WEIR_CORE_TENSOR_NEAREST_NAME_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weir {

// Returns the one of `names` that `word` was probably meant to be: one that ends in "/" and `word`
// or the reverse, as under another scope, or else the one with the fewest letters to insert, remove
// or replace (Levenshtein's distance), if these are at most a third of the word and one more.
// Returns an empty string if none is like it.
std::string NearestName(absl::string_view word, absl::Span<const std::string> names);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_NEAREST_NAME_H_
