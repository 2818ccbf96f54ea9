#include "weir/core/tensor/exception.h"

#include <cxxabi.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/heap.h"

namespace weir {

namespace {

absl::Status Thrown(absl::string_view what, const std::exception& e) {
  return absl::InternalError(absl::StrCat(what, " threw an exception: ", e.what()));
}

}  // namespace

absl::Status ExceptionToStatus(absl::string_view what, absl::FunctionRef<void()> before_message) {
  const ScopedUnlimitedHeap for_the_message;  // another exception would end the program
  try {
    throw;
  } catch (const abi::__forced_unwind&) {
    throw;  // pthread_exit and similar: the thread must terminate
  } catch (const StepCancelled& cancelled) {
    return cancelled.why;
  } catch (const std::bad_alloc&) {
    before_message();
    return absl::ResourceExhaustedError(
        absl::StrCat("OOM: out of memory allocating kernel scratch space", WhyNotAllocated()));
  } catch (const std::length_error&) {
    before_message();
    return absl::ResourceExhaustedError(
        "OOM: kernel scratch space of more elements than any memory holds");
  } catch (const std::system_error& e) {
    if (e.code() != std::errc::resource_unavailable_try_again) return Thrown(what, e);
    before_message();
    return absl::ResourceExhaustedError("OOM: the system has no room for another thread");
  } catch (const std::exception& e) {
    return Thrown(what, e);
  } catch (...) {
    return absl::InternalError(
        absl::StrCat(what, " threw an exception that is not a std::exception"));
  }
}

}  // namespace weir
