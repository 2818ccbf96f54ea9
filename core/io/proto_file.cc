#include "weir/core/io/proto_file.h"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "weir/core/io/coding.h"
#include "weir/core/io/file.h"
#include "weir/core/io/text_proto.h"

namespace weir {
namespace {

constexpr size_t kMaxMessageBytes = std::numeric_limits<int>::max();
constexpr size_t kShortestMember = 18;  // header, checksum, size

absl::StatusOr<std::string> Decompress(const std::string& bytes, absl::string_view path) {
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::GzipInputStream stream(&in, google::protobuf::io::GzipInputStream::GZIP);
  std::string out;
  const void* data = nullptr;
  for (int size = 0; stream.Next(&data, &size);) {
    if (out.size() + static_cast<size_t>(size) > kMaxMessageBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path, ": decompressed, it has 2 GiB or more, which no message has"));
    }
    out.append(static_cast<const char*>(data), static_cast<size_t>(size));
  }
  if (stream.ZlibErrorMessage() != nullptr)
    return DataLoss(path, ": damaged gzip: ", stream.ZlibErrorMessage());
  // The stream ends in silence where a file was cut off. Its last bytes are its size (RFC 1952).
  if (bytes.size() < kShortestMember ||
      LoadFixed32(bytes.data() + bytes.size() - sizeof(uint32_t)) !=
          static_cast<uint32_t>(out.size()))
    return DataLoss(path, ": damaged gzip: it ends early, or has more than one member");
  return out;
}

}  // namespace

ProtoForm ProtoFormOf(absl::string_view head) {
  if (absl::StartsWith(head, "\x1f\x8b")) return ProtoForm::kGzip;
  const absl::string_view seen = head.substr(0, kProtoHeadBytes);
  int continuations = 0;  // bytes of a UTF-8 character that must follow
  for (const char c : seen) {
    const auto byte = static_cast<unsigned char>(c);
    const bool continues = (byte & 0xc0) == 0x80;
    if (absl::ascii_iscntrl(byte) && !absl::ascii_isspace(byte)) return ProtoForm::kBinary;
    if (continues != (continuations > 0)) return ProtoForm::kBinary;
    continuations = continues ? continuations - 1 : std::max(0, std::countl_one(byte) - 1);
  }
  return head.empty() ? ProtoForm::kBinary : ProtoForm::kText;
}

absl::StatusOr<std::string> ReadProtoFile(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  if (bytes.size() > kMaxMessageBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " has 2 GiB or more, which no message has"));
  }
  if (ProtoFormOf(bytes) != ProtoForm::kGzip) return bytes;
  return Decompress(bytes, path);
}

absl::Status ParseProto(const std::string& bytes, absl::string_view source,
                        google::protobuf::Message* message) {
  if (ProtoFormOf(bytes) == ProtoForm::kText) return ParseTextProto(bytes, source, message);
  if (message->ParseFromString(bytes)) return absl::OkStatus();
  return InvalidArgument(source, ": not a serialized ", message->GetDescriptor()->name());
}

}  // namespace weir
