#include "weir/tests/fuzz/targets.h"

namespace weir::fuzz {

std::vector<Row> Rows() {
  return {{"graph_bytes", GraphBytes, 2000},
          {"graph_text", GraphText, 1000},
          {"table", Table, 2000},
          {"bundle", Bundle, 2000},
          {"records", Records, 2000},
          {"npy", Npy, 2000},
          {"checkpoint_state", CheckpointState, 1000}};
}

}  // namespace weir::fuzz
