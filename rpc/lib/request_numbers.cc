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

}  // namespace weir::rpc
