#include "weir/kernels/lib/device_primitives.h"

namespace weir {

absl::Status DevicePrimitives::FillRandom(const RandomArgs& args) const {
  return Unimplemented("the device generates no random numbers of type ", DataTypeName(args.type));
}

absl::Status DevicePrimitives::Update(const UpdateArgs& args) const {
  return Unimplemented("the device has no update rule ", args.rule, " for type ",
                       DataTypeName(args.type));
}

}  // namespace weir
