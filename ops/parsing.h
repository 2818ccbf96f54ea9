#ifndef WEIR_OPS_PARSING_H_
#define WEIR_OPS_PARSING_H_

#include <string>
#include <vector>

#include "weir/ops/array.h"
#include "weir/ops/sparse.h"

// Tensors from bytes: raw memory, serialized tensors, lines of text, examples.
namespace weir {

// The bytes of each string as elements, in a new last dimension. All strings are as long.
Output DecodeRaw(Output bytes, DataType out_type, bool little_endian = true,
                 absl::string_view name = {});
// The first `length` bytes of each string, with zeros behind those that are shorter.
Output DecodePaddedRaw(Output bytes, const Ints& length, DataType out_type,
                       bool little_endian = true, absl::string_view name = {});
// "ZLIB", "GZIP" or nothing at all.
Output DecodeCompressed(Output bytes, absl::string_view compression_type = {},
                        absl::string_view name = {});

// A TensorProto as a string, and back.
Output SerializeTensor(Output x, absl::string_view name = {});
Output ParseTensor(Output serialized, DataType out_type, absl::string_view name = {});

struct DecodeCsvOptions {
  std::string field_delim = ",";
  bool use_quote_delim = true;            // a field in double quotes may hold the delimiter
  std::string na_value = {};              // stands for a missing field, as an empty one does
  std::vector<int64_t> select_cols = {};  // empty: all
};
// The fields of each record, an output a column, of the types of the defaults: scalars, or empty
// vectors for columns that may not miss. Types: float, double, int32, int64, string.
Outputs DecodeCsv(Output records, const Outputs& record_defaults,
                  const DecodeCsvOptions& options = {}, absl::string_view name = {});

// ---- examples (proto/example.proto)

// A feature that has as many values in each example: float, int64 or string.
struct FixedLenFeature {
  std::string key;
  DataType dtype;
  Shape shape;
  Tensor default_value;  // for examples that lack it; not initialized: they may not
};
// A feature that has any number of values in each.
struct VarLenFeature {
  std::string key;
  DataType dtype;
};
struct ParsedExamples {
  Outputs dense;                     // one for each FixedLenFeature
  std::vector<SparseTensor> sparse;  // one for each VarLenFeature
};
// Reads a vector of serialized Examples, or a scalar, one Example.
ParsedExamples ParseExample(Output serialized, const std::vector<FixedLenFeature>& dense,
                            const std::vector<VarLenFeature>& sparse, absl::string_view name = {});
// The binary form of Examples in JSON.
Output DecodeJsonExample(Output json_examples, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_PARSING_H_
