#include "weir/core/io/sstable_writer.h"

#include <string>

#include "absl/strings/escaping.h"
#include "leveldb/env.h"
#include "leveldb/options.h"
#include "leveldb/table_builder.h"

// Compiled without RTTI, like LevelDB, because this file derives from one of its classes.
namespace weir {
namespace {

constexpr size_t kBlockSize = 262144;

leveldb::Slice ToSlice(absl::string_view s) { return leveldb::Slice(s.data(), s.size()); }

// Adapts a BufferedFile to LevelDB. Keeps the original error, which LevelDB's Status cannot
// represent.
class LevelDbFile : public leveldb::WritableFile {
 public:
  explicit LevelDbFile(BufferedFile* file) : file_(file) {}
  leveldb::Status Append(const leveldb::Slice& data) override {
    status_ = file_->Append(absl::string_view(data.data(), data.size()));
    return status_.ok() ? leveldb::Status::OK() : leveldb::Status::IOError("write failed");
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }
  const absl::Status& status() const { return status_; }

 private:
  BufferedFile* const file_;
  absl::Status status_;
};

leveldb::Options TableOptions() {
  leveldb::Options options;
  options.block_size = kBlockSize;
  options.block_restart_interval = 16;
  options.compression = leveldb::kNoCompression;
  return options;
}

}  // namespace

struct SSTableWriter::Impl {
  explicit Impl(BufferedFile* file) : leveldb_file(file), builder(TableOptions(), &leveldb_file) {}
  LevelDbFile leveldb_file;
  leveldb::TableBuilder builder;
  std::string last_key;
  bool finished = false;
};

SSTableWriter::SSTableWriter(BufferedFile* file) : impl_(std::make_unique<Impl>(file)) {}

SSTableWriter::~SSTableWriter() {
  if (!impl_->finished) impl_->builder.Abandon();
}

absl::Status SSTableWriter::Add(absl::string_view key, absl::string_view value) {
  if (impl_->builder.NumEntries() > 0 && key <= absl::string_view(impl_->last_key)) {
    return InvalidArgument("the key \"", absl::CHexEscape(key), "\" does not come after \"",
                           absl::CHexEscape(impl_->last_key), "\"");
  }
  impl_->last_key.assign(key.data(), key.size());
  // A huge entry gets its own block.
  if (key.size() + value.size() >= 2 * kBlockSize) impl_->builder.Flush();
  impl_->builder.Add(ToSlice(key), ToSlice(value));
  return impl_->leveldb_file.status();
}

absl::Status SSTableWriter::Finish() {
  impl_->finished = true;
  const leveldb::Status finished = impl_->builder.Finish();
  WEIR_RETURN_IF_ERROR(impl_->leveldb_file.status());
  return finished.ok() ? absl::OkStatus()
                       : Internal("cannot finish the table: ", finished.ToString());
}

}  // namespace weir
