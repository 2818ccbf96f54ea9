#include "weir/serving/text_config.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace weir::serving {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

// Keeps the first error of a text, with its line.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber, const std::string& message) override {
    if (!message_.empty()) return;
    line_ = line + 1;
    message_ = message;
  }
  int line() const { return line_; }
  const std::string& message() const { return message_; }

 private:
  int line_ = 1;
  std::string message_;
};

// Returns "; expected one of: ..." for the parser's error about a field that a message does not
// have.
std::string ExpectedFields(absl::string_view error, const Descriptor& root) {
  const size_t end = error.find("\" has no field named");
  if (end == absl::string_view::npos || !absl::ConsumePrefix(&error, "Message type \"")) return "";
  const std::string type(error.substr(0, error.find('"')));
  const Descriptor* const message = root.file()->pool()->FindMessageTypeByName(type);
  if (message == nullptr) return "";
  std::vector<std::string> names;
  for (int i = 0; i < message->field_count(); ++i) names.push_back(message->field(i)->name());
  return absl::StrCat(" Expected one of: ", absl::StrJoin(names, ", "));
}

// The parser reports an unknown value of an enumeration at the token after the value. Returns the
// line of the value, which is the last one before that with its name.
int LineOfError(absl::string_view text, int line, absl::string_view error) {
  if (!absl::ConsumePrefix(&error, "Unknown enumeration value of \"")) return line;
  const absl::string_view value = error.substr(0, error.find('"'));
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  int at = std::min(line, static_cast<int>(lines.size()));
  while (at > 1 && !absl::StrContains(lines[at - 1], value)) --at;
  return at;
}

}  // namespace

struct TextConfig::Impl {
  const Descriptor* message;
  TextFormat::ParseInfoTree tree = {};
};

TextConfig::TextConfig(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TextConfig::TextConfig(TextConfig&&) noexcept = default;
TextConfig& TextConfig::operator=(TextConfig&&) noexcept = default;
TextConfig::~TextConfig() = default;

absl::StatusOr<TextConfig> TextConfig::Parse(absl::string_view text,
                                             google::protobuf::Message* message) {
  constexpr int kMaxNesting = 100;  // the limit of the binary parser
  auto impl = std::make_unique<Impl>();
  impl->message = message->GetDescriptor();
  FirstError error;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxNesting);
  parser.WriteLocationsTo(&impl->tree);
  if (!parser.ParseFromString(std::string(text), message)) {
    return InvalidArgument("line ", LineOfError(text, error.line(), error.message()), ": ",
                           error.message(), ExpectedFields(error.message(), *impl->message));
  }
  return TextConfig(std::move(impl));
}

int TextConfig::Line(const std::vector<Field>& path) const {
  int line = 1;
  TextFormat::ParseInfoTree* tree = &impl_->tree;
  const Descriptor* message = impl_->message;
  for (const Field& step : path) {
    const FieldDescriptor* const field = message->FindFieldByName(step.name);
    if (field == nullptr) break;
    const int index = field->is_repeated() ? step.index : -1;
    int start = tree->GetLocation(field, index).line;
    // The values of a list, "[1, 2]", have one location, that of the first.
    for (int i = index - 1; start < 0 && i >= 0; --i) start = tree->GetLocation(field, i).line;
    if (start < 0) break;
    line = start + 1;
    if (field->message_type() == nullptr) break;
    tree = tree->GetTreeForNested(field, index);
    if (tree == nullptr) break;
    message = field->message_type();
  }
  return line;
}

}  // namespace weir::serving
