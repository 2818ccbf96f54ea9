#include "weir/tools/lib/value_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "weir/core/io/file.h"
#include "weir/core/io/npy.h"
#include "weir/tools/lib/element_text.h"
#include "weir/tools/lib/json_value.h"

namespace weir::tools {

namespace {

absl::StatusOr<FileContents> ReadContents(const std::string& path) {
  std::error_code error;  // a pipe, which is opened only once, has no size
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > kMaxValueFileBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        path, ": it has ", size, " bytes, but a value has at most ", kMaxValueFileBytes));
  }
  WEIR_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  return FileContents{std::move(bytes), path};
}

absl::StatusOr<Tensor> ReadOne(const std::string& path, const std::string& member, bool as_bytes,
                               const ValueSpec& spec) {
  WEIR_ASSIGN_OR_RETURN(FileContents file, ReadContents(path));
  absl::StatusOr<Tensor> value = as_bytes ? ValueOfBytes(std::move(file.bytes), spec)
                                          : ParseContents(std::move(file), member, spec);
  if (!value.ok()) return Annotate(value.status(), path);
  return value;
}

bool IsFile(const std::string& path) { return Files().Exists(path) && !Files().IsDirectory(path); }

// Splits "FILE:MEMBER". The member, which may have colons too, is empty if there is none, or if no
// such file exists.
std::pair<std::string, std::string> SplitMember(const std::string& text) {
  if (Files().Exists(text)) return {text, ""};
  for (size_t colon = text.find(':'); colon != text.npos; colon = text.find(':', colon + 1)) {
    if (IsFile(text.substr(0, colon))) return {text.substr(0, colon), text.substr(colon + 1)};
  }
  return {text, ""};
}

absl::Status IsNoValue(const std::string& text, const ValueSpec& spec) {
  const size_t dot = text.rfind('.');
  const bool has_ending =
      dot != text.npos && dot + 1 < text.size() && absl::ascii_isalpha(text[dot + 1]);
  const bool is_path = text.find_first_of("[]{}\" ") == text.npos;
  if (is_path && (has_ending || absl::StrContains(text, '/'))) {
    return NotFound(text, ": no such file");
  }
  return InvalidArgument("the value '", text, "' is neither JSON nor the name of a file",
                         spec.dtype == DT_STRING ? "; a text is in quotes: '\"...\"'" : "");
}

bool IsJson(const std::string& text) { return nlohmann::json::accept(text); }

bool IsHidden(const std::string& path) { return absl::StartsWith(BaseName(path), "."); }

// Copies row i into a tensor of rows.
void CopyRow(const Tensor& row, int64_t i, Tensor* rows) {
  const int64_t begin = i * row.num_elements();
  if (row.dtype() == DT_STRING) {
    std::copy(row.flat<std::string>().begin(), row.flat<std::string>().end(),
              rows->data<std::string>() + begin);
  } else if (row.num_bytes() > 0) {
    std::memcpy(static_cast<char*>(rows->raw()) + i * row.num_bytes(), row.raw(), row.num_bytes());
  }
}

}  // namespace

absl::StatusOr<Tensor> ReadValueFile(const std::string& path) {
  if (!absl::EndsWith(path, ".json")) return ReadNpy(path);
  WEIR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<Tensor> tensor = ParseStringsJson(text);
  if (!tensor.ok()) return Annotate(tensor.status(), path);
  return tensor;
}

absl::Status WriteValueFile(const std::string& path, const Tensor& tensor) {
  if (!absl::EndsWith(path, ".json")) return WriteNpy(path, tensor);
  if (tensor.dtype() == DT_STRING) return WriteFileAtomically(path, FormatStringsJson(tensor));
  const absl::StatusOr<std::string> text = FormatJson(tensor);
  if (!text.ok()) return Annotate(text.status(), path);
  return WriteFileAtomically(path, *text);
}

absl::StatusOr<Tensor> ParseValue(const std::string& text, const ValueSpec& spec) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> files, BatchFiles(text));
  const bool as_bytes = absl::StartsWith(text, "@");
  if (!files.empty()) return ReadBatch(files, as_bytes, spec);
  if (as_bytes) return ReadOne(text.substr(1), "", true, spec);
  if (IsJson(text)) {
    const absl::StatusOr<Tensor> value =
        ParseJson(text, {.dtype = spec.dtype, .rounding = spec.rounding});
    if (value.ok()) return FitString(*value, spec.shape);
    return Annotate(value.status(), absl::StrCat("the value '", text, "'"));
  }
  const auto [path, member] = SplitMember(text);
  if (IsFile(path)) return ReadOne(path, member, false, spec);
  TextNumber number;  // nan and inf, which are no JSON
  WEIR_ASSIGN_OR_RETURN(Tensor scalar, Tensor::Allocate(HostAllocator(), spec.dtype, {}));
  if (ParseNumber(text, &number) && StoreNumber(number.value, spec.rounding, 0, &scalar))
    return scalar;
  return IsNoValue(text, spec);
}

bool IsValueFile(const std::string& text) {
  return !absl::StartsWith(text, "@") && !IsJson(text) && IsFile(SplitMember(text).first);
}

absl::StatusOr<std::vector<std::string>> BatchFiles(const std::string& text) {
  const std::string path(absl::StripPrefix(text, "@"));
  if (!Files().Exists(path)) {
    if (path.find_first_of("*?") == path.npos || IsJson(path)) return std::vector<std::string>();
    WEIR_ASSIGN_OR_RETURN(std::vector<std::string> files, MatchFiles(path));
    files.erase(std::remove_if(files.begin(), files.end(), IsHidden), files.end());
    if (files.empty()) return NotFound(path, ": no file matches this pattern");
    return files;
  }
  if (!Files().IsDirectory(path)) return std::vector<std::string>();
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> names, Files().List(path));
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (IsHidden(name)) continue;
    files.push_back(JoinPath(path, name));
    if (Files().IsDirectory(files.back())) {
      return InvalidArgument(path, ": it has the folder ", name,
                             " in it, and not only files; give "
                             "a pattern, such as '",
                             JoinPath(path, "*/*.png"), "'");
    }
  }
  if (files.empty()) return NotFound(path, ": the folder has no files");
  return files;
}

absl::StatusOr<Tensor> ReadBatch(const std::vector<std::string>& files, bool as_bytes,
                                 const ValueSpec& spec) {
  if (spec.shape.has_rank() && spec.shape.rank() == 0) {
    return InvalidArgument(DirectoryOf(files[0]), ": ", files.size(),
                           " files are the rows of a batch, but the tensor is a scalar");
  }
  ValueSpec row_spec = spec;
  if (spec.shape.has_rank()) row_spec.shape = spec.shape.Sub(1);
  Tensor rows;
  Shape row_shape;
  for (size_t i = 0; i < files.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const Tensor row, ReadOne(files[i], "", as_bytes, row_spec));
    if (i == 0) {
      row_shape = row.shape();
      Shape shape = row.shape();
      shape.InsertDim(0, static_cast<int64_t>(files.size()));
      WEIR_ASSIGN_OR_RETURN(rows, Tensor::Allocate(HostAllocator(), spec.dtype, shape));
    }
    if (row.shape() != row_shape) {
      return InvalidArgument("the files of a batch have values of one shape, but ", files[0],
                             " has ", row_shape.ToString(), " and ", files[i], " has ",
                             row.shape().ToString());
    }
    CopyRow(row, static_cast<int64_t>(i), &rows);
  }
  return rows;
}

absl::StatusOr<std::vector<std::string>> ValueNames(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(FileContents file, ReadContents(path));
  absl::StatusOr<std::vector<std::string>> names = NamesInContents(std::move(file));
  if (!names.ok()) return Annotate(names.status(), path);
  return names;
}

}  // namespace weir::tools
