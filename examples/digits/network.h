#ifndef WEIR_EXAMPLES_DIGITS_NETWORK_H_
#define WEIR_EXAMPLES_DIGITS_NETWORK_H_

#include "weir/weir.h"

namespace digits {

// The tensors of the network that a program feeds, fetches and runs.
struct Network {
  weir::Output image, label;    // float [batch, 8, 8, 1], int64 [batch]
  weir::Output dropout;         // a rate; 0 unless fed
  weir::Output loss, accuracy;  // scalars
  weir::Output prediction;      // int64 [batch]
  weir::Output summaries;       // for an event file
  weir::Variable global_step;
  weir::Operation train, init;
};

// Two convolutions of 3x3 with 32 and 64 filters, max pooling, and two dense layers of 128 and 10
// units, with dropout before each; trained by Adam on the mean cross entropy, with a learning rate
// that decays to zero over `steps`.
Network BuildNetwork(weir::Graph& graph, int64_t steps);

}  // namespace digits

#endif  // WEIR_EXAMPLES_DIGITS_NETWORK_H_
