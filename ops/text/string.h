#ifndef WEIR_OPS_TEXT_STRING_H_
#define WEIR_OPS_TEXT_STRING_H_

#include <string>

#include "weir/core/tensor/api.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/sparse/sparse.h"

// Tensors of strings. A string is a sequence of bytes. Characters are encoded in UTF-8 unless an
// encoding is given.
namespace WEIR_API weir {

// ---- conversion of values to text and back

struct AsStringOptions {
  int64_t precision = -1;   // digits after the decimal point; negative: six
  bool scientific = false;  // 1.5e+00
  bool shortest = false;    // the shorter of the two notations
  int64_t width = -1;       // minimum number of characters
  std::string fill = {};    // "0", " ", "+", "-" or "#", as for printf
};
// Converts each element to text.
Output AsString(Output x, const AsStringOptions& options = {}, absl::string_view name = {});

// Options of StringFormat.
struct StringFormatOptions {
  std::string placeholder = "{}";  // the text that is replaced
  int64_t summarize =
      3;  // number of first and last elements of each dimension that are printed; -1: all
};
// Returns `text` with each placeholder replaced by a whole tensor, formatted as NumPy prints it.
Output StringFormat(Graph& graph, absl::string_view text, const Outputs& tensors,
                    const StringFormatOptions& options = {}, absl::string_view name = {});

// Parses each string as a number: float, double, int32, int64, uint32 or uint64.
Output StringToNumber(Output x, DataType out_type = DT_FLOAT, absl::string_view name = {});

// ---- substrings, lengths, case

enum class StringUnit { kBytes, kCharacters };

// Returns the length of each string, int32.
Output StringLength(Output x, StringUnit unit = StringUnit::kBytes, absl::string_view name = {});
// Returns `length` units starting at `position`, or fewer at the end of the string. A negative
// position counts from the end. The shapes broadcast.
Output Substr(Output x, const Ints& position, const Ints& length,
              StringUnit unit = StringUnit::kBytes, absl::string_view name = {});
// Removes leading and trailing whitespace.
Output StringStrip(Output x, absl::string_view name = {});
// Changes the case of ASCII letters, or of all letters that have case with the encoding "utf-8".
Output StringLower(Output x, absl::string_view encoding = {}, absl::string_view name = {});
Output StringUpper(Output x, absl::string_view encoding = {}, absl::string_view name = {});
// Splits each string of a vector into words at any of the bytes of `delimiter` (empty: each byte is
// a word).
SparseTensor StringSplit(Output x, absl::string_view delimiter = " ", bool skip_empty = true,
                         absl::string_view name = {});
// Python's str.split(separator, limit). An empty separator means whitespace.
SparseTensor StringSplitV2(Output x, absl::string_view separator = {}, int64_t limit = -1,
                           absl::string_view name = {});

// ---- joining

// Joins strings over dimensions. The first axis varies fastest.
Output ReduceJoin(Output x, const Ints& axes, bool keep_dims = false,
                  absl::string_view separator = {}, absl::string_view name = {});
// Joins the strings that have the same segment id.
Output UnsortedSegmentJoin(Output x, Output segment_ids, const Ints& num_segments,
                           absl::string_view separator = {}, absl::string_view name = {});

// ---- patterns, hashes, encodings

// Replaces each match of a regular expression (RE2 syntax). "\1" to "\9" in the rewrite are the
// groups of the match.
Output RegexReplace(Output x, absl::string_view pattern, absl::string_view rewrite,
                    bool replace_global = true, absl::string_view name = {});
// Hashes each string to a bucket in [0, num_buckets): with FarmHash, or, for untrusted inputs, with
// SipHash under a key of two numbers.
Output StringToHashBucketFast(Output x, int64_t num_buckets, absl::string_view name = {});
Output StringToHashBucketStrong(Output x, int64_t num_buckets, std::vector<int64_t> key,
                                absl::string_view name = {});
// URL-safe base64: '-' and '_' instead of '+' and '/'.
Output EncodeBase64(Output x, bool pad = false, absl::string_view name = {});
Output DecodeBase64(Output x, absl::string_view name = {});

// Options of the functions that decode and encode.
struct UnicodeOptions {
  std::string errors = "replace";    // or "ignore", or "strict": INVALID_ARGUMENT
  int64_t replacement_char = 65533;  // the code point that "replace" writes
  // Whether the control characters below 32 are replaced too.
  bool replace_control_characters = false;
};
// Transcodes from any encoding that ICU knows to UTF-8, UTF-16-BE or UTF-32-BE.
Output UnicodeTranscode(Output x, absl::string_view input_encoding,
                        absl::string_view output_encoding, const UnicodeOptions& options = {},
                        absl::string_view name = {});
// The concatenated code points of all strings (int32), the row splits that delimit the strings
// (int64, one more than there are strings), and the byte offset of each code point in its string.
struct UnicodeDecodeResult {
  Output row_splits, char_values, char_to_byte_starts;  // see above
};
// Decodes the strings of x, of any shape, which are in an encoding that ICU knows.
UnicodeDecodeResult UnicodeDecodeWithOffsets(Output x, absl::string_view input_encoding,
                                             const UnicodeOptions& options = {},
                                             absl::string_view name = {});
// Encodes code points to strings, which the row splits delimit as above.
Output UnicodeEncode(Output char_values, Output row_splits, absl::string_view output_encoding,
                     const UnicodeOptions& options = {}, absl::string_view name = {});
// Returns the script of each code point as ICU's UScriptCode; -1 for an invalid code point.
Output UnicodeScript(Output x, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_TEXT_STRING_H_
