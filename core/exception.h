#ifndef WEIR_CORE_EXCEPTION_H_
#define WEIR_CORE_EXCEPTION_H_

#include <type_traits>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// Weir throws nothing, but what it calls may: a user's kernel, shape function or gradient, and
// `new`. Where such a call is made, an exception becomes an error.
namespace weir {

// To be called in a `catch (...)` block: what was thrown as an error.
//
// clang-format off
//   why                 StepCancelled (core/cancellation.h)
//   RESOURCE_EXHAUSTED  std::bad_alloc, std::length_error; `before_message` has been called first,
//                       which may free memory for the message
//   INTERNAL            anything else. "`what` threw an exception: ...", with its what() if it is a
//                       std::exception
// clang-format on
absl::Status StatusOfException(
    absl::string_view what, absl::FunctionRef<void()> before_message = [] {});

// What `call` returns, a Status or a StatusOr, or the error of what it throws.
template <class F>
std::invoke_result_t<F> CatchExceptions(absl::string_view what, F&& call) {
  try {
    return call();
  } catch (...) {
    return StatusOfException(what);
  }
}

}  // namespace weir

#endif  // WEIR_CORE_EXCEPTION_H_
