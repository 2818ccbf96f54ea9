#include <re2/re2.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weir/core/graph/graph.h"
#include "weir/core/io/file.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"
#include "weir/tools/ckpt/ckpt.h"
#include "weir/tools/lib/rename_rules.h"
#include "weir/tools/lib/text_table.h"
#include "weir/tools/lib/value_file.h"

// weir ckpt convert: converts a checkpoint or a folder of NumPy files to another format, and
// renames tensors or changes their types.
namespace weir::tools {

namespace {

struct ConvertOptions {
  std::string in, out, format = "v2", keep, drop, dtype;
  std::vector<std::string> renames;
};

// ---- input

// A source of named tensors that are read one by one.
class Source {
 public:
  virtual ~Source() = default;
  virtual absl::StatusOr<std::vector<std::string>> Names() = 0;
  virtual absl::StatusOr<Tensor> Read(const std::string& name) = 0;
};

class CheckpointSource final : public Source {
 public:
  explicit CheckpointSource(std::unique_ptr<CheckpointReader> reader)
      : reader_(std::move(reader)) {}
  absl::StatusOr<std::vector<std::string>> Names() override {
    WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> tensors, reader_->List());
    std::vector<std::string> names;
    for (const CheckpointTensor& tensor : tensors) names.push_back(tensor.name);
    return names;
  }
  absl::StatusOr<Tensor> Read(const std::string& name) override { return reader_->Read(name); }

 private:
  const std::unique_ptr<CheckpointReader> reader_;
};

// A folder of array files; "hidden/w.npy" is the tensor hidden/w. Symbolic links to folders are not
// followed, to avoid cycles.
class FolderSource final : public Source {
 public:
  explicit FolderSource(std::string folder) : folder_(std::move(folder)) {}
  absl::StatusOr<std::vector<std::string>> Names() override {
    std::error_code error;
    auto file = std::filesystem::recursive_directory_iterator(folder_, error);
    for (; !error && file != std::filesystem::recursive_directory_iterator();
         file.increment(error)) {
      if (file->is_regular_file(error)) WEIR_RETURN_IF_ERROR(AddFile(file->path()));
    }
    if (error) return Internal("cannot list the files of ", folder_, ": ", error.message());
    std::vector<std::string> names;
    for (const auto& [name, path] : files_) names.push_back(name);
    return names;
  }
  absl::StatusOr<Tensor> Read(const std::string& name) override {
    return ReadValueFile(files_.at(name));
  }

 private:
  absl::Status AddFile(const std::filesystem::path& path) {
    const std::string below = path.lexically_relative(folder_).generic_string();
    for (const absl::string_view ending : {".bf16.npy", ".npy", ".json"}) {
      if (!absl::EndsWith(below, ending)) continue;
      const std::string name = below.substr(0, below.size() - ending.size());
      const auto [at, is_new] = files_.emplace(name, path.string());
      if (!is_new) {
        return InvalidArgument("two files for tensor '", name, "': ", at->second, " and ",
                               path.string(), "; remove one of them");
      }
      break;
    }
    return absl::OkStatus();
  }

  const std::string folder_;
  std::map<std::string, std::string> files_;  // by name
};

absl::StatusOr<std::unique_ptr<Source>> OpenSource(const ConvertOptions& options) {
  WEIR_RETURN_IF_ERROR(CheckNotOverwriting(options.out, options.in));
  const absl::StatusOr<std::string> prefix = CheckpointPrefix(options.in);
  if (!prefix.ok())
    return std::make_unique<FolderSource>(options.in);  // a folder without a checkpoint
  WEIR_RETURN_IF_ERROR(CheckNotOverwriting(options.out, *prefix));
  WEIR_ASSIGN_OR_RETURN(auto reader, CheckpointReader::Open(*prefix));
  return std::make_unique<CheckpointSource>(std::move(reader));
}

// ---- output

class Sink {
 public:
  virtual ~Sink() = default;
  virtual absl::Status Add(const std::string& name, Tensor tensor) = 0;
  virtual absl::Status Finish() { return absl::OkStatus(); }
};

class BundleSink final : public Sink {
 public:
  explicit BundleSink(std::unique_ptr<BundleWriter> writer) : writer_(std::move(writer)) {}
  absl::Status Add(const std::string& name, Tensor tensor) override {
    return writer_->Add(name, tensor);
  }
  absl::Status Finish() override { return writer_->Finish(); }

 private:
  const std::unique_ptr<BundleWriter> writer_;
};

// Collects all tensors, because the V1 format is written in one piece.
class V1Sink final : public Sink {
 public:
  explicit V1Sink(std::string path) : path_(std::move(path)) {}
  absl::Status Add(const std::string& name, Tensor tensor) override {
    const Shape shape = tensor.shape();
    slices_.push_back({name, shape, TensorSlice::Full(shape.rank()), std::move(tensor)});
    return absl::OkStatus();
  }
  absl::Status Finish() override { return WriteCheckpointV1(path_, slices_); }

 private:
  const std::string path_;
  std::vector<SavedSlice> slices_;
};

class FolderSink final : public Sink {
 public:
  explicit FolderSink(std::string folder) : folder_(std::move(folder)) {}
  absl::Status Add(const std::string& name, Tensor tensor) override {
    // Names are untrusted and must not escape the folder.
    std::string folder = folder_;
    WEIR_RETURN_IF_ERROR(MakeFolder(folder));
    const std::vector<std::string> parts = absl::StrSplit(name, '/');
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].empty() || parts[i] == "." || parts[i] == ".." ||
          absl::StrContains(parts[i], '\0'))
        return InvalidArgument("tensor name '", name,
                               "' is not a valid file name; rename the tensor with --rename "
                               "or exclude it with --drop");
      if (i + 1 == parts.size()) break;
      absl::StrAppend(&folder, "/", parts[i]);
      WEIR_RETURN_IF_ERROR(MakeFolder(folder));
    }
    const char* const ending = tensor.dtype() == DT_STRING     ? ".json"
                               : tensor.dtype() == DT_BFLOAT16 ? ".bf16.npy"
                                                               : ".npy";
    return WriteValueFile(absl::StrCat(folder, "/", parts.back(), ending), tensor);
  }

 private:
  static absl::Status MakeFolder(const std::string& path) {
    return Files().IsDirectory(path) ? absl::OkStatus() : Files().MakeDirectory(path);
  }

  const std::string folder_;
};

absl::StatusOr<std::unique_ptr<Sink>> OpenSink(const ConvertOptions& options) {
  if (options.format == "npy") return std::make_unique<FolderSink>(options.out);
  if (options.format == "v1") return std::make_unique<V1Sink>(options.out);
  if (options.format != "v2")
    return InvalidArgument("unknown format '", options.format, "'; valid formats: v2, v1, npy");
  WEIR_ASSIGN_OR_RETURN(auto writer, BundleWriter::Create(options.out));
  return std::make_unique<BundleSink>(std::move(writer));
}

// ---- names and types

absl::StatusOr<std::unique_ptr<RE2>> Pattern(const std::string& text) {
  RE2::Options quiet;
  quiet.set_log_errors(false);
  auto pattern = std::make_unique<RE2>(text, quiet);
  if (!pattern->ok())
    return InvalidArgument("invalid regular expression '", text, "': ", pattern->error());
  return pattern;
}

// Returns a map from new to old names, sorted by the new name as in a checkpoint.
absl::StatusOr<std::map<std::string, std::string>> ChooseNames(
    const ConvertOptions& options, const std::vector<std::string>& names) {
  std::unique_ptr<RE2> keep, drop;
  if (!options.keep.empty()) {
    WEIR_ASSIGN_OR_RETURN(keep, Pattern(options.keep));
  }
  if (!options.drop.empty()) {
    WEIR_ASSIGN_OR_RETURN(drop, Pattern(options.drop));
  }
  WEIR_ASSIGN_OR_RETURN(const RenameRules renames, RenameRules::Parse(options.renames));
  std::map<std::string, std::string> chosen;
  for (const std::string& name : names) {
    if (keep != nullptr && !RE2::PartialMatch(name, *keep)) continue;
    if (drop != nullptr && RE2::PartialMatch(name, *drop)) continue;
    const std::string renamed = renames.Apply(name);
    const auto [at, is_new] = chosen.emplace(renamed, name);
    if (!is_new) {
      return InvalidArgument("tensors '", at->second, "' and '", name, "' would both be named '",
                             renamed, "'; change --rename or --drop one of them");
    }
  }
  if (chosen.empty()) return NotFound("--keep and --drop exclude all ", names.size(), " tensors");
  return chosen;
}

absl::StatusOr<Tensor> AsType(Tensor tensor, DataType dtype) {
  if (dtype == DT_INVALID || !IsFloating(tensor.dtype()) || tensor.dtype() == dtype) return tensor;
  Graph g;
  const Output x = Placeholder(g, tensor.dtype()), y = Cast(x, dtype);
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g));
  WEIR_ASSIGN_OR_RETURN(Tensors cast, session.Run({{x, tensor}}, {y}));
  return std::move(cast[0]);
}

absl::Status Convert(const ConvertOptions& options, Console& console) {
  DataType dtype = DT_INVALID;
  if (!options.dtype.empty()) {
    dtype = DataTypeFromName(options.dtype);
    if (!IsFloating(dtype) || IsRef(dtype))
      return InvalidArgument("--dtype ", options.dtype,
                             ": expected float, double, half or bfloat16");
  }
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<Source> source, OpenSource(options));
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> names, source->Names());
  WEIR_ASSIGN_OR_RETURN(const auto chosen, ChooseNames(options, names));
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<Sink> sink, OpenSink(options));
  int64_t bytes = 0;
  {
    Progress progress(console, chosen.size());
    for (const auto& [name, old] : chosen) {
      WEIR_ASSIGN_OR_RETURN(Tensor tensor, source->Read(old));
      WEIR_ASSIGN_OR_RETURN(tensor, AsType(std::move(tensor), dtype));
      progress.Add(tensor);
      WEIR_RETURN_IF_ERROR(sink->Add(name, std::move(tensor)));
    }
    WEIR_RETURN_IF_ERROR(sink->Finish());
    bytes = progress.bytes();
  }
  console.out << options.out << ": " << chosen.size() << " tensors, " << HumanBytes(bytes);
  if (chosen.size() < names.size())
    console.out << "; " << names.size() - chosen.size() << " excluded";
  console.out << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddConvertCommand(Command& ckpt) {
  auto options = std::make_shared<ConvertOptions>();
  Command convert = ckpt.Add(
      "convert", "Convert a checkpoint or a folder of .npy files to another format",
      "  weir ckpt convert old/model.ckpt-500 new/model-500          # V1 to V2, shards to one "
      "file\n"
      "  weir ckpt convert runs/digits weights --format npy          # for numpy.load\n"
      "  weir ckpt convert weights runs/model --rename '^encoder/=bert/' --drop 'Adam|beta'\n"
      "  weir ckpt convert runs/model small/model --dtype bfloat16");
  convert
      .Argument("FROM", &options->in,
                "a checkpoint's prefix, or a folder: its newest checkpoint, or its .npy files")
      .Required();
  convert.Argument("TO", &options->out, "the prefix, file (v1) or folder (npy) to write")
      .Required();
  convert.Value("--format", &options->format, "v2 (default), v1 or npy").Word("FORMAT");
  convert.Value("--keep", &options->keep, "only tensors whose names match").Word("REGEX");
  convert.Value("--drop", &options->drop, "exclude tensors whose names match").Word("REGEX");
  convert
      .Repeated("--rename", &options->renames,
                "replace each match of REGEX in a name with TEXT; \\1 is the first group; "
                "repeatable")
      .Word("REGEX=TEXT");
  convert
      .Value("--dtype", &options->dtype,
             "convert floating-point tensors to this type: half, bfloat16, ...")
      .Word("TYPE");
  convert.Do([options](Console& console) { return Finish(console, Convert(*options, console)); });
}

}  // namespace weir::tools
