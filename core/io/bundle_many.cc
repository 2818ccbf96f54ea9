#include <algorithm>
#include <tuple>

#include "weir/core/io/bundle_reader.h"
#include "weir/core/io/crc32c.h"

namespace weir {

namespace {

// The result of ReadMany for one tensor.
void ReadOne(CheckpointReader& reader, absl::string_view name, size_t i,
             CheckpointReader::Take take) {
  const absl::StatusOr<Tensor> read = reader.Read(name);
  if (!read.ok()) return take(i, read.status());
  if (!IsPlain(read->dtype()))
    return take(i,
                InvalidArgument("tensor ", name, " has no plain elements: ", read->Description()));
  take(i, absl::string_view(static_cast<const char*>(read->raw()), read->num_bytes()));
}

}  // namespace

absl::Status CheckpointReader::FindMany(absl::Span<const absl::string_view> names, Found found) {
  for (size_t i = 0; i < names.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const CheckpointTensor tensor, Find(names[i]));
    WEIR_RETURN_IF_ERROR(found(i, tensor.dtype, tensor.shape));
  }
  return absl::OkStatus();
}

void CheckpointReader::ReadMany(absl::Span<const absl::string_view> names, ThreadPool& pool,
                                Take take) {
  pool.ForEach(static_cast<int>(names.size()),
               [&](int i) { ReadOne(*this, names[i], static_cast<size_t>(i), take); });
}

namespace internal {
namespace {

// A system call costs as much as reading some thousand unneeded bytes. The data of one read stays
// in a core's cache until it is consumed.
constexpr int64_t kMaxSmall = int64_t{1} << 16, kMaxGap = int64_t{1} << 12,
                  kMaxRead = int64_t{1} << 18;

}  // namespace

absl::StatusOr<BundleIndex> BundleIndex::Read(SSTableReader& table) {
  BundleIndex index;
  WEIR_RETURN_IF_ERROR(
      table.ForEach([&](absl::string_view key, absl::string_view value) -> absl::Status {
        if (key.empty()) return absl::OkStatus();  // the header
        WEIR_ASSIGN_OR_RETURN(BundleEntry entry, ParseBundleEntry(value, key, table.path()));
        index.keys_.append(key.data(), key.size());
        index.starts_.push_back(index.keys_.size());
        index.entries_.push_back(std::move(entry));
        return absl::OkStatus();
      }));
  return index;
}

const BundleEntry* BundleIndex::Find(absl::string_view key, size_t* hint) const {
  size_t i = *hint;
  if (i >= entries_.size() || Key(i) != key) {
    size_t end = entries_.size();
    for (i = 0; i < end;) {
      const size_t middle = i + (end - i) / 2;
      Key(middle) < key ? i = middle + 1 : end = middle;
    }
    if (i == entries_.size() || Key(i) != key) return nullptr;
  }
  *hint = i + 1;
  return &entries_[i];
}

absl::Status BundleReader::FindMany(absl::Span<const absl::string_view> names, Found found) {
  const BundleIndex* const index = FullIndex(names.size());
  if (index == nullptr) return CheckpointReader::FindMany(names, found);
  size_t hint = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const BundleEntry* const entry = index->Find(names[i], &hint);
    if (entry == nullptr) return KeyNotFound(names[i], prefix_);
    WEIR_RETURN_IF_ERROR(found(i, entry->dtype, entry->shape));
  }
  return absl::OkStatus();
}

// Returns true if the tensor may be read together with its neighbors: its stored bytes are its
// elements, and there are few of them.
bool BundleReader::IsSmall(const BundleEntry& entry) const {
  return entry.slices.empty() && entry.size <= kMaxSmall && !header_.big_endian &&
         IsPlain(entry.dtype) &&
         entry.size / static_cast<int64_t>(ElementSize(entry.dtype)) == entry.shape.num_elements();
}

void BundleReader::ReadMany(absl::Span<const absl::string_view> names, ThreadPool& pool,
                            Take take) {
  const BundleIndex* const index = FullIndex(names.size());
  std::vector<SmallTensor> small;
  std::vector<size_t> others;
  size_t hint = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const BundleEntry* const entry = index != nullptr ? index->Find(names[i], &hint) : nullptr;
    if (entry != nullptr && IsSmall(*entry)) {
      small.push_back({i, names[i], entry});
    } else {
      others.push_back(i);
    }
  }
  const auto precedes = [](const SmallTensor& a, const SmallTensor& b) {
    return std::tie(a.entry->shard, a.entry->offset) < std::tie(b.entry->shard, b.entry->offset);
  };
  if (!std::is_sorted(small.begin(), small.end(), precedes))
    std::sort(small.begin(), small.end(), precedes);
  const std::vector<CoalescedRead> runs = CoalesceReads(small);
  const int num_runs = static_cast<int>(runs.size());
  pool.ForEach(num_runs + static_cast<int>(others.size()), [&](int i) {
    if (i < num_runs) return ReadCoalesced(runs[i], take);
    const size_t number = others[i - num_runs];
    ReadOne(*this, names[number], number, take);
  });
}

// Splits tensors sorted by location at file boundaries, at gaps, and when a read is large enough.
// Entries may overlap (in a damaged index); a read is still no larger than the limit.
std::vector<BundleReader::CoalescedRead> BundleReader::CoalesceReads(
    absl::Span<const SmallTensor> tensors) {
  std::vector<CoalescedRead> runs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const BundleEntry& entry = *tensors[i].entry;
    if (!runs.empty() && runs.back().shard == entry.shard) {
      CoalescedRead& run = runs.back();
      const int64_t end = std::max(run.end, entry.offset + entry.size);
      if (entry.offset - run.end <= kMaxGap && end - run.offset <= kMaxRead) {
        run.end = end;
        run.tensors = absl::MakeConstSpan(run.tensors.data(), run.tensors.size() + 1);
        continue;
      }
    }
    runs.push_back({entry.shard, entry.offset, entry.offset + entry.size, tensors.subspan(i, 1)});
  }
  return runs;
}

// If a coalesced read fails, reads each tensor separately to report its own error.
void BundleReader::ReadCoalesced(const CoalescedRead& run, Take take) {
  const absl::StatusOr<const ReadableFile*> file = DataFile(run.shard);
  const bool is_there = file.ok() && static_cast<uint64_t>(run.end) <= (*file)->size();
  absl::StatusOr<Tensor> room =
      Tensor::Allocate(HostAllocator(), DT_UINT8, Shape({run.end - run.offset}));
  const char* bytes = nullptr;
  if (is_there && room.ok()) {
    char* const out = static_cast<char*>(room->raw());
    const auto offset = static_cast<uint64_t>(run.offset);
    if ((*file)->Read(offset, room->num_bytes(), out).ok()) bytes = out;
  }
  for (const SmallTensor& tensor : run.tensors) {
    const BundleEntry& entry = *tensor.entry;
    absl::string_view own;
    if (bytes != nullptr)
      own = {bytes + (entry.offset - run.offset), static_cast<size_t>(entry.size)};
    if (bytes != nullptr && MaskCrc32c(ExtendCrc32c(0, own)) == entry.crc) {
      take(tensor.number, own);
    } else {
      ReadOne(*this, tensor.name, tensor.number, take);
    }
  }
}

}  // namespace internal
}  // namespace weir
