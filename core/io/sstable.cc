#include "weir/core/io/sstable.h"

#include <algorithm>

#include "weir/core/io/coding.h"
#include "weir/core/io/crc32c.h"
#include "weir/core/io/sstable_block.h"

namespace weir {

using internal::BlockCursor;

struct SSTableReader::Block {
  size_t number;
  std::string contents;
};

SSTableReader::SSTableReader(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}
SSTableReader::~SSTableReader() = default;

namespace {

absl::Status BadBlock(absl::string_view path, uint64_t offset) {
  return DataLoss(path, ": bad entry in block at offset ", offset);
}

// Limits the total length of decoded keys. Keys ascend, and at most 16 consecutive entries share a
// prefix; a block that expands to more was crafted to exhaust memory or time.
class KeyBudget {
 public:
  explicit KeyBudget(absl::string_view contents) : left_(16 * contents.size()) {}
  bool Take(absl::string_view key) {
    if (key.size() > left_) return false;
    left_ -= key.size();
    return true;
  }

 private:
  size_t left_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SSTableReader>> SSTableReader::Open(
    std::unique_ptr<ReadableFile> file) {
  WEIR_ASSIGN_OR_RETURN(const internal::Footer footer, internal::ReadFooter(*file));
  WEIR_ASSIGN_OR_RETURN(const std::string contents, internal::ReadBlock(*file, footer.index));
  std::unique_ptr<SSTableReader> table(new SSTableReader(std::move(file)));
  size_t key_bytes = 0;
  uint64_t end = 0;  // of the previous block
  BlockCursor entry(contents);
  for (; entry.valid(); entry.Next()) {
    absl::string_view value = entry.value();
    BlockHandle handle;
    // Keys of a valid index are not prefix-compressed, so together they are no longer than the
    // block. They ascend, and the blocks are in file order, so no block occurs twice.
    key_bytes += entry.key().size();
    const bool ascends =
        table->index_.empty() || absl::string_view(table->index_.back().first) < entry.key();
    if (key_bytes > contents.size() || !ascends || !internal::GetBlockHandle(&value, &handle) ||
        handle.offset < end || !internal::IsInside(handle, table->file_size())) {
      return BadBlock(table->path(), footer.index.offset);
    }
    end = handle.offset + handle.size + BlockHandle::kTrailer;
    table->index_.emplace_back(entry.key(), handle);
  }
  if (!entry.sound()) return BadBlock(table->path(), footer.index.offset);
  return table;
}

absl::StatusOr<const SSTableReader::Block*> SSTableReader::Load(size_t i) {
  if (loaded_ == nullptr || loaded_->number != i) {
    loaded_ = nullptr;
    const BlockHandle& handle = index_[i].second;
    WEIR_ASSIGN_OR_RETURN(std::string contents, internal::ReadBlock(*file_, handle));
    if (!IsInOrder(i, contents)) return BadBlock(path(), handle.offset);
    loaded_ = std::make_unique<Block>(Block{i, std::move(contents)});
  }
  return loaded_.get();
}

// Checks that keys ascend, from the index key of the previous block (exclusive) to that of this
// block (inclusive), and that restart points are the first entry and some later ones. Binary search
// relies on this.
bool SSTableReader::IsInOrder(size_t i, absl::string_view contents) const {
  KeyBudget budget(contents);
  std::string last = i > 0 ? index_[i - 1].first : "";
  bool any = i > 0, has_entries = false;
  uint32_t restarts = 0;
  BlockCursor entry(contents);
  for (; entry.valid(); entry.Next()) {
    if (!budget.Take(entry.key()) || (any && entry.key() <= absl::string_view(last))) return false;
    const bool is_restart =
        restarts < entry.num_restarts() && entry.Restart(restarts) == entry.start();
    if (is_restart ? !entry.has_full_key() : restarts == 0) return false;
    if (is_restart) ++restarts;
    last.assign(entry.key().data(), entry.key().size());
    any = has_entries = true;
  }
  const bool all = restarts == entry.num_restarts() || !has_entries;
  return entry.sound() && all && (!any || last <= index_[i].first);
}

absl::StatusOr<std::optional<std::string>> SSTableReader::Get(absl::string_view key) {
  const auto found =
      std::lower_bound(index_.begin(), index_.end(), key,
                       [](const auto& entry, absl::string_view k) { return entry.first < k; });
  if (found == index_.end()) return std::nullopt;
  WEIR_ASSIGN_OR_RETURN(const Block* block, Load(static_cast<size_t>(found - index_.begin())));
  BlockCursor entry(block->contents);
  entry.Seek(key);
  if (!entry.sound()) return BadBlock(path(), found->second.offset);
  if (!entry.valid() || entry.key() != key) return std::nullopt;
  return std::string(entry.value());
}

absl::Status SSTableReader::ForEach(Visitor visit) {
  for (size_t i = 0; i < index_.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const Block* block, Load(i));
    for (BlockCursor entry(block->contents); entry.valid(); entry.Next())
      WEIR_RETURN_IF_ERROR(visit(entry.key(), entry.value()));
  }
  return absl::OkStatus();
}

namespace {

// An SSTable consists of contiguous blocks. Only the index block stores their offsets and sizes.
// While the index is intact, the other blocks can be read independently of each other, and any
// bytes between them are an error.
//
// Without the index, blocks are found by their checksums: the first block begins at 0, and each
// further one at the end of the previous block. To find the end of a block: a block of n bytes is
// followed by one byte that its checksum also covers, and by the masked checksum. So the scan feeds
// the bytes to the checksum one by one, and after each compares the next four bytes with the
// current checksum; the probability of a false match is 2^-32 per byte. One pass over the file
// finds all blocks up to the first damaged one.
class Scanner {
 public:
  Scanner(const ReadableFile& file, SSTableVisitor visit, SSTableVisitor doubt)
      : file_(file), visit_(visit), doubt_(doubt) {}

  absl::StatusOr<std::vector<SSTableProblem>> Run() {
    const absl::StatusOr<internal::Footer> footer = internal::ReadFooter(file_);
    if (!footer.ok()) {
      // The file may be truncated, so the bytes at the footer's position are arbitrary.
      Problem(file_.size(), 0, footer.status());
      return WithoutIndex(file_.size());
    }
    const absl::StatusOr<std::string> index = internal::ReadBlock(file_, footer->index);
    if (!index.ok()) {
      Problem(footer->index.offset, footer->index.size + BlockHandle::kTrailer, index.status());
      return WithoutIndex(std::min(footer->index.offset, file_.size() - internal::kFooterSize));
    }
    return WithIndex(*footer, *index);
  }

 private:
  void Problem(uint64_t offset, uint64_t size, const absl::Status& status) {
    problems_.push_back({offset, size, std::string(status.message())});
  }

  void VisitBlock(uint64_t offset, const std::string& contents) {
    KeyBudget budget(contents);
    BlockCursor entry(contents);
    for (; entry.valid(); entry.Next()) {
      if (!budget.Take(entry.key()) || (any_ && entry.key() <= absl::string_view(last_key_))) {
        Problem(offset, contents.size(), BadBlock(file_.path(), offset));
        return;
      }
      any_ = true;
      last_key_ = std::string(entry.key());
      visit_(entry.key(), entry.value());
    }
    if (!entry.sound()) Problem(offset, contents.size(), BadBlock(file_.path(), offset));
  }

  // Visits the entries of a damaged block. Keys are stored as the difference from the previous key,
  // except at restart points. The range between two restart points is decoded on its own, so a
  // wrong byte affects only the rest of one range.
  void VisitDamaged(const BlockHandle& handle) {
    if (!internal::IsInside(handle, file_.size()) || handle.size < 4) return;
    std::string bytes(handle.size, '\0');
    if (!file_.Read(handle.offset, bytes.size(), bytes.data()).ok()) return;
    const uint64_t num_restarts = LoadFixed32(&bytes[bytes.size() - 4]);
    if (num_restarts > (bytes.size() - 4) / 4) return;
    const size_t entries_end = bytes.size() - 4 - 4 * num_restarts;
    const auto restart = [&](uint64_t i) {
      return i < num_restarts
                 ? std::min<size_t>(LoadFixed32(&bytes[entries_end + 4 * i]), entries_end)
                 : entries_end;
    };
    KeyBudget budget(bytes);
    for (uint64_t i = 0; i < num_restarts; ++i) {
      const size_t start = restart(i), end = restart(i + 1);
      if (start >= end) continue;
      const std::string stretch = bytes.substr(start, end - start) + std::string(4, '\0');
      for (BlockCursor entry(stretch); entry.valid(); entry.Next()) {
        if (!budget.Take(entry.key())) return;
        doubt_(entry.key(), entry.value());
      }
    }
  }

  absl::StatusOr<std::vector<SSTableProblem>> WithIndex(const internal::Footer& footer,
                                                        const std::string& index) {
    uint64_t end = 0;
    BlockCursor entry(index);
    for (; entry.valid(); entry.Next()) {
      absl::string_view value = entry.value();
      BlockHandle handle;
      if (!internal::GetBlockHandle(&value, &handle)) break;
      // Otherwise an index that lists a block repeatedly would make the scan read it repeatedly.
      if (!Expect(&end, handle, "data block")) break;
      const absl::StatusOr<std::string> contents = internal::ReadBlock(file_, handle);
      if (contents.ok()) {
        VisitBlock(handle.offset, *contents);
      } else {
        Problem(handle.offset, handle.size + BlockHandle::kTrailer, contents.status());
        VisitDamaged(handle);
      }
    }
    if (entry.valid() || !entry.sound()) {
      Problem(footer.index.offset, footer.index.size, BadBlock(file_.path(), footer.index.offset));
    }
    Expect(&end, footer.metaindex, "metaindex block");
    const absl::Status meta = internal::ReadBlock(file_, footer.metaindex).status();
    if (!meta.ok())
      Problem(footer.metaindex.offset, footer.metaindex.size + BlockHandle::kTrailer, meta);
    Expect(&end, footer.index, "index block");
    Expect(&end, {file_.size() - internal::kFooterSize, 0}, "footer");
    return std::move(problems_);
  }

  // Reports bytes between the end of the previous part and this one. Returns false if they overlap.
  bool Expect(uint64_t* end, const BlockHandle& handle, absl::string_view what) {
    if (handle.offset > *end) {
      Problem(*end, handle.offset - *end,
              DataLoss(file_.path(), ": ", handle.offset - *end, " bytes at offset ", *end,
                       " do not belong to any block"));
    } else if (handle.offset < *end) {
      Problem(handle.offset, *end - handle.offset,
              DataLoss(file_.path(), ": the ", what, " at offset ", handle.offset,
                       " overlaps the preceding block"));
    }
    const bool follows = handle.offset >= *end;
    if (internal::IsInside(handle, file_.size()))
      *end = std::max(*end, handle.offset + handle.size + BlockHandle::kTrailer);
    return follows;
  }

  absl::StatusOr<std::vector<SSTableProblem>> WithoutIndex(uint64_t end) {
    std::string bytes(end, '\0');
    WEIR_RETURN_IF_ERROR(file_.Read(0, end, bytes.data()));
    uint64_t start = 0;
    uint32_t crc = 0;
    for (uint64_t i = 0; i + 4 < end; ++i) {
      crc = ExtendCrc32c(crc, &bytes[i], 1);
      if (i == start || MaskCrc32c(crc) != LoadFixed32(&bytes[i + 1])) continue;
      const BlockHandle handle{start, i - start};
      const absl::StatusOr<std::string> contents = internal::ReadBlock(file_, handle);
      if (contents.ok() && !IsIndex(*contents)) VisitBlock(start, *contents);
      found_.push_back(handle);
      i += 4;
      start = i + 1;
      crc = 0;
    }
    if (start < end) {
      Problem(start, end - start,
              DataLoss(file_.path(), ": no intact block found from offset ", start, " on (",
                       end - start, " bytes)"));
    }
    return std::move(problems_);
  }

  // Returns true if every value is the handle of a block found earlier.
  bool IsIndex(const std::string& contents) const {
    BlockCursor entry(contents);
    size_t count = 0;
    for (; entry.valid(); entry.Next(), ++count) {
      absl::string_view value = entry.value();
      BlockHandle handle;
      if (!internal::GetBlockHandle(&value, &handle) || !value.empty() || count >= found_.size() ||
          !(found_[count] == handle)) {
        return false;
      }
    }
    return true;
  }

  const ReadableFile& file_;
  const SSTableVisitor visit_, doubt_;
  std::vector<SSTableProblem> problems_;
  std::vector<BlockHandle> found_;
  std::string last_key_;
  bool any_ = false;
};

}  // namespace

absl::StatusOr<std::vector<SSTableProblem>> ScanSSTable(const ReadableFile& file,
                                                        SSTableVisitor visit,
                                                        SSTableVisitor doubt) {
  return Scanner(file, visit, doubt).Run();
}

}  // namespace weir
