#include "weir/capi/extensions/initializer_text.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "weir/capi/extensions/options.h"

namespace weir::capi {

namespace {

// Makes an initializer from the arguments in a text.
using Make = Initializer (*)(OptionReader& arguments);

// An initializer whose only argument is a seed.
template <Initializer (*kMake)(Seed)>
Initializer Seeded(OptionReader& arguments) {
  Seed seed;
  arguments.Read("seed", &seed);
  return kMake(seed);
}

// An initializer with two numbers and a seed.
Initializer Distribution(OptionReader& arguments, Initializer (*make)(float, float, Seed),
                         absl::string_view first, absl::string_view second) {
  float a = 0, b = 1;
  Seed seed;
  arguments.Read(first, &a);
  arguments.Read(second, &b);
  arguments.Read("seed", &seed);
  return make(a, b, seed);
}

// Returns the number, truth value or string that a text is.
Literal LiteralOf(const std::string& text) {
  int64_t integer = 0;
  if (absl::SimpleAtoi(text, &integer)) return integer;
  double number = 0;
  if (absl::SimpleAtod(text, &number)) return number;
  if (text == "true" || text == "false") return text == "true";
  return text;
}

const std::vector<std::pair<absl::string_view, Make>>& Initializers() {
  static const auto* const all = new std::vector<std::pair<absl::string_view, Make>>{
      {"zeros", [](OptionReader&) { return Zeros(); }},
      {"ones", [](OptionReader&) { return Ones(); }},
      {"constant",
       [](OptionReader& arguments) {
         std::string value = "0";
         arguments.Read("value", &value);
         return Constant(LiteralOf(value));
       }},
      {"identity",
       [](OptionReader& arguments) {
         float gain = 1;
         arguments.Read("gain", &gain);
         return Identity(gain);
       }},
      {"random_uniform",
       [](OptionReader& arguments) {
         return Distribution(arguments, RandomUniformInitializer, "minval", "maxval");
       }},
      {"random_normal",
       [](OptionReader& arguments) {
         return Distribution(arguments, RandomNormalInitializer, "mean", "stddev");
       }},
      {"truncated_normal",
       [](OptionReader& arguments) {
         return Distribution(arguments, TruncatedNormalInitializer, "mean", "stddev");
       }},
      {"glorot_uniform", Seeded<GlorotUniform>},
      {"glorot_normal", Seeded<GlorotNormal>},
      {"he_uniform", Seeded<HeUniform>},
      {"he_normal", Seeded<HeNormal>},
      {"lecun_uniform", Seeded<LecunUniform>},
      {"lecun_normal", Seeded<LecunNormal>},
      {"orthogonal",
       [](OptionReader& arguments) {
         float gain = 1;
         Seed seed;
         arguments.Read("gain", &gain);
         arguments.Read("seed", &seed);
         return Orthogonal(gain, seed);
       }},
  };
  return *all;
}

}  // namespace

absl::StatusOr<Initializer> ParseInitializer(absl::string_view text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  const absl::string_view name = text.substr(0, text.find_first_of(" \t\n"));
  const auto& all = Initializers();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const auto& i) { return i.first == name; });
  if (it == all.end()) {
    const auto add = [](std::string* out, const auto& i) { absl::StrAppend(out, i.first); };
    return NotFound("no initializer '", name, "'; there are: ", absl::StrJoin(all, ", ", add));
  }
  const std::string rest(text.substr(name.size()));
  OptionReader arguments(rest.c_str());
  Initializer made = it->second(arguments);
  WEIR_RETURN_IF_ERROR(arguments.Finish());
  return made;
}

}  // namespace weir::capi
