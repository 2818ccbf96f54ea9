#include "absl/strings/str_cat.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/data/dataset_build_internal.h"
#include "weir/ops/data/io.h"
#include "weir/ops/lib/array_internal.h"

// Data sets of tensors, numbers and files.
namespace weir {

Dataset Dataset::FromVariant(Output variant, ElementSpec spec) {
  Dataset dataset;
  dataset.spec_ = std::move(spec);
  if (!variant.valid()) return dataset;
  if (variant.dtype() != DT_VARIANT || !variant.shape().IsCompatibleWith(Shape())) {
    variant.graph().Fail(InvalidArgument(
        "Dataset: ", variant.name(), " is no data set: expected a variant scalar, got ",
        DataTypeName(variant.dtype()), " of shape ", variant.shape().ToString()));
  } else if (dataset.spec_.types.empty() ||
             dataset.spec_.types.size() != dataset.spec_.shapes.size()) {
    variant.graph().Fail(InvalidArgument(
        "Dataset: ", variant.name(), " has ", dataset.spec_.types.size(), " types and ",
        dataset.spec_.shapes.size(), " shapes of components; expected as many, at least one"));
  } else {
    dataset.variant_ = variant;
  }
  return dataset;
}

namespace {

ElementSpec SpecOf(const Outputs& components) {
  ElementSpec spec;
  for (const Output& component : components) {
    spec.types.push_back(component.dtype());
    spec.shapes.push_back(component.shape());
  }
  return spec;
}

// The data sets of strings.
ElementSpec StringSpec() { return {{DT_STRING}, {Shape()}}; }

}  // namespace

Dataset Dataset::FromTensors(const Outputs& components) {
  const ElementSpec spec = SpecOf(components);
  return FromVariant(AddOp("TensorDataset", {components}, {{"output_shapes", spec.shapes}}), spec);
}

Dataset Dataset::FromTensorSlices(const Outputs& components) {
  ElementSpec spec = SpecOf(components);
  int64_t rows = Shape::kUnknown;
  for (size_t i = 0; i < components.size(); ++i) {
    const Output& component = components[i];
    if (!component.valid()) return FromVariant(Output(), spec);
    Shape& shape = spec.shapes[i];
    if (!shape.has_rank()) continue;
    if (shape.rank() == 0) {
      component.graph().Fail(
          InvalidArgument("FromTensorSlices: Unbatching a tensor is only supported for rank >= 1, "
                          "but ",
                          component.name(), " is a scalar"));
      return FromVariant(Output(), spec);
    }
    if (rows >= 0 && shape.dim(0) >= 0 && shape.dim(0) != rows) {
      component.graph().Fail(InvalidArgument(
          "FromTensorSlices: Dimensions ", rows, " and ", shape.dim(0),
          " are not compatible: ", component.name(), " has another number of slices"));
      return FromVariant(Output(), spec);
    }
    if (shape.dim(0) >= 0) rows = shape.dim(0);
    shape.RemoveDim(0);
  }
  return FromVariant(AddOp("TensorSliceDataset", {components}, {{"output_shapes", spec.shapes}}),
                     spec);
}

Dataset Dataset::Range(Graph& graph, const Ints& stop) { return Range(graph, 0, stop); }

Dataset Dataset::Range(Graph& graph, const Ints& start, const Ints& stop, const Ints& step) {
  const Output first = start.In(graph, "start", DT_INT64);
  const Output last = stop.In(graph, "stop", DT_INT64);
  return AddDataset("RangeDataset", {first, last, step.In(graph, "step", DT_INT64)},
                    {{DT_INT64}, {Shape()}});
}

Dataset Dataset::Random(Graph& graph, std::optional<int64_t> seed) {
  const auto [seed1, seed2] = SeedTensors(graph, seed);
  return AddDataset("RandomDataset", {seed1, seed2}, {{DT_INT64}, {Shape()}});
}

// ---- files

namespace {

constexpr int64_t kTextBuffer = 256 * 1024;

// Reads one file, whose name is a scalar.
using ReadFileFn = std::function<Dataset(const Output& filename)>;

// Returns the records of all files, one file after the other, or several at a time.
Dataset ReadFiles(Graph& graph, const TensorArg& filenames, const FileDatasetOptions& options,
                  const ReadFileFn& read) {
  const Output names = filenames.In(graph, DT_STRING);
  if (!names.valid()) return Dataset::FromVariant(Output(), StringSpec());
  const Output flat = Reshape(names, {-1}, "flat_filenames");
  const Dataset files = Dataset::FromVariant(
      AddOp("TensorSliceDataset", {Outputs{flat}},
            {{"output_shapes", std::vector<Shape>{Shape()}}, {"is_files", true}}),
      StringSpec());
  const bool is_parallel = options.num_parallel_reads.has_value();
  const int64_t reads = options.num_parallel_reads.value_or(1);
  if (reads < 1) {
    graph.Fail(InvalidArgument("num_parallel_reads must be at least 1, but it is ", reads));
    return Dataset::FromVariant(Output(), StringSpec());
  }
  const auto fn =
      TraceDatasetFunction(graph,
                           is_parallel ? "tf_data_experimental_parallel_interleave_read_one_file"
                                       : "Dataset_flat_map_read_one_file",
                           StringSpec(), {}, [&](const Outputs& args) { return read(args[0]); });
  if (!fn) return Dataset::FromVariant(Output(), StringSpec());
  if (!is_parallel) {
    return AddDataset("FlatMapDataset", {files.variant(), Outputs()}, StringSpec(),
                      {{"f", fn->ref}});
  }
  const Output cycle = Const(graph, reads, "cycle_length");
  const Output block = Const(graph, int64_t{1}, "block_length");
  const Output ahead = Const(graph, int64_t{2}, "buffer_output_elements");
  const Output inputs = Const(graph, 2 * reads, "prefetch_input_elements");
  return AddDataset("LegacyParallelInterleaveDatasetV2",
                    {files.variant(), Outputs(), cycle, block, ahead, inputs}, StringSpec(),
                    {{"f", fn->ref}, {"deterministic", "true"}});
}

Dataset ReadCompressed(Graph& graph, const TensorArg& filenames, const FileDatasetOptions& options,
                       absl::string_view op, int64_t default_buffer) {
  return ReadFiles(graph, filenames, options, [&](const Output& file) {
    Graph& body = file.graph();
    const Output compression = Const(body, options.compression_type, "compression_type");
    const Output buffer = Const(body, options.buffer_size.value_or(default_buffer), "buffer_size");
    return Dataset::FromVariant(AddOp(op, {file, compression, buffer}), StringSpec());
  });
}

}  // namespace

Dataset Dataset::TextLines(Graph& graph, const TensorArg& filenames,
                           const FileDatasetOptions& options) {
  return ReadCompressed(graph, filenames, options, "TextLineDataset", kTextBuffer);
}

Dataset Dataset::TfRecords(Graph& graph, const TensorArg& filenames,
                           const FileDatasetOptions& options) {
  return ReadCompressed(graph, filenames, options, "TFRecordDataset", -1);
}

Dataset Dataset::FixedLengthRecords(Graph& graph, const TensorArg& filenames, int64_t record_bytes,
                                    int64_t header_bytes, int64_t footer_bytes,
                                    const FileDatasetOptions& options) {
  return ReadFiles(graph, filenames, options, [&](const Output& file) {
    Graph& body = file.graph();
    const Output record = Const(body, record_bytes, "record_bytes");
    const Output header = Const(body, header_bytes, "header_bytes");
    const Output footer = Const(body, footer_bytes, "footer_bytes");
    const Output buffer = Const(body, options.buffer_size.value_or(kTextBuffer), "buffer_size");
    const Output compression = Const(body, options.compression_type, "compression_type");
    return FromVariant(
        AddOp("FixedLengthRecordDatasetV2", {file, header, record, footer, buffer, compression}),
        StringSpec());
  });
}

Dataset Dataset::Csv(Graph& graph, const TensorArg& filenames, const Outputs& record_defaults,
                     const CsvDatasetOptions& options) {
  const Output files = filenames.In(graph, DT_STRING, "filenames");
  const Output compression = Const(graph, options.compression_type, "compression_type");
  const Output buffer = Const(graph, options.buffer_size, "buffer_size");
  const Output header = Const(graph, options.header, "header");
  const Output delim = Const(graph, options.field_delim, "field_delim");
  const Output quotes = Const(graph, options.use_quote_delim, "use_quote_delim");
  const Output na = Const(graph, options.na_value, "na_value");
  const Output select = Const(graph, options.select_cols, "select_cols");
  const Output exclude = Const(graph, options.exclude_cols, "exclude_cols");
  ElementSpec spec;
  for (const Output& column : record_defaults) {
    spec.types.push_back(column.dtype());
    spec.shapes.emplace_back();
  }
  return AddDataset(
      "CSVDatasetV2",
      {files, compression, buffer, header, delim, quotes, na, select, record_defaults, exclude},
      spec);
}

// Reports a pattern without files when the data set is made, as TensorFlow does.
Dataset Dataset::ListFiles(Graph& graph, const TensorArg& file_pattern, bool shuffle,
                           std::optional<int64_t> seed) {
  const NameScope scope(graph, "list_files");
  const Output pattern = file_pattern.In(graph, DT_STRING, "file_pattern");
  if (!pattern.valid()) return FromVariant(Output(), StringSpec());
  const Output matching = MatchingFiles(pattern);
  const Output found = Greater(StridedSlice(ShapeTensor(matching), {0}), 0, "match_not_empty");
  Output patterns;
  {
    const NameScope join(graph, "ReduceJoin");
    std::vector<int32_t> axes;
    if (pattern.shape().rank() > 0) axes.push_back(0);
    patterns = AddOp("ReduceJoin", {pattern, Const(graph, axes)}, {{"separator", ", "}});
  }
  Output message;
  {
    const NodeScope add(graph, {}, "message");
    const Output prefix = Const(graph, "No files matched pattern: ", "x");
    message = AddOp("Add", {prefix, patterns}, {}, add.name());
  }
  const Operation check(AddNode("Assert", {found, Outputs{message}}, {{"summarize", int64_t{1}}},
                                "assert_not_empty/Assert"));
  Output files;
  {
    const ControlDependencies after(graph, {check});
    files = Identity(matching);
  }
  const Dataset names =
      FromVariant(AddOp("TensorSliceDataset", {Outputs{files}},
                        {{"output_shapes", std::vector<Shape>{Shape()}}, {"is_files", true}}),
                  StringSpec());
  if (!shuffle || !names.variant().valid()) return names;
  return names.Shuffle(Maximum(StridedSlice(ShapeTensor(files, DT_INT64), {0}), int64_t{1}), seed);
}

}  // namespace weir
