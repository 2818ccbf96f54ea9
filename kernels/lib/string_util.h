#ifndef WEIR_KERNELS_LIB_STRING_UTIL_H_
#define WEIR_KERNELS_LIB_STRING_UTIL_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/string_view.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/mutex.h"
#include "weir/kernels/lib/blocks.h"

// Shared code of the kernels for strings.
namespace weir {

// The parts of AddStringKernels, one source file each.
void AddStringJoinKernels(KernelRegistry* r);    // string_join.cc
void AddStringSplitKernels(KernelRegistry* r);   // string_split.cc
void AddStringFormatKernels(KernelRegistry* r);  // string_format.cc
void AddStringRegexKernels(KernelRegistry* r);   // string_regex.cc
void AddDecodeProtoKernels(KernelRegistry* r);   // decode_proto.cc
void AddEncodeProtoKernels(KernelRegistry* r);   // encode_proto.cc

// The error of the iteration with the lowest number among those that failed, which is the one that
// a serial loop would have returned. Thread-safe.
class LowestError {
 public:
  void Note(int64_t iteration, absl::Status status) {
    const MutexLock lock(mutex_);
    if (!status_.ok() && iteration_ < iteration) return;
    iteration_ = iteration;
    status_ = std::move(status);
  }
  // OK if no iteration failed. Call when all threads are done.
  absl::Status status() const {
    const MutexLock lock(mutex_);
    return status_;
  }

 private:
  mutable Mutex mutex_;
  int64_t iteration_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// Calls fn(k, scratch), which returns nothing or a Status, for each k in [0, n), on several
// threads. `scratch` is an lvalue of what make() returns; each chunk of the loop has its own.
// Several threads call both functions. `ns` is an estimate of the nanoseconds per call. Returns the
// error of the lowest k whose call failed.
template <class Make, class F>
absl::Status ForEachString(ThreadPool& pool, int64_t n, double ns, Make make, F fn) {
  LowestError error;
  pool.ParallelFor(n, ns, [&](int64_t begin, int64_t end) {
    auto scratch = make();
    for (const auto [from, to] : CancellableBlocks(end - begin)) {
      for (int64_t k = begin + from; k < begin + to; ++k) {
        if constexpr (std::is_void_v<decltype(fn(k, scratch))>) {
          fn(k, scratch);
        } else if (absl::Status status = fn(k, scratch); !status.ok()) {
          return error.Note(k, std::move(status));
        }
      }
    }
  });
  return error.status();
}

// The same for fn(k), which needs no scratch.
template <class F>
absl::Status ForEachString(ThreadPool& pool, int64_t n, double ns, F fn) {
  struct None {};
  return ForEachString(
      pool, n, ns, [] { return None(); }, [&](int64_t k, None) { return fn(k); });
}

// Computes output 0, which has the shape of input 0: element k is fn(element k of input 0,
// scratch), a T or a StatusOr<T>. Threads, `ns` and make() are as above.
template <class T, class Make, class F>
absl::Status MapStrings(KernelContext& c, double ns, Make make, F fn) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  const std::string* const from = in.data<std::string>();
  T* const to = out->data<T>();
  return ForEachString(c.pool(), in.num_elements(), ns, make, [&](int64_t k, auto& scratch) {
    if constexpr (std::is_same_v<decltype(fn(from[k], scratch)), absl::StatusOr<T>>) {
      absl::StatusOr<T> result = fn(from[k], scratch);
      if (!result.ok()) return std::move(result).status();
      to[k] = *std::move(result);
      return absl::OkStatus();
    } else {
      to[k] = fn(from[k], scratch);
    }
  });
}

// The same for fn(element k of input 0).
template <class T, class F>
absl::Status MapStrings(KernelContext& c, double ns, F fn) {
  struct None {};
  return MapStrings<T>(
      c, ns, [] { return None(); }, [&](const std::string& s, None) { return fn(s); });
}

// Sets *text to part(0) to part(n - 1) with the separator between them; part(i) converts to a
// string_view of other memory than the text's. The memory is allocated once.
template <class F>
void JoinParts(int64_t n, absl::string_view separator, F part, std::string* text) {
  size_t size = n > 1 ? static_cast<size_t>(n - 1) * separator.size() : 0;
  for (int64_t i = 0; i < n; ++i) size += absl::string_view(part(i)).size();
  text->clear();
  text->reserve(size);
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0) text->append(separator.data(), separator.size());
    const absl::string_view each = part(i);
    text->append(each.data(), each.size());
  }
}

// Parses all of `text` as a number, with optional white space around it and an optional sign. Real
// numbers may be hexadecimal, infinite or NaN; a number that is too large for the type becomes
// infinite. Returns false if the text is not a number or, for integers, does not fit. For float,
// double, and integers of 32 and 64 bits.
template <class T>
bool ParseNumber(absl::string_view text, T* value);

// Returns true for a UTF-8 continuation byte.
inline bool IsTrailByte(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// Reads the attribute "unit": true for UTF-8 characters, false for bytes.
inline bool CountsCharacters(const KernelInit& init) {
  return init.attr<std::string>("unit") == "UTF8_CHAR";
}

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_STRING_UTIL_H_
