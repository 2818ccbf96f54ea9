#ifndef WEIR_EXAMPLES_DIGITS_NETWORK_H_
#define WEIR_EXAMPLES_DIGITS_NETWORK_H_

#include "weir/weir.h"

namespace weir::digits {

// The tensors of the network that a program feeds, fetches and runs.
struct Network {
  Output image, label;    // float [batch, 8, 8, 1], int64 [batch]
  Output dropout;         // a rate; 0 unless fed
  Output loss, accuracy;  // scalars
  Output prediction;      // int64 [batch]
  Output summaries;       // for an event file
  Variable global_step;
  Operation train, init;
};

// Two convolutions of 3x3 with 32 and 64 filters, max pooling, and two dense layers of 128 and 10
// units, with dropout before each; trained by Adam on the mean cross entropy, with a learning rate
// that decays to zero over `steps`.
Network BuildNetwork(Graph& graph, int64_t steps);

}  // namespace weir::digits

#endif  // WEIR_EXAMPLES_DIGITS_NETWORK_H_
