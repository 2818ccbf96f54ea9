#include "weir/kernels/data/element_files.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "weir/core/io/proto_values.h"
#include "weir/kernels/data/dataset_files.h"
#include "weir/proto/snapshot.pb.h"
#include "weir/proto/tensor.pb.h"

namespace weir {

namespace {

constexpr char kMetadataFile[] = "snapshot.metadata";
constexpr char kShardSuffix[] = ".shard", kElementSuffix[] = ".snapshot";
// The format of element files. Version 1, of TensorFlow 2.1 and before, is another one.
constexpr int64_t kVersion = 2;

// Reads the elements of one file.
FileElements ElementsIn(const std::string& path, RecordStream stream, const DataTypes& types) {
  const auto records = std::make_shared<RecordStream>(std::move(stream));
  return [path, records, types]() -> MaybeElement {
    Tensors element;
    for (const DataType type : types) {
      WEIR_ASSIGN_OR_RETURN(const std::optional<std::string> record, records->Next());
      if (!record && element.empty()) return std::nullopt;
      if (!record) {
        return DataLoss(path, ": the file ends within an element, after ", element.size(), " of ",
                        types.size(), " components");
      }
      proto::TensorProto proto;
      if (!ParseBytes(*record, &proto).ok())
        return DataLoss(path, ": Unable to parse tensor from stored proto.");
      int64_t budget = kExpansionBudget;
      // DATA_LOSS ends the file: the next record is not the first one of an element.
      absl::StatusOr<Tensor> tensor = TensorFromProto(proto, &budget);
      if (!tensor.ok()) return DataLoss(path, ": ", tensor.status().message());
      if (tensor->dtype() != type) {
        return DataLoss("Data type mismatch at component ", element.size(), ": expected ",
                        DataTypeName(type), " but got ", DataTypeName(tensor->dtype()),
                        ". File: ", path);
      }
      element.push_back(*std::move(tensor));
    }
    return element;
  };
}

absl::StatusOr<FileElements> OpenElementFile(const std::string& path,
                                             const std::string& compression,
                                             const DataTypes& types) {
  WEIR_ASSIGN_OR_RETURN(RecordStream stream, RecordStream::Open(path, compression));
  return ElementsIn(path, std::move(stream), types);
}

// Returns the paths in a folder whose names begin with digits and have the suffix, in the order of
// the numbers.
absl::StatusOr<std::vector<std::string>> Numbered(const std::string& folder,
                                                  absl::string_view suffix) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> names, Files().List(folder));
  std::vector<std::pair<size_t, std::string>> found;  // by length first: 9 is before 10
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, suffix) || name.empty() || !absl::ascii_isdigit(name[0])) continue;
    found.emplace_back(name.size(), name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (const auto& [length, name] : found) paths.push_back(JoinPath(folder, name));
  return paths;
}

std::string ShardName(int64_t shard) { return absl::StrFormat("%08d%s", shard, kShardSuffix); }

}  // namespace

absl::StatusOr<SavedDataset> ReadSavedDataset(const std::string& path) {
  const std::string file = JoinPath(path, kMetadataFile);
  const absl::StatusOr<std::string> bytes = ReadFile(file);
  // If a part of the path is a file, reading has another code.
  if (absl::IsFailedPrecondition(bytes.status()) && !Files().Exists(file))
    return NotFound(file, "; No such file or directory");
  WEIR_RETURN_IF_ERROR(bytes.status());
  proto::data::experimental::SnapshotMetadataRecord record;
  if (!ParseBytes(*bytes, &record).ok()) return DataLoss(file, " is not a SnapshotMetadataRecord");
  if (record.version() != kVersion) {
    return Unimplemented(file, ": the format of the elements has version ", record.version(),
                         "; only version ", kVersion, " can be read");
  }
  SavedDataset saved;
  saved.run_id = record.run_id();
  // The name is a folder's, not a path to another place.
  if (saved.run_id.empty() || absl::StrContains(saved.run_id, '/') || saved.run_id == "..")
    return DataLoss(file, ": '", saved.run_id, "' is not the name of a run");
  saved.created_us = record.creation_timestamp();
  for (const int type : record.dtype()) saved.types.push_back(static_cast<DataType>(type));
  saved.num_elements = record.num_elements();
  saved.finalized = record.finalized();
  return saved;
}

int64_t NowUs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

absl::Status WriteSavedDataset(const std::string& path, const SavedDataset& saved) {
  proto::data::experimental::SnapshotMetadataRecord record;
  record.set_run_id(saved.run_id);
  record.set_creation_timestamp(saved.created_us);
  record.set_version(kVersion);
  for (const DataType type : saved.types) record.add_dtype(static_cast<proto::DataType>(type));
  record.set_num_elements(saved.num_elements);
  record.set_finalized(saved.finalized);
  return WriteFileAtomically(JoinPath(path, kMetadataFile), DeterministicBytes(record));
}

absl::StatusOr<std::string> ElementCompression(absl::string_view name) {
  if (name == "AUTO") return std::string("SNAPPY");
  if (name == "NONE") return std::string();
  if (name.empty() || name == "GZIP" || name == "SNAPPY") return std::string(name);
  return InvalidArgument("compression must be GZIP, SNAPPY, AUTO or empty, not '", name, "'");
}

DatasetPtr ElementFileDataset(const std::string& path, const std::string& compression,
                              const DataTypes& types) {
  return FilesDataset(1, [=](size_t) { return OpenElementFile(path, compression, types); });
}

DatasetPtr ShardDataset(const std::string& folder, const std::string& compression,
                        const DataTypes& types, int64_t start_index) {
  return DatasetOf([=]() -> MaybeIterator {
    WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> paths, Numbered(folder, kElementSuffix));
    if (paths.empty()) return NotFound(folder, ": no element files (*", kElementSuffix, ")");
    const DatasetPtr all = FilesDataset(
        paths.size(), [=](size_t i) { return OpenElementFile(paths[i], compression, types); });
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<DatasetIterator> in, all->Iterate());
    return IteratorOf([all, in = std::move(in),
                       left = start_index](const DatasetContext& x) mutable -> MaybeElement {
      for (; left > 0; --left) {
        WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> skipped, in->Next(x));
        if (!skipped) return std::nullopt;
      }
      return in->Next(x);
    });
  });
}

DatasetPtr FlattenedDataset(DatasetPtr datasets) {
  return DatasetOf([datasets = std::move(datasets)]() -> MaybeIterator {
    WEIR_ASSIGN_OR_RETURN(NestedIterator all, IterateOver(datasets));
    return IteratorOf([all = std::move(all),
                       in = NestedIterator()](const DatasetContext& x) mutable -> MaybeElement {
      for (;;) {
        if (in.iterator == nullptr) {
          WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> next, all.iterator->Next(x));
          if (!next) return std::nullopt;
          WEIR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetIn((*next)[0]));
          WEIR_ASSIGN_OR_RETURN(in, IterateOver(std::move(dataset)));
        }
        WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in.iterator->Next(x));
        if (element) return element;
        in = NestedIterator();
      }
    });
  });
}

absl::StatusOr<DatasetPtr> ShardDatasets(const std::string& run_folder,
                                         const std::string& compression, const DataTypes& types) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> folders, Numbered(run_folder, kShardSuffix));
  return DatasetOf([=] {
    return IteratorOf([=, next = size_t{0}](const DatasetContext&) mutable -> MaybeElement {
      if (next == folders.size()) return std::nullopt;
      return Tensors{DatasetTensor(ShardDataset(folders[next++], compression, types))};
    });
  });
}

absl::StatusOr<std::unique_ptr<ElementWriter>> ElementWriter::Create(const std::string& path,
                                                                     const std::string& compression,
                                                                     const DataTypes& types,
                                                                     bool announce) {
  std::random_device random;
  SavedDataset saved;
  saved.run_id = absl::StrCat(uint64_t{random()} << 32 | random());
  saved.created_us = NowUs();
  saved.types = types;
  std::unique_ptr<ElementWriter> writer(new ElementWriter(path, compression, std::move(saved)));
  WEIR_RETURN_IF_ERROR(MakeDirectories(writer->RunFolder()));
  if (announce) WEIR_RETURN_IF_ERROR(WriteSavedDataset(path, writer->saved_));
  return writer;
}

absl::StatusOr<int64_t> ShardOf(const std::optional<CapturedFunction>& shard_func,
                                const DatasetContext& x, const Tensors& element) {
  if (!shard_func) return 0;
  WEIR_ASSIGN_OR_RETURN(const int64_t shard, shard_func->Number(x, element, "shard_func"));
  if (shard < 0) return InvalidArgument("`shard_func` returned ", shard, ", which is negative");
  return shard;
}

absl::StatusOr<DatasetPtr> ElementsOf(const CapturedFunction& reader_func, const DatasetContext& x,
                                      DatasetPtr shards) {
  WEIR_ASSIGN_OR_RETURN(const Tensors results,
                        reader_func.Call(x, {DatasetTensor(std::move(shards))}));
  if (results.size() != 1) return InvalidArgument("reader_func returns more than one argument.");
  return DatasetIn(results[0]);
}

absl::Status ElementWriter::Write(const absl::StatusOr<int64_t>& shard, const Tensors& element) {
  const absl::Status written = shard.ok() ? Append(*shard, element) : shard.status();
  failed_.Update(written);
  return written;
}

absl::Status ElementWriter::Append(int64_t shard, const Tensors& element) {
  constexpr size_t kMostShards = 10'000;  // each is an open file
  auto found = shards_.find(shard);
  if (found == shards_.end()) {
    if (shards_.size() >= kMostShards)
      return InvalidArgument("shard_func returned more than ", kMostShards, " different shards");
    const std::string folder = JoinPath(RunFolder(), ShardName(shard));
    WEIR_RETURN_IF_ERROR(MakeDirectories(folder));
    WEIR_ASSIGN_OR_RETURN(
        std::unique_ptr<ByteSink> sink,
        ByteSink::Create(JoinPath(folder, absl::StrCat("00000000", kElementSuffix)), compression_));
    found = shards_.emplace(shard, std::move(sink)).first;
  }
  for (const Tensor& component : element) {
    if (component.dtype() == DT_VARIANT || component.dtype() == DT_RESOURCE)
      return Unimplemented("components of type ", DataTypeName(component.dtype()),
                           " cannot be written to a file");
    proto::TensorProto proto;
    TensorToProtoContent(component, &proto);
    WEIR_RETURN_IF_ERROR(AppendRecord(*found->second, proto.SerializeAsString()));
  }
  ++saved_.num_elements;
  return absl::OkStatus();
}

absl::Status ElementWriter::Finish() {
  WEIR_RETURN_IF_ERROR(failed_);
  for (auto& [shard, sink] : shards_) {
    WEIR_RETURN_IF_ERROR(sink->Finish());
    WEIR_RETURN_IF_ERROR(Files().SyncDirectory(JoinPath(RunFolder(), ShardName(shard))));
  }
  shards_.clear();
  WEIR_RETURN_IF_ERROR(Files().SyncDirectory(RunFolder()));
  saved_.finalized = true;
  return WriteSavedDataset(path_, saved_);
}

}  // namespace weir
