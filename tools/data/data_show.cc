#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "weir/kernels/image/image_codec.h"
#include "weir/proto/example.pb.h"
#include "weir/tools/data/data.h"
#include "weir/tools/data/picture.h"
#include "weir/tools/lib/element_text.h"
#include "weir/tools/lib/text_table.h"
#include "weir/tools/lib/text_width.h"

// weir data show and head: single records.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct ShowOptions : DataOptions {
  int64_t record = 0, count = 5;
  bool no_images = false;
};

// ---- values in short

constexpr size_t kMaxListed = 64;  // values of a list that may be printed

// A string, as JSON, if it is text; otherwise what it is and its size.
std::string BytesInShort(const std::string& value) {
  constexpr size_t kMaxText = 200, kShownBytes = 8;
  const ImageFormat format = LikelyImageFormat(value);
  const auto size = absl::StrCat(WithCommas(static_cast<int64_t>(value.size())), " bytes");
  if (format != ImageFormat::kUnknown) return absl::StrCat(ImageFormatName(format), ", ", size);
  std::string json;
  AppendString(value, &json);
  if (absl::StartsWith(json, "\""))
    return absl::StrCat("\"", CutText(ShownText(value), kMaxText), "\"");
  return absl::StrCat(size, " ", absl::BytesToHexString(value.substr(0, kShownBytes)),
                      value.size() > kShownBytes ? "..." : "");
}

std::vector<std::string> ValuesInShort(const proto::Feature& feature) {
  std::vector<std::string> values;
  const auto add = [&](const auto& list, const auto& text) {
    for (int i = 0; i < list.size() && values.size() < kMaxListed; ++i)
      values.push_back(text(list[i]));
  };
  add(feature.bytes_list().value(), BytesInShort);
  add(feature.float_list().value(), [](float value) {
    std::string text;
    AppendFloat(value, &text);
    return text;
  });
  add(feature.int64_list().value(), [](int64_t value) { return absl::StrCat(value); });
  return values;
}

std::string FeatureInShort(const proto::Feature& feature) {
  const std::vector<std::string> values = ValuesInShort(feature);
  if (values.size() == 1) return values[0];
  const bool is_cut = NumValues(feature) > static_cast<int64_t>(values.size());
  return absl::StrCat("[", absl::StrJoin(values, ", "), is_cut ? ", ..." : "", "]");
}

std::string FramesInShort(const proto::FeatureList& list) {
  std::vector<std::string> frames;
  for (const proto::Feature& frame : list.feature()) {
    if (frames.size() == kMaxListed) break;
    frames.push_back(absl::StrCat("[", absl::StrJoin(ValuesInShort(frame), ", "), "]"));
  }
  return absl::StrJoin(frames, " ");
}

// The entries of a map in the order of their names.
template <class Map>
std::map<std::string, const typename Map::mapped_type*> Sorted(const Map& map) {
  std::map<std::string, const typename Map::mapped_type*> sorted;
  for (const auto& [name, value] : map) sorted[name] = &value;
  return sorted;
}

// ---- images

PictureColors ColorsOf(const Console& console) {
  if (!console.color || !console.unicode) return PictureColors::kNone;
  const char* const depth = std::getenv("COLORTERM");
  const absl::string_view known = depth == nullptr ? "" : depth;
  return known == "truecolor" || known == "24bit" ? PictureColors::kTrue : PictureColors::k256;
}

void DrawImage(const std::string& name, const std::string& bytes, Console& console) {
  constexpr int kMaxWidth = 72, kMaxLines = 24;
  const absl::StatusOr<Picture> picture = DecodePicture(bytes);
  console.out << "\n"
              << console.Paint(Style::kBold, Printable(ShownText(name), console.unicode)) << "  ";
  if (!picture.ok()) {
    console.out << console.Paint(Style::kBad, absl::CEscape(picture.status().message())) << "\n";
    return;
  }
  console.out << console.Paint(Style::kDim, absl::StrCat(ImageFormatName(LikelyImageFormat(bytes)),
                                                         " ", picture->width, "x", picture->height))
              << "\n"
              << DrawPicture(Shrink(*picture, std::min(console.width, kMaxWidth), 2 * kMaxLines),
                             ColorsOf(console));
}

void DrawImages(const proto::SequenceExample& message, Console& console) {
  constexpr int kMaxImages = 8;  // of one record
  int drawn = 0, left_out = 0;
  const auto draw = [&](const std::string& name, const proto::Feature& feature) {
    for (const std::string& value : feature.bytes_list().value()) {
      if (LikelyImageFormat(value) == ImageFormat::kUnknown) continue;
      if (drawn == kMaxImages) {
        ++left_out;
        continue;
      }
      DrawImage(name, value, console);
      ++drawn;
    }
  };
  for (const auto& [name, feature] : Sorted(message.context().feature())) draw(name, *feature);
  for (const auto& [name, list] : Sorted(message.feature_lists().feature_list()))
    for (const proto::Feature& frame : list->feature()) draw(name, frame);
  if (left_out > 0) console.out << "\n" << CountText(left_out, "more image") << "\n";
}

// ---- show

std::string PlaceText(const PlacedRecord& record) {
  return record.offset
             ? absl::StrCat(" at offset ", WithCommas(static_cast<int64_t>(*record.offset)))
             : "";
}

void ShowFeatures(const proto::SequenceExample& message, Console& console) {
  struct Row {
    std::string name, kind, values, text;
  };
  std::vector<Row> rows;
  size_t used = 0;
  const auto add = [&](Row row) {
    used = std::max(used, TextWidth(row.name) + row.kind.size() + row.values.size());
    rows.push_back(std::move(row));
  };
  for (const auto& [name, feature] : Sorted(message.context().feature())) {
    add({ShownText(name), FeatureKindName(KindOf(*feature)), WithCommas(NumValues(*feature)),
         FeatureInShort(*feature)});
  }
  for (const auto& [name, list] : Sorted(message.feature_lists().feature_list())) {
    const FeatureKind kind =
        list->feature().empty() ? FeatureKind::kNone : KindOf(list->feature(0));
    add({ShownText(name), FeatureKindName(kind), CountText(list->feature_size(), "frame"),
         FramesInShort(*list)});
  }
  TextTable table({"feature", "kind", ">values", "value"});
  constexpr size_t kGaps = 12;
  const size_t room = ColumnsLeft(used + kGaps, console);
  for (const Row& row : rows) table.Row({row.name, row.kind, row.values, CutText(row.text, room)});
  if (!rows.empty()) table.Print(console);
}

void ShowRecord(const PlacedRecord& record, const ShowOptions& options, Console& console) {
  proto::SequenceExample message;
  const RecordKind kind = ParseExampleRecord(record.bytes, &message);
  const std::string what = kind == RecordKind::kOther ? "not an Example" : RecordKindName(kind);
  console.out << console.Paint(Style::kBold, absl::StrCat("record ", record.index)) << " of "
              << record.file.path
              << console.Paint(
                     Style::kDim,
                     absl::StrCat(PlaceText(record), ": ", what, ", ",
                                  WithCommas(static_cast<int64_t>(record.bytes.size())), " bytes"))
              << "\n";
  if (kind == RecordKind::kOther) {
    console.out << Printable(BytesInShort(record.bytes), console.unicode) << "\n";
    return;
  }
  ShowFeatures(message, console);
  if (!options.no_images) DrawImages(message, console);
}

void ShowJson(const PlacedRecord& record, Console& console) {
  proto::SequenceExample message;
  const auto text = [](const std::string& value) {
    return Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  console.out << "{\"file\": " << text(record.file.path) << ", \"index\": " << record.index;
  if (record.offset) console.out << ", \"offset\": " << *record.offset;
  console.out << ", \"bytes\": " << record.bytes.size()
              << ", \"kind\": " << text(RecordKindName(ParseExampleRecord(record.bytes, &message)))
              << ", \"record\": " << JsonFromRecord(record.bytes) << "}\n";
}

absl::Status Show(const ShowOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<DataFile> files, FindFiles(options));
  WEIR_ASSIGN_OR_RETURN(const RecordOptions reading, ReadingOf(options));
  int64_t before = 0;
  bool found = false;
  WEIR_RETURN_IF_ERROR(ForEachRecord(files, reading, [&](const PlacedRecord& record) {
    found = before++ == options.record;
    if (!found) return absl::StatusOr<bool>(true);
    if (options.json) {
      ShowJson(record, console);
    } else {
      ShowRecord(record, options, console);
    }
    return absl::StatusOr<bool>(false);
  }));
  if (found) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("there is no record ", options.record, "; there are ",
                                            CountText(before, "record")));
}

// ---- head

std::string LineOf(const PlacedRecord& record) {
  constexpr size_t kWidest = 30;  // of the values of one feature
  proto::SequenceExample message;
  if (ParseExampleRecord(record.bytes, &message) == RecordKind::kOther)
    return BytesInShort(record.bytes);
  std::vector<std::string> parts;
  for (const auto& [name, feature] : Sorted(message.context().feature()))
    parts.push_back(absl::StrCat(ShownText(name), "=", CutText(FeatureInShort(*feature), kWidest)));
  for (const auto& [name, list] : Sorted(message.feature_lists().feature_list()))
    parts.push_back(absl::StrCat(ShownText(name), "=", CutText(FramesInShort(*list), kWidest)));
  return absl::StrJoin(parts, "  ");
}

absl::Status Head(const ShowOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<DataFile> files, FindFiles(options));
  WEIR_ASSIGN_OR_RETURN(const RecordOptions reading, ReadingOf(options));
  int64_t printed = 0;
  return ForEachRecord(files, reading, [&](const PlacedRecord& record) -> absl::StatusOr<bool> {
    if (options.json) {
      console.out << JsonFromRecord(record.bytes) << "\n";
    } else {
      const std::string number = absl::StrCat(printed, "  ");
      console.out << console.Paint(Style::kDim, number)
                  << CutText(Printable(LineOf(record), console.unicode),
                             ColumnsLeft(number.size(), console))
                  << "\n";
    }
    return ++printed < options.count;
  });
}

}  // namespace

void AddDataShowCommands(Command& data) {
  auto options = std::make_shared<ShowOptions>();
  Command show = data.Add("show", "Print one record, and draw its images",
                          "  weir data show train.tfrecord --record 17");
  AddDataOptions(show, options.get(), "print JSON");
  AddKindOption(show, options.get());
  show.Value("--record,-n", &options->record, "its number in all files together, from 0")
      .AtLeast(0);
  show.Flag("--no-images", &options->no_images, "do not draw images");
  show.Do([options](Console& console) { return Finish(console, Show(*options, console)); });

  Command head = data.Add("head", "Print the first records, one in a line",
                          "  weir data head train.tfrecord -n 10 --json | jq .label");
  AddDataOptions(head, options.get(), "print JSON lines");
  AddKindOption(head, options.get());
  head.Value("--count,-n", &options->count, "how many records").AtLeast(1);
  head.Do([options](Console& console) { return Finish(console, Head(*options, console)); });
}

}  // namespace weir::tools
