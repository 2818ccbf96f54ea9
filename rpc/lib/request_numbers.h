#ifndef WEIR_RPC_LIB_REQUEST_NUMBERS_H_
#define WEIR_RPC_LIB_REQUEST_NUMBERS_H_

#include <cstdint>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "weir/core/tensor/mutex.h"

namespace weir::rpc {

// The numbers of recent requests: one that a client or a proxy repeats must not run again.
// Thread-safe.
class RequestNumbers {
 public:
  // Notes the number of a request of this client (null: where clients are not told apart). Returns
  // false if it was there before. 0 is no number.
  bool IsNew(const void* client, int64_t number);
  // Whether the number was noted before, and not too long ago.
  bool IsKnown(const void* client, int64_t number) const;

 private:
  using Request = std::pair<const void*, int64_t>;

  mutable Mutex mutex_;
  absl::flat_hash_set<Request> recent_ ABSL_GUARDED_BY(mutex_);
  std::deque<Request> order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_REQUEST_NUMBERS_H_
