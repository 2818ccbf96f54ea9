#include <charconv>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "weir/core/tensor/variant.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/string_util.h"
#include "weir/kernels/lib/summarize.h"
#include "weir/kernels/text/fixed_notation.h"

// Tensors as text: AsString formats elements, StringFormat whole tensors.
namespace weir {

namespace {

// ---- AsString

using Encodable = JoinLists<Numbers, List<bool, std::string, Variant>>;

// A printf format, and what makes printing by it faster.
struct TextFormat {
  // For the type that a value is passed as (see Encode); empty: strings stay as they are.
  std::string printf;
  // Whether it is only a conversion and a precision: no width, no flags.
  bool plain = false;
  // The decimals of a plain fixed notation that PrintFixed prints; -1: another notation.
  int decimals = -1;
};

// Prints `value` with the printf format. Strings may contain zero bytes.
template <class T>
void Print(const TextFormat& format, const T& value, std::string* text) {
  text->clear();
  absl::FormatUntyped(text, absl::UntypedFormatSpec(format.printf), {absl::FormatArg(value)});
}

void PrintReal(const TextFormat& format, double value, std::string* text) {
  if (format.decimals >= 0 && PrintFixed(value, format.decimals, text)) return;
  Print(format, value, text);
}

// For long long and unsigned long long.
template <class T>
void PrintInteger(const TextFormat& format, T value, std::string* text) {
  if (!format.plain) return Print(format, value, text);
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  text->assign(digits, static_cast<size_t>(end - digits));
}

template <class T>
void Encode(const TextFormat& format, const T& value, std::string* text) {
  if constexpr (std::is_same_v<T, bool>) {
    *text = value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (format.printf.empty()) {
      *text = value;
    } else {
      Print(format, value, text);
    }
  } else if constexpr (std::is_same_v<T, Variant>) {
    *text = absl::StrCat("Variant<type: ", value.type_name, ">");
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    std::string real, imag;
    PrintReal(format, static_cast<double>(value.real()), &real);
    PrintReal(format, static_cast<double>(value.imag()), &imag);
    *text = absl::StrCat("(", real, ",", imag, ")");
  } else if constexpr (std::is_integral_v<T>) {
    using Passed = std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>;
    PrintInteger<Passed>(format, value, text);
  } else if constexpr (std::is_same_v<T, double>) {
    PrintReal(format, value, text);
  } else {
    PrintReal(format, static_cast<double>(static_cast<float>(value)), text);
  }
}

struct FormatOptions {
  DataType type;
  int64_t precision, width;
  bool scientific, shortest;
  std::string fill;
};

// The maximum field width.
constexpr int64_t kWidest = 1 << 16;

absl::Status Check(const FormatOptions& o) {
  const bool is_real = IsFloating(o.type) || IsComplex(o.type);
  if (!is_real && o.type != DT_STRING) {
    if (o.scientific || o.shortest) {
      return InvalidArgument("scientific and shortest format not supported for datatype ",
                             DataTypeName(o.type));
    }
    if (o.precision >= 0) {
      return InvalidArgument("precision not supported for datatype ", DataTypeName(o.type));
    }
  }
  if (o.scientific && o.shortest) {
    return InvalidArgument("Cannot select both scientific and shortest notation");
  }
  if (o.fill.size() > 1) {
    return InvalidArgument("Fill string must be one or fewer characters");
  }
  if (o.fill.find_first_not_of(" +-0#") != std::string::npos) {
    return InvalidArgument("Fill argument not supported: \"", o.fill, "\"");
  }
  if (o.width > kWidest || o.precision > kWidest) {
    return InvalidArgument("width and precision must be at most ", kWidest, ", but they are ",
                           o.width, " and ", o.precision);
  }
  return absl::OkStatus();
}

std::string PrintfFormat(const FormatOptions& o) {
  if (o.type == DT_STRING && o.width <= 0) return "";
  std::string format = "%" + o.fill;
  if (o.width >= 0) absl::StrAppend(&format, o.width);
  if (o.precision >= 0) absl::StrAppend(&format, ".", o.precision);
  if (o.type == DT_STRING) return format + "s";
  if (!IsInteger(o.type)) return format + (o.shortest ? "g" : o.scientific ? "e" : "f");
  const bool is_unsigned =
      o.type == DT_UINT8 || o.type == DT_UINT16 || o.type == DT_UINT32 || o.type == DT_UINT64;
  return format + (is_unsigned ? "llu" : "lld");
}

TextFormat FormatOf(const FormatOptions& o) {
  constexpr int kDefaultDecimals = 6;
  TextFormat format;
  format.printf = PrintfFormat(o);
  format.plain = o.width <= 0 && o.fill.empty();
  const int64_t decimals = o.precision < 0 ? kDefaultDecimals : o.precision;
  if (format.plain && !o.shortest && !o.scientific && decimals <= kMaxFixedDecimals) {
    format.decimals = static_cast<int>(decimals);
  }
  return format;
}

absl::StatusOr<Kernel> MakeAsString(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int precision, NarrowAttr(init.node, "precision"));
  WEIR_ASSIGN_OR_RETURN(const int width, NarrowAttr(init.node, "width"));
  const FormatOptions options = {.type = init.attr<DataType>("T"),
                                 .precision = precision,
                                 .width = width,
                                 .scientific = init.attr<bool>("scientific"),
                                 .shortest = init.attr<bool>("shortest"),
                                 .fill = init.attr<std::string>("fill")};
  WEIR_RETURN_IF_ERROR(Check(options));
  return Kernel([format = FormatOf(options)](KernelContext& c) -> absl::Status {
    constexpr double kNs = 50;
    const Tensor& in = c.input(0);
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
    absl::Status status;
    DispatchType(in.dtype(), Encodable{}, [&]<class T>() {
      const T* const values = in.data<T>();
      std::string* const texts = out->data<std::string>();
      status = ForEachString(c.pool(), in.num_elements(), kNs,
                             [&](int64_t k) { Encode(format, values[k], &texts[k]); });
    });
    return status;
  });
}

// ---- StringFormat

absl::StatusOr<Kernel> MakeFormat(const KernelInit& init) {
  const std::vector<std::string> parts =
      absl::StrSplit(init.attr<std::string>("template"), init.attr<std::string>("placeholder"));
  const int holes = static_cast<int>(parts.size()) - 1;
  if (init.node.num_inputs() != holes) {
    return InvalidArgument("num placeholders in template and num inputs must match: ", holes,
                           " vs. ", init.node.num_inputs());
  }
  WEIR_ASSIGN_OR_RETURN(const int64_t edge, NarrowAttr(init.node, "summarize"));
  return Kernel([parts, edge](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
    std::string text = parts[0];
    for (int i = 0; i < c.num_inputs(); ++i) {
      absl::StrAppend(&text, SummarizeEdges(c.input(i), edge), parts[i + 1]);
    }
    *out->data<std::string>() = std::move(text);
    return absl::OkStatus();
  });
}

}  // namespace

void AddStringFormatKernels(KernelRegistry* r) {
  r->Add("AsString", kCpu, MakeAsString);
  r->Add("StringFormat", kCpu, MakeFormat);
}

}  // namespace weir
