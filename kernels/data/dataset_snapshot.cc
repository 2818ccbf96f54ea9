#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "weir/core/io/proto_values.h"
#include "weir/kernels/data/dataset_files.h"
#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/data/element_files.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/hash.h"
#include "weir/kernels/lib/registry.h"
#include "weir/proto/graph.pb.h"

// Snapshots: datasets that are computed once and then read from files, by this and by later
// programs. The files are those of SaveDataset (element_files.h), in a folder named by the dataset:
// a hash of the graph that computes it. The first iterator of a new dataset writes the files and
// returns the elements; while it does, others return elements without writing; when it has reached
// the end, all read. A run that has not ended for a day is taken for dead.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

// ---- the hash of a dataset

// Returns the hash of what computes input 0 of the node.
absl::StatusOr<uint64_t> HashInput(const KernelInit& init) {
  std::string text;
  const auto append = [&](const Node& node) {
    proto::NodeDef def;
    NodeToProto(node, &def);
    text += DeterministicBytes(def);
  };
  WEIR_RETURN_IF_ERROR(VisitNodesBehind(*init.node.input(0).node, init.functions, append));
  return Fingerprint64(text);
}

// ---- the dataset

// What an iterator does. kAuto: what the folder tells it.
enum class SnapshotMode { kAuto, kRead, kWrite, kPassThrough };

absl::StatusOr<SnapshotMode> SnapshotModeOf(const Node& node) {
  const auto mode = node.attr_or<std::string>("mode", "auto");
  if (mode == "auto") return SnapshotMode::kAuto;
  if (mode == "read") return SnapshotMode::kRead;
  if (mode == "write") return SnapshotMode::kWrite;
  if (mode == "passthrough") return SnapshotMode::kPassThrough;
  return InvalidArgument("mode must be either 'auto', 'read', 'write', or 'passthrough', not '",
                         mode, "'");
}

// What a snapshot is, apart from its folder.
struct Snapshot {
  SnapshotMode mode = SnapshotMode::kAuto;
  std::string read_prefix, write_prefix;  // before the path
  std::string compression;
  uint64_t hash = 0;
  DataTypes types;
  std::optional<CapturedFunction> reader, sharder;  // null: shards one after the other; one shard

  absl::StatusOr<DatasetPtr> Elements(const DatasetContext& x, const std::string& run) const {
    WEIR_ASSIGN_OR_RETURN(DatasetPtr shards, ShardDatasets(run, compression, types));
    return reader ? ElementsOf(*reader, x, std::move(shards)) : FlattenedDataset(std::move(shards));
  }
};

// Decides with the first element what it does.
class SnapshotIterator final : public DatasetIterator {
 public:
  SnapshotIterator(IteratorPtr in, const std::string& path, Snapshot snapshot)
      : in_{nullptr, std::move(in)},
        read_folder_(Folder(snapshot.read_prefix, path, snapshot.hash)),
        write_folder_(Folder(snapshot.write_prefix, path, snapshot.hash)),
        snapshot_(std::move(snapshot)) {}

  MaybeElement Next(const DatasetContext& x) override {
    if (!begun_) {
      WEIR_RETURN_IF_ERROR(Begin(x));
      begun_ = true;
    }
    WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in_.iterator->Next(x));
    if (writer_ == nullptr) return element;
    if (!element) {
      WEIR_RETURN_IF_ERROR(std::exchange(writer_, nullptr)->Finish());
      return std::nullopt;
    }
    const absl::Status written = writer_->Write(ShardOf(snapshot_.sharder, x, *element), *element);
    if (written.ok()) return element;
    writer_ = nullptr;  // the run will not be complete
    return written;
  }

 private:
  static std::string Folder(const std::string& prefix, const std::string& path, uint64_t hash) {
    return JoinPath(prefix.empty() ? path : JoinPath(prefix, path), absl::StrCat(hash));
  }

  absl::Status Begin(const DatasetContext& x) {
    if (snapshot_.mode == SnapshotMode::kPassThrough) return absl::OkStatus();
    if (snapshot_.mode == SnapshotMode::kWrite) return BeginWriting();
    constexpr int64_t kExpiryUs = int64_t{24} * 3600 * 1'000'000;
    const bool reads = snapshot_.mode == SnapshotMode::kRead;
    const absl::StatusOr<SavedDataset> saved = ReadSavedDataset(read_folder_);
    if (!saved.ok() && (reads || !absl::IsNotFound(saved.status()))) return saved.status();
    if (saved.ok() && (reads || saved->finalized)) {
      WEIR_ASSIGN_OR_RETURN(DatasetPtr elements,
                            snapshot_.Elements(x, JoinPath(read_folder_, saved->run_id)));
      WEIR_ASSIGN_OR_RETURN(in_, IterateOver(std::move(elements)));
      return absl::OkStatus();
    }
    if (saved.ok() && saved->created_us > NowUs() - kExpiryUs) return absl::OkStatus();
    return BeginWriting();
  }

  absl::Status BeginWriting() {
    WEIR_ASSIGN_OR_RETURN(writer_, ElementWriter::Create(write_folder_, snapshot_.compression,
                                                         snapshot_.types, /*announce=*/true));
    return absl::OkStatus();
  }

  NestedIterator in_;
  const std::string read_folder_, write_folder_;
  const Snapshot snapshot_;
  std::unique_ptr<ElementWriter> writer_;
  bool begun_ = false;
};

absl::StatusOr<Kernel> MakeSnapshot(const KernelInit& init) {
  Snapshot given;
  given.types = init.attr<DataTypes>("output_types");
  WEIR_ASSIGN_OR_RETURN(given.compression,
                        ElementCompression(init.attr<std::string>("compression")));
  const bool v2 = init.node.op_name() == "SnapshotDatasetV2";
  if (v2) {
    WEIR_ASSIGN_OR_RETURN(given.reader, CapturedFunctionOf(init, "reader_func"));
    WEIR_ASSIGN_OR_RETURN(given.sharder, CapturedFunctionOf(init, "shard_func"));
  }
  given.read_prefix = init.attr<std::string>(v2 ? "reader_prefix" : "reader_path_prefix");
  given.write_prefix = init.attr<std::string>(v2 ? "writer_prefix" : "writer_path_prefix");
  WEIR_ASSIGN_OR_RETURN(given.mode, SnapshotModeOf(init.node));
  if (init.node.attr_or<bool>("hash_valid", false)) {
    given.hash = static_cast<uint64_t>(init.attr<int64_t>("hash"));
  } else {
    WEIR_ASSIGN_OR_RETURN(given.hash, HashInput(init));
  }
  return Kernel([given](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::string path, ReadString(c.input(1), "path"));
    if (path.empty()) return InvalidArgument("path cannot be empty.");
    Snapshot snapshot = given;
    if (snapshot.reader) {
      WEIR_ASSIGN_OR_RETURN(snapshot.reader,
                            WithCaptured(c, *snapshot.reader, "reader_func_other_args"));
    }
    if (snapshot.sharder) {
      WEIR_ASSIGN_OR_RETURN(snapshot.sharder,
                            WithCaptured(c, *snapshot.sharder, "shard_func_other_args"));
    }
    return WrapDataset(c, [path, snapshot](IteratorPtr in) {
      return std::make_unique<SnapshotIterator>(std::move(in), path, snapshot);
    });
  });
}

// ---- the parts of a snapshot

// What the readers of parts have in common.
absl::StatusOr<Kernel> MakeReader(
    const KernelInit& init, std::function<DatasetPtr(const KernelContext&, const std::string& path,
                                                     const std::string& compression)>
                                make) {
  WEIR_ASSIGN_OR_RETURN(const std::string compression,
                        ElementCompression(init.attr<std::string>("compression")));
  return Kernel([make = std::move(make), compression](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::string path,
                          ReadString(c.input(0), c.node().op().inputs()[0].name));
    if (c.num_inputs() > 1) WEIR_RETURN_IF_ERROR(ReadInt(c.input(1), "start_index").status());
    c.SetOutput(0, DatasetTensor(make(c, path, compression)));
    return absl::OkStatus();
  });
}

absl::StatusOr<Kernel> MakeShardReader(const KernelInit& init) {
  constexpr int64_t kVersion = 2;
  if (init.attr<int64_t>("version") != kVersion)
    return Unimplemented("only version ", kVersion, " of snapshot files can be read, not ",
                         init.attr<int64_t>("version"));
  return MakeReader(
      init, [types = init.attr<DataTypes>("output_types")](
                const KernelContext& c, const std::string& path, const std::string& compression) {
        return ShardDataset(path, compression, types, c.input(1).IntAt(0));
      });
}

absl::StatusOr<Kernel> MakeChunkReader(const KernelInit& init) {
  return MakeReader(
      init, [types = init.attr<DataTypes>("output_types")](
                const KernelContext&, const std::string& path, const std::string& compression) {
        return ElementFileDataset(path, compression, types);
      });
}

// A dataset of datasets: its elements are the inputs.
absl::Status NestedReader(KernelContext& c) {
  Tensors datasets;
  for (int i = 0; i < c.num_inputs(); ++i) {
    WEIR_RETURN_IF_ERROR(DatasetIn(c.input(i)).status());
    datasets.push_back(c.input(i));
  }
  c.SetOutput(0, DatasetTensor(DatasetOf([datasets] {
                return IteratorOf(
                    [datasets, next = size_t{0}](const DatasetContext&) mutable -> MaybeElement {
                      if (next == datasets.size()) return std::nullopt;
                      return Tensors{datasets[next++]};
                    });
              })));
  return absl::OkStatus();
}

}  // namespace

void AddDatasetSnapshotKernels(KernelRegistry* r) {
  r->Add("SnapshotChunkDataset", kCpu, MakeChunkReader);
  r->Add("SnapshotDataset", kCpu, MakeSnapshot);
  r->Add("SnapshotDatasetReader", kCpu, MakeShardReader);
  r->Add("SnapshotDatasetV2", kCpu, MakeSnapshot);
  r->Add("SnapshotNestedDatasetReader", kCpu, NestedReader);
}

}  // namespace weir
