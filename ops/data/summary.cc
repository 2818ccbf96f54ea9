#include "weir/ops/data/summary.h"

#include <functional>

#include "absl/strings/ascii.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/registry.h"

namespace weir {
namespace summary {
namespace {

std::string SanitizeTag(absl::string_view name) {
  std::string out;
  for (char ch : name) {
    const bool allowed =
        absl::ascii_isalnum(ch) || ch == '-' || ch == '/' || ch == '_' || ch == '.';
    if (out.empty() && ch == '/') continue;
    out.push_back(allowed ? ch : '_');
  }
  return out;
}

// Opens the summary's scope, calls `make` with the tag to build the node (named after the scope),
// and adds it to the collections.
Output BuildSummary(
    absl::string_view name, const Output& value, const Options& options,
    const std::function<Output(const std::string& tag, const std::string& node_name)>& make) {
  if (!value.valid()) return Output();
  Graph& g = value.graph();
  const std::string family = SanitizeTag(options.family), base = SanitizeTag(name);
  NameScope scope(g, family.empty() ? base : absl::StrCat(family, "/", base));
  std::string tag = scope.name();
  while (!tag.empty() && tag.back() == '/') tag.pop_back();
  if (!family.empty()) tag = absl::StrCat(family, "/", tag);
  Output node = make(tag, scope.name());
  if (node.valid()) g.AddToCollections(options.collections, node);
  return node;
}

}  // namespace

Output Scalar(absl::string_view name, Output tensor, const Options& options) {
  return BuildSummary(
      name, tensor, options, [&](const std::string& tag, const std::string& node_name) {
        return AddOp("ScalarSummary", {Const(tensor.graph(), tag, "tags"), tensor}, {}, node_name);
      });
}

Output Histogram(absl::string_view name, Output values, const Options& options) {
  return BuildSummary(name, values, options,
                      [&](const std::string& tag, const std::string& node_name) {
                        return AddOp("HistogramSummary",
                                     {Const(values.graph(), tag, "tag"), values}, {}, node_name);
                      });
}

Output Image(absl::string_view name, Output tensor, int64_t max_outputs, const Options& options) {
  return BuildSummary(name, tensor, options,
                      [&](const std::string& tag, const std::string& node_name) {
                        return AddOp("ImageSummary", {Const(tensor.graph(), tag, "tag"), tensor},
                                     {{"max_images", max_outputs}}, node_name);
                      });
}

Output Audio(absl::string_view name, Output tensor, float sample_rate, int64_t max_outputs,
             const Options& options) {
  return BuildSummary(
      name, tensor, options, [&](const std::string& tag, const std::string& node_name) {
        Output rate = Const(tensor.graph(), sample_rate, "sample_rate");
        return AddOp("AudioSummaryV2", {Const(tensor.graph(), tag, "tag"), tensor, rate},
                     {{"max_outputs", max_outputs}}, node_name);
      });
}

Output Text(absl::string_view name, Output tensor, const Options& options) {
  return BuildSummary(
      name, tensor, options, [&](const std::string& tag, const std::string& node_name) {
        Output tags = Const(tensor.graph(), tag, "tag");
        // SummaryMetadata { plugin_data { plugin_name: "text" } }
        Output metadata =
            Const(tensor.graph(), std::string("\n\x06\n\x04text"), "serialized_summary_metadata");
        return AddOp("TensorSummaryV2", {tags, tensor, metadata}, {}, node_name);
      });
}

Output Merge(const Outputs& inputs, absl::string_view name) {
  if (inputs.empty() || !inputs[0].valid()) return Output();
  NameScope scope(inputs[0].graph(), name.empty() ? "Merge" : name);
  return AddOp("MergeSummary", {inputs}, {}, name);
}

Output MergeAll(Graph& graph, absl::string_view key) {
  return Merge(graph.collection_as<Output>(key));
}

}  // namespace summary

namespace {

// The output is a scalar for any inputs.
OpSpec Summary(absl::string_view op, absl::string_view in) {
  OpSpec spec(op);
  spec.In(in).Out("summary: string").InferShape(ScalarShape).NotDifferentiable();
  return spec;
}

}  // namespace

void AddSummaryOps(OpRegistry* ops) {
  ops->Add(Summary("ScalarSummary", "tags: string, values: T")
               .Attr("T: realnumbertype")
               .Doc("Returns a Summary with one number per tag."));
  ops->Add(Summary("HistogramSummary", "tag: string, values: T")
               .Attr("T: realnumbertype = DT_FLOAT")
               .Doc("Returns a Summary with the distribution of the values."));
  ops->Add(Summary("MergeSummary", "inputs: N * string")
               .Attr("N: int >= 1")
               .Doc("Merges the values of all inputs, whose tags must differ, into one Summary."));
  ops->Add(Summary("ImageSummary", "tag: string, tensor: T")
               .Attr("max_images: int >= 1 = 3")
               .Attr("T: {uint8, float, half, double} = DT_FLOAT")
               .Attr("bad_color: tensor = { dtype: DT_UINT8 tensor_shape { dim { size: 4 } } "
                     "int_val: 255 int_val: 0 int_val: 0 int_val: 255 }")
               .Doc("Returns a Summary with the first max_images images of the batch as PNG. "
                    "Floating-point images are scaled to 0..255. Pixels that are not finite have "
                    "the color bad_color."));
  ops->Add(
      Summary("AudioSummary", "tag: string, tensor: float")
          .Attr("sample_rate: float")
          .Attr("max_outputs: int >= 1 = 3")
          .Deprecated(15, "AudioSummaryV2 replaces it")
          .Doc("Returns a Summary with the first max_outputs audio clips of the batch as WAV."));
  ops->Add(
      Summary("AudioSummaryV2", "tag: string, tensor: float, sample_rate: float")
          .Attr("max_outputs: int >= 1 = 3")
          .Doc("Returns a Summary with the first max_outputs audio clips of the batch as WAV."));
  ops->Add(Summary("TensorSummary", "tensor: T")
               .Attr("T: type")
               .Attr("description: string = ''")
               .Attr("labels: list(string) = []")
               .Attr("display_name: string = ''")
               .Doc("Returns a Summary with a tensor, without a tag."));
  ops->Add(Summary("TensorSummaryV2", "tag: string, tensor: T, serialized_summary_metadata: string")
               .Attr("T: type")
               .Doc("Returns a Summary with a tensor, a tag and metadata for the plugin that "
                    "displays it."));
}

}  // namespace weir
