#include "weir/rpc/lib/request_numbers.h"

namespace weir::rpc {

namespace {

constexpr size_t kRememberedRequests = 100'000;

}  // namespace

bool RequestNumbers::IsNew(const void* client, int64_t number) {
  if (number == 0) return true;
  const Request request(client, number);
  const MutexLock lock(mutex_);
  if (!recent_.insert(request).second) return false;
  order_.push_back(request);
  if (order_.size() > kRememberedRequests) {
    recent_.erase(order_.front());
    order_.pop_front();
  }
  return true;
}

bool RequestNumbers::IsKnown(const void* client, int64_t number) const {
  const MutexLock lock(mutex_);
  return recent_.contains(Request(client, number));
}

}  // namespace weir::rpc
