#ifndef WEIR_OPS_STRING_H_
#define WEIR_OPS_STRING_H_

#include <string>

#include "weir/ops/array.h"
#include "weir/ops/sparse.h"

// Tensors of strings. A string is a row of bytes; where characters are meant, they are in UTF-8
// unless an encoding is named.
namespace weir {

// ---- text from values, and back

struct AsStringOptions {
  int64_t precision = -1;   // digits after the point; negative: six
  bool scientific = false;  // 1.5e+00
  bool shortest = false;    // the one of the two that is shorter
  int64_t width = -1;       // at least so many characters
  std::string fill = {};    // "0", " ", "+", "-" or "#", as printf takes them
};
// Each element as text.
Output AsString(Output x, const AsStringOptions& options = {}, absl::string_view name = {});

struct StringFormatOptions {
  std::string placeholder = "{}";
  int64_t summarize = 3;  // first and last elements that are shown of each dimension; -1: all
};
// `text` with each placeholder replaced by a whole tensor, as NumPy prints it.
Output StringFormat(Graph& graph, absl::string_view text, const Outputs& tensors,
                    const StringFormatOptions& options = {}, absl::string_view name = {});

// The number that each string spells: float, double, int32, int64, uint32 or uint64.
Output StringToNumber(Output x, DataType out_type = DT_FLOAT, absl::string_view name = {});

// ---- parts, lengths, case

enum class StringUnit { kBytes, kCharacters };

// int32.
Output StringLength(Output x, StringUnit unit = StringUnit::kBytes, absl::string_view name = {});
// `length` units from `position` on, or as many as there are; from the end if it is negative. The
// shapes broadcast.
Output Substr(Output x, const Ints& position, const Ints& length,
              StringUnit unit = StringUnit::kBytes, absl::string_view name = {});
// Without white space at both ends.
Output StringStrip(Output x, absl::string_view name = {});
// ASCII letters; with the encoding "utf-8" all that have case.
Output StringLower(Output x, absl::string_view encoding = {}, absl::string_view name = {});
Output StringUpper(Output x, absl::string_view encoding = {}, absl::string_view name = {});
// The words of each string of a vector, between any of the bytes of `delimiter` (empty: every byte
// is a word).
SparseTensor StringSplit(Output x, absl::string_view delimiter = " ", bool skip_empty = true,
                         absl::string_view name = {});
// Python's str.split(separator, limit); an empty separator stands for white space.
SparseTensor StringSplitV2(Output x, absl::string_view separator = {}, int64_t limit = -1,
                           absl::string_view name = {});

// ---- joining

// Strings joined over dimensions; that of the first axis runs fastest.
Output ReduceJoin(Output x, const Ints& axes, bool keep_dims = false,
                  absl::string_view separator = {}, absl::string_view name = {});
// Strings joined that have the same segment id.
Output UnsortedSegmentJoin(Output x, Output segment_ids, const Ints& num_segments,
                           absl::string_view separator = {}, absl::string_view name = {});

// ---- patterns, hashes, encodings

// Each match of a regular expression (RE2's syntax) replaced; "\1" to "\9" stand for groups of it.
Output RegexReplace(Output x, absl::string_view pattern, absl::string_view rewrite,
                    bool replace_global = true, absl::string_view name = {});
// A bucket in [0, num_buckets) for each string: by FarmHash, or, where inputs may be hostile, by
// SipHash under a key of two numbers.
Output StringToHashBucketFast(Output x, int64_t num_buckets, absl::string_view name = {});
Output StringToHashBucketStrong(Output x, int64_t num_buckets, std::vector<int64_t> key,
                                absl::string_view name = {});
// Base64 for URLs: '-' and '_' instead of '+' and '/'.
Output EncodeBase64(Output x, bool pad = false, absl::string_view name = {});
Output DecodeBase64(Output x, absl::string_view name = {});

struct UnicodeOptions {
  std::string errors = "replace";  // or "ignore", or "strict": INVALID_ARGUMENT
  int64_t replacement_char = 65533;
  bool replace_control_characters = false;
};
// From any encoding that ICU knows to UTF-8, UTF-16-BE or UTF-32-BE.
Output UnicodeTranscode(Output x, absl::string_view input_encoding,
                        absl::string_view output_encoding, const UnicodeOptions& options = {},
                        absl::string_view name = {});
// The code points of all strings one after the other (int32), where each string's begin and end
// (int64, one more than there are strings), and at which byte of its string each begins.
struct UnicodeDecodeResult {
  Output row_splits, char_values, char_to_byte_starts;
};
UnicodeDecodeResult UnicodeDecodeWithOffsets(Output x, absl::string_view input_encoding,
                                             const UnicodeOptions& options = {},
                                             absl::string_view name = {});
// The strings that code points make, parted as above.
Output UnicodeEncode(Output char_values, Output row_splits, absl::string_view output_encoding,
                     const UnicodeOptions& options = {}, absl::string_view name = {});
// The script of each code point, as ICU's UScriptCode; -1 for what is none.
Output UnicodeScript(Output x, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_STRING_H_
