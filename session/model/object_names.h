#ifndef WEIR_SESSION_MODEL_OBJECT_NAMES_H_
#define WEIR_SESSION_MODEL_OBJECT_NAMES_H_

#include <map>
#include <string>

#include "weir/core/io/bundle.h"

// Object-based checkpoints, which TensorFlow 2 writes. Their keys are paths of objects, such as
// "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE", and one entry describes the objects.
namespace weir {

// The key of that entry.
inline constexpr char kObjectGraphKey[] = "_CHECKPOINTABLE_OBJECT_GRAPH";
// Between the path of an object and the name of a tensor in a key.
inline constexpr char kObjectAttributes[] = ".ATTRIBUTES";

// Returns the name of an attribute as part of a path: a '/' in it is escaped, as is the '.' that
// escapes.
std::string EscapedObjectName(absl::string_view name);

// Returns the full names of the tensors of an object-based checkpoint, by key: the names that
// programs of TensorFlow 1 and savers use, such as "dense/kernel". Tensors without one are not
// listed. Empty for another checkpoint. DATA_LOSS if the entry that describes the objects is
// damaged.
absl::StatusOr<std::map<std::string, std::string>> FullNamesOf(CheckpointReader& reader);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_OBJECT_NAMES_H_
