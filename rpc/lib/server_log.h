#ifndef WEIR_RPC_LIB_SERVER_LOG_H_
#define WEIR_RPC_LIB_SERVER_LOG_H_

#include <string>

#include "weir/rpc/lib/background_writer.h"
#include "weir/rpc/lib/call.h"

namespace weir::rpc {

// The log of a server, for operators and their programs: one line for each call and each event, on
// a file descriptor. Never delays a call: lines that arrive faster than they can be written are
// dropped, and a line says how many. Thread-safe.
//
// Text:  2026-11-28T09:00:00.123456Z info call method=Predict entrypoint=GRPC code=OK micros=312
//        client=ipv4:127.0.0.1:41234 request_id=... model=m version=3 signature=serving_default
// JSON: {"time":"2026-11-28T09:00:00.123456Z","level":"info","event":"call","method":"Predict",...}
//
// A failed call has the level "error" and `error`, its message. A call with a W3C traceparent has
// `trace_id` and `parent_span_id`. Text quotes values with other characters than visible ASCII.
class ServerLog {
 public:
  enum class Format { kText, kJson };
  enum class Calls { kNone, kErrors, kAll };
  enum class Level { kInfo, kWarning, kError };

  // Which calls are logged, and where; `fd` must be open during the log's lifetime.
  ServerLog(Format format, Calls calls, int fd);

  void LogCall(const CallRecord& record);
  // Logs an event of the server: its kind ("model"), and a text.
  void LogEvent(Level level, absl::string_view event, absl::string_view text);

 private:
  class Line;
  void Add(const Line& line);
  void Write(const std::vector<BackgroundWriter::Item>& items);

  const Format format_;
  const Calls calls_;
  const int fd_;
  int64_t reported_drops_ = 0;  // used by the writer's thread
  BackgroundWriter writer_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_SERVER_LOG_H_
