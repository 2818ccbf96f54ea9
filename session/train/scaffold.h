#ifndef WEIR_SESSION_TRAIN_SCAFFOLD_H_
#define WEIR_SESSION_TRAIN_SCAFFOLD_H_

#include <functional>
#include <memory>

#include "weir/core/tensor/api.h"
#include "weir/session/model/saver.h"
#include "weir/session/session.h"

namespace WEIR_API weir {

// The nodes and functions with which a framework starts and saves a model. Members that are not set
// are taken from the graph's collections; those missing there are created, and added to the
// collections. So a graph imported from a meta graph brings its own.
//
// clang-format off
//   member                   collection                 created if missing
//   init_op                  init_op                    initializers of all global variables
//   ready_op                 ready_op                   names of global and local variables without a value
//   ready_for_local_init_op  ready_for_local_init_op    names of global variables without a value
//   local_init_op            local_init_op              initializers of all local variables, and of tables
//   summary_op               summary_op                 all of the collection "summaries", merged
//   saver                    savers                     a sharded saver of all global variables
// clang-format on
struct Scaffold {
  Operation init_op = {};  // initializes all that no checkpoint has
  Feeds init_feeds = {};   // fed to init_op
  // Called after init_op: to load values from another source, for example.
  std::function<absl::Status(Session&)> init_fn = {};
  // A string tensor: the names of variables without a value. Empty if the model is ready.
  Output ready_op = {};
  // The same, for the variables that local_init_op reads.
  Output ready_for_local_init_op = {};
  Operation local_init_op = {};
  Feeds local_init_feeds = {};
  // A string scalar. Remains invalid if the graph has no summaries.
  Output summary_op = {};
  // Remains null if the graph has no variables.
  std::shared_ptr<Saver> saver = {};

  // Sets the members that are not set, as tf.train.Scaffold.finalize does, node for node; finalizes
  // the graph. Returns FAILED_PRECONDITION if a collection has several candidates.
  absl::Status Complete(Graph& graph);
};

}  // namespace weir

#endif  // WEIR_SESSION_TRAIN_SCAFFOLD_H_
