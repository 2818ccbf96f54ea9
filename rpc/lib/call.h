#ifndef WEIR_RPC_LIB_CALL_H_
#define WEIR_RPC_LIB_CALL_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/status.h"
#include "weir/rpc/lib/memory_reservation.h"

namespace weir::rpc {

class Client;

// A call of a client.
struct Call {
  Cancellation cancellation;  // ends a long call
  // The name of the connection that it came on; empty if it cannot end, as in the same process.
  std::string connection;
  MemoryReservation response_memory;  // of the response, until it is sent
  // Who calls; null if the server does not distinguish its clients.
  std::shared_ptr<Client> client;
  // For logs: the client's "x-request-id", or a new one, and its "traceparent" (W3C Trace Context),
  // or "".
  std::string request_id, traceparent;
  // Whether the client lets other calls go first (see IsLowPriority).
  bool is_low_priority = false;
  // Set by the services of models, for logs and metrics: the model, if it exists, and what of it
  // answered.
  std::string model, signature;
  std::optional<int64_t> version;
};

// A completed call, valid during ServerOptions::on_call.
struct CallRecord {
  absl::string_view method;       // "Predict"
  absl::string_view entrypoint;   // "GRPC"
  const Call& call;               // who called, and which model answered
  const absl::Status& status;     // how it ended
  std::chrono::nanoseconds took;  // from the start of the call to the response
};
// What a server calls after each call.
using OnCall = std::function<void(const CallRecord&)>;

// Returns the id of a request: `given`, if it consists of 1 to 128 visible ASCII characters, or a
// new one, unique in this process and very likely everywhere.
std::string RequestId(absl::string_view given);

// Returns `given` if it is a traceparent of W3C Trace Context
// ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), "" otherwise.
std::string Traceparent(absl::string_view given);

// The name of the metadata, or of the HTTP header, with the priority of a call in batches
// (serving::Priority).
inline constexpr char kPriorityName[] = "x-weir-priority";
// Returns whether its value is "low" instead of "high" or absent (""). INVALID_ARGUMENT for others.
absl::StatusOr<bool> IsLowPriority(absl::string_view given);

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_CALL_H_
