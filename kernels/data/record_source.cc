#include <algorithm>

#include "absl/strings/strip.h"
#include "weir/kernels/data/byte_stream.h"
#include "weir/kernels/data/reader.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/line_reader.h"

namespace weir {

namespace {

using Record = RecordSource::Record;
using MaybeRecord = absl::StatusOr<std::optional<Record>>;

// The name of the work, or the contents of the file of that name.
class WholeSource final : public RecordSource {
 public:
  explicit WholeSource(bool reads_file) : reads_file_(reads_file) {}
  absl::Status Start(const std::string& work) override {
    work_ = work;
    return absl::OkStatus();
  }
  MaybeRecord Next() override {
    if (!reads_file_) return Record{work_, work_};
    WEIR_ASSIGN_OR_RETURN(std::string contents, ReadFile(work_));
    return Record{work_, std::move(contents)};
  }
  bool has_one_record() const override { return true; }

 private:
  const bool reads_file_;
  std::string work_;
};

class LineSource final : public RecordSource {
 public:
  explicit LineSource(int64_t skipped) : skipped_(skipped) {}
  absl::Status Start(const std::string& work) override {
    WEIR_ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(work));
    reader_ = std::move(reader);
    work_ = work;
    std::string line;
    for (number_ = 0; number_ < skipped_; ++number_) {
      WEIR_ASSIGN_OR_RETURN(const bool any, reader_->Next(&line));
      if (!any) break;
    }
    return absl::OkStatus();
  }
  MaybeRecord Next() override {
    std::string line;
    WEIR_ASSIGN_OR_RETURN(const bool any, reader_->Next(&line));
    if (!any) return std::nullopt;
    return Record{absl::StrCat(work_, ":", ++number_), std::move(line)};
  }

 private:
  const int64_t skipped_;
  std::string work_;
  std::optional<LineReader> reader_;
  int64_t number_ = 0;
};

class TfRecordSource final : public RecordSource {
 public:
  explicit TfRecordSource(std::string compression) : compression_(std::move(compression)) {}
  absl::Status Start(const std::string& work) override {
    WEIR_ASSIGN_OR_RETURN(RecordStream stream, RecordStream::Open(work, compression_));
    stream_.emplace(std::move(stream));
    work_ = work;
    return absl::OkStatus();
  }
  MaybeRecord Next() override {
    std::string key = absl::StrCat(work_, ":", stream_->offset());
    WEIR_ASSIGN_OR_RETURN(std::optional<std::string> record, stream_->Next());
    if (!record) return std::nullopt;
    return Record{std::move(key), *std::move(record)};
  }

 private:
  const std::string compression_;
  std::string work_;
  std::optional<RecordStream> stream_;
};

// Records of a fixed size, each beginning `hop` bytes after the previous one. Footers are not
// returned, and the size of a compressed file is unknown before it is decompressed: `ahead_`
// buffers the bytes that are read but not yet skipped.
class FixedLengthSource final : public RecordSource {
 public:
  struct Layout {
    int64_t header, record, footer, hop;
    std::string encoding;
  };
  explicit FixedLengthSource(Layout layout) : layout_(std::move(layout)) {}

  absl::Status Start(const std::string& work) override {
    WEIR_ASSIGN_OR_RETURN(stream_, ByteStream::Open(work, layout_.encoding));
    work_ = work;
    number_ = 0;
    ahead_.clear();
    WEIR_ASSIGN_OR_RETURN(const bool is_whole, Skip(layout_.header));
    return is_whole ? absl::OkStatus() : OutOfRange(work, ": the file ends inside its header");
  }

  MaybeRecord Next() override {
    if (number_ > 0) {
      const auto hop = static_cast<size_t>(layout_.hop);
      const size_t held = std::min(hop, ahead_.size());
      ahead_.erase(0, held);
      WEIR_ASSIGN_OR_RETURN(const bool any, Skip(static_cast<int64_t>(hop - held)));
      if (!any) return std::nullopt;
    }
    const auto wanted = static_cast<size_t>(layout_.record + layout_.footer);
    if (ahead_.size() < wanted) {
      WEIR_ASSIGN_OR_RETURN(const std::string more, ReadBytes(*stream_, wanted - ahead_.size()));
      ahead_ += more;
    }
    if (ahead_.size() < wanted) return std::nullopt;
    return Record{absl::StrCat(work_, ":", number_++),
                  ahead_.substr(0, static_cast<size_t>(layout_.record))};
  }

 private:
  // Returns false if the file ends first.
  absl::StatusOr<bool> Skip(int64_t size) {
    while (size > 0) {
      WEIR_ASSIGN_OR_RETURN(const std::string skipped,
                            ReadBytes(*stream_, std::min<int64_t>(size, int64_t{1} << 18)));
      if (skipped.empty()) return false;
      size -= static_cast<int64_t>(skipped.size());
    }
    return true;
  }

  const Layout layout_;
  std::string work_, ahead_;
  std::unique_ptr<ByteStream> stream_;
  int64_t number_ = 0;
};

absl::StatusOr<std::unique_ptr<RecordSource>> MakeFixedLength(const Node& node) {
  FixedLengthSource::Layout layout;
  const std::pair<const char*, int64_t*> sizes[] = {{"header_bytes", &layout.header},
                                                    {"record_bytes", &layout.record},
                                                    {"footer_bytes", &layout.footer},
                                                    {"hop_bytes", &layout.hop}};
  for (const auto& [name, size] : sizes) {
    *size = node.attr<int64_t>(name);
    if (*size < 0) return InvalidArgument(name, " must be >= 0 not ", *size);
    if (*size > INT32_MAX) return InvalidArgument(name, " is too large: ", *size);
  }
  if (layout.record == 0) return InvalidArgument("record_bytes must be > 0");
  if (layout.hop == 0) layout.hop = layout.record;
  layout.encoding = node.attr_or<std::string>("encoding", "");
  return std::make_unique<FixedLengthSource>(std::move(layout));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordSource>> MakeRecordSource(const Node& node) {
  const absl::string_view kind = absl::StripSuffix(node.op_name(), "V2");
  if (kind == "FixedLengthRecordReader") return MakeFixedLength(node);
  if (kind == "TFRecordReader")
    return std::make_unique<TfRecordSource>(node.attr<std::string>("compression_type"));
  if (kind == "TextLineReader") {
    WEIR_ASSIGN_OR_RETURN(const int64_t skipped, NarrowAttr(node, "skip_header_lines"));
    if (skipped < 0) return InvalidArgument("skip_header_lines must be >= 0 not ", skipped);
    return std::make_unique<LineSource>(skipped);
  }
  return std::make_unique<WholeSource>(/*reads_file=*/kind == "WholeFileReader");
}

}  // namespace weir
