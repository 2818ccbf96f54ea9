#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weir/core/graph/scope.h"

namespace weir {

namespace {

// Parses a number, or '*' for "any".
bool ParseIndex(absl::string_view text, std::optional<int>* out) {
  if (text == "*") {
    out->reset();
    return true;
  }
  int value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < 0) return false;
  *out = value;
  return true;
}

bool IsWord(absl::string_view text) {
  if (text.empty() || !absl::ascii_isalpha(text[0])) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && c != '_') return false;
  }
  return true;
}

bool ParseJob(absl::string_view text, DeviceName* out) {
  if (text == "*") {
    out->job.reset();
    return true;
  }
  if (!IsWord(text)) return false;
  out->job = std::string(text);
  return true;
}

// Parses "GPU", "gpu:1", "CPU:*", "*".
bool ParseDevice(absl::string_view text, DeviceName* out) {
  const size_t colon = text.find(':');
  const absl::string_view type = text.substr(0, colon);
  if (type == "*") {
    out->type.reset();
  } else if (IsWord(type)) {
    out->type = absl::AsciiStrToUpper(type);
  } else {
    return false;
  }
  if (colon == absl::string_view::npos) {
    out->id.reset();
    return true;
  }
  return ParseIndex(text.substr(colon + 1), &out->id);
}

// Parses "cpu:0", "GPU:1", "gpu": the device types that may appear without a key.
bool IsShortForm(absl::string_view part) {
  const absl::string_view type = part.substr(0, part.find(':'));
  return absl::EqualsIgnoreCase(type, "CPU") || absl::EqualsIgnoreCase(type, "GPU");
}

// The error for a part that has no known key and does not name a device.
bool HasUnknownKey(absl::string_view part) {
  for (const absl::string_view key : {"job:", "replica:", "task:", "device:"}) {
    if (absl::StartsWith(part, key)) return false;
  }
  return !IsShortForm(part);
}

// Parses one "/key:value" part of a name, without the slash.
bool ParsePart(absl::string_view part, DeviceName* out) {
  if (absl::ConsumePrefix(&part, "job:")) return ParseJob(part, out);
  if (absl::ConsumePrefix(&part, "replica:")) return ParseIndex(part, &out->replica);
  if (absl::ConsumePrefix(&part, "task:")) return ParseIndex(part, &out->task);
  return (absl::ConsumePrefix(&part, "device:") || IsShortForm(part)) && ParseDevice(part, out);
}

template <class T>
void Merge(const std::optional<T>& from, std::optional<T>* into) {
  if (from) *into = from;
}

template <class T>
bool Agrees(const std::optional<T>& a, const std::optional<T>& b) {
  return !a || !b || *a == *b;
}

}  // namespace

absl::StatusOr<DeviceName> DeviceName::Parse(absl::string_view text) {
  DeviceName name;
  absl::string_view rest = text;
  absl::ConsumePrefix(&rest, "/");
  if (rest.empty()) return name;
  bool has_type = false;
  for (const absl::string_view part : absl::StrSplit(rest, '/')) {
    const bool is_type = absl::StartsWith(part, "device:") || IsShortForm(part);
    if (is_type && has_type)
      return InvalidArgument("Multiple device types are not allowed: '", text, "'");
    has_type = has_type || is_type;
    if (!ParsePart(part, &name)) {
      const std::string unknown =
          HasUnknownKey(part)
              ? absl::StrCat("Unknown attribute '", part.substr(0, part.find(':')),
                             "' is encountered while parsing the device spec: '", text, "'. ")
              : "";
      return InvalidArgument(unknown, "Malformed device specification '", text,
                             "': expected for example '/job:worker/replica:0/task:1/device:GPU:0'"
                             " or '/cpu:0'");
    }
  }
  return name;
}

void DeviceName::MergeFrom(const DeviceName& other) {
  Merge(other.job, &job);
  Merge(other.replica, &replica);
  Merge(other.task, &task);
  Merge(other.type, &type);
  Merge(other.id, &id);
}

bool DeviceName::Matches(const DeviceName& other) const {
  return Agrees(job, other.job) && Agrees(replica, other.replica) && Agrees(task, other.task) &&
         Agrees(type, other.type) && Agrees(id, other.id);
}

std::string DeviceName::ToString() const {
  std::string text;
  if (job) absl::StrAppend(&text, "/job:", *job);
  if (replica) absl::StrAppend(&text, "/replica:", *replica);
  if (task) absl::StrAppend(&text, "/task:", *task);
  if (type || id) {
    absl::StrAppend(&text, "/device:", type.value_or("*"), ":", id ? absl::StrCat(*id) : "*");
  }
  return text;
}

}  // namespace weir
