#ifndef WEIR_SESSION_MODEL_SAVED_OBJECTS_H_
#define WEIR_SESSION_MODEL_SAVED_OBJECTS_H_

#include <string>
#include <vector>

namespace weir::proto {
class MetaGraphDef;
}

// The objects of a SavedModel of TensorFlow 2, and the tensors of its graph that stand for them.
namespace weir {

// Returns, for each object, the tensor of the graph that functions capture for it: the handle of a
// variable or a table, or the value of a constant. For an asset it is the handle of the variable
// that holds the file's path. "" for an object that the graph does not use, and for those that are
// no tensors.
std::vector<std::string> ObjectTensors(const proto::MetaGraphDef& def);

// Returns the nodes of the graph that are variables to train.
std::vector<std::string> TrainableObjects(const proto::MetaGraphDef& def,
                                          const std::vector<std::string>& tensors);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_SAVED_OBJECTS_H_
