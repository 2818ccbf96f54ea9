#include "weir/tests/fuzz/targets.h"

namespace weir::fuzz {

std::vector<Row> Rows() { return {{"steps", Steps, 200}}; }

}  // namespace weir::fuzz
