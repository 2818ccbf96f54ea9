#include "weir/rpc/lib/server_log.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "weir/rpc/lib/clients.h"

namespace weir::rpc {

namespace {

constexpr int64_t kMaxWaitingBytes = 16 << 20;
constexpr size_t kMaxTextBytes = 2048;  // of one value

// Values that contain a space, a quote or a character that is not visible are quoted.
std::string Quoted(absl::string_view value) {
  const bool is_plain = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '"' && c != '\\';
  });
  return is_plain ? std::string(value) : absl::StrCat("\"", absl::Utf8SafeCHexEscape(value), "\"");
}

}  // namespace

// A line to be: its fields in order.
class ServerLog::Line {
 public:
  Line(Level level, absl::string_view event) {
    Add("time", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone()));
    Add("level", level == Level::kInfo ? "info" : level == Level::kWarning ? "warning" : "error");
    Add("event", event);
  }
  void Add(absl::string_view name, absl::string_view value) {
    fields_[std::string(name)] = value.substr(0, kMaxTextBytes);
  }
  void Add(absl::string_view name, int64_t value) { fields_[std::string(name)] = value; }

  std::string Text(Format format) const {
    // Bytes that are not UTF-8 are replaced.
    if (format == Format::kJson)
      return fields_.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    std::string text;
    for (const auto& [name, value] : fields_.items()) {
      if (!text.empty()) text += ' ';
      if (name != "time" && name != "level" && name != "event") absl::StrAppend(&text, name, "=");
      text += value.is_string() ? Quoted(value.get_ref<const std::string&>()) : value.dump();
    }
    return text;
  }

 private:
  nlohmann::ordered_json fields_;
};

ServerLog::ServerLog(Format format, Calls calls, int fd)
    : format_(format),
      calls_(calls),
      fd_(fd),
      writer_(kMaxWaitingBytes,
              [this](const std::vector<BackgroundWriter::Item>& items) { Write(items); }) {}

void ServerLog::LogCall(const CallRecord& record) {
  const bool is_error = !record.status.ok();
  if (calls_ == Calls::kNone || (calls_ == Calls::kErrors && !is_error)) return;
  const Call& call = record.call;
  Line line(is_error ? Level::kError : Level::kInfo, "call");
  line.Add("method", record.method);
  line.Add("entrypoint", record.entrypoint);
  line.Add("code", absl::StatusCodeToString(record.status.code()));
  line.Add("micros", std::chrono::duration_cast<std::chrono::microseconds>(record.took).count());
  line.Add("client", call.connection);
  if (call.client != nullptr) line.Add("client_name", call.client->name());
  line.Add("request_id", call.request_id);
  if (!call.model.empty()) line.Add("model", call.model);
  if (call.version) line.Add("version", *call.version);
  if (!call.signature.empty()) line.Add("signature", call.signature);
  if (!call.traceparent.empty()) {
    line.Add("trace_id", absl::string_view(call.traceparent).substr(3, 32));
    line.Add("parent_span_id", absl::string_view(call.traceparent).substr(36, 16));
  }
  if (is_error) line.Add("error", record.status.message());
  Add(line);
}

void ServerLog::LogEvent(Level level, absl::string_view event, absl::string_view text) {
  Line line(level, event);
  line.Add("text", text);
  Add(line);
}

void ServerLog::Add(const Line& line) { writer_.Add({"", line.Text(format_)}); }

void ServerLog::Write(const std::vector<BackgroundWriter::Item>& items) {
  std::string lines;
  for (const BackgroundWriter::Item& item : items) absl::StrAppend(&lines, item.data, "\n");
  if (const int64_t dropped = writer_.dropped(); dropped > reported_drops_) {
    Line line(Level::kWarning, "dropped");
    line.Add("lines", dropped - reported_drops_);
    reported_drops_ = dropped;
    absl::StrAppend(&lines, line.Text(format_), "\n");
  }
  for (absl::string_view rest = lines; !rest.empty();) {
    const ssize_t written = write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // there is no other place to say so
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace weir::rpc
