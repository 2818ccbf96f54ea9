#include <map>

#include "weir/core/io/bundle.h"
#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/coding.h"
#include "weir/core/io/crc32c.h"
#include "weir/core/io/file.h"
#include "weir/core/io/sstable.h"
#include "weir/core/io/sstable_writer.h"
#include "weir/tests/fuzz/targets.h"
#include "weir/tests/io/test_files.h"

// Checksums would stop a fuzzer early, so each target also builds a file with correct checksums
// from parts of the input.
namespace weir::fuzz {

namespace {

void Put(testing::MemoryFileSystem& files, const std::string& path, absl::string_view bytes) {
  Require((*files.Create(path))->Append(bytes).ok(), "a file is written");
}

std::string AppendBlock(std::string* file, absl::string_view block, char compression) {
  std::string handle;
  PutVarint64(&handle, file->size());
  PutVarint64(&handle, block.size());
  const std::string covered = std::string(block) + compression;
  *file += covered;
  PutFixed32(file, MaskCrc32c(ExtendCrc32c(0, covered.data(), covered.size())));
  return handle;
}

// Builds a table with pieces of the input as blocks; the last one is the index.
std::string MakeTable(Input in) {
  std::string file, handle, first;
  while (!in.empty()) {
    const char compression = static_cast<char>(in.Byte() % 2);
    handle = AppendBlock(&file, in.NextBytes(), compression);
    if (first.empty()) first = handle;
  }
  std::string footer = first + handle;
  footer.resize(40, '\0');
  PutFixed32(&footer, 0x8b80fb57u);
  PutFixed32(&footer, 0xdb477524u);
  return file + footer;
}

void ReadTable(const ReadableFile& file, std::unique_ptr<ReadableFile> again) {
  int64_t scanned = 0, read = 0;
  const auto problems = ScanSSTable(file, [&](absl::string_view, absl::string_view) { ++scanned; });
  Require(problems.ok(), "a file that can be read is scanned");
  const auto table = SSTableReader::Open(std::move(again));
  if (!table.ok()) return;
  std::vector<std::string> keys;
  const absl::Status all = (*table)->ForEach([&](absl::string_view key, absl::string_view) {
    Require(keys.empty() || keys.back() < key, "keys ascend");
    ++read;
    if (keys.size() < 1000) keys.emplace_back(key);
    return absl::OkStatus();
  });
  if (problems->empty()) Require(!all.ok() || scanned == read, "both ways find the same entries");
  for (const std::string& key : keys) {
    const auto value = (*table)->Get(key);
    if (all.ok()) Require(value.ok() && value->has_value(), "a key is found");
  }
}

// Reading each of these alone must give the same result as reading all. There are enough look-ups
// that the whole index is read.
void ReadMany(const std::string& prefix, const std::vector<CheckpointTensor>& tensors) {
  std::vector<absl::string_view> names;
  while (!tensors.empty() && names.size() < 200) {
    for (const CheckpointTensor& t : tensors) names.push_back(t.name);
  }
  ThreadPool pool(1);
  const auto many = CheckpointReader::Open(prefix), one_by_one = CheckpointReader::Open(prefix);
  (*many)->ReadMany(names, pool, [&](size_t i, const absl::StatusOr<absl::string_view>& bytes) {
    if (i >= tensors.size() || !IsPlain(tensors[i].dtype)) return;
    const auto value = (*one_by_one)->Read(names[i]);
    Require(value.ok() == bytes.ok(), "both ways agree on whether a tensor is intact");
    if (!value.ok()) return;
    const absl::string_view own(static_cast<const char*>(value->raw()), value->num_bytes());
    Require(own == *bytes, "its bytes are the same both ways");
  });
}

void ReadCheckpoint(const std::string& prefix) {
  const auto reader = CheckpointReader::Open(prefix);
  if (!reader.ok()) return;
  const auto tensors = (*reader)->List();
  if (!tensors.ok()) return;
  for (const CheckpointTensor& t : *tensors) {
    (*reader)->Find(t.name).status().IgnoreError();
    const auto value = (*reader)->Read(t.name);
    if (value.ok()) {
      Require(value->dtype() == t.dtype && value->shape() == t.shape,
              "a tensor has the announced dtype and shape");
      value->ToString();
    }
    for (const TensorSlice& slice : t.slices)
      (*reader)->ReadSlice(t.name, slice).status().IgnoreError();
  }
  ReadMany(prefix, *tensors);
}

}  // namespace

void Table(absl::string_view bytes) {
  Input in(bytes);
  const bool made = in.Byte() % 2 == 1;
  testing::MemoryFileSystem files;
  Put(files, "/t", made ? MakeTable(in) : std::string(in.RemainingBytes()));
  ReadTable(**files.Open("/t"), *files.Open("/t"));
}

void Bundle(absl::string_view bytes) {
  Input in(bytes);
  testing::MemoryFileSystem files;
  const ScopedFileSystem scope(&files);
  const int form = in.Byte() % 3;
  if (form == 0) {
    Put(files, "/m.index", in.NextBytes());
  } else {
    std::map<std::string, std::string> entries;
    for (int count = in.Byte(); count > 0; --count) {
      std::string key(in.NextBytes());
      entries[std::move(key)] = std::string(in.NextBytes());
    }
    BufferedFile file(*files.Create(form == 1 ? "/m.index" : "/m"));
    SSTableWriter table(&file);
    for (const auto& [key, value] : entries) Require(table.Add(key, value).ok(), "keys ascend");
    Require(table.Finish().ok() && file.Close().ok(), "a table is written");
  }
  Put(files, "/m.data-00000-of-00001", in.RemainingBytes());
  ReadCheckpoint("/m");
  if (form == 2) return;
  if (const auto salvaged = SalvagedBundle::Open("/m"); salvaged.ok()) {
    for (const std::string& name : (*salvaged)->names())
      (*salvaged)->Read(name).status().IgnoreError();
    for (const CheckpointTensor& tensor : (*salvaged)->doubtful())
      Require((*salvaged)->Read(tensor.name).ok(), "a tensor reported as doubtful was read");
  }
}

void CheckpointState(absl::string_view bytes) {
  testing::MemoryFileSystem files;
  const ScopedFileSystem scope(&files);
  Require(files.MakeDirectory("/d").ok(), "a folder is made");
  Put(files, "/d/checkpoint", bytes);
  LatestCheckpoint("/d").status().IgnoreError();
  const auto state = ReadCheckpointState("/d");
  if (!state.ok()) return;
  if (!WriteCheckpointState("/d", *state).ok()) return;  // times without matching paths
  Require(ReadCheckpointState("/d").ok(), "a state that was written is read");
}

}  // namespace weir::fuzz
