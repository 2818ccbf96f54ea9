#ifndef WEIR_OPS_FRAMEWORK_INITIALIZERS_H_
#define WEIR_OPS_FRAMEWORK_INITIALIZERS_H_

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/literal.h"

// Initial values of variables, as tf.initializers: objects that make the tensor when the shape and
// the dtype are known.
namespace WEIR_API weir {

class Variable;

// The position of the part to initialize within a partitioned variable.
struct PartitionInfo {
  Shape full_shape;             // of the partitioned variable
  std::vector<int64_t> offset;  // of the part, one number per dimension
};

// The arguments of an initializer.
struct InitializerArgs {
  Graph& graph;                              // where the tensor is built
  Shape shape;                               // to make, fully defined
  DataType dtype;                            // to make
  const PartitionInfo* partition = nullptr;  // null: the whole variable
};

// Specifies a variable's initial value. A value type with implicit conversions from
//   - an initializer object: Zeros(), GlorotUniform(), ..., or any callable that takes a
//     const InitializerArgs& and returns an Output;
//   - a callable without arguments, () -> Output, which determines the shape itself;
//   - a tensor of the graph (or a variable), or a literal.
// A default-constructed Initializer means "none given".
class Initializer {
 public:
  // What it was made from.
  enum class Kind { kNone, kShaped, kCallable, kTensor };
  // A callable for a shape, and one that chooses the shape.
  using Shaped = std::function<Output(const InitializerArgs&)>;
  using Callable = std::function<Output()>;

  Initializer();
  ~Initializer();
  Initializer(const Initializer& other);
  Initializer(Initializer&& other) noexcept;
  Initializer& operator=(const Initializer& other);
  Initializer& operator=(Initializer&& other) noexcept;
  // From any of the above. The callable is copied.
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
  // Uses the value of another variable.
  Initializer(const Variable& variable);
  // From a list, which is a vector.
  Initializer(std::initializer_list<Literal> items) : value_(TensorArg(items)) {}
  // `own_dtype` is the dtype that it creates if none is requested; it may be DT_INVALID.
  Initializer(Shaped make, DataType own_dtype) : value_(std::move(make)), dtype_(own_dtype) {}

  // What it was made from; the accessor of that kind is defined.
  Kind kind() const { return static_cast<Kind>(value_.index()); }
  explicit operator bool() const { return kind() != Kind::kNone; }
  const Shaped& shaped() const { return std::get<Shaped>(value_); }
  const Callable& callable() const { return std::get<Callable>(value_); }
  const TensorArg& tensor() const { return std::get<TensorArg>(value_); }
  // The dtype that it creates if none is requested; DT_INVALID: any.
  DataType own_dtype() const { return dtype_; }

 private:
  std::variant<std::monostate, Shaped, Callable, TensorArg> value_;
  DataType dtype_ = DT_INVALID;
};

// The seed of a random initializer; unset: by the graph's seed.
using Seed = std::optional<int64_t>;

// Initialize all elements to zero (false, empty string), or to one.
Initializer Zeros();
Initializer Ones();
// Initializes from a scalar or a list, in row-major order with the last value repeated. With
// `verify_shape`, a list of another shape is INVALID_ARGUMENT.
Initializer Constant(Literal value, bool verify_shape = false);
// Uniform in [min, max). INVALID_ARGUMENT for integer dtypes without a maximum.
Initializer RandomUniformInitializer(float min = 0, float max = 1, Seed seed = {});
Initializer RandomNormalInitializer(float mean = 0, float stddev = 1, Seed seed = {});
// Normal, with values beyond two standard deviations redrawn.
Initializer TruncatedNormalInitializer(float mean = 0, float stddev = 1, Seed seed = {});
// Uniform in +-sqrt(3 / input size) * factor, where the input size is the product of all dimensions
// but the last.
Initializer UniformUnitScaling(float factor = 1, Seed seed = {});

// Samples with variance scale / n, where n is the number of inputs, the number of outputs, or their
// mean. For rank 2 these are the rows and columns; for higher ranks the last two dimensions, each
// times the product of the others; for rank 1 both are the size of the vector.
struct VarianceScalingOptions {
  double scale = 1;  // of the variance
  // n: the number of inputs, of outputs, or their mean.
  enum Mode { kFanIn, kFanOut, kFanAvg } mode = kFanIn;
  // The truncated normal distribution is widened to have the same variance.
  enum Distribution {
    kTruncatedNormal,
    kUntruncatedNormal,
    kUniform
  } distribution = kTruncatedNormal;
  Seed seed = {};  // unset: by the graph's seed
};
// Initializes from such a distribution.
Initializer VarianceScaling(const VarianceScalingOptions& options = {});
Initializer GlorotUniform(Seed seed = {});  // limit sqrt(6 / (in + out))
Initializer GlorotNormal(Seed seed = {});   // variance 2 / (in + out)
Initializer HeUniform(Seed seed = {});      // limit sqrt(6 / in)
Initializer HeNormal(Seed seed = {});       // variance 2 / in
Initializer LecunUniform(Seed seed = {});   // limit sqrt(3 / in)
Initializer LecunNormal(Seed seed = {});    // variance 1 / in

// A random matrix with orthogonal rows or columns (whichever are fewer), times gain. A tensor of
// rank above two is treated as a matrix whose columns are the last dimension.
Initializer Orthogonal(float gain = 1, Seed seed = {});
// A matrix with `gain` on its diagonal and zero elsewhere.
Initializer Identity(float gain = 1);

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_INITIALIZERS_H_
