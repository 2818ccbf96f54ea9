#include "weir/core/io/record.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "weir/core/io/coding.h"
#include "weir/core/io/crc32c.h"

namespace weir {
namespace {

constexpr size_t kHeader = 12;  // length, checksum of the length
constexpr size_t kFooter = 4;   // checksum of the record
constexpr size_t kReadAhead = size_t{1} << 18;

}  // namespace

absl::StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Create(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, Files().Create(path));
  return std::unique_ptr<RecordWriter>(new RecordWriter(std::move(file)));
}

absl::Status RecordWriter::Append(absl::string_view record) {
  std::string frame;
  PutFixed64(&frame, record.size());
  PutFixed32(&frame, MaskCrc32c(Crc32c(frame)));
  WEIR_RETURN_IF_ERROR(file_.Append(frame));
  WEIR_RETURN_IF_ERROR(file_.Append(record));
  frame.clear();
  PutFixed32(&frame, MaskCrc32c(Crc32c(record)));
  return file_.Append(frame);
}

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, Files().Open(path));
  return std::unique_ptr<RecordReader>(new RecordReader(std::move(file)));
}

absl::Status RecordReader::ReadBytes(uint64_t offset, size_t size, char* out) {
  if (offset < buffer_start_ || offset + size > buffer_start_ + buffer_.size()) {
    if (size >= kReadAhead) return file_->Read(offset, size, out);
    buffer_.resize(kReadAhead);
    buffer_start_ = offset;
    const absl::StatusOr<size_t> got = file_->ReadSome(offset, kReadAhead, buffer_.data());
    buffer_.resize(got.ok() ? *got : 0);
    if (!got.ok()) return got.status();
    if (buffer_.size() < size) return file_->Read(offset, size, out);  // reports what is missing
  }
  std::memcpy(out, buffer_.data() + (offset - buffer_start_), size);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> RecordReader::Next() {
  if (offset_ >= file_->size()) return std::nullopt;
  const auto bad = [&](const auto&... why) {
    return DataLoss(file_->path(), ": record at offset ", offset_, ": ", why...);
  };
  const auto mismatch = [&](absl::string_view what, uint32_t stored, uint32_t computed) {
    return bad("checksum of the ", what,
               absl::StrFormat(" does not match: stored %08x, computed %08x", stored, computed));
  };
  if (file_->size() - offset_ < kHeader + kFooter) return bad("truncated");
  char bytes[kHeader];
  WEIR_RETURN_IF_ERROR(ReadBytes(offset_, kHeader, bytes));
  const uint64_t size = LoadFixed64(bytes);
  const uint32_t header_crc = MaskCrc32c(ExtendCrc32c(0, bytes, 8));
  if (header_crc != LoadFixed32(bytes + 8))
    return mismatch("length", LoadFixed32(bytes + 8), header_crc);
  if (size > file_->size() - offset_ - kHeader - kFooter)
    return bad("truncated: it has ", size, " bytes");
  std::string record(size + kFooter, '\0');
  WEIR_RETURN_IF_ERROR(ReadBytes(offset_ + kHeader, record.size(), record.data()));
  const uint32_t stored = LoadFixed32(record.data() + size);
  const uint32_t computed = MaskCrc32c(ExtendCrc32c(0, record.data(), size));
  if (stored != computed) return mismatch("record", stored, computed);
  record.resize(size);
  offset_ += kHeader + size + kFooter;
  return record;
}

}  // namespace weir
