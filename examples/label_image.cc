// Classifies a picture: runs a frozen image graph on a JPEG, PNG, GIF or BMP file and prints the
// labels with the highest scores, after a thumbnail if the terminal supports 24-bit colors.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "weir/ops/image/image.h"
#include "weir/weir.h"

namespace {

struct Flags {
  std::string graph, image, labels, input, output, thumbnail = "auto";
  int64_t size = 224, top = 5;
  float mean = 127.5f, scale = 1 / 127.5f;
};

// Computes one tensor of a graph from one fed tensor.
absl::StatusOr<weir::Tensor> Compute(const weir::Output& input, const weir::Tensor& value,
                                     const weir::Output& output) {
  WEIR_ASSIGN_OR_RETURN(weir::Session session, weir::Session::Create(input.graph()));
  WEIR_ASSIGN_OR_RETURN(const weir::Tensors out, session.Run({{input, value}}, {output}));
  return out[0];
}

// Returns the picture as float [1, height, width, 3], with values from 0 to 255.
absl::StatusOr<weir::Tensor> Load(const weir::Tensor& contents, int64_t height, int64_t width) {
  weir::Graph g;
  const weir::Output file = weir::Placeholder(g, weir::DT_STRING, {}, "file");
  const weir::Output pixels = weir::DecodeImage(file, 3, weir::DT_UINT8, false);
  return Compute(file, contents, weir::ResizeArea(weir::ExpandDims(pixels, 0), {height, width}));
}

// Prints two pixels per character: the upper in the foreground color, the lower in the background.
absl::Status PrintThumbnail(const weir::Tensor& contents) {
  weir::Graph g;
  const weir::Output file = weir::Placeholder(g, weir::DT_STRING, {}, "file");
  const weir::Output shape = weir::ShapeTensor(weir::DecodeImage(file, 3, weir::DT_UINT8, false));
  WEIR_ASSIGN_OR_RETURN(const weir::Tensor sides, Compute(file, contents, shape));
  constexpr int64_t kColumns = 48;
  const int64_t lines =
      std::clamp<int64_t>(kColumns * sides.IntAt(0) / sides.IntAt(1) / 2, 1, kColumns);
  WEIR_ASSIGN_OR_RETURN(const weir::Tensor pixels, Load(contents, 2 * lines, kColumns));
  const float* row = pixels.data<float>();
  for (int64_t y = 0; y < lines; ++y, row += 2 * kColumns * 3) {
    for (int64_t x = 0; x < kColumns; ++x) {
      const float *top = row + 3 * x, *bottom = top + kColumns * 3;
      std::printf("\033[38;2;%.0f;%.0f;%.0fm\033[48;2;%.0f;%.0f;%.0fm\u2580", top[0], top[1],
                  top[2], bottom[0], bottom[1], bottom[2]);
    }
    std::printf("\033[0m\n");
  }
  std::printf("\n");
  return absl::OkStatus();
}

bool WantsThumbnail(const std::string& when) {
  if (when != "auto") return when == "always";
  const char* color = std::getenv("COLORTERM");
  const absl::string_view kind = color != nullptr ? color : "";
  return isatty(STDOUT_FILENO) != 0 && (kind == "truecolor" || kind == "24bit");
}

// Returns the tensor of that name; without a name, the output of the first node that `is_it`
// accepts.
template <class F>
absl::StatusOr<weir::Output> Find(const weir::Graph& graph, const std::string& name,
                                  const char* what, const F& is_it) {
  if (!name.empty()) return graph.FindOutput(name);
  for (const auto& node : graph.nodes()) {
    if (is_it(*node)) return node->output(0);
  }
  return weir::NotFound("cannot find the ", what, " of the graph; specify it with --", what);
}

absl::Status Run(const Flags& flags) {
  weir::Graph graph;
  WEIR_RETURN_IF_ERROR(weir::ImportGraphFile(graph, flags.graph).status());
  WEIR_ASSIGN_OR_RETURN(const weir::Output input,
                        Find(graph, flags.input, "input",
                             [](const weir::Node& n) { return n.op_name() == "Placeholder"; }));
  WEIR_ASSIGN_OR_RETURN(const weir::Output output,
                        Find(graph, flags.output, "output",
                             [](const weir::Node& n) { return n.op_name() == "Softmax"; }));
  WEIR_ASSIGN_OR_RETURN(const std::string file, weir::ReadFile(flags.image));
  const weir::Tensor contents = weir::Tensor::Scalar(file);
  if (WantsThumbnail(flags.thumbnail)) WEIR_RETURN_IF_ERROR(PrintThumbnail(contents));

  // A graph with a string input decodes the file itself.
  weir::Tensor picture = contents;
  if (input.dtype() != weir::DT_STRING) {
    const weir::Shape shape = input.shape();
    const auto side = [&](int i) {
      return shape.rank() == 4 && shape.dim(i) > 0 ? shape.dim(i) : flags.size;
    };
    WEIR_ASSIGN_OR_RETURN(picture, Load(contents, side(1), side(2)));
    for (float& v : picture.flat<float>()) v = (v - flags.mean) * flags.scale;
  }
  WEIR_ASSIGN_OR_RETURN(const weir::Tensor result, Compute(input, picture, output));
  if (result.dtype() != weir::DT_FLOAT) {
    return weir::InvalidArgument(output.name(),
                                 " is not a tensor of scores: ", result.Description());
  }

  std::vector<std::string> labels;
  if (!flags.labels.empty()) {
    WEIR_ASSIGN_OR_RETURN(const std::string text, weir::ReadFile(flags.labels));
    labels = absl::StrSplit(text, '\n');
  }
  const auto scores = result.flat<float>();
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  for (size_t i = 0; i < order.size() && i < static_cast<size_t>(flags.top); ++i) {
    const std::string label =
        order[i] < labels.size() ? labels[order[i]] : std::to_string(order[i]);
    std::printf("%8.4f  %s\n", scores[order[i]], label.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "Classifies a picture with a frozen image graph.\nExample: label_image --graph "
      "mobilenet.pb --labels labels.txt cat.jpg");
  app.add_option("--graph", flags.graph, "GraphDef file that contains the weights")->required();
  app.add_option("image", flags.image, "JPEG, PNG, GIF or BMP file")->required();
  app.add_option("--labels", flags.labels, "text file with one label per line; default: numbers");
  app.add_option("--input", flags.input, "tensor to feed; default: the first Placeholder");
  app.add_option("--output", flags.output, "tensor of scores; default: the first Softmax");
  app.add_option("--size", flags.size,
                 "height and width of the picture if the graph does not define them")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  app.add_option("--mean", flags.mean, "subtracted from each value (0 to 255)")
      ->capture_default_str();
  app.add_option("--scale", flags.scale, "factor for each value")->capture_default_str();
  app.add_option("--top", flags.top, "number of labels to print")->capture_default_str();
  app.add_option("--thumbnail", flags.thumbnail,
                 "draw the picture; auto: if the terminal supports it")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(flags);
  if (!status.ok()) std::fprintf(stderr, "label_image: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
