#include <algorithm>

#include "weir/core/io/record_frame.h"
#include "weir/kernels/data/byte_stream.h"

// The records of TFRecord files.
//
// A damaged record tells little about the next one. If its length is intact, and what follows it is
// a length too (or the end of the file), only the record is damaged. Otherwise bytes are missing,
// or the length itself is wrong, and the next record begins somewhere after this one's first byte:
// it is found by trying each offset. The checksum of a length has 32 bits and a length beyond the
// limit does not count, so bytes that are no length pass as one in fewer than one of 2^32 cases.
//
// A file of forged lengths would have each record searched for others, in quadratic time. So a
// record is only searched while the searched bytes are few compared with the offset, and skipped as
// its length says otherwise.
namespace weir {

namespace {

constexpr size_t kHeaderSize = kRecordHeaderBytes, kFooterSize = kRecordFooterBytes;
constexpr size_t kSearchStep = size_t{1} << 18;
constexpr uint64_t kFreeSearch = uint64_t{64} << 20, kSearchesPerByte = 4;

}  // namespace

absl::Status AppendRecord(ByteSink& sink, absl::string_view record) {
  WEIR_RETURN_IF_ERROR(sink.Append(RecordHeader(record)));
  WEIR_RETURN_IF_ERROR(sink.Append(record));
  return sink.Append(RecordFooter(record));
}

absl::StatusOr<RecordStream> RecordStream::Open(const std::string& path,
                                                absl::string_view compression,
                                                uint64_t max_record_bytes) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> bytes, ByteStream::Open(path, compression));
  return RecordStream(path, std::move(bytes), std::min<uint64_t>(max_record_bytes, INT64_MAX));
}

absl::Status RecordStream::Skip(int64_t size) {
  if (size < 0) return InvalidArgument("Can't skip a negative number of bytes");
  WEIR_ASSIGN_OR_RETURN(const uint64_t skipped, SkipBytes(*bytes_, static_cast<uint64_t>(size)));
  offset_ += skipped;
  return absl::OkStatus();
}

// Returns the next `size` bytes, or fewer at the end of the file.
absl::StatusOr<std::string> RecordStream::Take(uint64_t size) {
  if (ahead_.empty()) {
    absl::StatusOr<std::string> bytes = ReadBytes(*bytes_, size);
    failed_ = bytes.status();
    return bytes;
  }
  HasAhead(size);
  std::string bytes = ahead_.substr(ahead_used_, static_cast<size_t>(size));
  ahead_used_ += bytes.size();
  if (bytes.size() < size && !failed_.ok()) return failed_;
  return bytes;
}

// Takes back all bytes of the record at the offset.
void RecordStream::PutBack(const std::string& bytes) {
  if (ahead_.empty()) {
    ahead_ = bytes;
    ahead_used_ = 0;
  } else {
    ahead_used_ -= bytes.size();
  }
}

// Reads on until there are `size` bytes ahead. Returns false if the file ends earlier.
bool RecordStream::HasAhead(uint64_t size) {
  if (ahead_.size() - ahead_used_ >= size) return true;
  if (!failed_.ok()) return false;
  const absl::StatusOr<std::string> more = ReadBytes(*bytes_, size - (ahead_.size() - ahead_used_));
  failed_ = more.status();
  if (more.ok()) ahead_ += *more;
  return ahead_.size() - ahead_used_ >= size;
}

bool RecordStream::IsHeader(size_t at) const {
  const char* const header = ahead_.data() + ahead_used_ + at;
  return RecordLength(header) <= max_record_bytes_ &&
         ChecksumAfter(header, kRecordLengthBytes).matches();
}

// Returns where, counted from the bytes ahead, the first length at or after `from` begins; the
// number of bytes ahead if there is none. Bytes that were searched are dropped, and counted in the
// offset.
size_t RecordStream::FindHeader(size_t from) {
  for (size_t at = from;; ++at) {
    if (at >= kSearchStep) {
      ahead_used_ += at;
      offset_ += at;
      at = 0;
      if (ahead_used_ > ahead_.size() / 2) {
        ahead_.erase(0, ahead_used_);
        ahead_used_ = 0;
      }
    }
    if (ahead_.size() - ahead_used_ < at + kHeaderSize) HasAhead(at + kHeaderSize + kSearchStep);
    if (ahead_.size() - ahead_used_ < at + kHeaderSize) return ahead_.size() - ahead_used_;
    if (IsHeader(at)) return at;
  }
}

absl::StatusOr<std::optional<std::string>> RecordStream::Next() {
  if (ahead_used_ == ahead_.size()) {
    ahead_.clear();
    ahead_used_ = 0;
  }
  WEIR_RETURN_IF_ERROR(failed_);
  WEIR_ASSIGN_OR_RETURN(std::string header, Take(kHeaderSize));
  if (header.empty()) return std::nullopt;
  const auto damaged = [&](const std::string& bytes, auto... what) {
    PutBack(bytes);
    return DataLoss(path_, ": ", what...);
  };
  if (header.size() < kHeaderSize) return damaged(header, "truncated record at ", offset_);
  const uint64_t size = RecordLength(header.data());
  if (!ChecksumAfter(header.data(), kRecordLengthBytes).matches() || size > INT64_MAX) {
    return damaged(header, "corrupted record at ", offset_,
                   ": checksum of the length does not match");
  }
  if (size > max_record_bytes_) {
    PutBack(header);
    return absl::ResourceExhaustedError(absl::StrCat(path_, ": record at ", offset_, " has ", size,
                                                     " bytes; the limit is ", max_record_bytes_));
  }
  WEIR_ASSIGN_OR_RETURN(std::string record, Take(size + kFooterSize));
  if (record.size() < size + kFooterSize)
    return damaged(header + record, "truncated record at ", offset_);
  if (!ChecksumAfter(record.data(), size).matches()) {
    return damaged(header + record, "corrupted record at ", offset_,
                   ": checksum of the record does not match");
  }
  record.resize(size);
  offset_ += kHeaderSize + size + kFooterSize;
  return record;
}

absl::StatusOr<RecordDamage> RecordStream::SkipDamage() {
  WEIR_RETURN_IF_ERROR(failed_);
  RecordDamage damage{.begin = offset_};
  const bool has_length = HasAhead(kHeaderSize) && IsHeader(0);
  const uint64_t frame =
      has_length ? kHeaderSize + RecordLength(ahead_.data() + ahead_used_) + kFooterSize : 0;
  const bool is_whole = has_length && HasAhead(frame);
  const bool is_followed =
      is_whole && (HasAhead(frame + kHeaderSize) ? IsHeader(static_cast<size_t>(frame))
                                                 : ahead_.size() - ahead_used_ == frame);
  // What there is of the record.
  const uint64_t found = std::min<uint64_t>(frame, ahead_.size() - ahead_used_);
  const bool is_searched = !has_length || searched_ <= kFreeSearch + kSearchesPerByte * offset_;
  auto skipped = static_cast<size_t>(found);
  if (!is_followed && is_searched) {
    searched_ += found;
    skipped = FindHeader(1);
  }
  damage.records = has_length ? 1 : 0;
  ahead_used_ += skipped;
  offset_ += skipped;
  damage.end = offset_;
  const bool at_end = ahead_used_ == ahead_.size();
  damage.is_torn_tail =
      at_end && !is_whole && (has_length || damage.end - damage.begin < kHeaderSize);
  WEIR_RETURN_IF_ERROR(failed_);
  return damage;
}

}  // namespace weir
