#ifndef WEIR_OPS_SUMMARY_H_
#define WEIR_OPS_SUMMARY_H_

#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph.h"

// Summaries: string tensors that each hold one serialized Summary message, for event files
// (TensorFlow's tf.summary of version 1). A summary's tag is its node's name; characters that no
// name may have become '_'.
namespace weir::summary {

struct Options {
  // Collections to put the summary into.
  std::vector<std::string> collections = {"summaries"};
  // A first part of the tag, which groups summaries on the screen.
  std::string family = {};
};

// One number.
Output Scalar(absl::string_view name, Output tensor, const Options& options = {});
// The distribution of all elements.
Output Histogram(absl::string_view name, Output values, const Options& options = {});
// Up to max_outputs images of a tensor [batch, height, width, channels], with 1 (gray), 3 (RGB) or
// 4 (RGBA) channels, of type uint8, float, half or double. Floating images are scaled to fit
// 0..255.
Output Image(absl::string_view name, Output tensor, int64_t max_outputs = 3,
             const Options& options = {});
// Up to max_outputs sounds of a tensor [batch, frames] or [batch, frames, channels] with values in
// [-1, 1].
Output Audio(absl::string_view name, Output tensor, float sample_rate, int64_t max_outputs = 3,
             const Options& options = {});
// A tensor of strings.
Output Text(absl::string_view name, Output tensor, const Options& options = {});

// One summary with the values of all of these. Two values with one tag are INVALID_ARGUMENT when
// run.
Output Merge(const Outputs& inputs, absl::string_view name = {});
// The same for all of a collection; invalid, without an error, if there is none.
Output MergeAll(Graph& graph, absl::string_view key = "summaries");

}  // namespace weir::summary

#endif  // WEIR_OPS_SUMMARY_H_
