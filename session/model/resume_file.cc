#include <utility>

#include "absl/strings/numbers.h"
#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/crc32c.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/record.h"
#include "weir/session/model/resume_state.h"

// The file of a ResumeState: a TFRecord file, of which each record is a serialized TensorProto. The
// format is specified in docs/checkpoint_format.md.
namespace weir {
namespace {

constexpr char kMagic[] = "weir resume 1";

// What identifies a checkpoint: the size and the checksum of its index, which has the checksums of
// all tensors.
absl::StatusOr<Tensor> IdentityOf(const std::string& prefix) {
  WEIR_ASSIGN_OR_RETURN(const std::string index, ReadFile(prefix + ".index"));
  return Tensor::Vector<int64_t>({static_cast<int64_t>(index.size()), Crc32c(index)});
}

// Reads the records of a file as tensors.
class TensorReader {
 public:
  static absl::StatusOr<TensorReader> Open(const std::string& path) {
    WEIR_ASSIGN_OR_RETURN(auto records, RecordReader::Open(path));
    return TensorReader(path, std::move(records));
  }

  absl::StatusOr<Tensor> Next() {
    WEIR_ASSIGN_OR_RETURN(const std::optional<std::string> record, records_->Next());
    if (!record) return Damaged("it ends too early");
    absl::StatusOr<Tensor> tensor = TensorFromBytes(*record);
    if (!tensor.ok()) return Damaged(tensor.status().message());
    return tensor;
  }
  absl::StatusOr<Tensor> Next(DataType dtype, int64_t elements) {
    WEIR_ASSIGN_OR_RETURN(Tensor tensor, Next());
    if (tensor.dtype() == dtype && tensor.rank() == 1 && tensor.dim(0) == elements) return tensor;
    return Damaged(absl::StrCat("it has ", tensor.Description(), " where ", elements, " ",
                                DataTypeName(dtype), " should be"));
  }
  absl::Status Damaged(absl::string_view why) const { return DataLoss(path_, ": ", why); }
  bool AtEnd() {
    const auto record = records_->Next();
    return record.ok() && !record->has_value();
  }

 private:
  TensorReader(std::string path, std::unique_ptr<RecordReader> records)
      : path_(std::move(path)), records_(std::move(records)) {}
  const std::string path_;
  std::unique_ptr<RecordReader> records_;
};

bool SameNumbers(const Tensor& a, const Tensor& b) {
  return a.IntAt(0) == b.IntAt(0) && a.IntAt(1) == b.IntAt(1);
}

}  // namespace

absl::Status ResumeState::Write(const std::string& prefix, Durability durability) const {
  const std::string path = ResumePath(prefix);
  WEIR_ASSIGN_OR_RETURN(const Tensor identity, IdentityOf(prefix));
  TemporaryFile file(path);
  WEIR_ASSIGN_OR_RETURN(const auto writer, RecordWriter::Create(file.path()));
  const auto append = [&](const Tensor& t) { return writer->Append(TensorToBytes(t)); };
  WEIR_RETURN_IF_ERROR(append(Tensor::Vector<std::string>({kMagic})));
  WEIR_RETURN_IF_ERROR(append(identity));
  WEIR_RETURN_IF_ERROR(append(Tensor::Vector<int64_t>({static_cast<int64_t>(items_.size())})));
  for (const Item& item : items_) {
    WEIR_RETURN_IF_ERROR(append(Tensor::Vector<std::string>(
        {item.kind, item.node, item.op, item.container, item.name, item.is_own ? "own" : "shared",
         absl::StrCat(item.values.size())})));
    for (const Tensor& value : item.values) WEIR_RETURN_IF_ERROR(append(value));
  }
  WEIR_RETURN_IF_ERROR(append(Tensor::Vector<int64_t>({static_cast<int64_t>(lost_.size())})));
  WEIR_RETURN_IF_ERROR(append(Tensor::Vector<std::string>(lost_)));
  if (durability == Durability::kSynced) WEIR_RETURN_IF_ERROR(writer->Sync());
  WEIR_RETURN_IF_ERROR(writer->Close());
  WEIR_RETURN_IF_ERROR(Files().Rename(file.path(), path));
  file.SetRenamed();
  return durability == Durability::kSynced ? Files().SyncDirectory(DirectoryOf(path))
                                           : absl::OkStatus();
}

absl::StatusOr<ResumeState> ResumeState::Read(const std::string& prefix) {
  const std::string path = ResumePath(prefix);
  if (!Files().Exists(path)) return NotFound(path, " is missing");
  WEIR_ASSIGN_OR_RETURN(TensorReader in, TensorReader::Open(path));
  WEIR_ASSIGN_OR_RETURN(const Tensor magic, in.Next(DT_STRING, 1));
  if (magic.data<std::string>()[0] != kMagic) {
    return Unimplemented(path, " has the form '", magic.data<std::string>()[0],
                         "', and this version of Weir reads '", kMagic, "'");
  }
  WEIR_ASSIGN_OR_RETURN(const Tensor saved, in.Next(DT_INT64, 2));
  WEIR_ASSIGN_OR_RETURN(const Tensor identity, IdentityOf(prefix));
  if (!SameNumbers(saved, identity)) {
    return FailedPrecondition(path, " belongs to another checkpoint, which had the name ", prefix,
                              " too");
  }
  ResumeState state;
  WEIR_ASSIGN_OR_RETURN(const Tensor items, in.Next(DT_INT64, 1));
  for (int64_t i = 0; i < items.IntAt(0); ++i) {
    constexpr int kFields = 7;
    WEIR_ASSIGN_OR_RETURN(const Tensor fields, in.Next(DT_STRING, kFields));
    const std::string* field = fields.data<std::string>();
    Item item = {.kind = field[0],
                 .node = field[1],
                 .op = field[2],
                 .container = field[3],
                 .name = field[4],
                 .is_own = field[5] == "own"};
    int64_t values = 0;
    if (!absl::SimpleAtoi(field[6], &values)) return in.Damaged("a count is not a number");
    for (; values > 0; --values) {
      WEIR_ASSIGN_OR_RETURN(item.values.emplace_back(), in.Next());
    }
    state.items_.push_back(std::move(item));
  }
  WEIR_ASSIGN_OR_RETURN(const Tensor count, in.Next(DT_INT64, 1));
  WEIR_ASSIGN_OR_RETURN(const Tensor lost, in.Next(DT_STRING, count.IntAt(0)));
  const absl::Span<const std::string> texts = lost.flat<std::string>();
  state.lost_.assign(texts.begin(), texts.end());
  if (!in.AtEnd()) return in.Damaged("something follows its last record");
  return state;
}

}  // namespace weir
