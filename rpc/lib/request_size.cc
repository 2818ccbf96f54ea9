#include "weir/rpc/lib/request_size.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/message.h"
#include "google/protobuf/wire_format_lite.h"
#include "weir/proto/classification.pb.h"
#include "weir/proto/get_model_metadata.pb.h"
#include "weir/proto/get_model_status.pb.h"
#include "weir/proto/graph.pb.h"
#include "weir/proto/inference.pb.h"
#include "weir/proto/model_management.pb.h"
#include "weir/proto/predict.pb.h"
#include "weir/proto/regression.pb.h"
#include "weir/proto/tensor.pb.h"

// A message on the wire is a sequence of fields, each with a number and a wire type; the fields of
// a submessage are the contents of a field of bytes. So the same bytes may be a string or a
// message: only the type of the message tells. ParsedSize walks through the fields with a stack of
// the messages that it is in, and adds what protobuf 3.21 allocates for each field:
//
//   a message           sizeof, and a pointer to it if it is in a repeated field
//   an entry of a map   a node of the hash table, its part of the table, and the entry itself,
//   which
//                       the parser allocates if the key does not come first
//   a string            std::string, and the characters if they do not fit into it
//   a packed number     its size in memory, which is up to eight times that on the wire
//
// Repeated fields double their capacity as they grow, which leaves copies of the old elements in
// the arena.

namespace weir::rpc {

namespace {

namespace pb = google::protobuf;
namespace serving = proto::serving;
using pb::FieldDescriptor;
using pb::internal::WireFormatLite;

constexpr int kMaxDepth = 100;  // protobuf's default
constexpr uint64_t kString = sizeof(std::string);
constexpr uint64_t kInlineCharacters = 15, kPerHeapBlock = 16;
// The memory of a repeated field, over the size of its elements.
constexpr uint64_t kGrowth = 4;
constexpr uint64_t kPerRepeated = kGrowth * sizeof(void*);
constexpr uint64_t kPerMapEntry = 128;  // besides the key and the value
// A field that the message does not know, and a byte of a message whose type is unknown.
constexpr uint64_t kPerUnknownField = 48, kPerOpaqueByte = 64;

struct MessageType;

struct FieldType {
  enum Kind { kNumber, kText, kMessage } kind;
  uint64_t bytes = 0;  // of memory for each occurrence, or for each number
  bool is_fixed = false;
  const MessageType* message = nullptr;
};

struct MessageType {
  std::map<uint32_t, FieldType> fields;
  // The encoding of an unknown field is kept. A message without descriptors has only the fields
  // above that may be large, and the others are opaque.
  bool is_complete = true;
};

// The types of messages that requests consist of.
class MessageTypes {
 public:
  MessageTypes() {
    const MessageType* graph = Of(proto::GraphDef::descriptor());
    const MessageType* tensor = Of(proto::TensorProto::descriptor());
    MessageType& named = types_["NamedTensorProto"];
    named = {{{1, Text()}, {2, Message(tensor, sizeof(proto::TensorProto))}}, false};
    const FieldType names = Text();
    const FieldType graph_field = Message(graph, sizeof(proto::GraphDef));
    AddRequest("CreateSession", {{1, graph_field}});
    AddRequest("ExtendSession", {{1, names}, {2, graph_field}});
    AddRequest("RunStep", {{1, names},
                           {2, Message(&named, sizeof(proto::TensorProto))},
                           {3, names},
                           {4, names},
                           {6, names}});
    AddRequest("PartialRunSetup", {{1, names}, {2, names}, {3, names}, {4, names}});
    AddRequest("RunCallable", {{1, names}, {3, Message(tensor, sizeof(proto::TensorProto))}});
    AddRequest("Reset", {{1, names}, {2, names}});
    for (const pb::Descriptor* request :
         {serving::PredictRequest::descriptor(), serving::ClassificationRequest::descriptor(),
          serving::RegressionRequest::descriptor(), serving::MultiInferenceRequest::descriptor(),
          serving::GetModelMetadataRequest::descriptor(),
          serving::GetModelStatusRequest::descriptor(), serving::ReloadConfigRequest::descriptor()})
      Of(request);
  }

  // Returns the type of a request: all its fields are opaque if it is not one of the above.
  const MessageType& OfRequest(const pb::MessageLite& request) const {
    static const MessageType& opaque = *new MessageType{{}, false};
    const auto found = types_.find(request.GetTypeName());
    return found == types_.end() ? opaque : found->second;
  }

 private:
  static FieldType Text() { return {FieldType::kText, kString + kPerRepeated}; }
  static FieldType Message(const MessageType* type, uint64_t bytes) {
    return {FieldType::kMessage, bytes + kPerRepeated, false, type};
  }
  void AddRequest(const std::string& method, std::map<uint32_t, FieldType> fields) {
    types_[absl::StrCat("weir.proto.", method, "Request")] = {std::move(fields), false};
  }

  const MessageType* Of(const pb::Descriptor* descriptor) {
    const auto [place, is_new] = types_.try_emplace(descriptor->full_name());
    if (!is_new) return &place->second;
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const FieldDescriptor* field = descriptor->field(i);
      place->second.fields[field->number()] = Of(field);
    }
    return &place->second;
  }

  FieldType Of(const FieldDescriptor* field) {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return Text();
      case FieldDescriptor::CPPTYPE_MESSAGE: {
        const pb::Descriptor* type = field->message_type();
        // The fields of the entry add its key and its value.
        if (field->is_map()) return Message(Of(type), kPerMapEntry);
        const pb::Message* message = pb::MessageFactory::generated_factory()->GetPrototype(type);
        return Message(Of(type), message->SpaceUsedLong());
      }
      case FieldDescriptor::CPPTYPE_BOOL:
        return {FieldType::kNumber, kGrowth * sizeof(bool)};
      default:
        break;
    }
    const auto type = static_cast<WireFormatLite::FieldType>(field->type());
    const bool is_fixed =
        WireFormatLite::WireTypeForFieldType(type) != WireFormatLite::WIRETYPE_VARINT;
    const bool is_wide = field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
                         field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64 ||
                         field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
    const uint64_t size = is_wide ? sizeof(int64_t) : sizeof(int32_t);
    return {FieldType::kNumber, is_fixed ? size : kGrowth * size, is_fixed};
  }

  std::map<std::string, MessageType> types_;  // by name
};

const MessageTypes& Types() {
  static const MessageTypes& types = *new MessageTypes;
  return types;
}

// The walk through one request.
class Walk {
 public:
  explicit Walk(pb::io::ZeroCopyInputStream* bytes) : in_(bytes) {
    in_.SetTotalBytesLimit(std::numeric_limits<int>::max());
  }

  // Returns false if the bytes are malformed.
  bool Run(const MessageType& type) {
    stack_.push_back({&type, std::numeric_limits<int>::max()});
    for (;;) {
      while (in_.CurrentPosition() == stack_.back().end) stack_.pop_back();
      if (in_.CurrentPosition() > stack_.back().end) return false;
      const uint32_t tag = in_.ReadTag();
      if (tag == 0) return stack_.size() == 1 && in_.ConsumedEntireMessage();
      if (!AddField(tag)) return false;
    }
  }
  uint64_t total() const { return total_; }

 private:
  struct Level {
    const MessageType* type;
    int end;  // position
  };

  bool AddField(uint32_t tag) {
    const MessageType& type = *stack_.back().type;
    const auto found = type.fields.find(WireFormatLite::GetTagFieldNumber(tag));
    const FieldType* field = found == type.fields.end() ? nullptr : &found->second;
    const auto wire_type = WireFormatLite::GetTagWireType(tag);
    if (wire_type != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      total_ += field == nullptr ? kPerUnknownField : 2 * sizeof(int64_t);
      // Groups are not skipped: no message of proto3 has any, and they nest without limit.
      return wire_type != WireFormatLite::WIRETYPE_START_GROUP &&
             wire_type != WireFormatLite::WIRETYPE_END_GROUP &&
             WireFormatLite::SkipField(&in_, tag);
    }
    uint32_t size = 0;
    const int limit = stack_.back().end;
    if (!in_.ReadVarint32(&size) || size > static_cast<uint32_t>(limit - in_.CurrentPosition()))
      return false;
    return AddBytes(type, field, static_cast<int>(size));
  }

  bool AddBytes(const MessageType& type, const FieldType* field, int size) {
    if (field == nullptr) {
      total_ += kPerUnknownField + (type.is_complete ? 1 : kPerOpaqueByte) * uint64_t(size);
      return in_.Skip(size);
    }
    switch (field->kind) {
      case FieldType::kMessage:
        total_ += field->bytes;
        if (stack_.size() > kMaxDepth) return false;
        stack_.push_back({field->message, in_.CurrentPosition() + size});
        return true;
      case FieldType::kNumber:
        return AddPacked(*field, size);
      default:
        total_ += field->bytes;
        if (uint64_t(size) > kInlineCharacters) total_ += uint64_t(size) + kPerHeapBlock;
        return in_.Skip(size);
    }
  }

  // Each byte without the high bit ends a number.
  bool AddPacked(const FieldType& field, int size) {
    if (field.is_fixed) {
      total_ += uint64_t(size);
      return in_.Skip(size);
    }
    while (size > 0) {
      const void* data = nullptr;
      int available = 0;
      if (!in_.GetDirectBufferPointer(&data, &available)) return false;
      available = std::min(available, size);
      const auto* bytes = static_cast<const uint8_t*>(data);
      const auto count =
          std::count_if(bytes, bytes + available, [](uint8_t byte) { return byte < 0x80; });
      total_ += field.bytes * static_cast<uint64_t>(count);
      if (!in_.Skip(available)) return false;
      size -= available;
    }
    return true;
  }

  pb::io::CodedInputStream in_;
  std::vector<Level> stack_;
  uint64_t total_ = 0;
};

}  // namespace

absl::StatusOr<uint64_t> ParsedSize(google::protobuf::io::ZeroCopyInputStream* bytes,
                                    const google::protobuf::MessageLite& request) {
  Walk walk(bytes);
  if (walk.Run(Types().OfRequest(request))) return walk.total();
  return InvalidArgument("Cannot parse the request as ", request.GetTypeName());
}

}  // namespace weir::rpc
