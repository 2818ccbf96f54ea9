#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "weir/core/io/coding.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/hash.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/string_util.h"

// Ops on single strings: lengths, numbers, hashes, base64.
namespace weir {

namespace {

template <class T>
bool ParseHexadecimal(absl::string_view digits, T* value) {
  const char* const end = digits.data() + digits.size();
  const absl::from_chars_result read =
      absl::from_chars(digits.data(), end, *value, absl::chars_format::hex);
  return read.ptr == end && read.ec != std::errc::invalid_argument;
}

bool ParseDecimal(absl::string_view text, float* value) { return absl::SimpleAtof(text, value); }
bool ParseDecimal(absl::string_view text, double* value) { return absl::SimpleAtod(text, value); }

// Parses ordinary numbers several times as fast as ParseNumber does. For real numbers the standard
// library's algorithm (Daniel Lemire, "Number parsing at a gigabyte per second", 2021) rounds
// correctly with one 128-bit product by a power of ten from a table. Returns false for everything
// else, numbers or not: white space, a plus, infinity, NaN, real zeros, and what is too large or
// too small.
template <class T>
bool ParseOrdinary(absl::string_view text, T* value) {
  const char* const end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, *value);
  if (read.ec != std::errc() || read.ptr != end) return false;
  if constexpr (std::is_integral_v<T>) {
    return true;
  } else {
    return std::isfinite(*value) && *value != 0;
  }
}

}  // namespace

template <class T>
bool ParseNumber(absl::string_view text, T* value) {
  if (ParseOrdinary(text, value)) return true;
  if constexpr (std::is_integral_v<T>) {
    return absl::SimpleAtoi(text, value);
  } else {
    absl::string_view digits = absl::StripAsciiWhitespace(text);
    const bool negative = absl::ConsumePrefix(&digits, "-");
    if (!negative) absl::ConsumePrefix(&digits, "+");
    if (!absl::StartsWithIgnoreCase(digits, "0x")) return ParseDecimal(text, value);
    if (!ParseHexadecimal(digits.substr(2), value)) return false;
    if (negative) *value = -*value;
    return true;
  }
}

template bool ParseNumber(absl::string_view, float*);
template bool ParseNumber(absl::string_view, double*);
template bool ParseNumber(absl::string_view, int32_t*);
template bool ParseNumber(absl::string_view, int64_t*);
template bool ParseNumber(absl::string_view, uint32_t*);
template bool ParseNumber(absl::string_view, uint64_t*);

namespace {

// ---- lengths, white space, numbers

absl::StatusOr<Kernel> MakeLength(const KernelInit& init) {
  const auto bytes = [](KernelContext& c) -> absl::Status {
    constexpr double kNs = 0.6;
    return MapStrings<int32_t>(c, kNs,
                               [](const std::string& s) { return static_cast<int32_t>(s.size()); });
  };
  const auto characters = [](KernelContext& c) -> absl::Status {
    constexpr double kNs = 10;
    return MapStrings<int32_t>(c, kNs, [](const std::string& s) {
      return static_cast<int32_t>(
          std::count_if(s.begin(), s.end(), [](char each) { return !IsTrailByte(each); }));
    });
  };
  return CountsCharacters(init) ? Kernel(characters) : Kernel(bytes);
}

absl::Status Strip(KernelContext& c) {
  constexpr double kNs = 20;
  return MapStrings<std::string>(
      c, kNs, [](const std::string& s) { return std::string(absl::StripAsciiWhitespace(s)); });
}

template <class T>
absl::Status ToNumber(KernelContext& c) {
  constexpr double kNs = 30;
  return MapStrings<T>(c, kNs, [](const std::string& s) -> absl::StatusOr<T> {
    T value;
    if (ParseNumber(s, &value)) return value;
    return InvalidArgument("StringToNumberOp could not correctly convert string: ", s);
  });
}

template <class... Ts>
void AddToNumber(KernelRegistry* r, List<Ts...>) {
  (r->Add("StringToNumber", kCpu, {{"out_type", DataTypeOf<Ts>::value}}, ToNumber<Ts>), ...);
}

// ---- hashes

// A kernel that assigns strings to buckets by hash(string).
template <class F>
Kernel Buckets(const KernelInit& init, F hash) {
  const auto buckets = static_cast<uint64_t>(init.attr<int64_t>("num_buckets"));
  return Kernel([buckets, hash](KernelContext& c) -> absl::Status {
    constexpr double kNs = 10;
    return MapStrings<int64_t>(c, kNs, [buckets, hash](const std::string& s) {
      return static_cast<int64_t>(hash(s) % buckets);
    });
  });
}

absl::StatusOr<Kernel> MakeBuckets(const KernelInit& init) { return Buckets(init, MurmurHash64); }

absl::StatusOr<Kernel> MakeFastBuckets(const KernelInit& init) {
  return Buckets(init, Fingerprint64);
}

absl::StatusOr<Kernel> MakeStrongBuckets(const KernelInit& init) {
  const auto key = init.attr<std::vector<int64_t>>("key");
  if (key.size() != 2) return InvalidArgument("Key must have 2 elements");
  return Buckets(init, [a = static_cast<uint64_t>(key[0]), b = static_cast<uint64_t>(key[1])](
                           const std::string& s) { return SipHash(a, b, s); });
}

// The fingerprint of row i of x: of its bytes; for strings, of the combined fingerprints of
// several.
uint64_t RowFingerprint(const Tensor& x, int64_t i, int64_t row) {
  if (x.dtype() != DT_STRING) {
    const size_t bytes = static_cast<size_t>(row) * ElementSize(x.dtype());
    return Fingerprint64({static_cast<const char*>(x.raw()) + i * bytes, bytes});
  }
  const std::string* const strings = x.data<std::string>() + i * row;
  if (row == 1) return Fingerprint64(strings[0]);
  std::string each;
  for (int64_t k = 0; k < row; ++k) PutFixed64(&each, Fingerprint64(strings[k]));
  return Fingerprint64(each);
}

absl::Status Fingerprint(KernelContext& c) {
  const Tensor& x = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const std::string method, ReadString(c.input(1), "method"));
  if (method != "farmhash64") return InvalidArgument("Unsupported fingerprint method: ", method);
  if (x.rank() == 0) {
    return InvalidArgument("`data` should have at least one dimension: ", x.shape().ToString());
  }
  const int64_t rows = x.dim(0), row = rows == 0 ? 0 : x.num_elements() / rows;
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({rows, 8})));
  constexpr double kNs = 10;
  uint8_t* const bytes = out->data<uint8_t>();
  return ForEachString(c.pool(), rows, kNs * static_cast<double>(row), [&](int64_t i) {
    const uint64_t fingerprint = RowFingerprint(x, i, row);
    for (int b = 0; b < 8; ++b) bytes[i * 8 + b] = static_cast<uint8_t>(fingerprint >> (8 * b));
  });
}

absl::StatusOr<Kernel> MakeFingerprint(const KernelInit& init) {
  const auto type = init.attr<DataType>("T");
  if (type != DT_STRING && !IsPlain(type)) {
    return InvalidArgument("Data type not supported: ", DataTypeName(type));
  }
  return Kernel(&Fingerprint);
}

// ---- base64, with '-' and '_' instead of '+' and '/'

absl::StatusOr<Kernel> MakeEncodeBase64(const KernelInit& init) {
  const bool pad = init.attr<bool>("pad");
  return Kernel([pad](KernelContext& c) -> absl::Status {
    constexpr double kNs = 50;
    return MapStrings<std::string>(c, kNs, [pad](const std::string& s) {
      std::string text = absl::WebSafeBase64Escape(s);
      while (pad && text.size() % 4 != 0) text += '=';
      return text;
    });
  });
}

// The value of each digit; kNoDigit for other bytes.
constexpr uint8_t kNoDigit = 64;
constexpr std::array<uint8_t, 256> Base64Values() {
  constexpr absl::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::array<uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<uint8_t>(kDigits[i])] = static_cast<uint8_t>(i);
  }
  return values;
}
constexpr std::array<uint8_t, 256> kBase64Values = Base64Values();

absl::StatusOr<std::string> DecodeBase64(absl::string_view text) {
  if (text.size() % 4 == 0 && absl::ConsumeSuffix(&text, "=")) absl::ConsumeSuffix(&text, "=");
  if (text.size() % 4 == 1) return InvalidArgument("Base64 string length cannot be 1 modulo 4.");
  std::string bytes(text.size() * 6 / 8, '\0');
  char* next = bytes.data();
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const uint8_t digit = kBase64Values[static_cast<uint8_t>(c)];
    if (digit == kNoDigit) return InvalidArgument("Invalid character found in base64.");
    bits = bits << 6 | digit;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    *next++ = static_cast<char>(bits >> count);
  }
  return bytes;
}

absl::Status DecodeAllBase64(KernelContext& c) {
  constexpr double kNs = 50;
  return MapStrings<std::string>(c, kNs, [](const std::string& s) { return DecodeBase64(s); });
}

}  // namespace

void AddStringKernels(KernelRegistry* r) {
  r->Add("StringLength", kCpu, MakeLength);
  r->Add("StringStrip", kCpu, Strip);
  AddToNumber(r, List<float, double, int32_t, int64_t, uint32_t, uint64_t>{});
  r->Add("StringToHashBucket", kCpu, MakeBuckets);
  r->Add("StringToHashBucketFast", kCpu, MakeFastBuckets);
  r->Add("StringToHashBucketStrong", kCpu, MakeStrongBuckets);
  r->Add("Fingerprint", kCpu, MakeFingerprint);
  r->Add("EncodeBase64", kCpu, MakeEncodeBase64);
  r->Add("DecodeBase64", kCpu, DecodeAllBase64);
  AddStringJoinKernels(r);
  AddStringSplitKernels(r);
  AddStringFormatKernels(r);
  AddStringRegexKernels(r);
  AddDecodeProtoKernels(r);
  AddEncodeProtoKernels(r);
}

}  // namespace weir
