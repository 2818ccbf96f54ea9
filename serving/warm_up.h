#ifndef WEIR_SERVING_WARM_UP_H_
#define WEIR_SERVING_WARM_UP_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/serving/servable.h"

namespace weir::serving {

// Calls a signature with inputs, for the selected outputs, and drops the results.
using WarmUpCall =
    absl::FunctionRef<absl::Status(const std::string& signature, const NamedTensors& inputs,
                                   const std::vector<std::string>& outputs)>;

// Makes the calls of the requests in `assets.extra/tf_serving_warmup_requests` of a version's
// directory, if there is such a file: TFRecords of PredictionLogs, as TensorFlow Serving reads
// them. Their steps are then compiled when the first client calls. Returns the first error, with
// the number of the record; INVALID_ARGUMENT for more than 1,000 records or one that is not a
// PredictionLog, UNIMPLEMENTED for SessionRun.
absl::Status WarmUp(const std::string& directory, WarmUpCall call);

}  // namespace weir::serving

#endif  // WEIR_SERVING_WARM_UP_H_
