#include "weir/core/io/text_proto.h"

#include <memory>

#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace weir {

namespace {

// Stores the first error of a text, with its position, instead of printing it.
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
  constexpr int kMaxNesting = 100;  // the limit of the binary parser
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxNesting);
  parser.AllowUnknownField(options.allow_unknown_fields);
  const auto wrong = [&](absl::string_view why) {
    return InvalidArgument(source, ": Error parsing text-format ", message->GetDescriptor()->name(),
                           ": ", why);
  };
  if (!parser.ParseFromString(text, message)) return wrong(error.text());
  // The text parser accepts strings that the binary parser rejects; such a message could not be
  // exported.
  const std::unique_ptr<google::protobuf::Message> again(message->New());
  if (!again->ParseFromString(message->SerializeAsString()))
    return wrong("a string in it is not UTF-8");
  return absl::OkStatus();
}

std::string PrintTextProto(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

}  // namespace weir
