#ifndef WEIR_TOOLS_CKPT_ROLES_H_
#define WEIR_TOOLS_CKPT_ROLES_H_

#include <string>
#include <vector>

#include "weir/core/io/bundle.h"

namespace weir::tools {

// What a tensor of a checkpoint is for, by its name: optimizers and moving averages name their
// variables after those that they belong to ("w/Adam_1", "w/ExponentialMovingAverage").
enum class TensorRole { kVariable, kSlot, kMovingAverage };

// Returns "variable", "slot" or "moving average".
absl::string_view RoleName(TensorRole role);

// Returns the roles of a checkpoint's tensors, which are sorted by name. A tensor is a slot if its
// name is an optimizer's name below that of another tensor, if TensorFlow 2 marks it as one, or if
// it is a power that Adam and others keep for all variables (beta1_power).
std::vector<TensorRole> RolesOf(const std::vector<CheckpointTensor>& tensors);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_ROLES_H_
