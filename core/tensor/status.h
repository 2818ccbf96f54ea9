#ifndef WEIR_CORE_TENSOR_STATUS_H_
#define WEIR_CORE_TENSOR_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "weir/core/tensor/api.h"

// Errors are values throughout Weir. A message says what happened, where (node and op), the
// offending shapes, types or names, and what to do about it. Error codes are those that TensorFlow
// uses for the same mistake.
namespace WEIR_API weir {

// Returns the error with `context` prepended to its message. OK is returned unchanged.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

// An argument that is wrong in every state. This and the next functions join their arguments to the
// error's message, as absl::StrCat does.
template <class... Args>
absl::Status InvalidArgument(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}
// A name, a file or a key that does not exist.
template <class... Args>
absl::Status NotFound(const Args&... args) {
  return absl::NotFoundError(absl::StrCat(args...));
}
// A call that the state does not allow, such as a read of an uninitialized variable.
template <class... Args>
absl::Status FailedPrecondition(const Args&... args) {
  return absl::FailedPreconditionError(absl::StrCat(args...));
}
// Something that is to be created exists.
template <class... Args>
absl::Status AlreadyExists(const Args&... args) {
  return absl::AlreadyExistsError(absl::StrCat(args...));
}
// The end of a sequence: a closed queue, the last element of a dataset.
template <class... Args>
absl::Status OutOfRange(const Args&... args) {
  return absl::OutOfRangeError(absl::StrCat(args...));
}
// A case that Weir does not support, or an op without a kernel.
template <class... Args>
absl::Status Unimplemented(const Args&... args) {
  return absl::UnimplementedError(absl::StrCat(args...));
}
// A file with damaged bytes.
template <class... Args>
absl::Status DataLoss(const Args&... args) {
  return absl::DataLossError(absl::StrCat(args...));
}
// A mistake in Weir, or in a user's kernel.
template <class... Args>
absl::Status Internal(const Args&... args) {
  return absl::InternalError(absl::StrCat(args...));
}

}  // namespace weir

// Returns the error of an expression of type absl::Status from the calling function, if it is one.
#define WEIR_RETURN_IF_ERROR(expr)                                \
  do {                                                            \
    if (::absl::Status weir_status = (expr); !weir_status.ok()) { \
      return weir_status;                                         \
    }                                                             \
  } while (false)

#define WEIR_STATUS_CONCAT_INNER_(a, b) a##b
#define WEIR_STATUS_CONCAT_(a, b) WEIR_STATUS_CONCAT_INNER_(a, b)
#define WEIR_ASSIGN_OR_RETURN_IMPL_(statusor, lhs, expr)   \
  auto statusor = (expr);                                  \
  if (!statusor.ok()) return std::move(statusor).status(); \
  lhs = std::move(statusor).value()
// Declares or assigns a value, or returns the error: WEIR_ASSIGN_OR_RETURN(Tensor t, MakeTensor());
#define WEIR_ASSIGN_OR_RETURN(lhs, expr) \
  WEIR_ASSIGN_OR_RETURN_IMPL_(WEIR_STATUS_CONCAT_(weir_statusor_, __LINE__), lhs, expr)

#endif  // WEIR_CORE_TENSOR_STATUS_H_
