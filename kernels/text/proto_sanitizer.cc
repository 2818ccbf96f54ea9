#include "weir/kernels/text/proto_sanitizer.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weir/core/io/proto_values.h"
#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/status.h"

namespace weir {

namespace {

namespace pb = google::protobuf;

// What parsing a message may take: the types of its fields and extensions are made recursively, and
// an empty message, of two bytes, takes the memory of all its fields.
struct MessageLimits {
  static constexpr int64_t kMostTypes = 2000;
  int64_t types = 0, most_fields = 0;  // once there are too many types, the rest does not count

  // Whether a message of so many bytes certainly fits in memory, and its types on the stack.
  bool Fit(size_t bytes) const {
    constexpr int64_t kFieldBytes = 24, kMessageBytes = 64;
    const int64_t expansion = (kMessageBytes + kFieldBytes * most_fields) / 2;
    return types <= kMostTypes && static_cast<int64_t>(bytes) <= kExpansionBudget / expansion;
  }

  static MessageLimits Of(const pb::Descriptor* root) {
    MessageLimits limits;
    std::unordered_set<const pb::Descriptor*> seen = {root};
    std::vector<const pb::Descriptor*> stack = {root};
    while (!stack.empty() && limits.types <= kMostTypes) {
      const pb::Descriptor* const type = stack.back();
      stack.pop_back();
      ++limits.types;
      limits.most_fields = std::max<int64_t>(limits.most_fields, type->field_count());
      std::vector<const pb::FieldDescriptor*> fields;
      type->file()->pool()->FindAllExtensions(type, &fields);
      for (int i = 0; i < type->field_count(); ++i) fields.push_back(type->field(i));
      for (const pb::FieldDescriptor* const field : fields) {
        const pb::Descriptor* const inner = field->message_type();
        if (inner != nullptr && seen.insert(inner).second) stack.push_back(inner);
      }
    }
    return limits;
  }
};

class SilentErrors final : public pb::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

// An Any of a text of so many bytes may name any type of the pool, to which the limits apply too.
class AnyTypes final : public pb::TextFormat::Finder {
 public:
  explicit AnyTypes(size_t bytes) : bytes_(bytes) {}

  const pb::Descriptor* FindAnyType(const pb::Message& message, const std::string& prefix,
                                    const std::string& name) const override {
    const Cancellation* const cancellation = ScopedCancellation::Current();
    if (cancellation != nullptr && cancellation->cancelled()) return nullptr;
    const pb::Descriptor* const type = Finder::FindAnyType(message, prefix, name);
    if (type == nullptr) return nullptr;
    const auto [fits, is_new] = fits_.try_emplace(type, false);
    if (is_new) fits->second = MessageLimits::Of(type).Fit(bytes_);
    return fits->second ? type : nullptr;
  }

 private:
  const size_t bytes_;
  mutable std::unordered_map<const pb::Descriptor*, bool> fits_;  // types that have been met
};

bool ParseText(const std::string& message, pb::Message* parsed) {
  constexpr int kMostDepth = 100;  // as in binary messages
  SilentErrors errors;
  AnyTypes types(message.size());
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetFinder(&types);
  parser.SetRecursionLimit(kMostDepth);
  return parser.ParseFromString(message, parsed);
}

}  // namespace

struct ProtoSanitizer::Impl {
  Impl(const pb::Descriptor* message_type, bool is_text)
      : type(message_type), text(is_text), limits(MessageLimits::Of(message_type)) {
    if (limits.Fit(0)) prototype = factory.GetPrototype(message_type);
  }

  const pb::Descriptor* const type;
  const bool text;
  const MessageLimits limits;
  pb::DynamicMessageFactory factory;
  const pb::Message* prototype = nullptr;
};

ProtoSanitizer::ProtoSanitizer(const pb::Descriptor* type, bool text)
    : impl_(std::make_unique<Impl>(type, text)) {}

ProtoSanitizer::~ProtoSanitizer() = default;

absl::StatusOr<std::string> ProtoSanitizer::Reserialized(const std::string& message) const {
  if (!impl_->limits.Fit(message.size())) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a ", impl_->type->full_name(), " of ", message.size(), " bytes, of ", impl_->limits.types,
        " types with up to ", impl_->limits.most_fields,
        " fields, may take too much memory; pass it in binary form, without sanitize"));
  }
  const std::unique_ptr<pb::Message> parsed(impl_->prototype->New());
  const bool read = impl_->text
                        ? ParseText(message, parsed.get())
                        : parsed->ParsePartialFromString(message) && parsed->IsInitialized();
  if (read) return DeterministicBytes(*parsed);
  ThrowIfCancelled();
  return DataLoss("Unable to parse ", impl_->text ? "text" : "binary", " protobuf of type ",
                  impl_->type->full_name());
}

}  // namespace weir
