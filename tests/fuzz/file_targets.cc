#include "weir/core/io/coding.h"
#include "weir/core/io/crc32c.h"
#include "weir/core/io/file.h"
#include "weir/core/io/npy.h"
#include "weir/core/io/record.h"
#include "weir/tests/fuzz/targets.h"
#include "weir/tests/io/test_files.h"
#include "weir/tools/events/event_log.h"

namespace weir::fuzz {

namespace {

// Writes pieces of the input as records with correct checksums.
std::string MakeRecords(Input in) {
  std::string file;
  const auto put_crc = [&](absl::string_view bytes) {
    PutFixed32(&file, MaskCrc32c(ExtendCrc32c(0, bytes.data(), bytes.size())));
  };
  while (!in.empty()) {
    const absl::string_view record = in.NextBytes();
    std::string length;
    PutFixed64(&length, record.size());
    file += length;
    put_crc(length);
    file += std::string(record);
    put_crc(record);
  }
  return file;
}

}  // namespace

void Records(absl::string_view bytes) {
  Input in(bytes);
  const bool made = in.Byte() % 2 == 1;
  testing::MemoryFileSystem files;
  const ScopedFileSystem scope(&files);
  Require(files.MakeDirectory("/run").ok(), "a folder is made");
  const std::string path = "/run/events.out.tfevents.1.host";
  const std::string contents = made ? MakeRecords(in) : std::string(in.RemainingBytes());
  Require((*files.Create(path))->Append(contents).ok(), "a file is written");
  const auto reader = RecordReader::Open(path);
  Require(reader.ok(), "a file is opened");
  uint64_t before = 0;
  for (;;) {
    const auto record = (*reader)->Next();
    if (!record.ok() || !record->has_value()) {
      Require(!made || record.ok(), "intact records are read");
      break;
    }
    Require((*reader)->offset() > before, "records are contiguous");
    before = (*reader)->offset();
  }
  for (const std::string& where : {path, std::string("/run")})
    tools::EventReader({where}).Read().IgnoreError();
}

void Npy(absl::string_view bytes) {
  const absl::StatusOr<Tensor> tensor = ParseNpy(bytes);
  if (!tensor.ok()) return;
  tensor->ToString();
  const absl::StatusOr<std::string> written = SerializeNpy(*tensor);
  Require(written.ok(), "an array that was read can be written");
  const absl::StatusOr<Tensor> again = ParseNpy(*written);
  Require(again.ok() && IdenticalTensors(*again, *tensor), "and read again");
}

}  // namespace weir::fuzz
