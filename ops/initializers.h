#ifndef WEIR_OPS_INITIALIZERS_H_
#define WEIR_OPS_INITIALIZERS_H_

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "weir/core/graph.h"
#include "weir/ops/literal.h"

namespace weir {

class Variable;

// Where in a bigger, partitioned variable the part to be initialized lies.
struct PartitionInfo {
  Shape full_shape;
  std::vector<int64_t> offset;
};

// What an initializer is asked for.
struct InitializerArgs {
  Graph& graph;
  Shape shape;
  DataType dtype;
  const PartitionInfo* partition = nullptr;  // null: the whole variable
};

// How a variable gets its initial value. A value type, made implicitly of
//   - an initializer object: Zeros(), GlorotUniform(), ..., or any callable that takes a
//     const InitializerArgs& and returns an Output;
//   - a callable without arguments, () -> Output, which decides the shape itself;
//   - a tensor of the graph (or a variable), or a literal.
// A default-constructed one stands for "none given".
class Initializer {
 public:
  enum class Kind { kNone, kShaped, kCallable, kTensor };
  using Shaped = std::function<Output(const InitializerArgs&)>;
  using Callable = std::function<Output()>;

  Initializer();
  ~Initializer();
  Initializer(const Initializer& other);
  Initializer(Initializer&& other) noexcept;
  Initializer& operator=(const Initializer& other);
  Initializer& operator=(Initializer&& other) noexcept;
  template <class T, std::enable_if_t<!std::is_same_v<T, Initializer>, int> = 0>
  Initializer(const T& from) {
    if constexpr (std::is_invocable_r_v<Output, const T&, const InitializerArgs&>) {
      value_ = Shaped(from);
    } else if constexpr (std::is_invocable_r_v<Output, const T&>) {
      value_ = Callable(from);
    } else {
      static_assert(std::is_convertible_v<const T&, TensorArg>,
                    "an initializer is a tensor, a literal, () -> Output or (const "
                    "InitializerArgs&) -> Output");
      value_ = TensorArg(from);
    }
  }
  // The value of another variable.
  Initializer(const Variable& variable);
  Initializer(std::initializer_list<Literal> items) : value_(TensorArg(items)) {}
  // `own_dtype` (may be DT_INVALID) is the type it makes when none is asked for.
  Initializer(Shaped make, DataType own_dtype) : value_(std::move(make)), dtype_(own_dtype) {}

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  explicit operator bool() const { return kind() != Kind::kNone; }
  const Shaped& shaped() const { return std::get<Shaped>(value_); }
  const Callable& callable() const { return std::get<Callable>(value_); }
  const TensorArg& tensor() const { return std::get<TensorArg>(value_); }
  DataType own_dtype() const { return dtype_; }

 private:
  std::variant<std::monostate, Shaped, Callable, TensorArg> value_;
  DataType dtype_ = DT_INVALID;
};

using Seed = std::optional<int64_t>;

// All elements zero (false, empty), or one.
Initializer Zeros();
Initializer Ones();
// A scalar, or a list: row by row, its last value repeated. With `verify_shape` a list of another
// shape is INVALID_ARGUMENT.
Initializer Constant(Literal value, bool verify_shape = false);
// Uniform in [min, max). INVALID_ARGUMENT for integers of which no maximum is given.
Initializer RandomUniformInitializer(float min = 0, float max = 1, Seed seed = {});
Initializer RandomNormalInitializer(float mean = 0, float stddev = 1, Seed seed = {});
// Normal, redrawn beyond two standard deviations.
Initializer TruncatedNormalInitializer(float mean = 0, float stddev = 1, Seed seed = {});
// Uniform in +-sqrt(3 / input size) * factor, the input size being the product of all dimensions
// but the last.
Initializer UniformUnitScaling(float factor = 1, Seed seed = {});

// Samples of variance scale / n, where n is the number of inputs, of outputs, or their mean. For
// rank 2 these are rows and columns; above that the last two dimensions times the product of the
// others; rank 1 has n for both.
struct VarianceScalingOptions {
  double scale = 1;
  enum Mode { kFanIn, kFanOut, kFanAvg } mode = kFanIn;
  enum Distribution {
    kTruncatedNormal,
    kUntruncatedNormal,
    kUniform
  } distribution = kTruncatedNormal;
  Seed seed = {};
};
Initializer VarianceScaling(const VarianceScalingOptions& options = {});
Initializer GlorotUniform(Seed seed = {});  // limit sqrt(6 / (in + out))
Initializer GlorotNormal(Seed seed = {});   // variance 2 / (in + out)
Initializer HeUniform(Seed seed = {});      // limit sqrt(6 / in)
Initializer HeNormal(Seed seed = {});       // variance 2 / in
Initializer LecunUniform(Seed seed = {});   // limit sqrt(3 / in)
Initializer LecunNormal(Seed seed = {});    // variance 1 / in

// A random matrix with orthogonal rows or columns (whichever are fewer), times gain; more than two
// dimensions are taken as one matrix with the last as columns.
Initializer Orthogonal(float gain = 1, Seed seed = {});
// gain on the diagonal of a matrix.
Initializer Identity(float gain = 1);

}  // namespace weir

#endif  // WEIR_OPS_INITIALIZERS_H_
