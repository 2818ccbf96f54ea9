#include "weir/core/graph/shape_context.h"
#include "weir/ops/data/dataset_internal.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"

// Datasets that read or write files, and what saves and restores the state of iterators.
namespace weir {

namespace {

#define WEIR_CSV_TYPES "{float, double, int32, int64, string}"
#define WEIR_EXAMPLE_TYPES "{float, int64, string}"

// The ranks of the arguments that TensorFlow checks. Each op has some of them.
constexpr char kRanks[] =
    "filenames: <=1, compression_type: 0, buffer_size: 0, header_bytes: 0, record_bytes: 0, "
    "footer_bytes: 0, byte_offsets: <=1, patterns: <=1, header: 0, field_delim: 0, "
    "use_quote_delim: 0, na_value: 0, select_cols: 1, exclude_cols: 1, driver_name: 0, "
    "data_source_name: 0, query: 0";

// Returns what all datasets of files have in common.
OpSpec FileDataset(absl::string_view name, absl::string_view inputs, absl::string_view doc) {
  OpSpec op(name);
  op.In(inputs)
      .Out("handle: variant")
      .Stateful()
      .Has(Effect::kObserves)
      .InferShape(Ranked(kRanks, ScalarShape))
      .NotDifferentiable()
      .Doc(doc);
  return op;
}

void AddRecords(OpRegistry* ops) {
  constexpr char kFixedLength[] =
      "Creates a dataset of the records of equal size between the headers and footers of files.";
  constexpr char kSizes[] =
      "filenames: string, header_bytes: int64, record_bytes: int64, footer_bytes: int64, "
      "buffer_size: int64";
  ops->Add(FileDataset("FixedLengthRecordDataset", kSizes, kFixedLength).Attr(kDatasetMetadata));
  ops->Add(FileDataset("FixedLengthRecordDatasetV2",
                       absl::StrCat(kSizes, ", compression_type: string"), kFixedLength)
               .Attr(kDatasetMetadata));
  ops->Add(FileDataset("TFRecordDatasetV2",
                       "filenames: string, compression_type: string, buffer_size: int64, "
                       "byte_offsets: int64",
                       "Creates a dataset of the records of TFRecord files, each from an offset.")
               .Attr(kDatasetMetadata));
  for (const char* name : {"MatchingFilesDataset", "ExperimentalMatchingFilesDataset"}) {
    ops->Add(FileDataset(name, "patterns: string",
                         "Creates a dataset of the names of the files that match patterns."));
  }
}

void AddCsv(OpRegistry* ops) {
  constexpr char kInputs[] =
      "filenames: string, compression_type: string, buffer_size: int64, header: bool, "
      "field_delim: string, use_quote_delim: bool, na_value: string, select_cols: int64, "
      "record_defaults: output_types";
  for (const char* name : {"CSVDataset", "ExperimentalCSVDataset", "CSVDatasetV2"}) {
    const bool v2 = absl::string_view(name) == "CSVDatasetV2";
    ops->Add(FileDataset(name, absl::StrCat(kInputs, v2 ? ", exclude_cols: int64" : ""),
                         "Creates a dataset of the records of CSV files: a scalar for each "
                         "selected column.")
                 .Attr("output_types: list(" WEIR_CSV_TYPES ") >= 1")
                 .Attr(kDatasetShapes));
  }
}

void AddExamples(OpRegistry* ops) {
  for (const char* name :
       {"ExperimentalParseExampleDataset", "ParseExampleDataset", "ParseExampleDatasetV2"}) {
    const absl::string_view op_name = name;
    OpSpec op(name);
    op.In("input_dataset: variant, num_parallel_calls: int64, dense_defaults: Tdense")
        .Out("handle: variant")
        .Attr("sparse_keys: list(string) >= 0")
        .Attr("dense_keys: list(string) >= 0")
        .Attr("sparse_types: list(" WEIR_EXAMPLE_TYPES ") >= 0")
        .Attr("Tdense: list(" WEIR_EXAMPLE_TYPES ") >= 0")
        .Attr("dense_shapes: list(shape) >= 0")
        .Attr(kDatasetTypes)
        .Attr(kDatasetShapes)
        .Attr(op_name == "ParseExampleDatasetV2" ? "deterministic: string = 'default'"
                                                 : "sloppy: bool = false");
    if (op_name != "ExperimentalParseExampleDataset") {
      op.Attr("ragged_keys: list(string) >= 0 = []")
          .Attr("ragged_value_types: list(" WEIR_EXAMPLE_TYPES ") >= 0 = []")
          .Attr("ragged_split_types: list({int32, int64}) >= 0 = []");
    }
    ops->Add(op.InferShape(Ranked("num_parallel_calls: 0", ScalarShape))
                 .NotDifferentiable()
                 .Doc("Parses the vectors of serialized Examples of a dataset: a component for "
                      "each feature, in the order of names."));
  }
}

void AddCaches(OpRegistry* ops) {
  ops->Add(OpSpec("CacheDatasetV2")
               .In("input_dataset: variant, filename: string, cache: resource")
               .Out("handle: variant")
               .Attr(kDatasetTypes)
               .Attr(kDatasetShapes)
               .Attr(kDatasetMetadata)
               .Stateful()
               .Has(Effect::kObserves)
               .InferShape(Ranked("filename: 0, cache: 0", ScalarShape))
               .NotDifferentiable()
               .Doc("Reads a dataset once and caches it, in memory or in a file."));
  ops->Add(OpSpec("AnonymousMemoryCache")
               .Out("handle: resource, deleter: variant")
               .Stateful()
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns a memory cache for a CacheDatasetV2."));
  ops->Add(OpSpec("DummyMemoryCache")
               .Out("handle: resource")
               .Stateful()
               .Has(Effect::kObserves)
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns a memory cache for a CacheDatasetV2, of its own for each dataset."));
  ops->Add(OpSpec("DeleteMemoryCache")
               .In("handle: resource, deleter: variant")
               .Stateful()
               .InferShape(Ranked("handle: 0, deleter: 0", NoOutputs))
               .NotDifferentiable()
               .Doc("Frees the elements of a memory cache."));
}

void AddSaveAndLoad(OpRegistry* ops) {
  for (const char* name : {"DatasetToTFRecord", "ExperimentalDatasetToTFRecord"}) {
    ops->Add(OpSpec(name)
                 .In("input_dataset: variant, filename: string, compression_type: string")
                 .Stateful()
                 .InferShape(Ranked("filename: 0, compression_type: 0", NoOutputs))
                 .NotDifferentiable()
                 .Doc("Writes the elements of a dataset, which are strings, to a TFRecord file."));
  }
  for (const bool v2 : {false, true}) {
    OpSpec op(v2 ? "SaveDatasetV2" : "SaveDataset");
    op.In("input_dataset: variant, path: string, shard_func_other_args: Tshard_func_args")
        .Attr("compression: string = ''")
        .Attr("shard_func: func")
        .Attr("use_shard_func: bool = true")
        .Attr("Tshard_func_args: list(type) >= 0");
    if (v2) op.Out("handle: variant").Attr(kDatasetTypes).Attr(kDatasetShapes);
    ops->Add(op.Stateful()
                 .InferShape(Ranked("path: 0", v2 ? ScalarShape : NoOutputs))
                 .NotDifferentiable()
                 .Doc(v2 ? "Returns the elements of a dataset, and writes them to a folder."
                         : "Writes the elements of a dataset to a folder."));
  }
  ops->Add(OpSpec("LoadDataset")
               .In("path: string, reader_func_other_args: Treader_func_args")
               .Out("handle: variant")
               .Attr(kDatasetTypes)
               .Attr(kDatasetShapes)
               .Attr("compression: string = ''")
               .Attr("reader_func: func")
               .Attr("Treader_func_args: list(type) >= 0")
               .Stateful()
               .Has(Effect::kObserves)
               .InferShape(Ranked("path: 0", ScalarShape))
               .NotDifferentiable()
               .Doc("Creates a dataset of the elements that SaveDataset has written."));
}

void AddPositions(OpRegistry* ops) {
  ops->Add(OpSpec("SerializeIterator")
               .In("resource_handle: resource")
               .Out("serialized: variant")
               .Attr("external_state_policy: int = 0")
               .Stateful()
               .InferShape([](ShapeContext& c) -> absl::Status {
                 c.set_output(0, Shape({Shape::kUnknown}));
                 return absl::OkStatus();
               })
               .NotDifferentiable()
               .Doc("Returns where an iterator stands, for DeserializeIterator."));
  ops->Add(OpSpec("DeserializeIterator")
               .In("resource_handle: resource, serialized: variant")
               .Stateful()
               .InferShape(NoOutputs)
               .NotDifferentiable()
               .Doc("Moves an initialized iterator to where another one stood: repeats what that "
                    "one has read."));
}

void AddUsers(OpRegistry* ops) {
  ops->Add(OpSpec("InitializeTableFromDataset")
               .In("table_handle: resource, dataset: variant")
               .Stateful()
               .InferShape(Ranked("table_handle: 0, dataset: 0", NoOutputs))
               .NotDifferentiable()
               .Doc("Initializes a table with the pairs of keys and values of a dataset."));
  ops->Add(OpSpec("ImmutableConst")
               .Out("tensor: dtype")
               .Attr("dtype: type")
               .Attr("shape: shape")
               .Attr("memory_region_name: string")
               .InferShape([](ShapeContext& c) -> absl::Status {
                 c.set_output(0, c.attr<Shape>("shape"));
                 return absl::OkStatus();
               })
               .NotDifferentiable()
               .Doc("Returns a tensor whose elements are the bytes of a file."));
}

void AddSql(OpRegistry* ops) {
  for (const char* name : {"SqlDataset", "ExperimentalSqlDataset"}) {
    ops->Add(FileDataset(name, "driver_name: string, data_source_name: string, query: string",
                         "Creates a dataset of the rows that a query returns from a database.")
                 .Attr(kDatasetTypes)
                 .Attr(kDatasetShapes));
  }
}

void AddSnapshots(OpRegistry* ops) {
  const auto snapshot = [](absl::string_view name, absl::string_view inputs,
                           absl::string_view doc) {
    OpSpec op(name);
    op.In(inputs)
        .Out("handle: variant")
        .Attr(kDatasetTypes)
        .Attr(kDatasetShapes)
        .InferShape(Ranked("path: 0, chunk_file: 0, shard_dir: 0, start_index: 0", ScalarShape))
        .NotDifferentiable()
        .Doc(doc);
    return op;
  };
  constexpr char kSnapshot[] =
      "Creates a dataset that is computed and written to files once, and then read from them.";
  constexpr char kCompression[] = "compression: string = ''";
  ops->Add(snapshot("SnapshotDataset", "input_dataset: variant, path: string", kSnapshot)
               .Attr(kCompression)
               .Attr("reader_path_prefix: string = ''")
               .Attr("writer_path_prefix: string = ''")
               .Attr("shard_size_bytes: int = 10737418240")
               .Attr("pending_snapshot_expiry_seconds: int = 86400")
               .Attr("num_reader_threads: int = 1")
               .Attr("reader_buffer_size: int = 1")
               .Attr("num_writer_threads: int = 1")
               .Attr("writer_buffer_size: int = 1")
               .Attr("shuffle_on_read: bool = false")
               .Attr("seed: int = 0")
               .Attr("seed2: int = 0")
               .Attr("mode: string = 'auto'")
               .Attr("snapshot_name: string = ''"));
  ops->Add(snapshot("SnapshotDatasetV2",
                    "input_dataset: variant, path: string, "
                    "reader_func_other_args: Treader_func_args, "
                    "shard_func_other_args: Tshard_func_args",
                    kSnapshot)
               .Attr(kCompression)
               .Attr("reader_prefix: string = ''")
               .Attr("writer_prefix: string = ''")
               .Attr("hash_valid: bool = false")
               .Attr("hash: int = 0")
               .Attr("reader_func: func")
               .Attr("shard_func: func")
               .Attr("Treader_func_args: list(type) >= 0")
               .Attr("Tshard_func_args: list(type) >= 0")
               .Attr(kDatasetMetadata));
  ops->Add(snapshot("SnapshotDatasetReader", "shard_dir: string, start_index: int64",
                    "Creates a dataset of the elements of one shard of a snapshot.")
               .Attr(kCompression)
               .Attr("version: int"));
  ops->Add(snapshot("SnapshotChunkDataset", "chunk_file: string",
                    "Creates a dataset of the elements of one file of a snapshot.")
               .Attr(kCompression));
  ops->Add(snapshot("SnapshotNestedDatasetReader", "inputs: N * variant",
                    "Creates a dataset whose elements are datasets.")
               .Attr("N: int >= 1"));
}

#undef WEIR_CSV_TYPES
#undef WEIR_EXAMPLE_TYPES

}  // namespace

void AddDatasetFileOps(OpRegistry* ops) {
  AddRecords(ops);
  AddCsv(ops);
  AddExamples(ops);
  AddCaches(ops);
  AddSaveAndLoad(ops);
  AddPositions(ops);
  AddSnapshots(ops);
  AddUsers(ops);
  AddSql(ops);
}

}  // namespace weir
