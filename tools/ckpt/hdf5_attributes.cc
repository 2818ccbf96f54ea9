#include "weir/tools/ckpt/hdf5_attributes.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

constexpr char kTypeMark[] = "dtype", kBfloat16[] = "bfloat16";
constexpr hsize_t kMaxTexts = 1 << 20;
constexpr size_t kMaxTextBytes = size_t{64} << 20;  // of one attribute

std::string TextOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Reads texts that are in the library's memory.
absl::StatusOr<std::vector<std::string>> ReadVariableTexts(hid_t attribute, hid_t type, hid_t space,
                                                           size_t count) {
  std::vector<char*> read(count, nullptr);
  if (H5Aread(attribute, type, read.data()) < 0) return DataLoss(LastHdf5Error());
  std::vector<std::string> texts;
  for (const char* text : read) texts.emplace_back(text == nullptr ? "" : text);
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, read.data());
  return texts;
}

absl::StatusOr<std::vector<std::string>> ReadFixedTexts(hid_t attribute, hid_t type, size_t count) {
  const size_t width = H5Tget_size(type);
  if (width == 0 || width > kMaxTextBytes / std::max<size_t>(count, 1))
    return DataLoss("its texts would have ", width, " bytes each");
  std::string read(width * count, '\0');
  if (H5Aread(attribute, type, read.data()) < 0) return DataLoss(LastHdf5Error());
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    std::string text = read.substr(i * width, width);
    text.resize(std::min(text.find('\0'), text.size()));
    if (H5Tget_strpad(type) == H5T_STR_SPACEPAD) text.resize(text.find_last_not_of(' ') + 1);
    texts.push_back(std::move(text));
  }
  return texts;
}

// Returns a text or a list of texts; null if the attribute is something else. An empty list has any
// type: h5py writes one as floats.
absl::StatusOr<Json> ReadAttribute(hid_t attribute) {
  const Hdf5Handle type(H5Aget_type(attribute), H5Tclose);
  const Hdf5Handle space(H5Aget_space(attribute), H5Sclose);
  if (!type.ok() || !space.ok()) return DataLoss(LastHdf5Error());
  const int rank = H5Sget_simple_extent_ndims(space.get());
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  if (count == 0 && rank == 1) return Json::array();
  if (H5Tget_class(type.get()) != H5T_STRING || rank > 1 || count < 1) return Json();
  if (static_cast<hsize_t>(count) > kMaxTexts) return DataLoss("it would have ", count, " texts");
  const absl::StatusOr<std::vector<std::string>> texts =
      H5Tis_variable_str(type.get()) > 0
          ? ReadVariableTexts(attribute, type.get(), space.get(), static_cast<size_t>(count))
          : ReadFixedTexts(attribute, type.get(), static_cast<size_t>(count));
  WEIR_RETURN_IF_ERROR(texts.status());
  return rank == 0 ? Json(texts->front()) : Json(*texts);
}

struct Attributes {
  const std::string& path;
  Metadata* metadata;
  bool* is_bfloat16;
  absl::Status status;
};

absl::Status AddAttribute(hid_t object, const char* name, const Attributes& to) {
  const Hdf5Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  if (!attribute.ok()) return DataLoss(LastHdf5Error());
  WEIR_ASSIGN_OR_RETURN(const Json value, ReadAttribute(attribute.get()));
  if (value.is_null()) return absl::OkStatus();
  if (absl::string_view(name) == kTypeMark && value == kBfloat16) {
    *to.is_bfloat16 = true;
    return absl::OkStatus();
  }
  to.metadata->push_back({to.path.empty() ? name : absl::StrCat(to.path, "@", name),
                          value.is_array() ? "array of string" : "string", TextOf(value)});
  return absl::OkStatus();
}

herr_t VisitAttribute(hid_t object, const char* name, const H5A_info_t*, void* opaque) {
  auto& to = *static_cast<Attributes*>(opaque);
  to.status = Annotate(AddAttribute(object, name, to), absl::StrCat("attribute '", name, "'"));
  return to.status.ok() ? 0 : -1;
}

// Writes a text, or a list of them.
absl::Status WriteAttribute(hid_t object, const std::string& name, const Json& value) {
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), H5T_VARIABLE);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  std::vector<std::string> texts;
  const auto add = [&](const Json& text) {
    texts.push_back(text.is_string() ? text.get<std::string>() : TextOf(text));
  };
  if (value.is_array()) {
    for (const Json& text : value) add(text);
  } else {
    add(value);
  }
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  const hsize_t count = texts.size();
  const Hdf5Handle space(
      value.is_array() ? H5Screate_simple(1, &count, nullptr) : H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Handle attribute(
      H5Acreate2(object, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose);
  if (attribute.ok() && (count == 0 || H5Awrite(attribute.get(), type.get(), pointers.data()) >= 0))
    return absl::OkStatus();
  return InvalidArgument("metadata '", name, "' cannot be an attribute: ", LastHdf5Error());
}

// Opens an object of a file, or creates it as a group.
Hdf5Handle OpenOrCreate(hid_t file, const std::string& path) {
  Hdf5Handle object(H5Oopen(file, path.c_str(), H5P_DEFAULT), H5Oclose);
  if (object.ok()) return object;
  const Hdf5Handle create(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(create.get(), 1);
  return {H5Gcreate2(file, path.c_str(), create.get(), H5P_DEFAULT, H5P_DEFAULT), H5Gclose};
}

}  // namespace

absl::Status ReadHdf5Attributes(hid_t object, const std::string& path, Metadata* metadata,
                                bool* is_bfloat16) {
  Attributes to{path, metadata, is_bfloat16, absl::OkStatus()};
  hsize_t at = 0;
  if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &at, VisitAttribute, &to) >= 0)
    return absl::OkStatus();
  const absl::Status status = to.status.ok() ? DataLoss(LastHdf5Error()) : to.status;
  return Annotate(status, absl::StrCat("object '/", path, "'"));
}

MetadataEntry EmptyHdf5Group(const std::string& path) { return {path + "@", "group", "null"}; }

absl::Status WriteHdf5Attributes(hid_t file, const Metadata& metadata) {
  for (const MetadataEntry& entry : metadata) {
    const size_t at = entry.key.rfind('@');
    const bool is_root = at == std::string::npos || at == 0;
    const std::string name = is_root ? entry.key : entry.key.substr(at + 1);
    const Hdf5Handle object = OpenOrCreate(file, is_root ? "/" : entry.key.substr(0, at));
    if (!object.ok())
      return InvalidArgument("metadata '", entry.key,
                             "' cannot be an attribute: ", LastHdf5Error());
    if (name.empty()) continue;
    WEIR_RETURN_IF_ERROR(WriteAttribute(object.get(), name, Json::parse(entry.json)));
  }
  return absl::OkStatus();
}

absl::Status MarkBfloat16(hid_t dataset) { return WriteAttribute(dataset, kTypeMark, kBfloat16); }

}  // namespace weir::tools
