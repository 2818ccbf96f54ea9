#include "weir/core/io/record.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "weir/core/io/record_frame.h"

namespace weir {
namespace {

constexpr size_t kHeader = kRecordHeaderBytes, kFooter = kRecordFooterBytes;
constexpr size_t kReadAhead = size_t{1} << 18;

}  // namespace

absl::StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Create(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, Files().Create(path));
  return std::unique_ptr<RecordWriter>(new RecordWriter(std::move(file)));
}

absl::Status RecordWriter::Append(absl::string_view record) {
  WEIR_RETURN_IF_ERROR(file_.Append(RecordHeader(record)));
  WEIR_RETURN_IF_ERROR(file_.Append(record));
  return file_.Append(RecordFooter(record));
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
  const auto mismatch = [&](absl::string_view what, const RecordChecksum& checksum) {
    return bad("checksum of the ", what,
               absl::StrFormat(" does not match: stored %08x, computed %08x", checksum.stored,
                               checksum.computed));
  };
  if (file_->size() - offset_ < kHeader + kFooter) return bad("truncated");
  char bytes[kHeader];
  WEIR_RETURN_IF_ERROR(ReadBytes(offset_, kHeader, bytes));
  const uint64_t size = RecordLength(bytes);
  const RecordChecksum of_length = ChecksumAfter(bytes, kRecordLengthBytes);
  if (!of_length.matches()) return mismatch("length", of_length);
  if (size > file_->size() - offset_ - kHeader - kFooter)
    return bad("truncated: it has ", size, " bytes");
  std::string record(size + kFooter, '\0');
  WEIR_RETURN_IF_ERROR(ReadBytes(offset_ + kHeader, record.size(), record.data()));
  const RecordChecksum of_record = ChecksumAfter(record.data(), size);
  if (!of_record.matches()) return mismatch("record", of_record);
  record.resize(size);
  offset_ += kHeader + size + kFooter;
  return record;
}

}  // namespace weir
