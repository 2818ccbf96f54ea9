#include "weir/ops/lib/external_access.h"

#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace weir {

namespace {

constexpr ExternalAccess kFiles = ExternalAccess::kFiles, kLog = ExternalAccess::kLog;

// external_access_test runs every op and fails if one opens a file and has no row here.
constexpr std::pair<absl::string_view, ExternalAccess> kOps[] = {
    {"CSVDataset", kFiles},
    {"CSVDatasetV2", kFiles},
    {"CacheDataset", kFiles},
    {"CacheDatasetV2", kFiles},
    {"CreateSummaryFileWriter", kFiles},
    {"DatasetToTFRecord", kFiles},
    {"DecodeProtoV2", kFiles},  // the descriptors
    {"EncodeProto", kFiles},
    {"ExperimentalCSVDataset", kFiles},
    {"ExperimentalDatasetToTFRecord", kFiles},
    {"ExperimentalMatchingFilesDataset", kFiles},
    {"ExperimentalSqlDataset", kFiles},
    {"FixedLengthRecordDataset", kFiles},
    {"FixedLengthRecordDatasetV2", kFiles},
    {"FixedLengthRecordReader", kFiles},
    {"FixedLengthRecordReaderV2", kFiles},
    {"FixedUnigramCandidateSampler", kFiles},
    {"GenerateVocabRemapping", kFiles},
    {"ImmutableConst", kFiles},
    {"InitializeTableFromTextFile", kFiles},
    {"InitializeTableFromTextFileV2", kFiles},
    {"LoadAndRemapMatrix", kFiles},
    {"LoadDataset", kFiles},
    {"MatchingFiles", kFiles},
    {"MatchingFilesDataset", kFiles},
    {"MergeV2Checkpoints", kFiles},
    {"Print", kLog},
    {"PrintV2", kFiles},  // or the log: see its attribute output_stream
    {"ReadFile", kFiles},
    {"RecordInput", kFiles},
    {"Restore", kFiles},
    {"RestoreSlice", kFiles},
    {"RestoreV2", kFiles},
    {"Save", kFiles},
    {"SaveDataset", kFiles},
    {"SaveDatasetV2", kFiles},
    {"SaveSlices", kFiles},
    {"SaveV2", kFiles},
    {"Skipgram", kFiles},
    {"SnapshotChunkDataset", kFiles},
    {"SnapshotDataset", kFiles},
    {"SnapshotDatasetReader", kFiles},
    {"SnapshotDatasetV2", kFiles},
    {"SqlDataset", kFiles},
    {"TFRecordDataset", kFiles},
    {"TFRecordDatasetV2", kFiles},
    {"TFRecordReader", kFiles},
    {"TFRecordReaderV2", kFiles},
    {"TextLineDataset", kFiles},
    {"TextLineReader", kFiles},
    {"TextLineReaderV2", kFiles},
    {"WholeFileReader", kFiles},
    {"WholeFileReaderV2", kFiles},
    {"WriteFile", kFiles},
};

}  // namespace

ExternalAccess ExternalAccessOf(absl::string_view op) {
  static const auto* const table =
      new absl::flat_hash_map<absl::string_view, ExternalAccess>(std::begin(kOps), std::end(kOps));
  const auto it = table->find(op);
  return it == table->end() ? ExternalAccess::kNone : it->second;
}

}  // namespace weir
