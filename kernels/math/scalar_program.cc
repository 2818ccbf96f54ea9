#include "weir/kernels/math/scalar_program.h"

#include <cstring>

#include "weir/kernels/math/cast.h"
#include "weir/kernels/math/compare.h"
#include "weir/kernels/math/elementwise.h"
#include "weir/kernels/math/elementwise_loops.h"

namespace weir {

namespace {

// Returns the loop of an op that is defined for all values and has results of a fixed size.
const UnaryLoop* FindUnary(absl::string_view op, DataType type, DataType result) {
  const UnaryLoop* const loop = ElementwiseLoops().FindUnary(op, type);
  return loop != nullptr && loop->out_size == ElementSize(result) ? loop : nullptr;
}
const BinaryLoop* FindBinary(absl::string_view op, DataType type, DataType result) {
  const BinaryLoop* const loop = ElementwiseLoops().FindBinary(op, type);
  const bool fits =
      loop != nullptr && loop->check == nullptr && loop->out_size == ElementSize(result);
  return fits ? loop : nullptr;
}

}  // namespace

bool IsScalarType(DataType type) {
  return type == DT_FLOAT || type == DT_DOUBLE || type == DT_INT32 || type == DT_INT64 ||
         type == DT_BOOL;
}

std::optional<ScalarOp> FindScalarOp(const Node& node) {
  const int count = node.num_inputs();
  if (count < 1 || count > 2 || node.num_outputs() != 1) return std::nullopt;
  const DataType a = node.input_type(0), result = node.output_type(0);
  if (!IsScalarType(a) || !IsScalarType(result) || node.input_type(count - 1) != a)
    return std::nullopt;
  if (node.op_name() == "Cast") {
    if (node.attr_or<bool>("Truncate", false)) return std::nullopt;
    return ScalarOp{};
  }
  if (count == 1) {
    const UnaryLoop* const loop = FindUnary(node.op_name(), a, result);
    return loop == nullptr ? std::nullopt : std::optional(ScalarOp{loop->param});
  }
  const BinaryLoop* const loop = FindBinary(node.op_name(), a, result);
  return loop == nullptr ? std::nullopt : std::optional(ScalarOp{loop->param});
}

// Ops that call a functor directly. A loop's loads and stores of a partial vector cost more than an
// addition; the functor that the loop calls, applied to one element, computes the same bits.
template <class T>
struct ScalarProgram::Direct {
  template <class R, class F>
  static void Binary(const Op&, const Cell* a, const Cell* b, Cell* result) {
    T x, y;
    std::memcpy(&x, a, sizeof(T));
    std::memcpy(&y, b, sizeof(T));
    const R z = F()(x, y);
    std::memcpy(result, &z, sizeof(R));
  }
  template <class F>
  struct Arithmetic {
    T operator()(T x, T y) const { return F::template Apply<ScalarMath<T>>(x, y); }
  };
  template <class F>
  struct Comparison {
    bool operator()(T x, T y) const { return F::Apply(x, y); }
  };

  static decltype(Op::run) Find(absl::string_view op) {
    if (op == "Add" || op == "AddV2") return Binary<T, Arithmetic<functor::Add>>;
    if (op == "Sub") return Binary<T, Arithmetic<functor::Sub>>;
    if (op == "Mul") return Binary<T, Arithmetic<functor::Mul>>;
    if (op == "Less") return Binary<bool, Comparison<compare::Less>>;
    if (op == "LessEqual") return Binary<bool, Comparison<compare::LessEqual>>;
    if (op == "Greater") return Binary<bool, Comparison<compare::Greater>>;
    if (op == "GreaterEqual") return Binary<bool, Comparison<compare::GreaterEqual>>;
    return nullptr;
  }
};

decltype(ScalarProgram::Op::run) ScalarProgram::BinaryOpFn(absl::string_view op, DataType type) {
  decltype(Op::run) direct = nullptr;
  if (type != DT_BOOL) {
    DispatchType(type, List<float, double, int32_t, int64_t>{},
                 [&]<class T>() { direct = Direct<T>::Find(op); });
  }
  if (direct != nullptr) return direct;
  return [](const Op& s, const Cell* x, const Cell* y, Cell* z) {
    const auto& loop = *static_cast<const BinaryLoop*>(s.fn);
    loop.run(loop, x, y, z, 1, s.p);
  };
}

absl::Status ScalarProgram::Resolve(absl::string_view op, DataType a, DataType b, bool is_binary,
                                    DataType result, Op* out) {
  const bool fits = IsScalarType(a) && IsScalarType(result) && a == b;
  if (fits && is_binary) {
    out->fn = FindBinary(op, a, result);
    out->run = BinaryOpFn(op, a);
  } else if (fits && op == "Cast") {
    out->convert = FindCast(a, result);
    out->run = [](const Op& s, const Cell* x, const Cell*, Cell* z) { s.convert(x, z, 1); };
  } else if (fits) {
    out->fn = FindUnary(op, a, result);
    out->run = [](const Op& s, const Cell* x, const Cell*, Cell* z) {
      const auto& loop = *static_cast<const UnaryLoop*>(s.fn);
      loop.run(loop, x, z, 1, s.p);
    };
  }
  if (out->fn != nullptr || out->convert != nullptr) return absl::OkStatus();
  return Unimplemented(op, " of ", is_binary ? "two scalars" : "a scalar", " of type ",
                       DataTypeName(a), is_binary ? " and " : "", is_binary ? DataTypeName(b) : "",
                       " with a result of type ", DataTypeName(result), " is not supported");
}

absl::StatusOr<ScalarProgram> ScalarProgram::Create(const Node& node,
                                                    absl::Span<const std::string> ops,
                                                    absl::Span<const DataType> arguments) {
  const auto operands = node.attr<std::vector<int64_t>>("operands");
  const auto params = node.attr<std::vector<float>>("params");
  const auto types = node.attr<std::vector<DataType>>("types");
  if (operands.size() != 2 * ops.size() || params.size() != ops.size() ||
      types.size() != ops.size() || ops.size() + arguments.size() > kMaxScalars) {
    return InvalidArgument(
        "fused_ops has ", ops.size(), " ops, operands ", operands.size(), " entries, params ",
        params.size(), " and types ", types.size(), ", for ", arguments.size(),
        " arguments; each op takes two operands, one parameter and one type, and "
        "a node has at most ",
        kMaxScalars, " ops and arguments");
  }
  for (const DataType type : arguments) {
    if (!IsScalarType(type))
      return Unimplemented("Scalars of type ", DataTypeName(type), " are not supported");
  }
  ScalarProgram program;
  program.num_arguments_ = static_cast<int>(arguments.size());
  program.types_.assign(arguments.begin(), arguments.end());
  for (size_t i = 0; i < ops.size(); ++i) {
    const int64_t known = program.num_values(), a = operands[2 * i], b = operands[2 * i + 1];
    if (a < 0 || a >= known || b >= known) {
      return InvalidArgument("fused op ", i, " takes values ", a, " and ", b, ", but only ", known,
                             " values precede it");
    }
    Op out{.p = params[i], .a = static_cast<int>(a), .result = static_cast<int>(known)};
    out.b = b < 0 ? out.a : static_cast<int>(b);
    WEIR_RETURN_IF_ERROR(
        Resolve(ops[i], program.types_[out.a], program.types_[out.b], b >= 0, types[i], &out));
    program.ops_.push_back(out);
    program.types_.push_back(types[i]);
  }
  return program;
}

}  // namespace weir
