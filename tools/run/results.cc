#include "weir/tools/run/results.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "weir/core/io/file.h"
#include "weir/core/tensor/resource_handle.h"
#include "weir/core/tensor/variant.h"
#include "weir/tools/lib/csv.h"
#include "weir/tools/lib/json_value.h"
#include "weir/tools/lib/npz.h"
#include "weir/tools/lib/value_file.h"

namespace weir::tools {

namespace {

// A format that holds named values.
using NamedValues = std::vector<std::pair<std::string, Tensor>>;
using FormatValues = absl::StatusOr<std::string> (*)(const NamedValues& values);

struct FileFormat {
  const char* ending;
  FormatValues format;  // null: the file holds one value, without its name
};
constexpr FileFormat kFormats[] = {
    {".npy", nullptr},
    {".json", nullptr},
    {".npz", SerializeNpz},
    {".csv", [](const NamedValues& values) { return FormatCsv(values, ','); }},
    {".tsv", [](const NamedValues& values) { return FormatCsv(values, '\t'); }},
    {".jsonl", FormatJsonLines},
    {".ndjson", FormatJsonLines},
};

const FileFormat* FormatOf(const std::string& file) {
  for (const FileFormat& format : kFormats) {
    if (absl::EndsWithIgnoreCase(file, format.ending)) return &format;
  }
  return nullptr;
}

absl::Status WriteNamed(const std::string& file, const NamedValues& values) {
  const FormatValues format = FormatOf(file)->format;
  if (format == nullptr) return WriteValueFile(file, values[0].second);
  const absl::StatusOr<std::string> bytes = format(values);
  if (!bytes.ok()) return Annotate(bytes.status(), file);
  return WriteFileAtomically(file, *bytes);
}

int64_t RowsOf(const Tensor& value) { return value.rank() == 0 ? 1 : value.dim(0); }

// Copies the elements of a tensor to those from `at` on of another of its type.
void CopyElements(const Tensor& from, int64_t at, Tensor* to) {
  const auto copy = [&]<class T>() {
    const auto elements = from.flat<T>();
    std::copy(elements.begin(), elements.end(), to->data<T>() + at);
  };
  if (DispatchType(from.dtype(), List<std::string, ResourceHandle, Variant>{}, copy)) return;
  if (from.num_bytes() > 0) {
    std::memcpy(static_cast<char*>(to->raw()) + at * ElementSize(from.dtype()), from.raw(),
                from.num_bytes());
  }
}

// Joins values along dimension 0.
absl::StatusOr<Tensor> JoinRows(const std::vector<const Tensor*>& parts) {
  const Tensor& first = *parts[0];
  Shape shape = first.shape();
  if (shape.rank() == 0) shape.AddDim(1);
  int64_t rows = 0;
  for (const Tensor* part : parts) {
    const bool fits = part->rank() == first.rank() &&
                      (first.rank() == 0 || part->shape().Sub(1) == first.shape().Sub(1));
    if (!fits) {
      return InvalidArgument("a batch gives ", first.Description(), ", and another ",
                             part->Description(), ", which cannot be joined");
    }
    rows += RowsOf(*part);
  }
  shape.set_dim(0, rows);
  WEIR_ASSIGN_OR_RETURN(Tensor all, Tensor::Allocate(HostAllocator(), first.dtype(), shape));
  int64_t at = 0;
  for (const Tensor* part : parts) {
    CopyElements(*part, at, &all);
    at += part->num_elements();
  }
  return all;
}

}  // namespace

absl::Status CheckResultFiles(const std::vector<ResultTarget>& targets) {
  std::map<std::string, int> uses;
  for (const auto& [label, file] : targets) {
    if (file.empty()) continue;
    const FileFormat* const format = FormatOf(file);
    if (format == nullptr) {
      return InvalidArgument(file,
                             ": a result goes to a file whose name ends in .npy, .npz, .csv, "
                             ".tsv, .json or .jsonl");
    }
    if (++uses[file] > 1 && format->format == nullptr) {
      return InvalidArgument(file, ": a ", format->ending,
                             " file holds one value, but several are "
                             "to be written to it; .npz, .csv and .jsonl files hold several");
    }
  }
  return absl::OkStatus();
}

absl::Status WriteResults(const std::vector<ResultTarget>& targets, const Tensors& values,
                          Console& console) {
  std::map<std::string, NamedValues> files;
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto& [label, file] = targets[i];
    if (file.empty()) continue;
    files[file].emplace_back(absl::StripSuffix(label, ":0"), values[i]);
  }
  for (const auto& [file, named] : files) WEIR_RETURN_IF_ERROR(WriteNamed(file, named));
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto& [label, file] = targets[i];
    if (!file.empty()) {
      console.out << label << ": " << values[i].Description() << " written to " << file << "\n";
    } else {
      console.out << console.Paint(Style::kBold, label) << " "
                  << console.Paint(Style::kDim, values[i].Description()) << "\n"
                  << values[i].ToString() << "\n";
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensors> ResultRows::Join(const std::vector<ResultTarget>& targets) const {
  Tensors joined;
  for (size_t i = 0; i < targets.size(); ++i) {
    std::vector<const Tensor*> parts;
    for (const Tensors& batch : batches_) parts.push_back(&batch[i]);
    absl::StatusOr<Tensor> all = JoinRows(parts);
    if (!all.ok()) return Annotate(all.status(), absl::StrCat("fetch ", targets[i].label));
    joined.push_back(*std::move(all));
  }
  return joined;
}

}  // namespace weir::tools
