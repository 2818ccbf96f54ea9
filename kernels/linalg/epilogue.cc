#include "weir/kernels/linalg/epilogue.h"

namespace weir {

absl::StatusOr<Epilogue> Epilogue::Read(const Node& node) {
  const auto ops = node.attr<std::vector<std::string>>("fused_ops");
  Epilogue e;
  size_t next = 0;
  const auto take = [&](absl::string_view op) {
    const bool found = next < ops.size() && ops[next] == op;
    next += found ? 1 : 0;
    return found;
  };
  e.bias = take("BiasAdd");
  e.add = take("Add");
  for (const char* op : {"Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid"}) {
    if (e.loop_ != nullptr || !take(op)) continue;
    e.loop_ = ElementwiseLoops().FindUnary(op, DT_FLOAT);
    e.clip_ = ClampOf(op);
  }
  if (next < ops.size()) return Unimplemented("fusing ", ops[next], " is not supported");
  const int64_t num_args = (e.bias ? 1 : 0) + (e.add ? 1 : 0);
  if (node.attr<int64_t>("num_args") != num_args || node.num_inputs() != 2 + num_args) {
    return InvalidArgument("The fused ops take ", num_args, " arguments, but num_args is ",
                           node.attr<int64_t>("num_args"), " and there are ",
                           node.num_inputs() - 2);
  }
  e.alpha_ = node.attr<float>("leakyrelu_alpha");
  return e;
}

absl::StatusOr<Epilogue::Operands> Epilogue::ReadOperands(const KernelContext& ctx,
                                                          const Shape& result,
                                                          int64_t channels) const {
  Operands operands;
  if (bias) {
    const Tensor& t = ctx.input(2);
    if (t.dtype() != DT_FLOAT || t.rank() != 1 || t.num_elements() != channels) {
      return InvalidArgument("bias must be a vector of ", channels, " floats, not ",
                             t.Description());
    }
    operands.bias = t.data<float>();
  }
  if (add) {
    const Tensor& t = ctx.input(bias ? 3 : 2);
    if (t.dtype() != DT_FLOAT || t.shape() != result) {
      return InvalidArgument("the addend must be float", result.ToString(), ", not ",
                             t.Description());
    }
    operands.addend = t.data<float>();
  }
  return operands;
}

std::optional<gemm::Epilogue> Epilogue::AsGemmEpilogue(const Operands& operands) const {
  if (!clip_ || (has_activation() && operands.bias == nullptr)) return std::nullopt;
  return gemm::Epilogue{operands.bias, clip_->low, clip_->high};
}

std::optional<gemm::Epilogue> Epilogue::ClampOf(absl::string_view activation) {
  if (activation.empty()) return gemm::Epilogue();
  if (activation == "Relu") return gemm::Epilogue{.low = 0};
  if (activation == "Relu6") return gemm::Epilogue{.low = 0, .high = 6};
  return std::nullopt;
}

absl::StatusOr<Tensor> Epilogue::PreserveOperand(KernelContext& ctx, const Shape& shape,
                                                 const float** operand) {
  WEIR_ASSIGN_OR_RETURN(Tensor kept, ctx.AllocateTemp(DT_FLOAT, shape));
  std::copy(*operand, *operand + shape.num_elements(), kept.data<float>());
  *operand = kept.data<float>();
  return kept;
}

void Epilogue::Add(float* x, const float* y, int64_t n) {
  static const BinaryLoop& sum = *ElementwiseLoops().FindBinary("AddV2", DT_FLOAT);
  sum.run(sum, x, y, x, n, 0);
}

void Epilogue::Apply(float* x, const Operands& operands, int64_t rows, int64_t columns,
                     int64_t stride) const {
  for (int64_t r = 0; r < rows; ++r) {
    float* const row = x + r * stride;
    if (operands.bias != nullptr) Add(row, operands.bias, columns);
    if (operands.addend != nullptr) Add(row, operands.addend + r * stride, columns);
    Activate(row, columns);
  }
}

}  // namespace weir
