#ifndef WEIR_CAPI_API_DEF_TEXT_H_
#define WEIR_CAPI_API_DEF_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace weir::capi {

// Returns a message's text in which a string of several lines, `field: <<END`, the lines, and a
// line that begins with `END`, is a quoted one. `END` may be any word.
std::string QuoteLines(absl::string_view text);

}  // namespace weir::capi

#endif  // WEIR_CAPI_API_DEF_TEXT_H_
