#include <algorithm>
#include <functional>
#include <limits>
#include <memory>

#include "absl/strings/match.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_file.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/graph.pb.h"

// Reading graphs from files. Protobuf parses no message of 2 GiB or more, but a graph with weights
// in its constants may be larger, as long as no single node is. So this code walks the fields of
// the GraphDef itself and parses each node as a separate message; only one file buffer and the
// nodes are in memory. The other fields of the GraphDef are collected and parsed at the end. During
// an import, the attributes of each node are freed as soon as its graph node is built. A small file
// is imported from its bytes, which is faster.
namespace weir {

namespace {

using google::protobuf::MessageLite;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

// The limit for reading the whole file before parsing its nodes one by one, since their tensors are
// then in memory twice.
constexpr uint64_t kMaxWholeFileBytes = uint64_t{64} << 20;

// Returns the form of a file. Bytes of a pipe can be read once, so its name tells the form.
absl::StatusOr<ProtoForm> FormOf(const ReadableFile& file) {
  if (file.size() == 0)
    return absl::EndsWith(file.path(), ".pbtxt") ? ProtoForm::kText : ProtoForm::kBinary;
  char head[kProtoHeadBytes];
  WEIR_ASSIGN_OR_RETURN(const size_t size, file.ReadSome(0, sizeof head, head));
  return ProtoFormOf({head, size});
}

class FileStream : public google::protobuf::io::CopyingInputStream {
 public:
  explicit FileStream(const ReadableFile& file) : file_(file) {}
  int Read(void* buffer, int size) override {
    const absl::StatusOr<size_t> count =
        file_.ReadSome(at_, static_cast<size_t>(size), static_cast<char*>(buffer));
    if (!count.ok()) {
      status_ = count.status();
      return -1;
    }
    at_ += *count;
    return static_cast<int>(*count);
  }
  const absl::Status& status() const { return status_; }

 private:
  const ReadableFile& file_;
  uint64_t at_ = 0;
  absl::Status status_;
};

// Parses a message from the next bytes of the stream. Rejects a length larger than `left` before
// allocating anything.
bool ReadMessage(CodedInputStream& in, int64_t left, MessageLite* message) {
  uint32_t length = 0;
  const int before = in.CurrentPosition();
  if (!in.ReadVarint32(&length)) return false;
  left -= in.CurrentPosition() - before;
  if (length > left || length > std::numeric_limits<int>::max()) return false;
  const CodedInputStream::Limit outer = in.PushLimit(static_cast<int>(length));
  const bool ok = message->MergePartialFromCodedStream(&in) && in.ConsumedEntireMessage();
  in.PopLimit(outer);
  return ok;
}

// Reads one field of the GraphDef, `left` bytes before the end of the file. Fields other than nodes
// are appended to `rest`.
bool ReadField(CodedInputStream& in, uint32_t tag, int64_t left, proto::GraphDef* def,
               std::string* rest) {
  constexpr uint32_t kNode = WireFormatLite::MakeTag(proto::GraphDef::kNodeFieldNumber,
                                                     WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  if (tag == kNode) return ReadMessage(in, left, def->add_node());
  std::string field;
  {
    google::protobuf::io::StringOutputStream written(&field);
    CodedOutputStream out(&written);
    if (!WireFormatLite::SkipField(&in, tag, &out)) return false;
  }
  rest->append(field);
  return true;
}

absl::Status ReadBinary(const ReadableFile& file, proto::GraphDef* def) {
  constexpr int kBuffer = 1 << 20;
  FileStream bytes(file);
  google::protobuf::io::CopyingInputStreamAdaptor stream(&bytes, kBuffer);
  const int64_t size = file.size() > 0 ? static_cast<int64_t>(file.size())
                                       : std::numeric_limits<int64_t>::max();  // a pipe
  const auto corrupt = [&](absl::string_view where) {
    return InvalidArgument(file.path(), ": Error parsing GraphDef: Wire format was corrupt (",
                           file.size(), " bytes, in ", where, ")");
  };
  std::string rest;
  for (int64_t at = 0;;) {
    CodedInputStream in(&stream);  // a stream counts at most 2 GiB
    const uint32_t tag = in.ReadTag();
    if (tag == 0 && in.ConsumedEntireMessage()) break;
    if (tag == 0 || !ReadField(in, tag, size - at - in.CurrentPosition(), def, &rest)) {
      WEIR_RETURN_IF_ERROR(bytes.status());
      return corrupt(absl::StrCat("the field at byte ", at));
    }
    at += in.CurrentPosition();
  }
  WEIR_RETURN_IF_ERROR(bytes.status());
  if (rest.size() > std::numeric_limits<int>::max()) return corrupt("a field other than node");
  CodedInputStream in(reinterpret_cast<const uint8_t*>(rest.data()), static_cast<int>(rest.size()));
  if (!def->MergePartialFromCodedStream(&in) || !in.ConsumedEntireMessage())
    return corrupt("a field other than node");
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGraphFile(const std::string& path, proto::GraphDef* def) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, Files().Open(path));
  WEIR_ASSIGN_OR_RETURN(const ProtoForm form, FormOf(*file));
  if (form == ProtoForm::kBinary) return ReadBinary(*file, def);
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadProtoFile(path));
  return ParseProto(bytes, path, def);
}

absl::StatusOr<std::string> ReadGraphFile(const std::string& path) {
  proto::GraphDef def;
  WEIR_RETURN_IF_ERROR(ReadGraphFile(path, &def));
  if (def.ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": a GraphDef of 2 GiB or more has no serialized form"));
  }
  return DeterministicBytes(def);
}

absl::StatusOr<Outputs> ImportGraphFile(Graph& graph, const std::string& path,
                                        const ImportOptions& options) {
  const auto named = [&](absl::StatusOr<Outputs> outputs) -> absl::StatusOr<Outputs> {
    if (!outputs.ok()) return Annotate(outputs.status(), path);
    return outputs;
  };
  proto::GraphDef def;
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, Files().Open(path));
  WEIR_ASSIGN_OR_RETURN(const ProtoForm form, FormOf(*file));
  if (form != ProtoForm::kBinary) {
    WEIR_RETURN_IF_ERROR(ReadGraphFile(path, &def));
    return named(ImportAndClear(graph, &def, options));
  }
  if (file->size() > 0 && file->size() <= kMaxWholeFileBytes) {
    const auto size = static_cast<size_t>(file->size());
    const auto bytes = std::make_unique_for_overwrite<char[]>(size);
    WEIR_ASSIGN_OR_RETURN(const size_t got, file->ReadSome(0, size, bytes.get()));
    return named(ImportGraph(graph, {bytes.get(), got}, options));
  }
  WEIR_RETURN_IF_ERROR(ReadBinary(*file, &def));
  return named(ImportAndClear(graph, &def, options));
}

}  // namespace weir
