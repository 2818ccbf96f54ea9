#include "weir/capi/extensions/options.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace weir::capi {

namespace {

// Removes the next word from the text and returns it without its quotes.
absl::StatusOr<std::string> NextWord(absl::string_view* text) {
  std::string word;
  bool is_quoted = false;
  size_t i = 0;
  for (; i < text->size(); ++i) {
    const char c = (*text)[i];
    if (c == '"') {
      is_quoted = !is_quoted;
    } else if (is_quoted && c == '\\' && i + 1 < text->size()) {
      word += (*text)[++i];
    } else if (!is_quoted && absl::ascii_isspace(c)) {
      break;
    } else {
      word += c;
    }
  }
  if (is_quoted) return InvalidArgument("options: a quote does not end: ", *text);
  text->remove_prefix(i);
  return word;
}

}  // namespace

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParsePairs(
    absl::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::map<std::string, int> keys;
  while (!(text = absl::StripLeadingAsciiWhitespace(text)).empty()) {
    WEIR_ASSIGN_OR_RETURN(const std::string word, NextWord(&text));
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return InvalidArgument("options: '", word, "' is not of the form key=value");
    pairs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    if (++keys[pairs.back().first] > 1)
      return InvalidArgument("options: '", pairs.back().first, "' occurs twice");
  }
  return pairs;
}

OptionReader::OptionReader(const char* text) {
  auto pairs = ParsePairs(text == nullptr ? "" : text);
  error_ = pairs.status();
  if (pairs.ok()) values_.insert(pairs->begin(), pairs->end());
}

const std::string* OptionReader::Find(absl::string_view key) {
  known_.emplace_back(key);
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

void OptionReader::Fail(absl::string_view key, absl::string_view value, absl::string_view wanted) {
  if (error_.ok()) error_ = InvalidArgument("option ", key, "=", value, ": expected ", wanted);
}

void OptionReader::Read(absl::string_view key, std::string* value) {
  if (const std::string* text = Find(key)) *value = *text;
}

void OptionReader::Read(absl::string_view key, bool* value) {
  ReadChoice(key, {"false", "true"}, value);
}

void OptionReader::Read(absl::string_view key, Durability* value) {
  bool synced = *value == Durability::kSynced;
  Read(key, &synced);
  *value = synced ? Durability::kSynced : Durability::kUnsynced;
}

void OptionReader::Read(absl::string_view key, int* value) {
  const std::string* text = Find(key);
  if (text != nullptr && !absl::SimpleAtoi(*text, value)) Fail(key, *text, "an integer");
}

void OptionReader::Read(absl::string_view key, double* value) {
  const std::string* text = Find(key);
  if (text != nullptr && !absl::SimpleAtod(*text, value)) Fail(key, *text, "a number");
}

void OptionReader::Read(absl::string_view key, float* value) {
  const std::string* text = Find(key);
  if (text != nullptr && !absl::SimpleAtof(*text, value)) Fail(key, *text, "a number");
}

void OptionReader::Read(absl::string_view key, std::optional<int64_t>* value) {
  const std::string* text = Find(key);
  if (text == nullptr) return;
  if (!absl::SimpleAtoi(*text, &value->emplace())) Fail(key, *text, "an integer");
}

void OptionReader::Read(absl::string_view key, std::optional<double>* value) {
  const std::string* text = Find(key);
  if (text == nullptr) return;
  if (!absl::SimpleAtod(*text, &value->emplace())) Fail(key, *text, "a number");
}

void OptionReader::Read(absl::string_view key, std::vector<std::string>* value) {
  if (const std::string* text = Find(key)) *value = absl::StrSplit(*text, ',', absl::SkipEmpty());
}

void OptionReader::Read(absl::string_view key, const Graph& graph,
                        std::optional<TensorArg>* value) {
  const std::string* text = Find(key);
  if (text == nullptr) return;
  double number = 0;
  if (absl::SimpleAtod(*text, &number)) {
    value->emplace(number);
    return;
  }
  const absl::StatusOr<Output> tensor = graph.FindOutput(*text);
  if (tensor.ok())
    value->emplace(*tensor);
  else if (error_.ok())
    error_ = Annotate(tensor.status(), absl::StrCat("option ", key));
}

int OptionReader::Choice(absl::string_view key, std::initializer_list<absl::string_view> words) {
  const std::string* text = Find(key);
  if (text == nullptr) return -1;
  const auto* const it = std::find(words.begin(), words.end(), absl::string_view(*text));
  if (it != words.end()) return static_cast<int>(it - words.begin());
  Fail(key, *text, absl::StrCat("one of: ", absl::StrJoin(words, ", ")));
  return -1;
}

absl::Status OptionReader::Finish() const {
  WEIR_RETURN_IF_ERROR(error_);
  for (const auto& [key, value] : values_) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    return InvalidArgument("unknown option '", key,
                           "'; the options are: ", absl::StrJoin(known_, ", "));
  }
  return absl::OkStatus();
}

void SetList(const std::vector<std::string>& strings, TF_Buffer* buffer) {
  std::string bytes;
  for (const std::string& string : strings) bytes.append(string.c_str(), string.size() + 1);
  SetBuffer(bytes, buffer);
}

}  // namespace weir::capi
