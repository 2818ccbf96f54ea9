#include "weir/tools/lib/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"

namespace weir::tools {

namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's largest window, and a gzip header
constexpr size_t kChunkBytes = size_t{1} << 18;

// Decompresses the member at the front of `bytes`, and removes it.
absl::Status GunzipMember(z_stream* stream, absl::string_view* bytes, std::string* out) {
  std::string chunk(kChunkBytes, '\0');
  for (int status = Z_OK; status != Z_STREAM_END;) {
    constexpr size_t kMostInput = std::numeric_limits<uInt>::max();
    const auto given = static_cast<uInt>(std::min(bytes->size(), kMostInput));
    stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes->data()));
    stream->avail_in = given;
    stream->next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream->avail_out = static_cast<uInt>(chunk.size());
    status = inflate(stream, Z_NO_FLUSH);
    bytes->remove_prefix(given - stream->avail_in);
    const size_t size = chunk.size() - stream->avail_out;
    if (size > kMaxGunzipBytes - out->size()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("decompressed, it has more than ", kMaxGunzipBytes, " bytes"));
    }
    out->append(chunk.data(), size);
    if (status == Z_BUF_ERROR || (status == Z_OK && bytes->empty() && size < chunk.size()))
      return DataLoss("damaged gzip: it ends early");
    if (status != Z_OK && status != Z_STREAM_END) {
      return DataLoss("damaged gzip: ",
                      stream->msg != nullptr ? stream->msg : "its bytes are malformed");
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsGzip(absl::string_view bytes) { return absl::StartsWith(bytes, "\x1f\x8b"); }

absl::StatusOr<std::string> Gunzip(absl::string_view bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return Internal("zlib cannot be initialized");
  std::string out;
  absl::Status status;
  do {
    status = GunzipMember(&stream, &bytes, &out);
    if (status.ok() && inflateReset(&stream) != Z_OK) status = Internal("zlib cannot be reset");
  } while (status.ok() && IsGzip(bytes));
  inflateEnd(&stream);
  if (status.ok() && bytes.find_first_not_of('\0') != absl::string_view::npos)
    status = DataLoss("damaged gzip: other bytes follow its end");
  if (!status.ok()) return status;
  return out;
}

}  // namespace weir::tools
