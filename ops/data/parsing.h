#ifndef WEIR_OPS_DATA_PARSING_H_
#define WEIR_OPS_DATA_PARSING_H_

#include <string>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/sparse/sparse.h"

// Builders of ops that convert bytes to tensors: raw memory, serialized tensors, lines of text,
// Examples.
namespace WEIR_API weir {

// Reinterprets the bytes of each string as elements, in a new last dimension. All strings must have
// the same length.
Output DecodeRaw(Output bytes, DataType out_type, bool little_endian = true,
                 absl::string_view name = {});
// Reinterprets the first `length` bytes of each string. Shorter strings are padded with zeros.
Output DecodePaddedRaw(Output bytes, const Ints& length, DataType out_type,
                       bool little_endian = true, absl::string_view name = {});
// `compression_type` is "ZLIB", "GZIP" or empty (no compression).
Output DecodeCompressed(Output bytes, absl::string_view compression_type = {},
                        absl::string_view name = {});

// Converts a tensor to a serialized TensorProto, and back.
Output SerializeTensor(Output x, absl::string_view name = {});
Output ParseTensor(Output serialized, DataType out_type, absl::string_view name = {});

// Options of DecodeCsv.
struct DecodeCsvOptions {
  std::string field_delim = ",";  // between fields: one character
  bool use_quote_delim = true;    // a field in double quotes may hold the delimiter
  std::string na_value = {};      // the text that denotes a missing field, as an empty field does
  std::vector<int64_t> select_cols = {};  // empty: all
};
// Returns the fields of each record, one output per column, with the types of the defaults. A
// default is a scalar, or an empty vector for a required column. Types: float, double, int32,
// int64, string.
Outputs DecodeCsv(Output records, const Outputs& record_defaults,
                  const DecodeCsvOptions& options = {}, absl::string_view name = {});

// ---- examples (proto/example.proto)

// A feature that has the same number of values in each example: float, int64 or string.
struct FixedLenFeature {
  std::string key;       // the feature's name in the example
  DataType dtype;        // float, int64 or string
  Shape shape;           // of the values of one example
  Tensor default_value;  // for examples without the feature; uninitialized: the feature is required
};
// A feature that has a variable number of values per example.
struct VarLenFeature {
  std::string key;  // the feature's name in the example
  DataType dtype;   // float, int64 or string
};
// What the parsers of examples return, in the order of the features.
struct ParsedExamples {
  Outputs dense;                     // one per FixedLenFeature
  std::vector<SparseTensor> sparse;  // one per VarLenFeature
};
// Parses a vector of serialized Examples, or a scalar for one Example.
ParsedExamples ParseExample(Output serialized, const std::vector<FixedLenFeature>& dense,
                            const std::vector<VarLenFeature>& sparse, absl::string_view name = {});
// Converts Examples in JSON to their binary form.
Output DecodeJsonExample(Output json_examples, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_DATA_PARSING_H_
