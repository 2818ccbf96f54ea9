#include "weir/tools/run/feeds.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace weir::tools {

FeedSource FeedSource::Of(Tensor value) {
  FeedSource source;
  source.value_ = std::move(value);
  return source;
}

absl::StatusOr<FeedSource> FeedSource::Read(const std::string& text, ValueSpec spec, bool by_rows) {
  FeedSource source;
  if (by_rows) {
    WEIR_ASSIGN_OR_RETURN(source.files_, BatchFiles(text));
  }
  source.as_bytes_ = absl::StartsWith(text, "@");
  if (!source.files_.empty()) {
    source.rows_ = static_cast<int64_t>(source.files_.size());
  } else {
    WEIR_ASSIGN_OR_RETURN(source.value_, ParseValue(text, spec));
    if (IsValueFile(text) && source.value_.rank() > 0) source.rows_ = source.value_.dim(0);
  }
  source.spec_ = std::move(spec);
  return source;
}

absl::StatusOr<Tensor> FeedSource::Rows(int64_t begin, int64_t end) const {
  if (rows_ == 1) {
    begin = 0;
    end = 1;
  }
  if (!files_.empty())
    return ReadBatch({files_.begin() + begin, files_.begin() + end}, as_bytes_, spec_);
  return rows_ < 0 ? value_ : value_.Slice(begin, end);
}

absl::StatusOr<int64_t> CountRows(const std::vector<FeedSource>& feeds) {
  int64_t rows = -1;
  for (const FeedSource& feed : feeds) {
    if (feed.rows() < 0 || (feed.rows() == 1 && rows >= 0)) continue;
    if (rows >= 0 && rows != 1 && feed.rows() != rows) {
      return InvalidArgument("--batch: one feed has ", rows, " rows, and another ", feed.rows(),
                             "; those from files must have as many");
    }
    rows = feed.rows();
  }
  if (rows >= 0) return rows;
  return InvalidArgument("--batch: no feed has rows; feed a folder or a file of rows");
}

namespace {

constexpr absl::string_view kFirstOutput = ":0";

// Reads the feeds of one command.
class FeedReader {
 public:
  FeedReader(const Model& model, const ChosenSignature* signature, const FeedOptions& options,
             std::ostream& err)
      : model_(model), signature_(signature), options_(options), err_(err) {}

  absl::StatusOr<std::vector<NamedFeed>> ReadAll() {
    for (const std::string& feed : options_.feeds) {
      const std::pair<std::string, std::string> parts =
          absl::StrSplit(feed, absl::MaxSplits('=', 1));
      if (!parts.second.empty()) {
        WEIR_RETURN_IF_ERROR(Add(parts.first, parts.second));
      } else if (Files().Exists(feed) && !Files().IsDirectory(feed)) {
        WEIR_RETURN_IF_ERROR(AddAllOf(feed));
      } else {
        return InvalidArgument("--feed ", feed,
                               ": expected TENSOR=VALUE, such as x:0=x.npy, or a file of named "
                               "values, such as inputs.npz");
      }
    }
    return std::move(feeds_);
  }

 private:
  // Returns what is known of the tensor's shape: by the graph and by signatures.
  Shape ShapeOf(const Output& tensor) const {
    const Shape& shape = tensor.node->output_shape(tensor.index);
    const auto declared =
        model_.meta.declared.find(absl::StrCat(tensor.node->name(), ":", tensor.index));
    if (declared == model_.meta.declared.end()) return shape;
    const absl::StatusOr<Shape> merged = shape.MergeWith(declared->second.shape);
    return merged.ok() ? *merged : shape;
  }

  absl::Status Add(const std::string& name, const std::string& text) {
    WEIR_ASSIGN_OR_RETURN(const Output tensor, FindTensor(model_, signature_, "input", name));
    if (!fed_.insert({tensor.node, tensor.index}).second)
      return InvalidArgument("--feed ", name, ": the tensor is fed twice");
    const absl::StatusOr<FeedSource> source =
        FeedSource::Read(text,
                         {.dtype = BaseType(tensor.dtype()),
                          .shape = ShapeOf(tensor),
                          .name = std::string(absl::StripSuffix(name, kFirstOutput)),
                          .rounding = options_.rounding,
                          .pixels = options_.pixels},
                         options_.by_rows);
    if (!source.ok()) {
      return Annotate(source.status(),
                      absl::StrCat("--feed ", name, " (", DataTypeName(BaseType(tensor.dtype())),
                                   ShapeOf(tensor).ToString(), ")"));
    }
    feeds_.push_back({tensor, *source});
    return absl::OkStatus();
  }

  // The names that an unnamed file's values may have.
  std::vector<std::string> InputNames() const {
    std::vector<std::string> names;
    if (signature_ != nullptr) {
      for (const auto& [name, tensor] : signature_->signature.inputs) names.push_back(name);
      return names;
    }
    for (const auto& node : model_.graph->nodes()) {
      if (absl::StartsWith(node->op_name(), "Placeholder")) names.push_back(node->name());
    }
    return names;
  }

  absl::Status AddAllOf(const std::string& path) {
    const absl::StatusOr<std::vector<std::string>> values = ValueNames(path);
    if (!values.ok()) return Annotate(values.status(), "--feed");
    const std::vector<std::string> inputs = InputNames();
    std::vector<std::string> unused;
    for (const std::string& value : *values) {
      const absl::string_view name = absl::StripSuffix(value, kFirstOutput);
      const auto input = std::find_if(inputs.begin(), inputs.end(), [&](const std::string& known) {
        return absl::StripSuffix(known, kFirstOutput) == name;
      });
      if (input == inputs.end()) {
        unused.push_back(value);
      } else {
        WEIR_RETURN_IF_ERROR(Add(*input, absl::StrCat(path, ":", value)));
      }
    }
    if (unused.size() == values->size()) {
      return InvalidArgument("--feed ", path, ": none of its values is named as an input; values: ",
                             absl::StrJoin(unused, ", "),
                             "; inputs: ", inputs.empty() ? "none" : absl::StrJoin(inputs, ", "));
    }
    if (!unused.empty()) {
      err_ << "weir: " << path
           << ": values that no input is named after are not fed: " << absl::StrJoin(unused, ", ")
           << "\n";
    }
    return absl::OkStatus();
  }

  const Model& model_;
  const ChosenSignature* const signature_;
  const FeedOptions& options_;
  std::ostream& err_;
  std::vector<NamedFeed> feeds_;
  std::set<std::pair<const Node*, int>> fed_;
};

}  // namespace

absl::StatusOr<std::vector<NamedFeed>> ReadFeeds(const Model& model,
                                                 const ChosenSignature* signature,
                                                 const FeedOptions& options, std::ostream& err) {
  return FeedReader(model, signature, options, err).ReadAll();
}

absl::StatusOr<PixelRange> ParsePixelRange(const std::string& text) {
  PixelRange range;
  if (text.empty()) return range;
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  if (parts.size() != 2 || !absl::SimpleAtof(parts[0], &range.black) ||
      !absl::SimpleAtof(parts[1], &range.white)) {
    return InvalidArgument("--pixels ", text, ": expected BLACK,WHITE, such as 0,255 or -1,1");
  }
  return range;
}

}  // namespace weir::tools
