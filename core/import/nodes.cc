#include "weir/core/import/nodes.h"

#include <algorithm>
#include <limits>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "weir/proto/graph.pb.h"

// A message of the whole graph would take half of an import. So the names, ops and inputs, which
// determine the order of the nodes, are found in the bytes, and each node is parsed into the same
// message when it is added.
namespace weir {

namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr size_t kMaxBytes = std::numeric_limits<int>::max();

constexpr uint32_t MessageTag(int field) {
  return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

absl::Status Corrupt(absl::string_view where) {
  return InvalidArgument("Error parsing GraphDef: Wire format was corrupt (in ", where, ")");
}

// Returns a stream over at most 2 GiB of `bytes`.
CodedInputStream StreamOf(absl::string_view bytes) {
  return CodedInputStream(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(std::min(bytes.size(), kMaxBytes)));
}

// Returns a length-delimited field, whose tag has been read, as a view into `bytes`, the data of
// the stream. Returns false if the field extends beyond `bytes`.
bool ReadField(absl::string_view bytes, CodedInputStream* in, absl::string_view* field) {
  uint32_t length = 0;
  if (!in->ReadVarint32(&length)) return false;
  const size_t begin = static_cast<size_t>(in->CurrentPosition());
  if (length > bytes.size() - begin) return false;
  *field = bytes.substr(begin, length);
  return true;
}

}  // namespace

absl::StatusOr<std::vector<absl::string_view>> SplitGraph(absl::string_view bytes,
                                                          proto::GraphDef* rest) {
  std::vector<absl::string_view> nodes;
  std::string other_fields;
  for (absl::string_view left = bytes; !left.empty();) {
    CodedInputStream in = StreamOf(left);
    const auto corrupt = [&] {
      return Corrupt(absl::StrCat("the field at byte ", bytes.size() - left.size()));
    };
    const uint32_t tag = in.ReadTag();
    if (tag == MessageTag(proto::GraphDef::kNodeFieldNumber)) {
      absl::string_view node;
      if (!ReadField(left, &in, &node)) return corrupt();
      nodes.push_back(node);
      left.remove_prefix(static_cast<size_t>(node.end() - left.begin()));
    } else {
      if (tag == 0 || !WireFormatLite::SkipField(&in, tag)) return corrupt();
      const size_t size = static_cast<size_t>(in.CurrentPosition());
      absl::StrAppend(&other_fields, left.substr(0, size));
      left.remove_prefix(size);
    }
  }
  if (other_fields.size() > kMaxBytes || !rest->ParsePartialFromString(other_fields))
    return Corrupt("a field other than node");
  return nodes;
}

ImportNodes::ImportNodes(const proto::GraphDef& def) : def_(&def) {}

ImportNodes ImportNodes::Clearing(proto::GraphDef* def) {
  ImportNodes nodes(*def);
  nodes.cleared_ = def;
  return nodes;
}

ImportNodes::ImportNodes(std::vector<absl::string_view> serialized)
    : serialized_(std::move(serialized)), parsed_(std::make_unique<proto::NodeDef>()) {}

ImportNodes::~ImportNodes() = default;
ImportNodes::ImportNodes(ImportNodes&& other) noexcept = default;

absl::Status ImportNodes::ReadHeaders(const OpRegistry& ops) {
  headers_.resize(def_ != nullptr ? def_->node_size() : serialized_.size());
  for (size_t i = 0; i < headers_.size(); ++i) {
    NodeHeader& header = headers_[i];
    const size_t first_input = inputs_.size();
    if (def_ != nullptr) {
      const proto::NodeDef& node = def_->node(static_cast<int>(i));
      header.name = node.name();
      header.op = node.op();
      inputs_.insert(inputs_.end(), node.input().begin(), node.input().end());
    } else if (!ReadHeader(serialized_[i], &header)) {
      return Corrupt(absl::StrCat("node ", i));
    }
    // Neighbors often have the same op.
    const bool is_known = i > 0 && headers_[i - 1].op == header.op;
    header.spec = is_known ? headers_[i - 1].spec : ops.Find(header.op);
    // Only the number: the inputs may still move in memory.
    header.inputs = absl::Span<const absl::string_view>(nullptr, inputs_.size() - first_input);
  }
  const absl::string_view* next = inputs_.data();
  for (NodeHeader& header : headers_) {
    header.inputs = absl::MakeConstSpan(next, header.inputs.size());
    next += header.inputs.size();
  }
  return absl::OkStatus();
}

bool ImportNodes::ReadHeader(absl::string_view bytes, NodeHeader* header) {
  CodedInputStream in = StreamOf(bytes);
  while (const uint32_t tag = in.ReadTag()) {
    const bool is_input = tag == MessageTag(proto::NodeDef::kInputFieldNumber),
               is_name = tag == MessageTag(proto::NodeDef::kNameFieldNumber);
    if (!is_input && !is_name && tag != MessageTag(proto::NodeDef::kOpFieldNumber)) {
      if (!WireFormatLite::SkipField(&in, tag)) return false;
      continue;
    }
    absl::string_view field;
    if (!ReadField(bytes, &in, &field) || !in.Skip(static_cast<int>(field.size()))) return false;
    if (is_input) {
      inputs_.push_back(field);
    } else {
      (is_name ? header->name : header->op) = field;
    }
  }
  return in.ConsumedEntireMessage();
}

absl::StatusOr<const proto::NodeDef*> ImportNodes::Parse(int i) {
  if (def_ != nullptr) return &def_->node(i);
  const absl::string_view bytes = serialized_[i];
  if (bytes.size() > kMaxBytes ||
      !parsed_->ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Corrupt(absl::StrCat("node ", i));
  return parsed_.get();
}

void ImportNodes::Release(int i) {
  if (cleared_ != nullptr) cleared_->mutable_node(i)->clear_attr();
}

}  // namespace weir
