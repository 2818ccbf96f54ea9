#ifndef WEIR_OPS_DATA_DATASET_H_
#define WEIR_OPS_DATA_DATASET_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/ops/data/parsing.h"
#include "weir/ops/lib/array.h"

// Input pipelines: tf.data of TensorFlow 1 (tf.compat.v1.data). A data set is a node that describes
// a sequence of elements; nothing is read before an iterator (iterator.h) runs.
//
//   Dataset train = Dataset::TfRecords(g, {"a.tfrecord", "b.tfrecord"})
//                       .Shuffle(10000)
//                       .Repeat()
//                       .Map([](const Outputs& e) { return ParseImage(e[0]); }, {kAutotune})
//                       .Batch(32)
//                       .Prefetch(kAutotune);
//   Outputs batch = MakeOneShotIterator(train).GetNext();
//
// The nodes, their names and their attributes are those of TensorFlow 2.21, so that an exported
// graph runs there, and elements come in the same order for the same seeds. The constants that a
// method adds are named after its arguments.
//
// An element is a list of tensors, its components. Their dtypes and static shapes are known while
// the graph is built: ElementSpec. Nested structures of Python are flattened in its order.
//
// Functions of elements are called once, while the graph is built. Their nodes become a function of
// the graph's library, so they must belong to the graph of the arguments, `element[0].graph()`,
// where constants are made too. A tensor from outside is listed in `captured`: the function gets it
// as a further argument, after the components. A variable is captured by its handle, and read in
// the function (ReadVariableOp) for each element; Variable::value() would be read once, when the
// iterator is initialized.
//
// Errors are recorded in the graph, and the method returns an invalid data set: INVALID_ARGUMENT
// for wrong dtypes, ranks, shapes, and results of functions. Errors of elements, such as files that
// do not exist, are those of GetNext.
//
// Numbers are int64 scalars: literals, or tensors that are computed when the iterator is
// initialized. A function may not call the methods of a data set from outside of it.
namespace WEIR_API weir {

class Dataset;

// As `num_parallel_calls` or `buffer_size`: the runtime chooses the number.
inline constexpr int64_t kAutotune = -1;

// The dtypes and static shapes of an element's components, one of each per component.
struct ElementSpec {
  DataTypes types = {};            // of the components, in their order
  std::vector<Shape> shapes = {};  // as far as known
};

// Functions of an element's components, followed by the captured tensors. ElementFn returns the
// components of the new element, PredicateFn a bool scalar, and KeyFn a number.
using ElementFn = std::function<Outputs(const Outputs& element)>;
using PredicateFn = std::function<Output(const Outputs& element)>;
using KeyFn = std::function<Output(const Outputs& element)>;
using DatasetFn = std::function<Dataset(const Outputs& element)>;
// Returns the new state and the result, for a state and an element.
using StatefulFn =
    std::function<std::pair<Outputs, Outputs>(const Outputs& state, const Outputs& element)>;
// Returns a data set for the elements that have the same key, such as a batch of them.
using GroupFn = std::function<Dataset(Output key, const Dataset& group)>;

// Options of the data sets that read files.
struct FileDatasetOptions {
  std::string compression_type = {};        // "", "ZLIB" or "GZIP"
  std::optional<int64_t> buffer_size = {};  // in bytes; default: TensorFlow's
  // The number of files whose records are interleaved, at least 1. Default: one file after another.
  std::optional<int64_t> num_parallel_reads = {};
};

// Options of Dataset::Csv.
struct CsvDatasetOptions {
  std::string compression_type = {};       // "", "ZLIB" or "GZIP"
  int64_t buffer_size = 4 * 1024 * 1024;   // in bytes
  bool header = false;                     // the first line of each file is skipped
  std::string field_delim = ",";           // between fields: one character
  bool use_quote_delim = true;             // a field in double quotes may hold the delimiter
  std::string na_value = {};               // the text of a missing field, as an empty one is
  std::vector<int64_t> select_cols = {};   // ascending; empty: all columns
  std::vector<int64_t> exclude_cols = {};  // only without select_cols
};

// Options of Dataset::Map and Batch.
struct ParallelOptions {
  std::optional<Ints> num_parallel_calls = {};  // default: one call after the other
  // False allows TensorFlow to return elements out of order; Weir keeps the order. Only with
  // num_parallel_calls.
  std::optional<bool> deterministic = {};
  Outputs captured = {};  // further arguments of the function of Map
};

// Options of Dataset::Interleave.
struct InterleaveOptions {
  Ints cycle_length = kAutotune;  // the number of inputs that are read at a time
  Ints block_length = 1;          // elements from each before the next one
  // As those of ParallelOptions.
  std::optional<Ints> num_parallel_calls = {};
  std::optional<bool> deterministic = {};
  Outputs captured = {};
};

// Options of Dataset::PaddedBatch.
struct PaddedBatchOptions {
  // One shape per component, to which its values are padded at the end; an unknown dimension is
  // that of the longest value in the batch. Default: the components' static shapes.
  std::optional<std::vector<Shape>> padded_shapes = {};
  // One scalar per component; an invalid Output: zero, or the empty string. Default: all invalid.
  Outputs padding_values = {};
  bool drop_remainder = false;
};

// Options of Dataset::BucketBySequenceLength.
struct BucketOptions {
  // Of the batches. An unknown dimension is padded to that of the longest value in the batch.
  PaddedBatchOptions batch = {};
  // Pads unknown dimensions to the bucket's boundary, minus one. An element that is as long as the
  // last boundary is then INVALID_ARGUMENT at run time.
  bool pad_to_bucket_boundary = false;
  bool no_padding = false;  // elements of a bucket have equal shapes
};

// A data set in a graph. A value type: copies are handles to the same node.
class Dataset {
 public:
  // ---- sources

  // The data set in a variant scalar, such as an element of Window.
  static Dataset FromVariant(Output variant, ElementSpec spec);
  // One element: these tensors.
  static Dataset FromTensors(const Outputs& components);
  // The slices of the tensors along dimension 0, in which they agree.
  static Dataset FromTensorSlices(const Outputs& components);
  // The int64 numbers from 0, or from `start`, in steps of `step`, before `stop`.
  static Dataset Range(Graph& graph, const Ints& stop);
  static Dataset Range(Graph& graph, const Ints& start, const Ints& stop, const Ints& step = 1);
  // Random int64 numbers in [0, 2^32), without end. Seeds are those of random ops (Graph::seed).
  static Dataset Random(Graph& graph, std::optional<int64_t> seed = {});
  // The lines of text files, without line ends. `filenames`, here and below: strings of any shape.
  static Dataset TextLines(Graph& graph, const TensorArg& filenames,
                           const FileDatasetOptions& options = {});
  // The records of TFRecord files.
  static Dataset TfRecords(Graph& graph, const TensorArg& filenames,
                           const FileDatasetOptions& options = {});
  // The records of `record_bytes` bytes between the header and the footer of each file.
  static Dataset FixedLengthRecords(Graph& graph, const TensorArg& filenames, int64_t record_bytes,
                                    int64_t header_bytes = 0, int64_t footer_bytes = 0,
                                    const FileDatasetOptions& options = {});
  // The lines of CSV files: a scalar component for each column, with the dtype of its default. A
  // default is a scalar, or an empty vector for a required column, as in DecodeCsv.
  static Dataset Csv(Graph& graph, const TensorArg& filenames, const Outputs& record_defaults,
                     const CsvDatasetOptions& options = {});
  // The names of the files that match any of the patterns, a string scalar or vector. Sorted, or
  // shuffled. INVALID_ARGUMENT at run time if there are none.
  static Dataset ListFiles(Graph& graph, const TensorArg& file_pattern, bool shuffle = true,
                           std::optional<int64_t> seed = {});
  // The elements that Save has written to the folder `path`, a string scalar. `spec` is that of the
  // saved data set.
  static Dataset Load(Graph& graph, const TensorArg& path, ElementSpec spec,
                      absl::string_view compression = {});
  // Takes each element from the next of the data sets that a random number chooses, with these
  // probabilities (default: equal ones). All have the same dtypes. An exhausted data set is
  // skipped, or ends the result.
  static Dataset SampleFromDatasets(const std::vector<Dataset>& datasets,
                                    std::vector<float> weights = {},
                                    std::optional<int64_t> seed = {},
                                    bool stop_on_empty_dataset = false);
  // Takes each element from the data set whose index is the next element of `choices`, int64
  // scalars.
  static Dataset ChooseFromDatasets(const std::vector<Dataset>& datasets, const Dataset& choices,
                                    bool stop_on_empty_dataset = true);
  // Elements with the components of one element of each data set. Ends with the shortest.
  static Dataset Zip(const std::vector<Dataset>& datasets);

  // ---- functions of elements

  // Replaces each element by the function's results.
  Dataset Map(const ElementFn& fn, const ParallelOptions& options = {}) const;
  // The elements for which the function returns true; those before the first for which it returns
  // false.
  Dataset Filter(const PredicateFn& predicate, const Outputs& captured = {}) const;
  Dataset TakeWhile(const PredicateFn& predicate, const Outputs& captured = {}) const;
  // Concatenates the data sets that the function returns, or interleaves them.
  Dataset FlatMap(const DatasetFn& fn, const Outputs& captured = {}) const;
  Dataset Interleave(const DatasetFn& fn, const InterleaveOptions& options = {}) const;
  // Calls fn(state, element) for each element in turn, and returns the results. The state keeps its
  // dtypes; its shapes may change. Captured tensors follow the element.
  Dataset Scan(const Outputs& initial_state, const StatefulFn& fn,
               const Outputs& captured = {}) const;
  // Returns the last state, where each is fn(state components, element components).
  Outputs Reduce(const Outputs& initial_state, const ElementFn& fn,
                 const Outputs& captured = {}) const;

  // ---- batches, windows and groups

  // Stacks `batch_size` elements along a new dimension 0. The last batch may be smaller.
  Dataset Batch(const Ints& batch_size, bool drop_remainder = false,
                const ParallelOptions& options = {}) const;
  // Pads the values of each component to one shape, and stacks them.
  Dataset PaddedBatch(const Ints& batch_size, const PaddedBatchOptions& options = {}) const;
  // The slices of each element along dimension 0.
  Dataset Unbatch() const;
  // Batches with the rows of all elements: `batch_sizes`, a scalar or a vector used in turn.
  Dataset Rebatch(const Ints& batch_sizes, bool drop_remainder = false) const;
  // Elements that are data sets of `size` elements, `stride` apart, and begin `shift` apart
  // (default: size). Each component is a data set of its own: a variant, for FromVariant with the
  // dtype and shape of that component.
  Dataset Window(const Ints& size, std::optional<Ints> shift = {}, const Ints& stride = 1,
                 bool drop_remainder = false) const;
  // Collects `window_size` elements for which `key` returns the same int64 scalar, and concatenates
  // what `reduce` returns for them. The size may depend on the key: an int64 scalar.
  Dataset GroupByWindow(const KeyFn& key, const GroupFn& reduce, int64_t window_size) const;
  Dataset GroupByWindow(const KeyFn& key, const GroupFn& reduce,
                        const std::function<Output(Output key)>& window_size) const;
  // Batches elements of similar length. `length` returns an int32 scalar. Bucket i holds lengths
  // from boundary i - 1 to before boundary i, and makes batches of the size i; there is one more
  // size than boundaries.
  Dataset BucketBySequenceLength(const KeyFn& length, const std::vector<int32_t>& boundaries,
                                 const std::vector<int64_t>& batch_sizes,
                                 const BucketOptions& options = {}) const;

  // ---- order and selection

  // Draws each element at random from a buffer of the next `buffer_size`. The order differs in each
  // iteration unless `reshuffle_each_iteration` is false; equal seeds give equal orders.
  Dataset Shuffle(const Ints& buffer_size, std::optional<int64_t> seed = {},
                  bool reshuffle_each_iteration = true) const;
  // Repeats the elements `count` times; -1: without end.
  Dataset Repeat(const Ints& count = -1) const;
  // Shuffle and Repeat as one node.
  Dataset ShuffleAndRepeat(const Ints& buffer_size, const Ints& count = -1,
                           std::optional<int64_t> seed = {}) const;
  // The first `count` elements, or all but these; -1: all elements, or none.
  Dataset Take(const Ints& count) const;
  Dataset Skip(const Ints& count) const;
  // Every num_shards-th element, from number `index` on.
  Dataset Shard(const Ints& num_shards, const Ints& index) const;
  // The elements of this data set and then those of `other`, which has the same dtypes.
  Dataset Concatenate(const Dataset& other) const;
  // Puts the element's number in front of its components: start, start + 1, ...
  Dataset Enumerate(const Ints& start = 0) const;
  // Drops elements that were returned before. One component of dtype int32, int64 or string.
  Dataset Unique() const;
  // Drops elements whose computation fails.
  Dataset IgnoreErrors(bool log_warning = false) const;

  // ---- computing ahead and keeping elements

  // Computes up to `buffer_size` elements ahead.
  Dataset Prefetch(const Ints& buffer_size) const;
  // Keeps the elements of the first iteration in memory, or in files that begin with `filename`.
  Dataset Cache(const TensorArg& filename = "") const;
  // Computes the elements once and keeps them in the folder `path`. `compression`: "AUTO",
  // "SNAPPY", "GZIP" or "".
  Dataset Snapshot(const TensorArg& path, absl::string_view compression = "AUTO") const;
  // Writes the elements to the folder `path`, for Load. `compression`: "" or "GZIP".
  Operation Save(const TensorArg& path, absl::string_view compression = {}) const;

  // ---- parsing

  // Parses elements that are vectors of serialized Examples. The components are the features of
  // both lists in the order of their keys; those of `sparse` are variants, for DeserializeSparse.
  Dataset ParseExample(const std::vector<FixedLenFeature>& dense,
                       const std::vector<VarLenFeature>& sparse, const Ints& num_parallel_calls = 1,
                       std::optional<bool> deterministic = {}) const;

  // ---- without an iterator

  // The number of elements, an int64 scalar: -1 if there is no end, -2 if it is unknown.
  Output Cardinality() const;
  // The components of the only element. INVALID_ARGUMENT at run time if there is not exactly one.
  Outputs GetSingleElement() const;

  // The variant scalar of this data set, and what its elements are. A failed method returns an
  // invalid variant.
  const Output& variant() const { return variant_; }
  const ElementSpec& element_spec() const { return spec_; }
  const DataTypes& types() const { return spec_.types; }
  const std::vector<Shape>& shapes() const { return spec_.shapes; }

 private:
  Output variant_;
  ElementSpec spec_;
};

}  // namespace weir

#endif  // WEIR_OPS_DATA_DATASET_H_
