#ifndef WEIR_SERVING_SHOWN_NAME_H_
#define WEIR_SERVING_SHOWN_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace weir::serving {

// Returns a name that a client has chosen in the form in which messages and logs show it: with
// bytes that are not printable escaped, and at most 100 bytes of it.
std::string ShownName(absl::string_view name);

}  // namespace weir::serving

#endif  // WEIR_SERVING_SHOWN_NAME_H_
