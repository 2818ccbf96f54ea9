#ifndef WEIR_OPS_QUANTIZE_QUANTIZE_H_
#define WEIR_OPS_QUANTIZE_QUANTIZE_H_

#include <string>

#include "weir/core/graph/graph.h"
#include "weir/core/graph/op.h"
#include "weir/core/tensor/api.h"

// Quantization of numbers to small integers of a range, and quantization-aware training.
namespace WEIR_API weir {

// The integers, and the range [min, max] that they represent, which may be wider than the requested
// one.
struct QuantizedTensor {
  // Output: as the input; min, max: float scalars, or one per index of the axis.
  Output output, min, max;
};

// Options of QuantizeV2 and Dequantize.
struct QuantizeOptions {
  std::string mode = "MIN_COMBINED";               // or MIN_FIRST, SCALED
  std::string round_mode = "HALF_AWAY_FROM_ZERO";  // SCALED also: HALF_TO_EVEN
  bool narrow_range = false;                       // for SCALED: excludes the smallest integer
  int axis = -1;                                   // one range per index of this dimension
  float ensure_minimum_range = 0.01f;              // widens narrower ranges
};
// Quantizes floats: `type` is one of the quantized types, and the ranges are float scalars, or
// vectors if there is an axis.
QuantizedTensor QuantizeV2(Output input, Output min_range, Output max_range, DataType type,
                           const QuantizeOptions& options = {}, absl::string_view name = {});
// Converts quantized values back to float. The options must equal those of QuantizeV2.
Output Dequantize(const QuantizedTensor& input, const QuantizeOptions& options = {},
                  absl::string_view name = {});

// Options of the ops that round to representable quantized values.
struct FakeQuantOptions {
  int num_bits = 8;           // 2 to 16
  bool narrow_range = false;  // excludes the smallest of the integers
};
// Rounds to one of 2^num_bits values in [min, max], in the shape of the inputs. The gradient passes
// inside of the range only.
Output FakeQuantWithMinMaxArgs(Output inputs, float min = -6, float max = 6,
                               const FakeQuantOptions& options = {}, absl::string_view name = {});
// Fake quantization with a learned range: scalars, or one range per index of the last dimension.
Output FakeQuantWithMinMaxVars(Output inputs, Output min, Output max,
                               const FakeQuantOptions& options = {}, absl::string_view name = {});
Output FakeQuantWithMinMaxVarsPerChannel(Output inputs, Output min, Output max,
                                         const FakeQuantOptions& options = {},
                                         absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_QUANTIZE_QUANTIZE_H_
