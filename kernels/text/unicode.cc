#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/ucnv.h>
#include <unicode/ucnv_err.h>
#include <unicode/unistr.h>
#include <unicode/uscript.h>
#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include <memory>

#include "absl/strings/ascii.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/string_util.h"

// Strings as sequences of Unicode characters, with ICU.
namespace weir {

namespace {

// ---- reading and writing encodings

struct CloseConverter {
  void operator()(UConverter* converter) const { ucnv_close(converter); }
};
using Converter = std::unique_ptr<UConverter, CloseConverter>;

// ICU's callback for malformed bytes: writes U+FFFD and sets the flag.
void NoteMalformed(const void* malformed, UConverterToUnicodeArgs* args, const char* bytes,
                   int32_t length, UConverterCallbackReason reason, UErrorCode* status) {
  if (reason == UCNV_UNASSIGNED || reason == UCNV_ILLEGAL || reason == UCNV_IRREGULAR) {
    *static_cast<bool*>(const_cast<void*>(malformed)) = true;
  }
  UCNV_TO_U_CALLBACK_SUBSTITUTE(nullptr, args, bytes, length, reason, status);
}

// A decoder of one encoding. Not thread-safe.
class Decoder {
 public:
  static absl::StatusOr<Decoder> Open(const std::string& encoding) {
    UErrorCode status = U_ZERO_ERROR;
    Converter converter(ucnv_open(encoding.c_str(), &status));
    if (U_FAILURE(status)) {
      return InvalidArgument("Could not create converter for input encoding: ", encoding);
    }
    return Decoder(std::move(converter));
  }

  // Calls fn(character, number of bytes, whether they were malformed) for each character.
  template <class F>
  void ForEach(const std::string& bytes, F fn) {
    bool malformed = false;
    UErrorCode status = U_ZERO_ERROR;
    ucnv_reset(converter_.get());
    ucnv_setToUCallBack(converter_.get(), NoteMalformed, &malformed, nullptr, nullptr, &status);
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    while (at < end && U_SUCCESS(status)) {
      const char* const begin = at;
      malformed = false;
      // Fails on trailing bytes without a meaning (a lone byte order mark, a shift). As in
      // TensorFlow, they then count as U+FFFF.
      const UChar32 character = ucnv_getNextUChar(converter_.get(), &at, end, &status);
      if (U_FAILURE(status)) at = end;
      fn(character, at - begin, malformed);
    }
  }

 private:
  explicit Decoder(Converter converter) : converter_(std::move(converter)) {}
  Converter converter_;
};

enum class Encoding { kUtf8, kUtf16, kUtf32 };

Encoding OutputEncoding(const KernelInit& init) {
  const auto name = init.attr<std::string>("output_encoding");
  return name == "UTF-8"       ? Encoding::kUtf8
         : name == "UTF-16-BE" ? Encoding::kUtf16
                               : Encoding::kUtf32;
}

void AppendBigEndian(uint32_t unit, int bytes, std::string* out) {
  for (int i = bytes - 1; i >= 0; --i) out->push_back(static_cast<char>(unit >> (8 * i)));
}

// A lone surrogate cannot be encoded in UTF-8 and is written as U+FFFD there.
void AppendCharacter(UChar32 character, Encoding encoding, std::string* out) {
  switch (encoding) {
    case Encoding::kUtf8: {
      char text[U8_MAX_LENGTH];
      int length = 0;
      U8_APPEND_UNSAFE(text, length, U_IS_SURROGATE(character) ? 0xFFFD : character);
      out->append(text, static_cast<size_t>(length));
      break;
    }
    case Encoding::kUtf16:
      if (U16_LENGTH(character) == 2) {
        AppendBigEndian(U16_LEAD(character), 2, out);
        AppendBigEndian(U16_TRAIL(character), 2, out);
      } else {
        AppendBigEndian(static_cast<uint32_t>(character), 2, out);
      }
      break;
    case Encoding::kUtf32:
      AppendBigEndian(static_cast<uint32_t>(character), 4, out);
      break;
  }
}

// ---- error handling

struct ErrorPolicy {
  bool strict = false, ignore = false, replace_control = false;
  UChar32 replacement = 0xFFFD;

  static absl::StatusOr<ErrorPolicy> Of(const KernelInit& init) {
    ErrorPolicy p;
    const auto errors = init.attr<std::string>("errors");
    p.strict = errors == "strict";
    p.ignore = errors == "ignore";
    const auto replacement = init.attr<int64_t>("replacement_char");
    if (replacement < UCHAR_MIN_VALUE || replacement > UCHAR_MAX_VALUE) {
      return InvalidArgument("replacement_char out of unicode codepoint range");
    }
    p.replacement = static_cast<UChar32>(replacement);
    return p;
  }

  // The same with the additional attribute of ops that read text.
  static absl::StatusOr<ErrorPolicy> OfReader(const KernelInit& init) {
    WEIR_ASSIGN_OR_RETURN(ErrorPolicy p, Of(init));
    p.replace_control = init.attr<bool>("replace_control_characters");
    return p;
  }
};

// Calls fn(character, byte offset) for the characters that remain after error handling.
template <class F>
absl::Status Decode(Decoder& decoder, const ErrorPolicy& policy, const std::string& bytes, F fn) {
  int64_t offset = 0;
  bool failed = false;
  decoder.ForEach(bytes, [&](UChar32 character, int64_t length, bool malformed) {
    const bool wrong = malformed || (policy.replace_control && character <= 0x1F);
    failed |= malformed;
    if (!wrong || !policy.ignore) fn(wrong ? policy.replacement : character, offset);
    offset += length;
  });
  if (policy.strict && failed) return InvalidArgument("Invalid formatting on input string");
  return absl::OkStatus();
}

// ---- kernels

absl::StatusOr<Kernel> MakeTranscode(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const ErrorPolicy policy, ErrorPolicy::OfReader(init));
  const auto from = init.attr<std::string>("input_encoding");
  WEIR_RETURN_IF_ERROR(Decoder::Open(from).status());
  return Kernel([policy, from, to = OutputEncoding(init)](KernelContext& c) -> absl::Status {
    constexpr double kNs = 300;
    const auto open = [&] { return Decoder::Open(from); };
    return MapStrings<std::string>(
        c, kNs, open,
        [&](const std::string& s, absl::StatusOr<Decoder>& decoder) -> absl::StatusOr<std::string> {
          WEIR_RETURN_IF_ERROR(decoder.status());
          std::string out;
          WEIR_RETURN_IF_ERROR(Decode(*decoder, policy, s, [&](UChar32 character, int64_t) {
            AppendCharacter(character, to, &out);
          }));
          return out;
        });
  });
}

// UnicodeDecode has two outputs, UnicodeDecodeWithOffsets three.
absl::Status DecodeAll(KernelContext& c, Decoder& decoder, const ErrorPolicy& policy) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor * splits, c.AllocateOutput(0, Shape({in.num_elements() + 1})));
  std::vector<int32_t> characters;
  std::vector<int64_t> offsets;
  splits->SetIntAt(0, 0);
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    ThrowIfCancelledAt(i);
    WEIR_RETURN_IF_ERROR(
        Decode(decoder, policy, in.data<std::string>()[i], [&](UChar32 character, int64_t offset) {
          characters.push_back(character);
          offsets.push_back(offset);
        }));
    splits->SetIntAt(i + 1, static_cast<int64_t>(characters.size()));
  }
  const Shape shape({static_cast<int64_t>(characters.size())});
  WEIR_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, shape));
  std::copy(characters.begin(), characters.end(), values->data<int32_t>());
  if (c.num_outputs() == 2) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(Tensor * starts, c.AllocateOutput(2, shape));
  std::copy(offsets.begin(), offsets.end(), starts->data<int64_t>());
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeDecode(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const ErrorPolicy policy, ErrorPolicy::OfReader(init));
  const auto from = init.attr<std::string>("input_encoding");
  WEIR_RETURN_IF_ERROR(Decoder::Open(from).status());
  return Kernel([policy, from](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(Decoder decoder, Decoder::Open(from));
    return DecodeAll(c, decoder, policy);
  });
}

absl::Status CheckSplits(const Tensor& values, const Tensor& splits) {
  if (values.rank() != 1 || splits.rank() != 1) {
    return InvalidArgument("Both the input_tensor and input_splits should be of rank 1.");
  }
  const int64_t count = splits.num_elements(), size = values.num_elements();
  if (count == 0) return InvalidArgument("Input_splits should contain elements");
  if (splits.IntAt(0) != 0) return InvalidArgument("First value in input_splits must be zero.");
  if (splits.IntAt(count - 1) != size) {
    return InvalidArgument("Last value in input_splits must be equal to length of input_tensor.");
  }
  for (int64_t i = 1; i < count; ++i) {
    ThrowIfCancelledAt(i);
    if (splits.IntAt(i - 1) > splits.IntAt(i)) {
      return InvalidArgument("Values in input_splits must be equal or in ascending order.");
    }
  }
  return absl::OkStatus();
}

// Encodes one string from code points.
absl::StatusOr<std::string> Encode(absl::Span<const int32_t> characters, Encoding encoding,
                                   const ErrorPolicy& policy) {
  std::string out;
  for (const int32_t character : characters) {
    const bool sound =
        character >= UCHAR_MIN_VALUE && character <= UCHAR_MAX_VALUE && !U_IS_SURROGATE(character);
    if (!sound && policy.strict) {
      return InvalidArgument("Code point is out of range for Unicode, or is a surrogate.");
    }
    if (sound || !policy.ignore) {
      AppendCharacter(sound ? character : policy.replacement, encoding, &out);
    }
  }
  return out;
}

absl::StatusOr<Kernel> MakeEncode(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const ErrorPolicy policy, ErrorPolicy::Of(init));
  return Kernel([policy, encoding = OutputEncoding(init)](KernelContext& c) -> absl::Status {
    const Tensor &values = c.input(0), &splits = c.input(1);
    WEIR_RETURN_IF_ERROR(CheckSplits(values, splits));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({splits.dim(0) - 1})));
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      ThrowIfCancelledAt(i);
      const int64_t begin = splits.IntAt(i), end = splits.IntAt(i + 1);
      WEIR_ASSIGN_OR_RETURN(
          out->data<std::string>()[i],
          Encode(values.flat<int32_t>().subspan(begin, end - begin), encoding, policy));
    }
    return absl::OkStatus();
  });
}

absl::Status Script(KernelContext& c) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    ThrowIfCancelledAt(i);
    UErrorCode status = U_ZERO_ERROR;
    const UScriptCode script = uscript_getScript(in.data<int32_t>()[i], &status);
    out->data<int32_t>()[i] = U_SUCCESS(status) ? script : -1;
  }
  return absl::OkStatus();
}

// ---- lower and upper case

// StringLower, StringUpper. `unicode` converts a string in place; malformed bytes become U+FFFD.
absl::StatusOr<Kernel> MakeCase(const KernelInit& init, char (*ascii)(unsigned char),
                                void (*unicode)(icu::UnicodeString*)) {
  const auto encoding = init.attr<std::string>("encoding");
  if (encoding.empty()) {
    return Kernel([ascii](KernelContext& c) -> absl::Status {
      constexpr double kNs = 30;
      return MapStrings<std::string>(c, kNs, [ascii](std::string s) {
        for (char& each : s) each = ascii(static_cast<unsigned char>(each));
        return s;
      });
    });
  }
  if (encoding != "utf-8") {
    return InvalidArgument("only utf-8 or '' (no encoding) is supported, received ", encoding);
  }
  return Kernel([unicode](KernelContext& c) -> absl::Status {
    constexpr double kNs = 300;
    return MapStrings<std::string>(c, kNs, [unicode](const std::string& s) {
      icu::UnicodeString characters = icu::UnicodeString::fromUTF8(s);
      unicode(&characters);
      std::string out;
      return characters.toUTF8String(out);
    });
  });
}

absl::StatusOr<Kernel> MakeLower(const KernelInit& init) {
  return MakeCase(init, absl::ascii_tolower,
                  [](icu::UnicodeString* s) { s->toLower(icu::Locale::getRoot()); });
}
absl::StatusOr<Kernel> MakeUpper(const KernelInit& init) {
  return MakeCase(init, absl::ascii_toupper,
                  [](icu::UnicodeString* s) { s->toUpper(icu::Locale::getRoot()); });
}

}  // namespace

void AddUnicodeKernels(KernelRegistry* r) {
  r->Add("UnicodeTranscode", kCpu, MakeTranscode);
  r->Add("UnicodeDecode", kCpu, MakeDecode);
  r->Add("UnicodeDecodeWithOffsets", kCpu, MakeDecode);
  r->Add("UnicodeEncode", kCpu, MakeEncode);
  r->Add("UnicodeScript", kCpu, Script);
  r->Add("StringLower", kCpu, MakeLower);
  r->Add("StringUpper", kCpu, MakeUpper);
}

}  // namespace weir
