#include <array>

#include "weir/core/tensor/allocator.h"
#include "weir/tests/fuzz/targets.h"
#include "weir/tools/lib/csv.h"
#include "weir/tools/lib/file_contents.h"
#include "weir/tools/lib/json_value.h"
#include "weir/tools/lib/npz.h"

// Files that weir run feeds. The first byte selects a dtype; what is read is written, and read
// again.
namespace weir::fuzz {

namespace {

constexpr std::array<DataType, 8> kTypes = {DT_FLOAT, DT_STRING, DT_INT32, DT_BOOL,
                                            DT_UINT8, DT_DOUBLE, DT_INT64, DT_HALF};
constexpr int64_t kMostBytes = int64_t{1} << 25;  // of an image whose header says more

DataType TypeOf(uint8_t selector) { return kTypes[selector % kTypes.size()]; }

bool SameValues(const Tensor& a, const Tensor& b) {
  // The bits of NaNs are not kept.
  if (!IsFloating(a.dtype())) return IdenticalTensors(a, b);
  return a.shape() == b.shape() && a.ToString(1 << 20) == b.ToString(1 << 20);
}

}  // namespace

void Npz(absl::string_view bytes) {
  auto npz = tools::NpzReader::Open(std::string(bytes));
  if (!npz.ok()) return;
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (const std::string& name : npz->names()) {
    absl::StatusOr<Tensor> array = npz->Read(name);
    Require(array.ok() || !array.status().message().empty(), "an error has a message");
    if (array.ok()) arrays.emplace_back(absl::StrCat("a", arrays.size()), *std::move(array));
  }
  const auto written = tools::SerializeNpz(arrays);
  Require(written.ok(), "arrays that were read can be written");
  auto again = tools::NpzReader::Open(*written);
  Require(again.ok() && again->names().size() == arrays.size(), "and are an archive");
  for (const auto& [name, tensor] : arrays) {
    const auto read = again->Read(name);
    Require(read.ok() && IdenticalTensors(*read, tensor), "of the same arrays");
  }
}

void Csv(absl::string_view bytes) {
  Input in(bytes);
  const uint8_t selector = in.Byte();
  const tools::CsvOptions options{
      .dtype = TypeOf(selector),
      .rounding = selector >= 128 ? Rounding::kAllowed : Rounding::kNever,
      .column = selector % 16 >= 8 ? "a" : "",
      .needs_column = selector % 64 >= 32};
  const auto matrix = tools::ParseCsv(in.RemainingBytes(), options);
  if (!matrix.ok()) {
    Require(!matrix.status().message().empty(), "an error has a message");
    return;
  }
  const auto written = tools::FormatCsv({{"x", *matrix}}, ',');
  Require(written.ok(), "a matrix that was read can be written");
  if (matrix->num_elements() == 0) return;  // a file without lines is none
  const auto again =
      tools::ParseCsv(*written, {.dtype = options.dtype, .rounding = Rounding::kAllowed});
  Require(again.ok() && SameValues(*again, *matrix), "and read again");
}

void JsonValue(absl::string_view bytes) {
  Input in(bytes);
  const uint8_t selector = in.Byte();
  const tools::JsonOptions options{.dtype = TypeOf(selector),
                                   .member = selector % 16 >= 8 ? "a" : "",
                                   .needs_member = selector % 64 >= 32};
  const absl::string_view text = in.RemainingBytes();
  const auto value =
      selector >= 128 ? tools::ParseJsonLines(text, options) : tools::ParseJson(text, options);
  tools::JsonNames(text);
  tools::JsonLinesNames(text);
  tools::ParseStringsJson(text).status().IgnoreError();
  if (!value.ok()) {
    Require(!value.status().message().empty(), "an error has a message");
    return;
  }
  const auto written = tools::FormatJson(*value);
  Require(written.ok(), "a value that was read can be written");
  const auto again = tools::ParseJson(*written, {.dtype = options.dtype});
  Require(again.ok() && SameValues(*again, *value), "and read again");
  Require(tools::FormatJsonLines({{"x", *value}}).ok(), "also as lines");
}

// The second byte selects the name and the shape; the rest is the file, of any kind.
void ValueFile(absl::string_view bytes) {
  static const bool is_limited = [] {
    SetHostMemoryLimit(kMostBytes);
    return true;
  }();
  Require(is_limited, "memory is limited");
  Input in(bytes);
  const uint8_t type = in.Byte(), selector = in.Byte();
  constexpr std::array<const char*, 8> kNames = {"x",        "x.csv",      "x.json", "x.jsonl",
                                                 "x.csv.gz", "x.tfrecord", "x.npz",  "x.txt"};
  const std::array<Shape, 8> shapes = {
      Shape::UnknownRank(),   Shape({}),           Shape({-1}),
      Shape({-1, 3}),         Shape({-1, 2, 2}),   Shape({5, 4, 3}),
      Shape({-1, -1, -1, 3}), Shape({-1, 3, 5, 4})};
  const tools::ValueSpec spec{.dtype = TypeOf(type),
                              .shape = shapes[selector / 8 % shapes.size()],
                              .name = "x",
                              .rounding = type >= 128 ? Rounding::kAllowed : Rounding::kNever,
                              .pixels = {-1, 1}};
  const tools::FileContents file{std::string(in.RemainingBytes()),
                                 kNames[selector % kNames.size()]};
  const auto value = tools::ParseContents(file, selector >= 192 ? "x" : "", spec);
  Require(value.ok() ? value->dtype() == spec.dtype : !value.status().message().empty(),
          "a value has the dtype, an error a message");
  tools::NamesInContents(file).status().IgnoreError();
  tools::ValueOfBytes(file.bytes, spec).status().IgnoreError();
}

std::vector<Row> Rows() {
  return {{"npz", Npz, 2000},
          {"csv", Csv, 4000},
          {"json_value", JsonValue, 4000},
          {"value_file", ValueFile, 2000}};
}

}  // namespace weir::fuzz
