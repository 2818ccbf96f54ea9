#include "weir/tools/ckpt/keras_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "weir/core/io/file.h"
#include "weir/core/tensor/mutex.h"
#include "weir/tools/ckpt/array_reader.h"
#include "weir/tools/ckpt/hdf5_file.h"
#include "weir/tools/ckpt/new_file.h"
#include "weir/tools/lib/zip_archive.h"

namespace weir::tools {

namespace {

constexpr absl::string_view kConfig = "config.json", kMetadata = "metadata.json",
                            kWeights = "model.weights.h5", kShards = "model.weights.json";
constexpr uint64_t kMaxJsonBytes = uint64_t{256} << 20;

const ZipMember* FindMember(const std::vector<ZipMember>& members, absl::string_view name) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const ZipMember& member) { return member.name == name; });
  return found == members.end() ? nullptr : &*found;
}

std::string Describe(const std::string& path, const ZipMember& member) {
  return absl::StrCat(path, ": member '", member.name, "'");
}

// Passes the bytes of a member to `take`, in pieces, and verifies their checksum.
absl::Status ReadMember(const ReadableFile& file, const ZipMember& member,
                        absl::FunctionRef<absl::Status(absl::string_view piece)> take) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<TensorStream> stream,
                        OpenZipMember(file, member, Describe(file.path(), member)));
  std::vector<char> piece(std::min<uint64_t>(member.bytes, kPieceBytes));
  uint64_t left = member.bytes;
  do {  // a read of nothing verifies an empty member
    const size_t size = std::min<uint64_t>(left, piece.size());
    WEIR_RETURN_IF_ERROR(stream->Read(size, piece.data()));
    WEIR_RETURN_IF_ERROR(take(absl::string_view(piece.data(), size)));
    left -= size;
  } while (left > 0);
  return absl::OkStatus();
}

// The members of a model's archive.
struct Archive {
  std::unique_ptr<ReadableFile> file;
  std::vector<ZipMember> members;
};

absl::StatusOr<Archive> OpenArchive(const std::string& path) {
  Archive archive;
  WEIR_ASSIGN_OR_RETURN(archive.file, Files().Open(path));
  absl::StatusOr<std::vector<ZipMember>> members = ListZip(*archive.file);
  if (!members.ok()) return Annotate(members.status(), path);
  archive.members = *std::move(members);
  std::set<absl::string_view> names;
  for (const ZipMember& member : archive.members) {
    if (!names.insert(member.name).second)
      return DataLoss(path, ": two members have the name '", member.name, "'");
  }
  if (names.contains(kShards))
    return Unimplemented(path, ": its weights are in shards (", kShards, ")");
  for (const absl::string_view name : {kConfig, kWeights}) {
    if (!names.contains(name)) return NotFound(path, ": the archive has no ", name);
  }
  return archive;
}

class KerasFileReader final : public ArrayReader {
 public:
  using ArrayReader::ArrayReader;

  absl::Status Open(Metadata* metadata) {
    WEIR_ASSIGN_OR_RETURN(archive_, OpenArchive(path()));
    for (const ZipMember& member : archive_.members) {
      if (member.name != kWeights) WEIR_RETURN_IF_ERROR(AddText(member, metadata));
    }
    weights_member_ = FindMember(archive_.members, kWeights);
    const std::string what = Describe(path(), *weights_member_);
    const absl::StatusOr<uint64_t> offset =
        OffsetOfZipMember(*archive_.file, *weights_member_, what);
    if (absl::IsUnimplemented(offset.status()))
      return Annotate(offset.status(), "unpack the model, and read its model.weights.h5");
    WEIR_RETURN_IF_ERROR(offset.status());
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, Files().Open(path()));
    WEIR_ASSIGN_OR_RETURN(
        weights_, OpenHdf5Part(std::move(file), *offset, weights_member_->bytes, what, metadata));
    WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> tensors, weights_->List());
    for (const CheckpointTensor& tensor : tensors)
      WEIR_RETURN_IF_ERROR(Add(tensor.name, tensor.dtype, tensor.shape));
    return tensors.empty() ? CheckWeights() : absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<TensorStream>> Stream(absl::string_view name) override {
    WEIR_RETURN_IF_ERROR(Find(name).status());
    WEIR_RETURN_IF_ERROR(CheckWeights());
    return weights_->Stream(name);
  }

 private:
  // Reads a member that is not the weights, and keeps it if it is one of the two texts.
  absl::Status AddText(const ZipMember& member, Metadata* metadata) {
    const bool is_kept = member.name == kConfig || member.name == kMetadata;
    if (is_kept && member.bytes > kMaxJsonBytes)
      return DataLoss(Describe(path(), member), " has ", member.bytes, " bytes");
    std::string text;
    WEIR_RETURN_IF_ERROR(ReadMember(*archive_.file, member, [&](absl::string_view piece) {
      if (is_kept) text.append(piece.data(), piece.size());
      return absl::OkStatus();
    }));
    if (!is_kept) return absl::OkStatus();
    using Json = nlohmann::ordered_json;
    metadata->push_back(
        {member.name, "string", Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)});
    return absl::OkStatus();
  }

  // Verifies the checksum of the weights, once.
  absl::Status CheckWeights() {
    const MutexLock lock(mutex_);
    if (!weights_status_.has_value()) {
      weights_status_ = ReadMember(*archive_.file, *weights_member_,
                                   [](absl::string_view) { return absl::OkStatus(); });
    }
    return *weights_status_;
  }

  Archive archive_;
  const ZipMember* weights_member_ = nullptr;
  std::unique_ptr<CheckpointReader> weights_;
  Mutex mutex_;
  std::optional<absl::Status> weights_status_ ABSL_GUARDED_BY(mutex_);
};

// Returns the output as weights: with the attributes that those of the model have.
absl::StatusOr<Output> WeightsOf(const Output& output) {
  Output weights = output;
  weights.metadata.clear();
  WEIR_RETURN_IF_ERROR(OpenKeras(output.like, &weights.metadata).status());
  std::erase_if(weights.metadata, [](const MetadataEntry& entry) {
    return entry.key == kConfig || entry.key == kMetadata;
  });
  return weights;
}

absl::Status AppendFile(const ReadableFile& file, ZipWriter::Append append) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<FileStream> stream,
                        FileStream::Open(file, 0, file.size()));
  std::vector<char> piece(kPieceBytes);
  for (uint64_t left = file.size(); left > 0;) {
    const size_t size = std::min<uint64_t>(left, piece.size());
    WEIR_RETURN_IF_ERROR(stream->Read(size, piece.data()));
    WEIR_RETURN_IF_ERROR(append(absl::string_view(piece.data(), size)));
    left -= size;
  }
  return absl::OkStatus();
}

absl::Status WriteArchive(const std::string& path, const std::string& like,
                          const ReadableFile& weights) {
  WEIR_ASSIGN_OR_RETURN(const Archive model, OpenArchive(like));
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ZipWriter> zip, ZipWriter::Create(path));
  for (const ZipMember& member : model.members) {
    const bool is_weights = member.name == kWeights;
    WEIR_RETURN_IF_ERROR(zip->Add(
        member.name, is_weights ? weights.size() : member.bytes, [&](ZipWriter::Append append) {
          return is_weights ? AppendFile(weights, append) : ReadMember(*model.file, member, append);
        }));
  }
  return zip->Close();
}

}  // namespace

bool IsKeras(const ReadableFile& file) {
  if (!BeginsWith(file, "PK")) return false;
  const absl::StatusOr<std::vector<ZipMember>> members = ListZip(file);
  return members.ok() && FindMember(*members, kConfig) != nullptr &&
         FindMember(*members, kMetadata) != nullptr;
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenKeras(const std::string& path,
                                                            Metadata* metadata) {
  auto reader = std::make_unique<KerasFileReader>(path);
  WEIR_RETURN_IF_ERROR(reader->Open(metadata));
  return reader;
}

absl::Status CheckKerasModel(const Output& output) {
  Metadata ignored;
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> model,
                        OpenKeras(output.like, &ignored));
  std::set<absl::string_view> names;
  for (const OutputTensor& tensor : output.tensors) {
    names.insert(tensor.name);
    const absl::StatusOr<CheckpointTensor> replaced = model->Find(tensor.name);
    if (!replaced.ok()) {
      return InvalidArgument("the model ", output.like, " has no tensor '", tensor.name,
                             "'; rename the tensor, or exclude it with --drop");
    }
    if (replaced->shape == tensor.shape) continue;
    return InvalidArgument("tensor '", tensor.name, "' has shape ", tensor.shape.ToString(),
                           ", but the model ", output.like, " needs ", replaced->shape.ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> needed, model->List());
  for (const CheckpointTensor& tensor : needed) {
    const bool is_optional =
        absl::StartsWith(tensor.name, "optimizer/") || absl::StartsWith(tensor.name, "metrics/");
    if (is_optional || names.contains(tensor.name)) continue;
    return InvalidArgument("the model ", output.like, " needs tensor '", tensor.name, "' of shape ",
                           tensor.shape.ToString(), ", which is missing");
  }
  return absl::OkStatus();
}

absl::Status WriteKeras(const std::string& path, const Output& output, ProgressBar& progress) {
  WEIR_ASSIGN_OR_RETURN(const Output weights, WeightsOf(output));
  return WriteNewFile(path, [&](const std::string& temporary) -> absl::Status {
    const TemporaryFile file(path);
    WEIR_RETURN_IF_ERROR(WriteHdf5InPlace(file.path(), weights, progress));
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> written, Files().Open(file.path()));
    return WriteArchive(temporary, output.like, *written);
  });
}

}  // namespace weir::tools
