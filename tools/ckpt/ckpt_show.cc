#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_format.h"
#include "weir/core/io/npy.h"
#include "weir/tools/ckpt/ckpt.h"
#include "weir/tools/ckpt/formats.h"
#include "weir/tools/ckpt/tensor_statistics.h"
#include "weir/tools/lib/text_table.h"

// weir ckpt show: the values of a tensor, or of a slice, and their statistics.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kBins = 20;
constexpr int kBarWidth = 40;
// A larger tensor is not read whole only to print its first and last elements.
constexpr int64_t kMaxPrintedBytes = int64_t{64} << 20;

struct ShowOptions {
  std::string path, tensor, slice, npy;
  bool stats = false, json = false;
};

// JSON has no infinities and NaNs.
Json NumberToJson(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity";
}

Json StatisticsToJson(const CheckpointTensor& tensor, const TensorStatistics& s) {
  const absl::Span<const int64_t> dims = tensor.shape.dims();
  return {{"name", tensor.name},
          {"dtype", DataTypeName(tensor.dtype)},
          {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
          {"elements", s.elements},
          {"nan", s.nans},
          {"positive_infinity", s.positive_infinities},
          {"negative_infinity", s.negative_infinities},
          {"zeros", s.zeros},
          {"min", s.min},
          {"max", s.max},
          {"mean", NumberToJson(s.mean)},
          {"deviation", NumberToJson(s.deviation)},
          {"histogram", s.histogram}};
}

void PrintStatistics(const TensorStatistics& s, Console& console) {
  const int64_t finite = s.elements - s.nans - s.positive_infinities - s.negative_infinities;
  console.out << WithCommas(s.elements) << " elements: " << WithCommas(finite) << " finite, "
              << WithCommas(s.zeros) << " zero";
  const auto count = [&](int64_t n, const char* what) {
    if (n > 0)
      console.out << ", " << console.Paint(Style::kBad, absl::StrCat(WithCommas(n), " ", what));
  };
  count(s.nans, "NaN");
  count(s.positive_infinities, "+Inf");
  count(s.negative_infinities, "-Inf");
  console.out << "\n";
  if (finite == 0) return;
  console.out << absl::StrFormat("min %.6g, max %.6g, mean %.6g, standard deviation %.6g\n", s.min,
                                 s.max, s.mean, s.deviation);
  if (s.histogram.empty()) return;
  const int64_t most = *std::max_element(s.histogram.begin(), s.histogram.end());
  TextTable table({">from", ">elements", ""});
  for (size_t i = 0; i < s.histogram.size(); ++i) {
    const double place = static_cast<double>(i) / static_cast<double>(s.histogram.size());
    const double share = static_cast<double>(s.histogram[i]) / static_cast<double>(most);
    table.Row({absl::StrFormat("%.4g", s.min + place * (s.max - s.min)), WithCommas(s.histogram[i]),
               std::string(static_cast<size_t>(std::ceil(share * kBarWidth)), '#')});
  }
  table.Print(console);
}

absl::Status ShowStatistics(const ShowOptions& options, CheckpointReader& reader,
                            const CheckpointTensor& tensor, Console& console) {
  if (!options.slice.empty()) return InvalidArgument("--stats and --json are for whole tensors");
  if (!IsPlain(tensor.dtype)) {
    return InvalidArgument("tensor ", tensor.name, " of type ", DataTypeName(tensor.dtype),
                           " has no statistics");
  }
  WEIR_ASSIGN_OR_RETURN(const TensorStatistics statistics,
                        ComputeStatistics(reader, tensor, kBins));
  if (options.json) {
    console.out << StatisticsToJson(tensor, statistics).dump(1) << "\n";
  } else {
    PrintStatistics(statistics, console);
  }
  return absl::OkStatus();
}

// Without a slice the whole tensor is read and verified. A slice of a large tensor is read alone.
absl::StatusOr<Tensor> ReadValues(const ShowOptions& options, const OpenedCheckpoint& opened,
                                  const CheckpointTensor& tensor, Console& console) {
  CheckpointReader& reader = *opened.reader;
  const bool is_large = BytesOf(tensor.dtype, tensor.shape) > kMaxPrintedBytes;
  if (options.slice.empty()) {
    if (!is_large || !options.npy.empty()) return reader.Read(options.tensor);
    return FailedPrecondition("tensor ", tensor.name, " has ",
                              HumanBytes(BytesOf(tensor.dtype, tensor.shape)),
                              "; choose a part of it with --slice, or pass --stats");
  }
  WEIR_ASSIGN_OR_RETURN(const TensorSlice slice, TensorSlice::Parse(options.slice));
  if (!is_large) return reader.ReadSlice(options.tensor, slice);
  if (opened.format->name == "v2") {  // readers of other formats read and verify the whole tensor
    console.err
        << "weir: the checksum covers the whole tensor; it is not verified for a slice of a "
           "large one (weir ckpt verify does)\n";
  }
  return reader.ReadSliceUnverified(options.tensor, slice);
}

absl::Status Show(const ShowOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const OpenedCheckpoint opened, OpenCheckpoint(options.path, &console.err));
  WEIR_ASSIGN_OR_RETURN(const CheckpointTensor tensor, opened.reader->Find(options.tensor));
  const auto print_title = [&](const std::string& description) {
    console.out << console.Paint(Style::kBold, options.tensor) << " "
                << console.Paint(Style::kDim, description) << "\n";
  };
  if (options.json) return ShowStatistics(options, *opened.reader, tensor, console);
  if (options.stats) {
    print_title(absl::StrCat(DataTypeName(tensor.dtype), tensor.shape.ToString()));
    return ShowStatistics(options, *opened.reader, tensor, console);
  }
  WEIR_ASSIGN_OR_RETURN(const Tensor values, ReadValues(options, opened, tensor, console));
  if (!options.npy.empty()) {
    WEIR_RETURN_IF_ERROR(WriteNpy(options.npy, values));
    console.out << values.Description() << " written to " << options.npy << "\n";
    return absl::OkStatus();
  }
  print_title(values.Description());
  console.out << values.ToString() << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddShowCommand(Command& ckpt) {
  auto options = std::make_shared<ShowOptions>();
  Command show = ckpt.Add("show", "Print a tensor, a slice of it, or its statistics",
                          "  weir ckpt show runs/digits/model-500 hidden/w --slice 0,3:-\n"
                          "  weir ckpt show runs/digits/model-500 hidden/w --stats");
  show.Argument("CHECKPOINT", &options->path, kCheckpointHelp).Required();
  show.Argument("TENSOR", &options->tensor, "its name, as printed by weir ckpt ls").Required();
  show.Value("--slice", &options->slice,
             "start,length for each dimension, separated by ':'; '-' is a whole dimension")
      .Word("SLICE");
  show.Value("--npy", &options->npy, "write the tensor to this file, for numpy.load").Word("FILE");
  show.Flag("--stats", &options->stats,
            "print minimum, maximum, mean, NaNs and infinities, and a histogram");
  show.Flag("--json", &options->json, "print the statistics as JSON");
  show.Do([options](Console& console) { return Finish(console, Show(*options, console)); });
}

}  // namespace weir::tools
