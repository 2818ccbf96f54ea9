#include "weir/core/text_proto.h"

#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace weir {

namespace {

// Keeps the first error of a text, with its place, instead of printing it.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text_.empty())
      text_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

absl::Status ParseTextProto(const std::string& text, absl::string_view source,
                            google::protobuf::Message* message, const TextProtoOptions& options) {
  constexpr int kDeepestNesting = 100;  // the limit of the binary parser
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kDeepestNesting);
  parser.AllowUnknownField(options.allow_unknown_fields);
  if (parser.ParseFromString(text, message)) return absl::OkStatus();
  return InvalidArgument(source, ": Error parsing text-format ", message->GetDescriptor()->name(),
                         ": ", error.text());
}

std::string PrintTextProto(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

}  // namespace weir
