#include "weir/tools/ckpt/roles.h"

#include <re2/re2.h>

#include <set>

#include "absl/strings/match.h"

namespace weir::tools {

namespace {

TensorRole RoleOf(const CheckpointTensor& tensor, const std::set<absl::string_view>& names) {
  static const RE2* const kAverage = new RE2(
      "(.*/)?(ExponentialMovingAverage(_\\d+)?|moving_(mean|variance))(/\\.ATTRIBUTES/.*)?");
  static const RE2* const kPower = new RE2("beta[12]_power(_\\d+)?");
  // The default names of TensorFlow's optimizers.
  static const RE2* const kOptimizer = new RE2(
      "(Adadelta|Adagrad|AdagradDA|Adam|AdaMax|Ftrl|LARS|LAMB|Momentum|ProximalAdagrad|RMSProp|"
      "RMSprop|SGD|Nadam|Lion|AdamW)(Optimizer)?(_\\d+)?");
  const std::string& name = tensor.name;
  const size_t slash = name.rfind('/');
  const std::string last = slash == std::string::npos ? name : name.substr(slash + 1);
  const absl::string_view owner =
      slash == std::string::npos ? "" : absl::string_view(name).substr(0, slash);
  if (RE2::FullMatch(name, *kAverage)) return TensorRole::kMovingAverage;
  const bool is_slot = absl::StrContains(name, "/.OPTIMIZER_SLOT/") ||
                       RE2::FullMatch(last, *kPower) ||
                       (names.contains(owner) && RE2::FullMatch(last, *kOptimizer));
  return is_slot ? TensorRole::kSlot : TensorRole::kVariable;
}

}  // namespace

absl::string_view RoleName(TensorRole role) {
  switch (role) {
    case TensorRole::kSlot:
      return "slot";
    case TensorRole::kMovingAverage:
      return "moving average";
    default:
      return "variable";
  }
}

std::vector<TensorRole> RolesOf(const std::vector<CheckpointTensor>& tensors) {
  std::set<absl::string_view> names;
  for (const CheckpointTensor& tensor : tensors) names.insert(tensor.name);
  std::vector<TensorRole> roles;
  for (const CheckpointTensor& tensor : tensors) roles.push_back(RoleOf(tensor, names));
  return roles;
}

}  // namespace weir::tools
