#ifndef WEIR_CORE_TENSOR_EXCEPTION_H_
#define WEIR_CORE_TENSOR_EXCEPTION_H_

#include <type_traits>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// Weir itself throws only StepCancelled, but the code that it calls may throw: a user's kernel,
// shape function or gradient function, and `new`. At such calls, exceptions are converted to
// statuses.
namespace weir {

// Converts the current exception to a Status; call it in a `catch (...)` block.
//
// clang-format off
//   why                 StepCancelled (core/tensor/cancellation.h)
//   RESOURCE_EXHAUSTED  std::bad_alloc, std::length_error; `before_message` is called first and may
//                       free memory for the message
//   INTERNAL            anything else. "`what` threw an exception: ...", with its what() if it is a
//                       std::exception
// clang-format on
absl::Status ExceptionToStatus(
    absl::string_view what, absl::FunctionRef<void()> before_message = [] {});

// Returns the result of `call`, a Status or a StatusOr, or the error that ExceptionToStatus makes
// of an exception.
template <class F>
std::invoke_result_t<F> CatchExceptions(absl::string_view what, F&& call) {
  try {
    return call();
  } catch (...) {
    return ExceptionToStatus(what);
  }
}

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_EXCEPTION_H_
