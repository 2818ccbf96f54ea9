#include "weir/ops/lib/literal.h"

#include <cmath>
#include <limits>

#include "weir/ops/lib/array.h"

namespace weir {

namespace {

using complex128 = std::complex<double>;

// Returns the wide dtype in which elements of `t` are converted: bool, int64, uint64, double,
// complex128 or string.
DataType WideType(DataType t) {
  if (IsFloating(t)) return DT_DOUBLE;
  if (IsComplex(t)) return DT_COMPLEX128;
  if (t == DT_UINT64) return DT_UINT64;
  if (IsInteger(t)) return DT_INT64;
  return t;
}

// Ranks the wide dtypes. A list takes the highest-ranked dtype of its items.
int Rank(DataType wide) {
  switch (wide) {
    case DT_INT64:
      return 1;
    case DT_UINT64:
      return 2;
    case DT_DOUBLE:
      return 3;
    case DT_COMPLEX128:
      return 4;
    default:
      return 0;
  }
}

template <class To, class From>
bool ConvertElement(From from, To* to) {
  if constexpr (std::is_same_v<To, From>) {
    *to = from;
    return true;
  } else if constexpr (std::is_same_v<To, bool> || std::is_same_v<From, bool>) {
    return false;
  } else if constexpr (std::is_same_v<From, complex128>) {
    if constexpr (std::is_same_v<To, std::complex<float>>) {
      *to = To(static_cast<float>(from.real()), static_cast<float>(from.imag()));
      return true;
    }
    return false;
  } else if constexpr (std::is_same_v<To, std::complex<float>> || std::is_same_v<To, complex128>) {
    *to = To(static_cast<typename To::value_type>(from));
    return true;
  } else if constexpr (std::is_integral_v<To>) {
    if constexpr (std::is_integral_v<From>) {
      *to = static_cast<To>(from);
      return std::in_range<To>(from);
    }
    return false;
  } else {
    *to = static_cast<To>(static_cast<double>(from));
    return true;
  }
}

// Calls f.template operator()<T>() for the type of a literal that is not a string.
template <class F>
bool DispatchLiteral(DataType type, F&& f) {
  return DispatchType(type, List<bool>{}, f) || DispatchType(type, Numbers{}, f);
}

template <class From>
bool ConvertTo(const Tensor& from, Tensor* to) {
  bool ok = true;
  const bool known = DispatchLiteral(to->dtype(), [&]<class To>() {
    for (int64_t i = 0; i < from.num_elements() && ok; ++i) {
      ok = ConvertElement<To, From>(from.data<From>()[i], to->data<To>() + i);
    }
  });
  return known && ok;
}

// Returns false if the values cannot be converted to `type`.
bool Convert(const Tensor& from, DataType type, Tensor* to) {
  if (from.dtype() == type) {
    *to = from;
    return true;
  }
  if (from.dtype() == DT_STRING || type == DT_STRING) return false;
  *to = Tensor(type, from.shape());
  bool ok = false;
  DispatchLiteral(from.dtype(), [&]<class From>() {
    if constexpr (std::is_same_v<From, bool>) {
      ok = false;
    } else if constexpr (std::is_same_v<From, std::complex<float>>) {
      Tensor wide(DT_COMPLEX128, from.shape());
      std::copy_n(from.data<From>(), from.num_elements(), wide.data<complex128>());
      ok = type == DT_COMPLEX128 && (*to = wide, true);
    } else if constexpr (std::is_integral_v<From> || std::is_same_v<From, complex128>) {
      ok = ConvertTo<From>(from, to);
    } else {
      Tensor wide(DT_DOUBLE, from.shape());
      for (int64_t i = 0; i < from.num_elements(); ++i) {
        wide.data<double>()[i] = static_cast<double>(from.data<From>()[i]);
      }
      ok = ConvertTo<double>(wide, to);
    }
  });
  return ok;
}

void CopyElements(const Tensor& from, int64_t at, Tensor* to) {
  if (from.dtype() == DT_STRING) {
    std::copy_n(from.data<std::string>(), from.num_elements(), to->data<std::string>() + at);
  } else if (from.num_bytes() > 0) {
    const size_t size = ElementSize(from.dtype());
    std::copy_n(static_cast<const char*>(from.raw()), from.num_bytes(),
                static_cast<char*>(to->raw()) + at * size);
  }
}

}  // namespace

Literal::Literal(std::initializer_list<Literal> items) : untyped_(true) {
  if (items.size() == 0) {
    tensor_ = Tensor(DT_DOUBLE, Shape({0}));
    return;
  }
  const Literal& first = *items.begin();
  DataType type = WideType(first.tensor_.dtype());
  for (const Literal& item : items) {
    if (status_.ok()) status_ = item.status_;
    if (!status_.ok()) return;
    if (item.shape() != first.shape()) {
      status_ = InvalidArgument("a literal list has items of different shapes, ",
                                first.shape().ToString(), " and ", item.shape().ToString());
      return;
    }
    if (const DataType wide = WideType(item.tensor_.dtype()); Rank(wide) > Rank(type)) type = wide;
  }
  Shape shape({static_cast<int64_t>(items.size())});
  tensor_ = Tensor(type, shape.Concatenate(first.shape()));
  int64_t at = 0;
  for (const Literal& item : items) {
    Tensor wide;
    if (!Convert(item.tensor_, type, &wide)) {
      status_ = InvalidArgument("a literal list mixes ", DataTypeName(type), " and ",
                                DataTypeName(item.tensor_.dtype()));
      return;
    }
    CopyElements(wide, at, &tensor_);
    at += wide.num_elements();
  }
}

absl::StatusOr<Tensor> Literal::Make(DataType wanted) const {
  if (!status_.ok()) return status_;
  wanted = BaseType(wanted);
  Tensor out;
  if (wanted == DT_INVALID) wanted = own_;
  if (wanted == DT_INVALID) {
    if (!untyped_) return tensor_;
    switch (tensor_.dtype()) {
      case DT_DOUBLE:
        wanted = DT_FLOAT;
        break;
      case DT_INT64:
        if (Convert(tensor_, DT_INT32, &out)) return out;
        return tensor_;
      default:
        return tensor_;
    }
  }
  if (Convert(tensor_, wanted, &out)) return out;
  const DataType own = untyped_ ? Make()->dtype() : tensor_.dtype();
  return InvalidArgument("Expected ", DataTypeName(wanted), ", but got ", tensor_.ToString(8),
                         " of type '", DataTypeName(own),
                         "'; the conversion would lose information");
}

Output TensorArg::In(Graph& graph, DataType wanted, absl::string_view name) const {
  if (literal_) {
    absl::StatusOr<Tensor> tensor = literal_->Make(wanted);
    if (tensor.ok()) return Const(graph, *std::move(tensor), name);
    graph.Fail(Annotate(tensor.status(), absl::StrCat(graph.name_scope(), name)));
    return Output();
  }
  if (output_.expired())
    graph.Fail(FailedPrecondition("a tensor that is used here belongs to a destroyed graph"));
  if (!output_.valid()) return output_;
  if (&output_.graph() != &graph) {
    graph.Fail(InvalidArgument("Tensor ", output_.name(), " belongs to another graph"));
    return Output();
  }
  if (wanted != DT_INVALID && output_.dtype() != BaseType(wanted)) {
    graph.Fail(InvalidArgument("Tensor conversion requested dtype ", DataTypeName(BaseType(wanted)),
                               " for Tensor with dtype ", DataTypeName(output_.dtype()), ": ",
                               output_.name()));
    return Output();
  }
  graph.NameHere(output_);
  return output_;
}

}  // namespace weir
