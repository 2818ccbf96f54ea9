#ifndef WEIR_SESSION_SCAFFOLD_H_
#define WEIR_SESSION_SCAFFOLD_H_

#include <functional>
#include <memory>

#include "weir/session/saver.h"
#include "weir/session/session.h"

namespace weir {

// What a framework needs of a graph to start and save a model, beyond the model itself. What is not
// set is taken from the graph's collections; what these do not have is made, and put there. A graph
// read from a meta graph so brings its own.
//
// clang-format off
//   piece                    collection                 made if there is none
//   init_op                  init_op                    initializers of all global variables
//   ready_op                 ready_op                   names of global and local variables without a value
//   ready_for_local_init_op  ready_for_local_init_op    names of global variables without a value
//   local_init_op            local_init_op              initializers of all local variables, and of tables
//   summary_op               summary_op                 all of the collection "summaries", merged
//   saver                    savers                     one of all global variables, sharded
// clang-format on
struct Scaffold {
  Operation init_op = {};
  Feeds init_feeds = {};
  // Runs after init_op: to load values from elsewhere, say.
  std::function<absl::Status(Session&)> init_fn = {};
  // Strings: names of what is missing. Empty if the model is ready.
  Output ready_op = {};
  // The same, for what local_init_op reads.
  Output ready_for_local_init_op = {};
  Operation local_init_op = {};
  Feeds local_init_feeds = {};
  // A string scalar. Stays invalid if the graph has no summaries.
  Output summary_op = {};
  // Stays null if the graph has no variables.
  std::shared_ptr<Saver> saver = {};

  // Fills in what is not set, as tf.train.Scaffold.finalize does, node for node; finalizes the
  // graph. FAILED_PRECONDITION if a collection has several pieces to choose from.
  absl::Status Complete(Graph& graph);
};

}  // namespace weir

#endif  // WEIR_SESSION_SCAFFOLD_H_
