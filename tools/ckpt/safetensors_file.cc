#include "weir/tools/ckpt/safetensors_file.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "weir/core/io/coding.h"
#include "weir/core/io/file.h"
#include "weir/tools/ckpt/array_reader.h"

namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;
// For what is read: inserting into the other takes time proportional to the number of keys.
using SortedJson = nlohmann::json;

constexpr char kMetadataKey[] = "__metadata__";
constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as in the reference implementation
constexpr size_t kAlignment = 8;

struct TypeName {
  absl::string_view name;
  DataType dtype;
};
constexpr TypeName kTypes[] = {{"BOOL", DT_BOOL},
                               {"U8", DT_UINT8},
                               {"I8", DT_INT8},
                               {"F8_E5M2", DT_FLOAT8_E5M2},
                               {"F8_E4M3", DT_FLOAT8_E4M3FN},
                               {"I16", DT_INT16},
                               {"U16", DT_UINT16},
                               {"F16", DT_HALF},
                               {"BF16", DT_BFLOAT16},
                               {"I32", DT_INT32},
                               {"U32", DT_UINT32},
                               {"F32", DT_FLOAT},
                               {"F64", DT_DOUBLE},
                               {"I64", DT_INT64},
                               {"U64", DT_UINT64},
                               {"C64", DT_COMPLEX64}};

struct Range {
  uint64_t begin = 0, end = 0;
};

class SafetensorsReader final : public ArrayReader {
 public:
  using ArrayReader::ArrayReader;

  absl::Status Open(Metadata* metadata) {
    WEIR_ASSIGN_OR_RETURN(file_, Files().Open(path()));
    std::string length(kLengthBytes, '\0');
    WEIR_RETURN_IF_ERROR(file_->Read(0, length.size(), length.data()));
    const uint64_t size = LoadFixed64(length.data());
    if (size > kMaxHeaderBytes || size > file_->size() - kLengthBytes) {
      return Bad("its header would have ", size, " bytes, but the file has ", file_->size());
    }
    std::string text(size, '\0');
    WEIR_RETURN_IF_ERROR(file_->Read(kLengthBytes, size, text.data()));
    data_ = kLengthBytes + size;
    WEIR_RETURN_IF_ERROR(ParseHeader(text, metadata));
    return CheckRanges();
  }

  absl::StatusOr<std::unique_ptr<TensorStream>> Stream(absl::string_view name) override {
    WEIR_RETURN_IF_ERROR(Find(name).status());
    const Range range = ranges_.find(name)->second;
    return FileStream::Open(*file_, data_ + range.begin, range.end - range.begin);
  }

 private:
  absl::Status ParseHeader(const std::string& text, Metadata* metadata) {
    // The parser itself would drop the first of two equal keys.
    std::set<std::string> keys;
    bool is_twice = false;
    const auto check = [&](int depth, SortedJson::parse_event_t event, SortedJson& value) {
      if (event == SortedJson::parse_event_t::key && depth == 1)
        is_twice |= !keys.insert(value.get<std::string>()).second;
      return true;
    };
    const SortedJson header = SortedJson::parse(text, check, /*allow_exceptions=*/false);
    if (!header.is_object()) return Bad("its header is not a JSON object");
    if (is_twice) return Bad("its header has two tensors of one name");
    for (const auto& [name, entry] : header.items()) {
      WEIR_RETURN_IF_ERROR(name == kMetadataKey ? ParseMetadata(entry, metadata)
                                                : ParseTensor(name, entry));
    }
    return absl::OkStatus();
  }

  absl::Status ParseMetadata(const SortedJson& entry, Metadata* metadata) {
    if (!entry.is_object()) return Bad("its metadata are not a JSON object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) return Bad("its metadata '", key, "' are not a text");
      metadata->push_back({key, "string", value.dump()});
    }
    return absl::OkStatus();
  }

  absl::Status ParseTensor(const std::string& name, const SortedJson& entry) {
    const auto is_numbers = [](const SortedJson& list) {
      return list.is_array() && std::all_of(list.begin(), list.end(), [](const SortedJson& n) {
               return n.is_number_unsigned() && n.get<uint64_t>() <= INT64_MAX;
             });
    };
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
        !entry.contains("shape") || !is_numbers(entry["shape"]) ||
        !entry.contains("data_offsets") || !is_numbers(entry["data_offsets"]) ||
        entry["data_offsets"].size() != 2) {
      return Bad("the entry of tensor '", name, "' lacks dtype, shape or data_offsets");
    }
    const std::string type = entry["dtype"].get<std::string>();
    const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                           [&](const TypeName& t) { return t.name == type; });
    if (found == std::end(kTypes))
      return Unimplemented(path(), ": tensor '", name, "' has the unknown type ", type);
    const absl::StatusOr<Shape> shape = Shape::Make(entry["shape"].get<std::vector<int64_t>>());
    if (!shape.ok()) return Bad("tensor '", name, "': ", shape.status().message());
    const Range range{entry["data_offsets"][0].get<uint64_t>(),
                      entry["data_offsets"][1].get<uint64_t>()};
    const uint64_t width = ElementSize(found->dtype);
    if (range.begin > range.end || (range.end - range.begin) % width != 0 ||
        (range.end - range.begin) / width != static_cast<uint64_t>(shape->num_elements())) {
      return Bad("tensor '", name, "' of type ", type, " and shape ", shape->ToString(),
                 " has bytes ", range.begin, " to ", range.end);
    }
    ranges_[name] = range;
    return Add(name, found->dtype, *shape);
  }

  absl::Status CheckRanges() const {
    std::vector<std::pair<uint64_t, uint64_t>> sorted;
    for (const auto& [name, range] : ranges_) sorted.emplace_back(range.begin, range.end);
    std::sort(sorted.begin(), sorted.end());
    uint64_t end = 0;
    for (const auto& [begin, next] : sorted) {
      if (begin != end)
        return Bad("its tensors overlap or leave a gap at byte ", end, " of the data");
      end = next;
    }
    const uint64_t size = file_->size() - data_;
    if (end == size) return absl::OkStatus();
    return Bad("its tensors have ", end, " bytes, but ", size, " bytes follow the header");
  }

  std::unique_ptr<ReadableFile> file_;
  uint64_t data_ = 0;  // the offset of the elements in the file
  std::map<std::string, Range, std::less<>> ranges_;
};

std::string TypeNameOf(DataType dtype) {
  const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                         [&](const TypeName& t) { return t.dtype == dtype; });
  return found == std::end(kTypes) ? "" : std::string(found->name);
}

std::string SerializeHeader(const std::vector<const OutputTensor*>& tensors,
                            const Metadata& metadata) {
  Json header = Json::object();
  for (const MetadataEntry& entry : metadata) {
    const Json value = Json::parse(entry.json);
    header[kMetadataKey][entry.key] = value.is_string() ? value.get<std::string>() : entry.json;
  }
  int64_t offset = 0;
  for (const OutputTensor* tensor : tensors) {
    const int64_t end = offset + BytesOf(tensor->dtype, tensor->shape);
    const absl::Span<const int64_t> dims = tensor->shape.dims();
    header[tensor->name] = {{"dtype", TypeNameOf(tensor->dtype)},
                            {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                            {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenSafetensors(const std::string& path,
                                                                  Metadata* metadata) {
  auto reader = std::make_unique<SafetensorsReader>(path);
  WEIR_RETURN_IF_ERROR(reader->Open(metadata));
  return reader;
}

bool SafetensorsHolds(DataType dtype) { return !TypeNameOf(dtype).empty(); }

absl::Status CheckSafetensor(const OutputTensor& tensor) {
  const std::string text = Json(tensor.name).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (tensor.name != kMetadataKey && Json::parse(text) == tensor.name) return absl::OkStatus();
  return InvalidArgument("tensor name '", tensor.name,
                         "' is reserved or not UTF-8; rename the tensor with --rename or exclude "
                         "it with --drop");
}

absl::Status WriteSafetensors(const std::string& path, const Output& output,
                              ProgressBar& progress) {
  // Larger elements first: so all are aligned.
  std::vector<const OutputTensor*> tensors;
  for (const OutputTensor& tensor : output.tensors) tensors.push_back(&tensor);
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto* a, const auto* b) {
    return ElementSize(a->dtype) > ElementSize(b->dtype);
  });
  const std::string header = SerializeHeader(tensors, output.metadata);
  if (header.size() > kMaxHeaderBytes)
    return InvalidArgument(path, ": the names of the tensors need more than 100 MB");
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<WriteLock> lock, WriteLock::Acquire(path));
  return WriteFileAtomically(path, [&](BufferedFile* file) -> absl::Status {
    std::string length;
    PutFixed64(&length, header.size());
    WEIR_RETURN_IF_ERROR(file->Append(length));
    WEIR_RETURN_IF_ERROR(file->Append(header));
    for (const OutputTensor* tensor : tensors) {
      WEIR_RETURN_IF_ERROR(
          CopyElements(*tensor, [&](absl::string_view piece) { return file->Append(piece); }));
      progress.Add(1);
    }
    return absl::OkStatus();
  });
}

}  // namespace weir::tools
