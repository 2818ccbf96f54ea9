#ifndef WEIR_TOOLS_RUN_FEEDS_H_
#define WEIR_TOOLS_RUN_FEEDS_H_

#include <ostream>
#include <string>
#include <vector>

#include "weir/tools/graph/model.h"
#include "weir/tools/graph/signature.h"
#include "weir/tools/lib/value_file.h"

// The values that a command line feeds.
namespace weir::tools {

// The value of a fed tensor: whole, or some rows of it at a time.
class FeedSource {
 public:
  // Reads the value of a text (ParseValue). With `by_rows`, the files of a batch are read when
  // their rows are asked for.
  static absl::StatusOr<FeedSource> Read(const std::string& text, ValueSpec spec, bool by_rows);
  // A value without rows.
  static FeedSource Of(Tensor value);

  // The number of rows, in files; -1 for a value of the command line, which has none.
  int64_t rows() const { return rows_; }
  // The whole value; not with `by_rows`.
  const Tensor& whole() const { return value_; }
  // Returns rows [begin, end), or the whole value if it is one row or has none.
  absl::StatusOr<Tensor> Rows(int64_t begin, int64_t end) const;

 private:
  Tensor value_;
  int64_t rows_ = -1;
  std::vector<std::string> files_;  // of the rows; empty: they are in value_
  bool as_bytes_ = false;
  ValueSpec spec_;
};

// Returns the number of rows of a step's feeds. INVALID_ARGUMENT if they differ (one row is fed
// with each batch), or none has rows.
absl::StatusOr<int64_t> CountRows(const std::vector<FeedSource>& feeds);

// How feeds are named and read.
struct FeedOptions {
  std::vector<std::string> feeds;  // "x:0=x.npy", or a file of named values
  Rounding rounding = Rounding::kNever;
  PixelRange pixels;
  bool by_rows = false;
};

struct NamedFeed {
  Output tensor;
  FeedSource source;
};

// Reads all feeds. Their names are those of the signature's inputs, if there is one (it may be
// null), or of the graph's tensors. A file without a name feeds every input of the signature, or
// every placeholder, whose name one of its values has; values for none of them are named in a line
// on `err`. NOT_FOUND for unknown names; INVALID_ARGUMENT for a tensor that is fed twice, and if no
// value of a file is fed; the errors of ParseValue.
absl::StatusOr<std::vector<NamedFeed>> ReadFeeds(const Model& model,
                                                 const ChosenSignature* signature,
                                                 const FeedOptions& options, std::ostream& err);

// Parses "BLACK,WHITE", the option --pixels; "0,1" if it is empty.
absl::StatusOr<PixelRange> ParsePixelRange(const std::string& text);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_RUN_FEEDS_H_
