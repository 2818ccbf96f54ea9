#include "weir/ops/data/dataset_files_internal.h"

#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/ranked_internal.h"

// Datasets that read or write files, and what saves and restores the state of iterators.
namespace weir {

namespace {

#define WEIR_CSV_TYPES "{float, double, int32, int64, string}"
#define WEIR_EXAMPLE_TYPES "{float, int64, string}"

constexpr char kElementTypes[] = "output_types: list(type) >= 1";
constexpr char kElementShapes[] = "output_shapes: list(shape) >= 1";
constexpr char kMetadata[] = "metadata: string = ''";

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
  ops->Add(FileDataset("FixedLengthRecordDataset", kSizes, kFixedLength).Attr(kMetadata));
  ops->Add(FileDataset("FixedLengthRecordDatasetV2",
                       absl::StrCat(kSizes, ", compression_type: string"), kFixedLength)
               .Attr(kMetadata));
  ops->Add(FileDataset("TFRecordDatasetV2",
                       "filenames: string, compression_type: string, buffer_size: int64, "
                       "byte_offsets: int64",
                       "Creates a dataset of the records of TFRecord files, each from an offset.")
               .Attr(kMetadata));
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
                 .Attr(kElementShapes));
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
        .Attr(kElementTypes)
        .Attr(kElementShapes)
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
               .Attr(kElementTypes)
               .Attr(kElementShapes)
               .Attr(kMetadata)
               .Stateful()
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

#undef WEIR_CSV_TYPES
#undef WEIR_EXAMPLE_TYPES

}  // namespace

void AddDatasetFileOps(OpRegistry* ops) {
  AddRecords(ops);
  AddCsv(ops);
  AddExamples(ops);
  AddCaches(ops);
}

}  // namespace weir
