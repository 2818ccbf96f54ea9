#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "absl/strings/ascii.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/broadcast.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/string_util.h"

// Splitting of strings into words, substrings, n-grams.
namespace weir {

namespace {

// ---- StringSplit, StringSplitV2

// A set of bytes.
class ByteSet {
 public:
  explicit ByteSet(const std::string& bytes) : bytes_(bytes) {
    for (const char c : bytes) contains_[static_cast<uint8_t>(c)] = true;
  }
  bool empty() const { return bytes_.empty(); }
  // Returns the position of the first of these bytes at or after `from`; the end if there is none.
  size_t FindIn(absl::string_view text, size_t from) const {
    if (bytes_.size() == 1) return std::min(text.find(bytes_[0], from), text.size());
    while (from < text.size() && !contains_[static_cast<uint8_t>(text[from])]) ++from;
    return from;
  }

 private:
  const std::string bytes_;
  std::array<bool, 256> contains_{};
};

// The functions that split a text call word(string_view) for each word.

// Splits at every byte in `delimiters`; if that is empty, every byte is a word.
template <class F>
void SplitAtBytes(absl::string_view text, const ByteSet& delimiters, bool skip_empty, F word) {
  if (text.empty()) return;
  if (delimiters.empty()) {
    for (size_t i = 0; i < text.size(); ++i) word(text.substr(i, 1));
    return;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = delimiters.FindIn(text, begin);
    if (end > begin || !skip_empty) word(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

// Python's str.split(), at most `limit` times (negative: unlimited).
template <class F>
void SplitAtSpace(absl::string_view text, int64_t limit, F word) {
  // Skips white space (or everything else) from a position on.
  const auto skip = [text](bool space, size_t at) {
    while (at < text.size() && absl::ascii_isspace(static_cast<uint8_t>(text[at])) == space) ++at;
    return at;
  };
  int64_t splits = 0;
  for (size_t begin = skip(true, 0); begin < text.size();) {
    const size_t end = skip(false, begin);
    word(text.substr(begin, end - begin));
    begin = skip(true, end);
    if (++splits == limit) return word(text.substr(begin));
  }
}

// Python's str.split(separator, limit).
template <class F>
void SplitAtText(absl::string_view text, absl::string_view separator, int64_t limit, F word) {
  for (int64_t splits = 0; splits != limit; ++splits) {
    const size_t at = text.find(separator);
    if (at == absl::string_view::npos) break;
    word(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  word(text);
}

// Splits some of the rows on one thread. Rows are split twice, to count the words and to write
// them: a list of the words in between took more time than finding them again. split(text, word) is
// one of the functions above.
template <class F>
struct RowSplitter {
  absl::Span<const std::string> rows;
  const F& split;

  // Adds to the number of words in the rows [begin, end), and to the maximum in one row.
  void Count(int64_t begin, int64_t end, int64_t* count, int64_t* widest) const {
    for (int64_t row = begin; row < end; ++row) {
      ThrowIfCancelled();
      int64_t words = 0;
      split(rows[row], [&](absl::string_view) { ++words; });
      *count += words;
      *widest = std::max(*widest, words);
    }
  }

  // Writes the row and the column of each word to `index`, and the words to `values`.
  void Write(int64_t begin, int64_t end, int64_t* index, std::string* values) const {
    for (int64_t row = begin; row < end; ++row) {
      ThrowIfCancelled();
      int64_t column = 0;
      split(rows[row], [&](absl::string_view word) {
        *index++ = row;
        *index++ = column++;
        (values++)->assign(word.data(), word.size());
      });
    }
  }
};

// Writes the words of each string of a vector as the rows of a sparse matrix. Blocks of rows are
// split on several threads; the number of words in the blocks before says where to write those of a
// block.
template <class F>
absl::Status SplitAll(KernelContext& c, const F& split) {
  constexpr int64_t kRows = 256;  // in a block
  constexpr double kRowNs = 50;
  const Tensor& in = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckRank(in, 1, "input"));
  const RowSplitter<F> splitter = {in.flat<std::string>(), split};
  const int64_t blocks = (in.dim(0) + kRows - 1) / kRows;
  // Calls fn(block, first row, end of its rows).
  const auto for_each_block = [&](auto fn) {
    c.pool().ParallelFor(blocks, kRows * kRowNs, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) fn(b, b * kRows, std::min(in.dim(0), (b + 1) * kRows));
    });
  };
  std::vector<int64_t> counts(static_cast<size_t>(blocks)), widest(counts.size());
  for_each_block([&](int64_t b, int64_t begin, int64_t end) {
    splitter.Count(begin, end, &counts[b], &widest[b]);
  });
  std::vector<int64_t> starts(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), starts.begin() + 1);
  WEIR_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape({starts.back(), 2})));
  WEIR_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, Shape({starts.back()})));
  WEIR_ASSIGN_OR_RETURN(Tensor * shape, c.AllocateOutput(2, Shape({2})));
  for_each_block([&](int64_t b, int64_t begin, int64_t end) {
    splitter.Write(begin, end, indices->data<int64_t>() + 2 * starts[b],
                   values->data<std::string>() + starts[b]);
  });
  shape->data<int64_t>()[0] = in.dim(0);
  shape->data<int64_t>()[1] = blocks == 0 ? 0 : *std::max_element(widest.begin(), widest.end());
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeSplit(const KernelInit& init) {
  const bool skip_empty = init.attr<bool>("skip_empty");
  return Kernel([skip_empty](KernelContext& c) -> absl::Status {
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(1), 0, "delimiter"));
    const ByteSet delimiters(c.input(1).scalar<std::string>());
    return SplitAll(c, [&](absl::string_view text, auto word) {
      SplitAtBytes(text, delimiters, skip_empty, word);
    });
  });
}

absl::StatusOr<Kernel> MakeSplitV2(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int64_t limit, NarrowAttr(init.node, "maxsplit"));
  return Kernel([limit](KernelContext& c) -> absl::Status {
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(1), 0, "sep"));
    const std::string& separator = c.input(1).scalar<std::string>();
    return SplitAll(c, [&](absl::string_view text, auto word) {
      if (limit == 0) return word(text);
      if (separator.empty()) return SplitAtSpace(text, limit, word);
      SplitAtText(text, separator, limit, word);
    });
  });
}

// ---- Substr

// Returns the byte offset of the character `count` characters after (before) the one at `from`; the
// end (begin) of the text if there are not so many, and then sets `*enough` to false.
size_t Forward(absl::string_view text, size_t from, int64_t count, bool* enough) {
  for (; count > 0 && from < text.size(); --count) {
    do ++from;
    while (from < text.size() && IsTrailByte(text[from]));
  }
  *enough = count <= 0;
  return from;
}
size_t Back(absl::string_view text, size_t from, uint64_t count, bool* enough) {
  for (; count > 0 && from > 0; --count) {
    do --from;
    while (from > 0 && IsTrailByte(text[from]));
  }
  *enough = count == 0;
  return from;
}

// Returns `length` bytes from `position` on, or fewer at the end of the text. A negative position
// counts from the end. A negative length returns all that follows. Returns nullopt for a position
// outside the text.
std::optional<absl::string_view> ByteRange(absl::string_view text, int64_t position,
                                           int64_t length) {
  const auto size = static_cast<int64_t>(text.size());
  if (position < 0) position += size;
  if (position < 0 || position > size) return std::nullopt;
  return text.substr(static_cast<size_t>(position),
                     length < 0 ? absl::string_view::npos : static_cast<size_t>(length));
}

// The same in characters, except for a negative length: it returns an empty string, and with a
// negative position the position counts as outside the text.
std::optional<absl::string_view> CharacterRange(absl::string_view text, int64_t position,
                                                int64_t length) {
  bool enough = true, ignored;
  size_t begin = 0, end = 0;
  if (position >= 0) {
    begin = Forward(text, 0, position, &enough);
    end = Forward(text, begin, length, &ignored);
  } else {
    if (length < 0) return std::nullopt;
    const uint64_t from_end = uint64_t{0} - static_cast<uint64_t>(position);
    const uint64_t taken = std::min(from_end, static_cast<uint64_t>(length));
    end = Back(text, text.size(), from_end - taken, &enough);
    if (enough) begin = Back(text, end, taken, &enough);
  }
  if (!enough) return std::nullopt;
  return text.substr(begin, end - begin);
}

// Which element of an argument each element of a broadcast result uses.
class SourceIndices {
 public:
  SourceIndices(const Shape& result, const Shape& shape) {
    if (shape.num_elements() == 1 || shape == result) {
      stride_ = shape == result ? 1 : 0;
      return;
    }
    std::vector<int64_t> own(static_cast<size_t>(shape.num_elements()));
    std::iota(own.begin(), own.end(), 0);
    gathered_.resize(static_cast<size_t>(result.num_elements()));
    const Shape* const argument = &shape;
    Broadcast(result, {&argument, 1})
        .Gather(0, own.data(), sizeof(int64_t), 0, result.num_elements(), gathered_.data());
  }
  int64_t operator[](int64_t k) const { return gathered_.empty() ? k * stride_ : gathered_[k]; }

 private:
  int64_t stride_ = 0;
  std::vector<int64_t> gathered_;  // empty: the index is a multiple of the result's
};

// Writes the substrings. T is the type of the positions and lengths.
template <class T>
absl::Status CopyRanges(KernelContext& c, bool characters, Tensor& out) {
  constexpr double kNs = 15;
  const SourceIndices texts(out.shape(), c.input(0).shape()),
      ranges(out.shape(), c.input(1).shape());
  const std::string* const in = c.input_data<std::string>(0);
  const T *const positions = c.input_data<T>(1), *const lengths = c.input_data<T>(2);
  std::string* const results = out.data<std::string>();
  const auto range_of = characters ? CharacterRange : ByteRange;
  return ForEachString(c.pool(), out.num_elements(), kNs, [&](int64_t k) -> absl::Status {
    const std::string& text = in[texts[k]];
    const int64_t source = ranges[k], position = positions[source];
    const std::optional<absl::string_view> range = range_of(text, position, lengths[source]);
    if (!range.has_value()) {
      return InvalidArgument("pos ", position, " out of range for string b'", text, "' at index ",
                             k);
    }
    results[k].assign(range->data(), range->size());
    return absl::OkStatus();
  });
}

absl::Status Substr(KernelContext& c, bool characters) {
  const Tensor &in = c.input(0), &positions = c.input(1), &lengths = c.input(2);
  if (positions.shape() != lengths.shape()) {
    return InvalidArgument("pos and len should have the same shape, got: ",
                           positions.shape().ToString(), " vs. ", lengths.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(in.shape(), positions.shape()));
  if (positions.rank() > 0 && positions.shape() != in.shape() && shape.rank() > 2) {
    return Unimplemented("Substr broadcast not implemented for ", shape.rank(), " dimensions");
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  return positions.dtype() == DT_INT32 ? CopyRanges<int32_t>(c, characters, *out)
                                       : CopyRanges<int64_t>(c, characters, *out);
}

absl::StatusOr<Kernel> MakeSubstr(const KernelInit& init) {
  const bool characters = CountsCharacters(init);
  return Kernel([characters](KernelContext& c) -> absl::Status { return Substr(c, characters); });
}

// ---- StringNGrams

// The attributes of the kernel. A row of words is padded with `pad` copies of `left` in front and
// of `right` behind, but always with fewer than the width of the n-gram (a negative number: width -
// 1).
struct NGrams {
  std::string separator, left, right;
  std::vector<int64_t> widths;
  int64_t pad;
  bool keep_short;

  int64_t PadOf(int64_t width) const { return pad < 0 ? width - 1 : std::min(pad, width - 1); }
  int64_t CountOf(int64_t words, int64_t width) const {
    return std::max<int64_t>(0, words + 2 * PadOf(width) - width + 1);
  }

  // Computes the n-grams of one width of one row.
  void Append(absl::Span<const std::string> words, int64_t width,
              std::vector<std::string>* grams) const {
    const int64_t padding = PadOf(width),
                  count = CountOf(static_cast<int64_t>(words.size()), width);
    if (count == 0) return;
    for (int64_t k = 0; k < count; ++k) {
      ThrowIfCancelledAt(k);
      const auto part = [&](int64_t i) -> const std::string& {
        const int64_t at = k + i - padding;
        return at < 0 ? left : at < static_cast<int64_t>(words.size()) ? words[at] : right;
      };
      JoinParts(width, separator, part, &grams->emplace_back());
    }
  }

  absl::Status AppendRow(absl::Span<const std::string> words,
                         std::vector<std::string>* grams) const;
};

// The maximum size of a row's n-grams of one width: padding may be arbitrarily wide.
constexpr int64_t kMaxNGramBytes = int64_t{1} << 28;

absl::Status NGrams::AppendRow(absl::Span<const std::string> words,
                               std::vector<std::string>* grams) const {
  const auto length = static_cast<int64_t>(words.size());
  const size_t before = grams->size();
  const size_t part_bytes =
      sizeof(absl::string_view) + std::max(left.size(), right.size()) + separator.size();
  for (const int64_t width : widths) {
    const auto parts = static_cast<double>(CountOf(length, width)) * static_cast<double>(width);
    if (length < width && parts * static_cast<double>(part_bytes) > kMaxNGramBytes) {
      return InvalidArgument("Pad width could lead to integer overflow, got pad_width = ",
                             PadOf(width));
    }
    Append(words, width, grams);
  }
  if (!keep_short || grams->size() != before || length == 0) return absl::OkStatus();
  if (pad < 0) {
    return InvalidArgument(
        "Pad width should be >= 0 when preserve_short_sequences is True and ngram_widths are not "
        "provided, got ",
        pad);
  }
  if (pad > kMaxNGramBytes / static_cast<int64_t>(2 * part_bytes)) {
    return InvalidArgument("Pad width is too large: ", pad);
  }
  Append(words, length + 2 * pad, grams);
  return absl::OkStatus();
}

absl::Status CheckSplits(const Tensor& splits, int64_t size) {
  const int64_t count = splits.num_elements();
  if (count == 0) return absl::OkStatus();
  if (splits.IntAt(0) != 0) {
    return InvalidArgument("First split value must be 0, got ", splits.IntAt(0));
  }
  for (int64_t i = 1; i < count; ++i) {
    ThrowIfCancelledAt(i);
    const int64_t before = splits.IntAt(i - 1), split = splits.IntAt(i);
    if (split < before || split > size) {
      return InvalidArgument("Invalid split value ", split, ", must be in [", before, ", ", size,
                             "]");
    }
  }
  if (splits.IntAt(count - 1) == size) return absl::OkStatus();
  return InvalidArgument("Last split value must be data size. Expected ", size, ", got ",
                         splits.IntAt(count - 1));
}

absl::Status MakeAllNGrams(KernelContext& c, const NGrams& n) {
  const Tensor &data = c.input(0), &splits = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckRank(data, 1, "data"));
  WEIR_RETURN_IF_ERROR(CheckRank(splits, 1, "data_splits"));
  WEIR_RETURN_IF_ERROR(CheckSplits(splits, data.num_elements()));
  WEIR_ASSIGN_OR_RETURN(Tensor * ends, c.AllocateOutput(1, splits.shape()));
  std::vector<std::string> grams;
  if (splits.num_elements() > 0) ends->SetIntAt(0, 0);
  for (int64_t i = 1; i < splits.num_elements(); ++i) {
    ThrowIfCancelledAt(i);
    const int64_t begin = splits.IntAt(i - 1);
    const auto row = data.flat<std::string>().subspan(begin, splits.IntAt(i) - begin);
    // A row without words has no n-grams of padding alone either.
    if (data.num_elements() > 0) WEIR_RETURN_IF_ERROR(n.AppendRow(row, &grams));
    ends->SetIntAt(i, static_cast<int64_t>(grams.size()));
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out,
                        c.AllocateOutput(0, Shape({static_cast<int64_t>(grams.size())})));
  std::move(grams.begin(), grams.end(), out->data<std::string>());
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeNGrams(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int64_t pad_width, NarrowAttr(init.node, "pad_width"));
  const NGrams n = {.separator = init.attr<std::string>("separator"),
                    .left = init.attr<std::string>("left_pad"),
                    .right = init.attr<std::string>("right_pad"),
                    .widths = init.attr<std::vector<int64_t>>("ngram_widths"),
                    .pad = pad_width,
                    .keep_short = init.attr<bool>("preserve_short_sequences")};
  for (const int64_t width : n.widths) {
    if (width <= 0) return InvalidArgument("ngram_widths must contain positive values");
    if (width > INT32_MAX) return InvalidArgument("ngram_widths has ", width);
  }
  return Kernel([n](KernelContext& c) -> absl::Status { return MakeAllNGrams(c, n); });
}

}  // namespace

void AddStringSplitKernels(KernelRegistry* r) {
  r->Add("StringSplit", kCpu, MakeSplit);
  r->Add("StringSplitV2", kCpu, MakeSplitV2);
  r->Add("Substr", kCpu, MakeSubstr);
  r->Add("StringNGrams", kCpu, MakeNGrams);
}

}  // namespace weir
