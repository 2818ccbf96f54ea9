#include "weir/tests/kernels/lib/op_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weir/core/graph/op.h"
#include "weir/core/runtime/kernel.h"
#include "weir/ops/framework/gradients.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/answers.h"

namespace weir {

// ---- describing a row

OpCase::OpCase(absl::string_view op, double (*f)(double), Range x) : op_(op), unary_(f) {
  inputs_.push_back({.range = x});
}

OpCase::OpCase(absl::string_view op, double (*f)(double, double), Range x, Range y)
    : op_(op), binary_(f) {
  inputs_.push_back({.range = x});
  inputs_.push_back({.range = y});
}

OpCase& OpCase::Label(absl::string_view label) {
  label_ = std::string(label);
  return *this;
}
OpCase& OpCase::Attr(absl::string_view name, AttrValue value) {
  attrs_.emplace_back(std::string(name), std::move(value));
  return *this;
}
OpCase& OpCase::Input(Shape shape, Range range) {
  inputs_.push_back({.shapes = {std::move(shape)}, .range = range});
  return *this;
}
OpCase& OpCase::Input(DataType type, Shape shape, Range range) {
  inputs_.push_back({.type = type, .shapes = {std::move(shape)}, .range = range});
  return *this;
}
OpCase& OpCase::Input(Tensor value) {
  inputs_.push_back({.type = value.dtype(), .shapes = {value.shape()}, .value = value});
  return *this;
}
OpCase& OpCase::List(std::vector<Shape> shapes, Range range) {
  inputs_.push_back({.shapes = std::move(shapes), .is_list = true, .range = range});
  return *this;
}
OpCase& OpCase::GivenList(Tensors values) {
  InputSpec list{.type = values[0].dtype(), .is_list = true, .value = values[0]};
  for (const Tensor& t : values) list.shapes.push_back(t.shape());
  list.values = std::move(values);
  inputs_.push_back(std::move(list));
  return *this;
}
OpCase& OpCase::TypeAttr(absl::string_view name) {
  type_attr_ = std::string(name);
  return *this;
}
OpCase& OpCase::Types(std::vector<DataType> types) {
  types_ = std::move(types);
  return *this;
}
OpCase& OpCase::NotTypes(std::vector<DataType> types) {
  not_types_ = std::move(types);
  return *this;
}
OpCase& OpCase::Reference(OpReference reference) {
  reference_ = std::move(reference);
  return *this;
}
OpCase& OpCase::Complex(complex128 (*f)(complex128)) {
  complex_unary_ = f;
  return *this;
}
OpCase& OpCase::Complex(complex128 (*f)(complex128, complex128)) {
  complex_binary_ = f;
  return *this;
}
OpCase& OpCase::Tolerance(DataType type, double relative) {
  tolerance_[type] = relative;
  return *this;
}
OpCase& OpCase::ToleranceFactor(double factor) {
  tolerance_factor_ = factor;
  return *this;
}
OpCase& OpCase::Gradient(int order) {
  gradient_order_ = order;
  return *this;
}
OpCase& OpCase::GradientInputs(std::vector<int> inputs) {
  gradient_inputs_ = std::move(inputs);
  return *this;
}
OpCase& OpCase::GradientTolerance(double relative) {
  gradient_tolerance_ = relative;
  return *this;
}
OpCase& OpCase::ShapesDependOnValues() {
  shapes_depend_on_values_ = true;
  return *this;
}
OpCase& OpCase::NoSpecials() {
  specials_ = false;
  return *this;
}

void PrintTo(const OpCase& c, std::ostream* out) {
  *out << c.name() << ", gradients to order " << c.gradient_order();
}
std::string OpCaseName(const testing::TestParamInfo<OpCase>& info) { return info.param.name(); }

const std::vector<Shape>& UnaryShapes() {
  static const std::vector<Shape>* const shapes =
      new std::vector<Shape>{{}, {0}, {1}, {7}, {3, 5}, {2, 0, 3}, {4, 3, 17}, {70001}};
  return *shapes;
}

const std::vector<std::pair<Shape, Shape>>& BinaryShapes() {
  static const std::vector<std::pair<Shape, Shape>>* const shapes =
      new std::vector<std::pair<Shape, Shape>>{{{}, {}},
                                               {{0}, {0}},
                                               {{7}, {7}},
                                               {{3, 5}, {3, 5}},
                                               {{}, {5}},
                                               {{5}, {}},
                                               {{1}, {1, 1}},
                                               {{3, 1}, {1, 4}},
                                               {{2, 3, 4}, {4}},
                                               {{4}, {2, 3, 4}},
                                               {{2, 3, 4}, {3, 1}},
                                               {{2, 1, 4, 1}, {3, 1, 5}},
                                               {{0, 3}, {1, 3}},
                                               {{1, 3}, {0, 1}},
                                               {{70001}, {70001}},
                                               {{70001}, {}},
                                               {{257, 129}, {129}},
                                               {{257, 129}, {257, 1}},
                                               {{129}, {257, 129}},
                                               {{40, 1, 50}, {1, 30, 50}}};
  return *shapes;
}

// ---- values

namespace {

Tensor AsStorage(const Tensor& t) {
  const DataType storage = StoredAs(t.dtype());
  return storage == t.dtype() ? t : t.BitcastTo(storage);
}

std::vector<complex128> ToComplex(const Tensor& tensor) {
  const Tensor t = AsStorage(tensor);
  std::vector<complex128> out(t.num_elements());
  const bool known = DispatchType(t.dtype(), Numbers{}, [&]<class T>() {
    for (size_t i = 0; i < out.size(); ++i) {
      const T v = t.data<T>()[i];
      if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, complex128>) {
        out[i] = complex128(v.real(), v.imag());
      } else {
        out[i] = static_cast<double>(v);
      }
    }
  });
  if (!known && t.dtype() == DT_BOOL) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = t.data<bool>()[i] ? 1 : 0;
  }
  return out;
}

Tensor FromComplex(DataType type, const Shape& shape, const std::vector<complex128>& values) {
  Tensor stored(StoredAs(type), shape);
  const bool known = DispatchType(stored.dtype(), Numbers{}, [&]<class T>() {
    for (size_t i = 0; i < values.size(); ++i) {
      T& v = stored.data<T>()[i];
      if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, complex128>) {
        v = T(values[i].real(), values[i].imag());
      } else {
        v = static_cast<T>(values[i].real());
      }
    }
  });
  if (!known && type == DT_BOOL) {
    for (size_t i = 0; i < values.size(); ++i) stored.data<bool>()[i] = values[i].real() != 0;
  }
  return stored.dtype() == type ? stored : stored.BitcastTo(type);
}

struct Limits {
  double low, high;
};
Limits LimitsOf(DataType type) {
  Limits limits{-9e15, 9e15};
  DispatchType(StoredAs(type), List<int8_t, int16_t, int32_t, uint8_t, uint16_t, uint32_t>{},
               [&]<class T>() {
                 limits = {static_cast<double>(std::numeric_limits<T>::min()),
                           static_cast<double>(std::numeric_limits<T>::max())};
               });
  if (type == DT_UINT64) limits.low = 0;
  return limits;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  Tensor Make(DataType type, const Shape& shape, const Range& range) {
    if (type == DT_STRING) {
      Tensor t(type, shape);
      for (std::string& s : t.flat<std::string>()) s = absl::StrCat("s", engine_() % 1000);
      return t;
    }
    const int64_t n = shape.num_elements();
    std::vector<complex128> values(n);
    for (int64_t i = 0; i < n; ++i) {
      values[i] = Draw(type, range, i, n);
      if (IsComplex(type)) values[i] = complex128(values[i].real(), Draw(type, range, i, n));
    }
    if (range.distinct) std::shuffle(values.begin(), values.end(), engine_);
    return FromComplex(type, shape, values);
  }

 private:
  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(engine_); }

  double Draw(DataType type, const Range& range, int64_t i, int64_t n) {
    if (type == DT_BOOL) return static_cast<double>(engine_() % 2);
    const bool whole = IsInteger(StoredAs(type));
    Limits limits{range.low, range.high};
    if (whole) {
      const Limits of_type = LimitsOf(type);
      limits.low = std::ceil(std::clamp(range.low, of_type.low, of_type.high));
      limits.high =
          std::max(limits.low, std::floor(std::clamp(range.high, of_type.low, of_type.high)));
    }
    const double width = limits.high - limits.low;
    const double u = range.distinct ? (i + 0.5 + 0.4 * (Uniform() - 0.5)) / n : Uniform();
    double v = limits.low + u * width;
    if (whole) v = std::min(limits.high, std::floor(limits.low + u * (width + 1)));
    if (range.nonzero && std::abs(v) < (whole ? 0.5 : 0.05 * width))
      v = limits.high != 0 ? limits.high : limits.low;
    return v;
  }

  std::mt19937_64 engine_;
};

uint64_t SeedOf(absl::string_view text) {
  uint64_t h = 1469598103934665603u;  // FNV-1a
  for (const char c : text) h = (h ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return h;
}

double DefaultTolerance(DataType type) {
  switch (type) {
    case DT_FLOAT:
    case DT_COMPLEX64:
      return 1e-5;
    case DT_DOUBLE:
    case DT_COMPLEX128:
      return 1e-11;
    case DT_HALF:
      return 4e-3;
    case DT_BFLOAT16:
      return 3e-2;
    default:
      return 0;
  }
}

bool PartClose(double got, double want, double tolerance) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::abs(got - want) <= tolerance * std::max(1.0, std::abs(want));
}

bool Close(complex128 got, complex128 want, double tolerance) {
  const double scale =
      tolerance * std::max(1.0, std::isfinite(std::abs(want)) ? std::abs(want) : 1.0);
  return PartClose(got.real(), want.real(), scale) && PartClose(got.imag(), want.imag(), scale);
}

bool IsExact(DataType type) { return !IsFloating(type) && !IsComplex(type); }

// Reports at most one failure: the first element that differs, and the number of differences.
void ExpectClose(const Tensor& got, const Tensor& want, double tolerance) {
  if (want.shape() != got.shape()) {
    ADD_FAILURE() << "shape " << got.shape().ToString() << ", expected " << want.shape().ToString();
    return;
  }
  if (got.dtype() == DT_STRING || (got.dtype() == want.dtype() && IsExact(got.dtype()))) {
    EXPECT_TRUE(IdenticalTensors(got, want)) << got.ToString(40) << "\nexpected\n"
                                             << want.ToString(40);
    return;
  }
  const std::vector<complex128> actual = ToComplex(got);
  // Converts through the op's type, so that overflow is expected there.
  const std::vector<complex128> expected = ToComplex(
      IsExact(got.dtype()) ? want : FromComplex(got.dtype(), want.shape(), ToComplex(want)));
  int64_t bad = 0, first = -1;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (Close(actual[i], expected[i], tolerance)) continue;
    if (bad++ == 0) first = static_cast<int64_t>(i);
  }
  if (bad == 0) return;
  ADD_FAILURE() << bad << " of " << actual.size() << " elements differ; element " << first << " is "
                << actual[first] << ", expected " << expected[first] << " (tolerance " << tolerance
                << ")";
}

}  // namespace

std::vector<double> ToDoubles(const Tensor& t) {
  const std::vector<complex128> values = ToComplex(t);
  std::vector<double> out(values.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = values[i].real();
  return out;
}

Tensor Doubles(const Shape& shape, const std::vector<double>& values) {
  return Tensor::Of<double>(shape, absl::MakeConstSpan(values));
}

void ForEachIndex(const Shape& shape,
                  const std::function<void(int64_t, const std::vector<int64_t>&)>& fn) {
  std::vector<int64_t> index(shape.rank(), 0);
  const int64_t n = shape.num_elements();
  for (int64_t flat = 0; flat < n; ++flat) {
    fn(flat, index);
    for (int d = shape.rank() - 1; d >= 0 && ++index[d] == shape.dim(d); --d) index[d] = 0;
  }
}

// ---- running a row

class OpCaseRunner {
 public:
  explicit OpCaseRunner(const OpCase& c) : c_(c) {}

  void Run() {
    spec_ = BuiltinOps().Find(c_.op_);
    ASSERT_NE(spec_, nullptr) << "no op " << c_.op_;
    FindTypeAttr();
    const std::vector<DataType> types = Types();
    ASSERT_FALSE(types.empty()) << "no type to test: is there a kernel for the CPU?";
    for (const DataType type : types) {
      for (const std::vector<Shape>& shapes : ShapeSets()) {
        if (IsLong(shapes) && type != DT_FLOAT && type != DT_DOUBLE && type != DT_HALF &&
            type != DT_INT32)
          continue;
        Check(type, shapes, /*specials=*/false);
      }
      if (IsElementwise() && c_.specials_ && (IsFloating(type)))
        Check(type, SpecialShapes(), /*specials=*/true);
      if (testing::Test::HasFatalFailure()) return;
    }
    const int order = GradientOrder();
    if (order == 0) return;
    ASSERT_NE(std::find(types.begin(), types.end(), DT_DOUBLE), types.end())
        << "gradients are checked in double";
    for (const std::vector<Shape>& shapes : GradientShapeSets()) CheckGradient(shapes, order);
  }

  int GradientOrder() {
    if (c_.gradient_order_ >= 0) return c_.gradient_order_;
    spec_ = BuiltinOps().Find(c_.op_);
    if (spec_ == nullptr || !spec_->gradient_fn()) return 0;
    FindTypeAttr();
    const std::vector<DataType> types = Types();
    return std::find(types.begin(), types.end(), DT_DOUBLE) != types.end() ? 2 : 0;
  }

 private:
  bool IsElementwise() const { return c_.unary_ != nullptr || c_.binary_ != nullptr; }

  void FindTypeAttr() {
    type_attr_ = c_.type_attr_;
    if (!type_attr_.empty()) return;
    if (spec_->FindAttr("T") != nullptr) {
      type_attr_ = "T";
      return;
    }
    for (const AttrSpec& attr : spec_->attrs()) {
      if (attr.kind != AttrSpec::Kind::kType || attr.is_list) continue;
      if (!type_attr_.empty()) {
        type_attr_.clear();
        return;
      }
      type_attr_ = attr.name;
    }
    // If the attribute is the type of an input, and every input of the row has its own type, there
    // is nothing to sweep.
    const bool any_swept =
        std::any_of(c_.inputs_.begin(), c_.inputs_.end(), [](const auto& in) { return !in.type; });
    const bool of_input =
        std::any_of(spec_->inputs().begin(), spec_->inputs().end(),
                    [&](const ArgSpec& arg) { return arg.type_attr == type_attr_; });
    if (of_input && !any_swept && c_.types_.empty()) type_attr_.clear();
  }

  bool HasKernel(DataType type) const {
    for (const KernelDef* def : BuiltinKernels().KernelsOf(c_.op_)) {
      if (def->place != kCpu) continue;
      const bool fits = std::all_of(
          def->constraints.begin(), def->constraints.end(), [&](const auto& constraint) {
            return (!constraint.first.empty() && constraint.first != type_attr_) ||
                   constraint.second == type;
          });
      if (fits) return true;
    }
    return false;
  }

  std::vector<DataType> Types() const {
    if (type_attr_.empty()) return {DT_INVALID};
    if (!c_.types_.empty()) return c_.types_;
    std::vector<DataType> allowed = spec_->FindAttr(type_attr_)->allowed_types;
    if (allowed.empty()) {
      allowed = DataTypesOf(JoinLists<RealNumbers, List<bool>, Complexes>());
    }
    std::vector<DataType> types;
    for (const DataType t : allowed) {
      const bool excluded =
          std::find(c_.not_types_.begin(), c_.not_types_.end(), t) != c_.not_types_.end();
      const bool has_complex = c_.complex_unary_ != nullptr || c_.complex_binary_ != nullptr;
      if (excluded || !HasKernel(t)) continue;
      if (IsElementwise() && IsComplex(t) && !has_complex) continue;
      if (IsElementwise() && (t == DT_STRING || t == DT_VARIANT || t == DT_BOOL || IsQuantized(t)))
        continue;
      types.push_back(t);
    }
    return types;
  }

  // Long inputs test vectorized and multithreaded loops, for which a few types suffice.
  static bool IsLong(const std::vector<Shape>& shapes) {
    return std::any_of(shapes.begin(), shapes.end(),
                       [](const Shape& s) { return s.num_elements() > 10000; });
  }

  std::vector<std::vector<Shape>> ShapeSets() const {
    if (!IsElementwise()) return {{}};
    std::vector<std::vector<Shape>> sets;
    if (c_.unary_ != nullptr) {
      for (const Shape& s : UnaryShapes()) sets.push_back({s});
    } else {
      for (const auto& [a, b] : BinaryShapes()) sets.push_back({a, b});
    }
    return sets;
  }

  std::vector<std::vector<Shape>> GradientShapeSets() const {
    if (!IsElementwise()) return {{}};
    if (c_.unary_ != nullptr) return {{Shape()}, {Shape{7}}, {Shape{3, 2}}};
    return {{Shape(), Shape()},      {Shape{3, 2}, Shape{3, 2}}, {Shape{3, 1}, Shape{1, 2}},
            {Shape{2, 3}, Shape{3}}, {Shape(), Shape{4}},        {Shape{2, 1, 2}, Shape{3, 1}}};
  }

  static const std::vector<double>& Specials() {
    static const std::vector<double>* const values =
        new std::vector<double>{0.0,
                                -0.0,
                                1,
                                -1,
                                0.5,
                                -0.5,
                                1e30,
                                -1e30,
                                1e-30,
                                700,
                                -700,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()};
    return *values;
  }
  std::vector<Shape> SpecialShapes() const {
    const int64_t n = static_cast<int64_t>(Specials().size());
    if (c_.unary_ != nullptr) return {Shape{n}};
    return {Shape{n, 1}, Shape{n}};
  }

  // The arguments of one run: tensors in flat order, and which of them belong to one list.
  struct Arguments {
    Tensors values;
    std::vector<int> owner;  // index in c_.inputs_
  };

  Arguments MakeArguments(DataType type, const std::vector<Shape>& shapes, bool specials,
                          Random& random) const {
    Arguments out;
    for (size_t k = 0; k < c_.inputs_.size(); ++k) {
      const OpCase::InputSpec& input = c_.inputs_[k];
      const std::vector<Shape> of_input =
          shapes.empty() ? input.shapes : std::vector<Shape>{shapes[k]};
      for (size_t j = 0; j < of_input.size(); ++j) {
        const Shape& shape = of_input[j];
        out.owner.push_back(static_cast<int>(k));
        if (input.value.initialized()) {
          out.values.push_back(input.values.empty() ? input.value : input.values[j]);
        } else if (specials) {
          out.values.push_back(FromComplex(
              type, shape, std::vector<complex128>(Specials().begin(), Specials().end())));
        } else {
          out.values.push_back(random.Make(input.type.value_or(type), shape, input.range));
        }
      }
    }
    return out;
  }

  bool IsSwept(const Arguments& args, size_t i) const {
    return !c_.inputs_[args.owner[i]].type.has_value();
  }

  // Builds the node and its inputs `xs`: placeholders for random values, constants for given ones.
  Node* Build(Graph& g, DataType type, const Arguments& args, Outputs* xs) const {
    for (size_t i = 0; i < args.values.size(); ++i) {
      const Tensor& value = args.values[i];
      const bool constant = c_.inputs_[args.owner[i]].value.initialized();
      NodeBuilder source(g, constant ? "Const" : "Placeholder");
      source.Name(absl::StrCat("x", i)).Attr("dtype", value.dtype());
      constant ? source.Attr("value", value) : source.Attr("shape", value.shape());
      xs->push_back(source.BuildOutput());
    }
    NodeBuilder builder(g, c_.op_);
    size_t next = 0;
    bool any_swept = false;
    for (size_t k = 0; k < c_.inputs_.size(); ++k) {
      const OpCase::InputSpec& input = c_.inputs_[k];
      any_swept |= !input.type.has_value();
      if (input.is_list) {
        builder.InputList(absl::MakeConstSpan(*xs).subspan(next, input.shapes.size()));
        next += input.shapes.size();
      } else {
        builder.Input((*xs)[next++]);
      }
    }
    for (const auto& [name, value] : c_.attrs_) builder.Attr(name, value);
    if (!any_swept && type != DT_INVALID) builder.Attr(type_attr_, type);
    return g.status().ok() ? builder.Build() : nullptr;
  }

  std::vector<std::pair<Output, Tensor>> Feeds(const Outputs& xs, const Arguments& args) const {
    std::vector<std::pair<Output, Tensor>> feeds;
    for (size_t i = 0; i < xs.size(); ++i) {
      if (!c_.inputs_[args.owner[i]].value.initialized()) feeds.emplace_back(xs[i], args.values[i]);
    }
    return feeds;
  }

  std::string Describe(DataType type, const Arguments& args, uint64_t seed) const {
    std::vector<std::string> inputs;
    for (const Tensor& t : args.values) inputs.push_back(t.Description());
    return absl::StrCat(c_.name(), " for ", DataTypeName(type), ", inputs ",
                        absl::StrJoin(inputs, " "), ", seed ", seed);
  }

  uint64_t SeedFor(DataType type, const std::vector<Shape>& shapes) const {
    std::string key = absl::StrCat(c_.name(), "/", static_cast<int>(type));
    for (const Shape& s : shapes) absl::StrAppend(&key, "/", s.ToString());
    return SeedOf(key);
  }

  void Check(DataType type, const std::vector<Shape>& shapes, bool specials) {
    const uint64_t seed = SeedFor(type, shapes);
    Random random(seed);
    const Arguments args = MakeArguments(type, shapes, specials, random);
    SCOPED_TRACE(Describe(type, args, seed));
    Graph g;
    Outputs xs;
    Node* node = Build(g, type, args, &xs);
    ASSERT_NE(node, nullptr) << g.status().ToString();
    Outputs fetches;
    for (int i = 0; i < node->num_outputs(); ++i) fetches.push_back(node->output(i));
    const absl::StatusOr<Tensors> got = Evaluate(g, Feeds(xs, args), fetches);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    for (int i = 0; i < node->num_outputs(); ++i) {
      EXPECT_EQ(DataTypeName((*got)[i].dtype()), DataTypeName(BaseType(node->output_type(i))))
          << "output " << i;
      const Shape& inferred = node->output_shape(i);
      if (c_.shapes_depend_on_values_) {
        EXPECT_TRUE(inferred.IsCompatibleWith((*got)[i].shape()))
            << "output " << i << " inferred " << inferred.ToString() << ", is "
            << (*got)[i].shape().ToString();
      } else {
        EXPECT_EQ(inferred.ToString(), (*got)[i].shape().ToString())
            << "inferred shape of output " << i;
      }
    }
    const Tensors want = Expected(*node, type, args);
    ASSERT_LE(want.size(), got->size());
    for (size_t i = 0; i < want.size(); ++i) {
      SCOPED_TRACE(absl::StrCat("output ", i));
      ExpectClose((*got)[i], want[i], Tolerance(type, (*got)[i].dtype()));
    }
  }

  double Tolerance(DataType type, DataType output) const {
    if (IsExact(output)) return 0;
    const auto of = [&](DataType t) {
      const auto it = c_.tolerance_.find(t);
      return it != c_.tolerance_.end() ? it->second : c_.tolerance_factor_ * DefaultTolerance(t);
    };
    return std::max(of(type), of(output));
  }

  Tensors Expected(const Node& node, DataType type, const Arguments& args) const {
    Tensors wide;
    for (size_t i = 0; i < args.values.size(); ++i) {
      const Tensor& t = args.values[i];
      const bool widen = IsSwept(args, i) && type != DT_STRING && type != DT_BOOL;
      wide.push_back(!widen ? t
                            : FromComplex(IsComplex(type) ? DT_COMPLEX128 : DT_DOUBLE, t.shape(),
                                          ToComplex(t)));
    }
    if (c_.reference_) return c_.reference_(node, wide);
    if (c_.unary_ != nullptr) return {ExpectedUnary(type, wide[0])};
    if (c_.binary_ != nullptr) return {ExpectedBinary(type, wide[0], wide[1])};
    return {};
  }

  Tensor ExpectedUnary(DataType type, const Tensor& x) const {
    std::vector<complex128> y = ToComplex(x);
    for (complex128& v : y)
      v = IsComplex(type) ? c_.complex_unary_(v) : complex128(c_.unary_(v.real()));
    return FromComplex(x.dtype(), x.shape(), y);
  }

  Tensor ExpectedBinary(DataType type, const Tensor& a, const Tensor& b) const {
    const Shape shape = BroadcastShapes(a.shape(), b.shape()).value();
    const std::vector<complex128> x = ToComplex(a), y = ToComplex(b);
    std::vector<complex128> z(shape.num_elements());
    const auto at = [&](const Tensor& t, const std::vector<int64_t>& index) {
      int64_t flat = 0;
      const int skip = shape.rank() - t.rank();
      for (int d = 0; d < t.rank(); ++d)
        flat = flat * t.dim(d) + (t.dim(d) == 1 ? 0 : index[d + skip]);
      return flat;
    };
    ForEachIndex(shape, [&](int64_t flat, const std::vector<int64_t>& index) {
      const complex128 u = x[at(a, index)], v = y[at(b, index)];
      z[flat] =
          IsComplex(type) ? c_.complex_binary_(u, v) : complex128(c_.binary_(u.real(), v.real()));
    });
    return FromComplex(a.dtype(), shape, z);
  }

  // Compares d(sum(w * ys))/dx, as the graph of gradients computes it, with central differences;
  // for the second order the ys are the first order's results.
  void CheckGradient(const std::vector<Shape>& shapes, int order) {
    const uint64_t seed = SeedFor(DT_DOUBLE, shapes);
    Random random(seed);
    Arguments args = MakeArguments(DT_DOUBLE, shapes, /*specials=*/false, random);
    SCOPED_TRACE("gradient of " + Describe(DT_DOUBLE, args, seed));
    Graph g;
    Outputs inputs;
    Node* node = Build(g, DT_DOUBLE, args, &inputs);
    ASSERT_NE(node, nullptr) << g.status().ToString();
    Outputs xs, ys;
    std::vector<int> positions;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& only = c_.gradient_inputs_;
      const bool chosen =
          only.empty() || std::find(only.begin(), only.end(), static_cast<int>(i)) != only.end();
      if (!IsSwept(args, i) || !chosen) continue;
      xs.push_back(inputs[i]);
      positions.push_back(static_cast<int>(i));
    }
    for (int i = 0; i < node->num_outputs(); ++i) {
      if (node->output(i).dtype() == DT_DOUBLE) ys.push_back(node->output(i));
    }
    for (int k = 1; k <= order; ++k) {
      SCOPED_TRACE(absl::StrCat("order ", k));
      const Outputs next = CheckOneOrder(g, inputs, xs, positions, ys, &args, random);
      if (testing::Test::HasFailure()) return;
      ys.clear();
      for (const Output& o : next) {
        if (o.valid()) ys.push_back(o);
      }
      if (ys.empty()) return;
    }
  }

  Outputs CheckOneOrder(Graph& g, const Outputs& inputs, const Outputs& xs,
                        const std::vector<int>& positions, const Outputs& ys, Arguments* args,
                        Random& random) {
    const absl::StatusOr<Tensors> y = Evaluate(g, Feeds(inputs, *args), ys);
    if (!y.ok()) {
      ADD_FAILURE() << y.status().ToString();
      return {};
    }
    GradientsOptions options;
    Tensors weights;
    for (const Tensor& t : *y) {
      weights.push_back(random.Make(DT_DOUBLE, t.shape(), {0.5, 1.5}));
      options.grad_ys.push_back(NodeBuilder(g, "Const")
                                    .Name("w")
                                    .Attr("dtype", DT_DOUBLE)
                                    .Attr("value", weights.back())
                                    .BuildOutput());
    }
    const Outputs grads = DenseGradients(ys, xs, options);
    if (!g.status().ok()) {
      ADD_FAILURE() << g.status().ToString();
      return {};
    }
    const auto objective = [&] {
      const absl::StatusOr<Tensors> at = Evaluate(g, Feeds(inputs, *args), ys);
      double sum = 0;
      for (size_t i = 0; at.ok() && i < at->size(); ++i) {
        for (int64_t k = 0; k < weights[i].num_elements(); ++k) {
          sum += weights[i].data<double>()[k] * (*at)[i].data<double>()[k];
        }
      }
      return sum;
    };
    for (size_t i = 0; i < xs.size(); ++i) {
      SCOPED_TRACE(absl::StrCat("with respect to input ", positions[i]));
      Tensor analytic = Tensor::Zeros(DT_DOUBLE, args->values[positions[i]].shape());
      if (grads[i].valid()) {
        absl::StatusOr<Tensors> value = Evaluate(g, Feeds(inputs, *args), {grads[i]});
        if (!value.ok() || (*value)[0].shape() != analytic.shape()) {
          ADD_FAILURE() << (value.ok() ? "gradient has shape " + (*value)[0].shape().ToString()
                                       : value.status().ToString());
          return {};
        }
        analytic = (*value)[0].DeepCopy();
      }
      CompareWithDifferences(analytic, &args->values[positions[i]], objective);
    }
    return grads;
  }

  void CompareWithDifferences(const Tensor& analytic, Tensor* x,
                              const std::function<double()>& objective) const {
    constexpr int64_t kMost = 48;  // compared elements
    const int64_t n = x->num_elements(), step = std::max<int64_t>(1, n / kMost);
    const Tensor original = x->DeepCopy();
    for (int64_t k = 0; k < n; k += step) {
      const double v = original.data<double>()[k], h = 1e-5 * std::max(1.0, std::abs(v));
      const auto at = [&](double value) {
        *x = original.DeepCopy();
        x->data<double>()[k] = value;
        return objective();
      };
      const double numeric = (at(v + h) - at(v - h)) / (2 * h);
      *x = original;
      const double got = analytic.data<double>()[k];
      if (PartClose(got, numeric, c_.gradient_tolerance_)) continue;
      ADD_FAILURE() << "element " << k << " of the gradient is " << got << ", by differences "
                    << numeric << " (x = " << v << ")";
      return;
    }
  }

  const OpCase& c_;
  const OpSpec* spec_ = nullptr;
  std::string type_attr_;
};

void OpCase::Run() const { OpCaseRunner(*this).Run(); }
int OpCase::gradient_order() const { return OpCaseRunner(*this).GradientOrder(); }

}  // namespace weir
