#ifndef WEIR_RPC_LIB_MASTER_OPTIONS_H_
#define WEIR_RPC_LIB_MASTER_OPTIONS_H_

#include <chrono>
#include <cstdint>

#include "weir/rpc/lib/graph_policy.h"
#include "weir/rpc/lib/response_limit.h"
#include "weir/session/session.h"

namespace weir::rpc {

// Options of a Master.
struct MasterOptions {
  // Options of all sessions; `resources` is set by the server.
  SessionOptions session = {};
  // More sessions are RESOURCE_EXHAUSTED. A session with functions and with iterators that other
  // sessions can access, and that may call these, counts until a Reset.
  int max_sessions = 1000;
  // Sessions without a call for this long are closed, because their clients have gone. Zero: never.
  std::chrono::milliseconds idle_limit = std::chrono::hours(24);
  // Same, for sessions without a connection: of the connections that have called it, none is left.
  std::chrono::milliseconds orphan_limit = std::chrono::minutes(10);
  // What the graphs of sessions may contain.
  GraphLimits graph_limits = {};
  // The largest response of a step: fetched values, traces and graphs.
  ResponseLimit max_response{};
  // What a session, with what its steps leave in variables, queues and tables, and a step may hold
  // of the host's memory in bytes: tensors, strings and responses. Zero: no limit of their own.
  int64_t session_memory_bytes = 0, step_memory_bytes = 0;
  // The time limit of steps and sessions for which the client sets none, and the longest that it
  // can set. Zero: none.
  std::chrono::milliseconds default_step_limit{0}, max_step_limit{0};
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_MASTER_OPTIONS_H_
