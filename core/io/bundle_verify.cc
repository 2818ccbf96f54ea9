#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "weir/core/io/bundle.h"
#include "weir/core/io/bundle_commit.h"
#include "weir/core/io/bundle_format.h"
#include "weir/core/io/bundle_reader.h"
#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/file.h"
#include "weir/core/io/sstable.h"

namespace weir {
namespace {

using internal::BundleDataName;
using internal::BundleEntry;
using internal::DescribeBundleKey;

class Verifier : public SalvagedBundle {
 public:
  explicit Verifier(const std::string& prefix)
      : prefix_(prefix), index_path_(internal::BundleIndexName(prefix)) {}

  absl::Status Run() {
    WEIR_RETURN_IF_ERROR(ReadIndex());
    CheckSlices();
    for (int shard = 0; shard < header_.num_shards; ++shard) CheckShard(shard);
    std::erase_if(doubtful_, [&](const auto& item) {
      return entries_.contains(item.first) || !CheckStored(item.first, item.second).ok();
    });
    for (const auto& [key, entry] : entries_) {
      if (IsPart(key)) continue;
      ++report_.tensors;
      if (lost_.contains(key))
        report_.lost.push_back({key, entry.dtype, entry.shape, entry.slices});
    }
    if (!report_.problems.empty() && (!internal::IsUnchanged(*index_, index_path_) ||
                                      internal::LiveDataSuffix(prefix_) != suffix_))
      return internal::OverwrittenError(prefix_);
    return absl::OkStatus();
  }

  const BundleReport& report() const override { return report_; }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [key, entry] : entries_) {
      if (!IsPart(key) && !lost_.contains(key)) names.push_back(key);
    }
    return names;
  }

  std::vector<CheckpointTensor> doubtful() const override {
    std::vector<CheckpointTensor> tensors;
    for (const auto& [key, entry] : doubtful_)
      tensors.push_back({key, entry.dtype, entry.shape, {}});
    return tensors;
  }

  absl::StatusOr<Tensor> Read(const std::string& name) override {
    if (const auto it = doubtful_.find(name); it != doubtful_.end())
      return ReadStored(name, it->second);
    const auto found = entries_.find(name);
    if (found == entries_.end() || lost_.contains(name))
      return internal::KeyNotFound(name, prefix_);
    const BundleEntry& entry = found->second;
    if (entry.slices.empty()) return ReadStored(name, entry);
    const Box all = ResolveSlice(TensorSlice::Full(entry.shape.rank()), entry.shape);
    return internal::AssembleSlices(
        entry.dtype, entry.shape, all, entry.slices,
        [&](const TensorSlice& slice) {
          const std::string key = EncodeSliceKey(name, slice);
          return ReadStored(key, entries_.at(key));
        },
        absl::StrCat(index_path_, ": tensor ", name));
  }

 private:
  static bool IsPart(absl::string_view key) { return key[0] == '\0'; }

  // Returns the tensor to which the key, of a tensor or of a slice, belongs.
  static std::string NameOf(const std::string& key) {
    std::string name;
    TensorSlice slice;
    return IsPart(key) && DecodeSliceKey(key, &name, &slice) ? name : key;
  }

  std::string DataPath(int shard) const {
    const std::string path = BundleDataName(prefix_, shard, header_.num_shards);
    return Files().Exists(path + suffix_) ? path + suffix_ : path;
  }

  absl::StatusOr<const ReadableFile*> DataFile(int shard) {
    std::unique_ptr<ReadableFile>& file = data_[shard];
    if (file == nullptr) {
      WEIR_ASSIGN_OR_RETURN(file, Files().Open(DataPath(shard)));
    }
    return file.get();
  }

  absl::StatusOr<Tensor> ReadStored(const std::string& key, const BundleEntry& entry) {
    WEIR_ASSIGN_OR_RETURN(const ReadableFile* file, DataFile(entry.shard));
    return internal::ReadTensorData(*file, entry, header_.big_endian, key);
  }

  absl::Status CheckStored(const std::string& key, const BundleEntry& entry) {
    WEIR_ASSIGN_OR_RETURN(const ReadableFile* file, DataFile(entry.shard));
    return internal::CheckTensorData(*file, entry, header_.big_endian, key);
  }

  void Problem(const std::string& file, uint64_t offset, uint64_t size, std::string name,
               std::string message) {
    report_.problems.push_back({file, offset, size, std::move(name), std::move(message)});
  }

  absl::Status ReadIndex() {
    WEIR_ASSIGN_OR_RETURN(index_, Files().Open(index_path_));
    bool has_header = false;
    const auto visit = [&](absl::string_view key, absl::string_view value) {
      const absl::Status status =
          key.empty() ? SetHeader(value, &has_header) : AddEntry(key, value);
      if (status.ok()) return;
      report_.index_is_sound = false;
      Problem(index_path_, 0, 0, DescribeBundleKey(key), std::string(status.message()));
    };
    const auto doubt = [&](absl::string_view key, absl::string_view value) {
      absl::StatusOr<BundleEntry> entry = internal::ParseBundleEntry(value, key, index_path_);
      if (!key.empty() && !IsPart(key) && entry.ok() && entry->slices.empty())
        doubtful_.emplace(std::string(key), *std::move(entry));
    };
    WEIR_ASSIGN_OR_RETURN(const std::vector<SSTableProblem> problems,
                          ScanSSTable(*index_, visit, doubt));
    uint64_t damaged = 0;
    for (const SSTableProblem& p : problems) {
      Problem(index_path_, p.offset, p.size, "", p.message);
      damaged += p.size;
    }
    if (!problems.empty() || !has_header) report_.index_is_sound = false;
    report_.index_bytes = static_cast<int64_t>(index_->size() - std::min(damaged, index_->size()));
    if (!has_header) {
      Problem(index_path_, 0, 0, "",
              absl::StrCat(index_path_, ": Unable to find the header entry"));
      GuessShards();
    }
    suffix_ = internal::LiveDataSuffix(prefix_);
    return absl::OkStatus();
  }

  absl::Status SetHeader(absl::string_view value, bool* has_header) {
    WEIR_ASSIGN_OR_RETURN(header_, internal::ParseBundleHeader(value, index_path_));
    *has_header = true;
    return absl::OkStatus();
  }

  absl::Status AddEntry(absl::string_view key, absl::string_view value) {
    WEIR_ASSIGN_OR_RETURN(BundleEntry entry, internal::ParseBundleEntry(value, key, index_path_));
    entries_.emplace(std::string(key), std::move(entry));
    return absl::OkStatus();
  }

  // Without a header, the names of the data files tell the number of shards.
  void GuessShards() {
    const auto paths = MatchFiles(prefix_ + ".data-00000-of-?????");
    if (!paths.ok() || paths->size() != 1) return;
    const std::string count = paths->front().substr(paths->front().size() - 5);
    header_.num_shards = std::max(1, static_cast<int>(std::strtol(count.c_str(), nullptr, 10)));
  }

  // Checks that every tensor stored in slices has all of them, and that every slice belongs to a
  // tensor.
  void CheckSlices() {
    std::map<std::string, bool, std::less<>> claimed;
    for (const auto& [key, entry] : entries_) {
      if (entry.slices.empty()) continue;
      int64_t covered = 0;
      std::vector<Box> boxes;
      for (const TensorSlice& slice : entry.slices) {
        const std::string part = EncodeSliceKey(key, slice);
        const auto found = entries_.find(part);
        if (found == entries_.end()) {
          lost_.insert(key);
          Problem(index_path_, 0, 0, key,
                  absl::StrCat(index_path_, ": no entry for ", DescribeBundleKey(part)));
        } else if (found->second.dtype != entry.dtype ||
                   found->second.shape != *slice.ShapeIn(entry.shape)) {
          lost_.insert(key);
          Problem(index_path_, 0, 0, key,
                  absl::StrCat(index_path_, ": the entry of ", DescribeBundleKey(part),
                               " does not match the tensor"));
        }
        claimed[part] = true;
        boxes.push_back(ResolveSlice(slice, entry.shape));
        covered += std::min(boxes.back().num_elements(), entry.shape.num_elements() - covered + 1);
      }
      if (covered != entry.shape.num_elements() || !AreDisjoint(boxes)) {
        lost_.insert(key);
        Problem(index_path_, 0, 0, key,
                absl::StrCat(index_path_, ": the slices of tensor ", key,
                             " overlap or do not cover it"));
      }
    }
    for (const auto& [key, entry] : entries_) {
      if (entry.slices.empty() && entry.shard >= header_.num_shards) {
        lost_.insert(NameOf(key));
        Problem(index_path_, 0, 0, DescribeBundleKey(key),
                absl::StrCat(index_path_, ": ", DescribeBundleKey(key), " is in shard ",
                             entry.shard, " of ", header_.num_shards));
      }
      if (IsPart(key) && !claimed[key]) {
        Problem(index_path_, 0, 0, DescribeBundleKey(key),
                absl::StrCat(index_path_, ": ", DescribeBundleKey(key), " belongs to no tensor"));
      }
    }
  }

  void CheckShard(int shard) {
    const std::string path = DataPath(shard);
    const absl::StatusOr<const ReadableFile*> file = DataFile(shard);
    std::vector<const std::pair<const std::string, BundleEntry>*> inside;
    for (const auto& item : entries_) {
      if (!item.second.slices.empty() || item.second.shard != shard) continue;
      inside.push_back(&item);
      if (!file.ok()) lost_.insert(NameOf(item.first));
    }
    if (!file.ok()) return Problem(path, 0, 0, "", std::string(file.status().message()));
    std::sort(inside.begin(), inside.end(), [](const auto* a, const auto* b) {
      return std::tie(a->second.offset, a->second.size) <
             std::tie(b->second.offset, b->second.size);
    });
    int64_t end = 0;
    for (const auto* item : inside) {
      const BundleEntry& entry = item->second;
      CheckGap(path, end, entry.offset, DescribeBundleKey(item->first));
      end = std::max(end, entry.offset + entry.size);
      const absl::Status status = CheckStored(item->first, entry);
      if (status.ok()) {
        report_.data_bytes += entry.size;
      } else {
        lost_.insert(NameOf(item->first));
        Problem(path, static_cast<uint64_t>(entry.offset), static_cast<uint64_t>(entry.size),
                DescribeBundleKey(item->first), std::string(status.message()));
      }
    }
    if (static_cast<uint64_t>(end) < (*file)->size())
      CheckGap(path, end, static_cast<int64_t>((*file)->size()), "");
  }

  void CheckGap(const std::string& path, int64_t end, int64_t next, const std::string& name) {
    if (next > end) {
      Problem(
          path, static_cast<uint64_t>(end), static_cast<uint64_t>(next - end), "",
          absl::StrCat(path, ": ", next - end, " bytes at offset ", end, " belong to no tensor"));
    } else if (next < end) {
      Problem(path, static_cast<uint64_t>(next), static_cast<uint64_t>(end - next), name,
              absl::StrCat(path, ": tensor ", name, " at offset ", next,
                           " overlaps the preceding tensor"));
    }
  }

  const std::string prefix_, index_path_;
  std::unique_ptr<ReadableFile> index_;
  std::string suffix_;
  internal::BundleHeader header_;
  std::map<std::string, BundleEntry, std::less<>> entries_;
  std::map<std::string, BundleEntry> doubtful_;
  std::set<std::string> lost_;  // tensor names
  std::map<int, std::unique_ptr<ReadableFile>> data_;
  BundleReport report_;
};

}  // namespace

absl::StatusOr<BundleReport> VerifyBundle(const std::string& prefix) {
  if (!Files().Exists(internal::BundleIndexName(prefix)) && CheckpointExists(prefix))
    return internal::VerifyCheckpointV1(prefix);
  Verifier verifier(prefix);
  WEIR_RETURN_IF_ERROR(verifier.Run());
  return verifier.report();
}

absl::Status CheckBundleIsComplete(const std::string& prefix) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file,
                        Files().Open(internal::BundleIndexName(prefix)));
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<SSTableReader> index,
                        SSTableReader::Open(std::move(file)));
  internal::BundleHeader header;
  std::map<int, uint64_t> ends;  // of the data in each shard
  WEIR_RETURN_IF_ERROR(
      index->ForEach([&](absl::string_view key, absl::string_view value) -> absl::Status {
        if (key.empty()) {
          WEIR_ASSIGN_OR_RETURN(header, internal::ParseBundleHeader(value, index->path()));
          return absl::OkStatus();
        }
        WEIR_ASSIGN_OR_RETURN(const BundleEntry entry,
                              internal::ParseBundleEntry(value, key, index->path()));
        uint64_t& end = ends[entry.shard];
        if (entry.slices.empty())
          end = std::max(end, static_cast<uint64_t>(entry.offset + entry.size));
        return absl::OkStatus();
      }));
  const std::string suffix = internal::LiveDataSuffix(prefix);
  for (const auto& [shard, end] : ends) {
    const std::string path = BundleDataName(prefix, shard, header.num_shards) + suffix;
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> data, Files().Open(path));
    if (data->size() >= end) continue;
    return DataLoss(path, ": the file is truncated: it has ", data->size(), " bytes, and ", end,
                    " are needed");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SalvagedBundle>> SalvagedBundle::Open(const std::string& prefix) {
  auto verifier = std::make_unique<Verifier>(prefix);
  WEIR_RETURN_IF_ERROR(verifier->Run());
  return verifier;
}

}  // namespace weir
