#ifndef WEIR_OPS_DATA_SUMMARY_H_
#define WEIR_OPS_DATA_SUMMARY_H_

#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Summaries: string tensors that each hold one serialized Summary message, for event files
// (TensorFlow's tf.summary of version 1). A summary's tag is its node's name; characters that are
// not allowed in a name are replaced by '_'.
namespace WEIR_API weir {
namespace summary {

// Options of all summaries.
struct Options {
  // The collections to which the summary is added.
  std::vector<std::string> collections = {"summaries"};
  // A prefix of the tag, which groups summaries in TensorBoard.
  std::string family = {};
};

// A single number.
Output Scalar(absl::string_view name, Output tensor, const Options& options = {});
// The distribution of all elements.
Output Histogram(absl::string_view name, Output values, const Options& options = {});
// Up to max_outputs images of a tensor [batch, height, width, channels], with 1 (gray), 3 (RGB) or
// 4 (RGBA) channels, of type uint8, float, half or double. Floating-point images are scaled to
// 0..255.
Output Image(absl::string_view name, Output tensor, int64_t max_outputs = 3,
             const Options& options = {});
// Up to max_outputs audio clips of a tensor [batch, frames] or [batch, frames, channels] with
// values in [-1, 1].
Output Audio(absl::string_view name, Output tensor, float sample_rate, int64_t max_outputs = 3,
             const Options& options = {});
// A tensor of strings.
Output Text(absl::string_view name, Output tensor, const Options& options = {});

// Merges the values of all inputs into one summary. Two values with the same tag are
// INVALID_ARGUMENT at run time.
Output Merge(const Outputs& inputs, absl::string_view name = {});
// Merges all summaries of a collection. Returns an invalid Output, without an error, if there are
// none.
Output MergeAll(Graph& graph, absl::string_view key = "summaries");

}  // namespace summary
}  // namespace weir

#endif  // WEIR_OPS_DATA_SUMMARY_H_
