#include "weir/tools/ckpt/gguf_metadata.h"

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "weir/core/io/coding.h"

namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 4;  // of arrays
constexpr uint32_t kString = 8, kArray = 9;

// Types by their codes; arrays and strings have no fixed size.
struct ValueType {
  const char* name;
  uint64_t size;
};
constexpr ValueType kTypes[] = {{"uint8", 1},  {"int8", 1},  {"uint16", 2},  {"int16", 2},
                                {"uint32", 4}, {"int32", 4}, {"float32", 4}, {"bool", 1},
                                {"string", 0}, {"array", 0}, {"uint64", 8},  {"int64", 8},
                                {"float64", 8}};

// JSON has no infinities and NaNs.
Json FloatToJson(double x) { return std::isfinite(x) ? Json(x) : Json(absl::StrCat(x)); }

Json NumberToJson(uint32_t type, absl::string_view bytes) {
  uint64_t bits = 0;
  for (size_t i = bytes.size(); i-- > 0;) bits = bits << 8 | static_cast<uint8_t>(bytes[i]);
  switch (type) {
    case 1:
      return static_cast<int8_t>(bits);
    case 3:
      return static_cast<int16_t>(bits);
    case 5:
      return static_cast<int32_t>(bits);
    case 6:
      return FloatToJson(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case 7:
      return bits != 0;
    case 11:
      return static_cast<int64_t>(bits);
    case 12:
      return FloatToJson(std::bit_cast<double>(bits));
    default:
      return bits;
  }
}

// A value, as JSON and as its bytes in the file.
class ValueReader {
 public:
  explicit ValueReader(GgufCursor* cursor) : cursor_(*cursor) {}

  Json Read(uint32_t type, int depth) {
    if (type >= std::size(kTypes)) return Fail(absl::StrCat("unknown type ", type));
    type_ = type_.empty() ? kTypes[type].name : type_;
    if (type == kString) {
      std::string text = cursor_.Text();
      PutGgufText(&bytes_, text);
      return text;
    }
    if (type != kArray) {
      const std::string number = cursor_.Bytes(kTypes[type].size);
      bytes_ += number;
      return NumberToJson(type, number);
    }
    return depth == kMaxDepth ? Fail("arrays are nested too deep") : ReadArray(depth);
  }

  const std::string& bytes() const { return bytes_; }
  const std::string& type() const { return type_; }

 private:
  Json ReadArray(int depth) {
    const uint32_t type = cursor_.Fixed32();
    const uint64_t count = cursor_.Fixed64();
    PutFixed32(&bytes_, type);
    PutFixed64(&bytes_, count);
    if (type >= std::size(kTypes)) return Fail(absl::StrCat("unknown type ", type));
    if (depth == 0) type_ = absl::StrCat("array of ", kTypes[type].name);
    // Every element has at least one byte.
    if (count > cursor_.left()) return Fail(absl::StrCat("an array of ", count, " elements"));
    Json array = Json::array();
    for (uint64_t i = 0; i < count && cursor_.status().ok(); ++i)
      array.push_back(Read(type, depth + 1));
    return array;
  }

  Json Fail(const std::string& why) {
    cursor_.Fail(DataLoss("its metadata are malformed: ", why));
    return nullptr;
  }

  GgufCursor& cursor_;
  std::string bytes_, type_;
};

}  // namespace

void GgufCursor::Fail(const absl::Status& status) {
  if (status_.ok()) status_ = Annotate(status, file_.path());
}

std::string GgufCursor::Bytes(uint64_t size) {
  if (!status_.ok()) return "";
  if (size > left()) {
    Fail(DataLoss("the file is truncated: ", size, " bytes are needed at offset ", position_,
                  ", but it has ", file_.size()));
    return "";
  }
  std::string bytes(size, '\0');
  Fail(bytes_.Read(size, bytes.data()));
  position_ += size;
  return bytes;
}

uint32_t GgufCursor::Fixed32() {
  const std::string bytes = Bytes(sizeof(uint32_t));
  return bytes.empty() ? 0 : LoadFixed32(bytes.data());
}

uint64_t GgufCursor::Fixed64() {
  const std::string bytes = Bytes(sizeof(uint64_t));
  return bytes.empty() ? 0 : LoadFixed64(bytes.data());
}

std::string GgufCursor::Text() { return Bytes(Fixed64()); }

void PutGgufText(std::string* out, absl::string_view text) {
  PutFixed64(out, text.size());
  out->append(text.data(), text.size());
}

MetadataEntry ReadGgufMetadata(GgufCursor* cursor) {
  MetadataEntry entry;
  entry.key = cursor->Text();
  const uint32_t type = cursor->Fixed32();
  ValueReader reader(cursor);
  const Json value = reader.Read(type, 0);
  PutFixed32(&entry.gguf, type);
  entry.gguf += reader.bytes();
  entry.type = reader.type();
  entry.json = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return entry;
}

std::string SerializeGgufMetadata(const MetadataEntry& entry) {
  std::string out;
  PutGgufText(&out, entry.key);
  if (!entry.gguf.empty()) return out + entry.gguf;
  const Json value = Json::parse(entry.json);
  PutFixed32(&out, kString);
  PutGgufText(&out, value.is_string() ? value.get<std::string>() : entry.json);
  return out;
}

}  // namespace weir::tools
