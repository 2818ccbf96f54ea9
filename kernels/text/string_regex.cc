#include <re2/re2.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "weir/core/tensor/mutex.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/string_util.h"

// Regular expressions, with RE2.
namespace weir {

namespace {

// A pattern, compiled once for each thread that matches it at the same time. RE2 is thread-safe,
// but each search takes and releases a reader lock on the states of its automaton: two threads that
// replaced digits in short strings through one RE2 spent a third of their time on the cache line of
// that lock, and were no faster than one. Thread-safe.
class Regex {
 public:
  static absl::StatusOr<std::shared_ptr<Regex>> Compile(const std::string& pattern) {
    auto compiled = std::make_unique<const RE2>(pattern, RE2::Quiet);
    if (!compiled->ok()) {
      return InvalidArgument("Invalid pattern: ", pattern, ", error: ", compiled->error());
    }
    return std::make_shared<Regex>(pattern, std::move(compiled));
  }
  // Use Compile.
  Regex(std::string pattern, std::unique_ptr<const RE2> compiled) : pattern_(std::move(pattern)) {
    idle_.push_back(std::move(compiled));
  }

  const std::string& pattern() const { return pattern_; }

  // The use of a compiled pattern by one thread. The Regex outlives it.
  class Use {
   public:
    explicit Use(Regex& regex) : regex_(regex), compiled_(regex.Take()) {}
    ~Use() { regex_.Return(std::move(compiled_)); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    const RE2& operator*() const { return *compiled_; }

   private:
    Regex& regex_;
    std::unique_ptr<const RE2> compiled_;
  };

 private:
  std::unique_ptr<const RE2> Take() {
    {
      const MutexLock lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<const RE2> compiled = std::move(idle_.back());
        idle_.pop_back();
        return compiled;
      }
    }
    return std::make_unique<const RE2>(pattern_, RE2::Quiet);
  }
  void Return(std::unique_ptr<const RE2> compiled) {
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(compiled));
  }

  const std::string pattern_;
  Mutex mutex_;
  std::vector<std::unique_ptr<const RE2>> idle_ ABSL_GUARDED_BY(mutex_);
};

using RegexPtr = std::shared_ptr<Regex>;

// The pattern of a kernel that receives it in each step: compiled when it changes. Thread-safe.
class LastRegex {
 public:
  absl::StatusOr<RegexPtr> Find(const std::string& pattern) {
    {
      const MutexLock lock(mutex_);
      if (regex_ != nullptr && regex_->pattern() == pattern) return regex_;
    }
    WEIR_ASSIGN_OR_RETURN(RegexPtr regex, Regex::Compile(pattern));
    const MutexLock lock(mutex_);
    regex_ = regex;
    return regex;
  }

 private:
  Mutex mutex_;
  RegexPtr regex_ ABSL_GUARDED_BY(mutex_);
};

absl::Status FullMatch(KernelContext& c, Regex& regex) {
  constexpr double kNs = 150;
  return MapStrings<bool>(
      c, kNs, [&] { return Regex::Use(regex); },
      [](const std::string& s, const Regex::Use& use) { return RE2::FullMatch(s, *use); });
}

absl::StatusOr<Kernel> MakeStaticFullMatch(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const RegexPtr regex, Regex::Compile(init.attr<std::string>("pattern")));
  return Kernel([regex](KernelContext& c) -> absl::Status { return FullMatch(c, *regex); });
}

absl::StatusOr<Kernel> MakeDynamicFullMatch(const KernelInit&) {
  return Kernel([last = std::make_shared<LastRegex>()](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::string pattern, ReadString(c.input(1), "Pattern"));
    WEIR_ASSIGN_OR_RETURN(const RegexPtr regex, last->Find(pattern));
    return FullMatch(c, *regex);
  });
}

// The part of a rewrite before the first backslash that no digit and no backslash follows.
std::string WellFormedPart(const std::string& rewrite) {
  for (size_t i = 0; i < rewrite.size(); ++i) {
    if (rewrite[i] != '\\') continue;
    const bool has_next = i + 1 < rewrite.size();
    if (!has_next || !(absl::ascii_isdigit(rewrite[i + 1]) || rewrite[i + 1] == '\\'))
      return rewrite.substr(0, i);
    ++i;
  }
  return rewrite;
}

// A rewrite that refers to groups that the pattern does not have changes nothing. As in RE2, whose
// errors TensorFlow ignores, a malformed one is inserted up to the fault if all matches are
// replaced, and changes nothing otherwise.
absl::Status Replace(KernelContext& c, Regex& regex, const std::string& all, bool global) {
  constexpr double kNs = 400, kCopyNs = 20;
  const std::string rewrite = WellFormedPart(all);
  const bool has_groups = RE2::MaxSubmatch(all) <= (*Regex::Use(regex)).NumberOfCapturingGroups();
  if (!has_groups || (!global && rewrite != all)) {
    return MapStrings<std::string>(c, kCopyNs, [](const std::string& s) { return s; });
  }
  return MapStrings<std::string>(
      c, kNs, [&] { return Regex::Use(regex); },
      [&](std::string s, const Regex::Use& use) {
        if (global) {
          RE2::GlobalReplace(&s, *use, rewrite);
        } else {
          RE2::Replace(&s, *use, rewrite);
        }
        return s;
      });
}

absl::StatusOr<Kernel> MakeStaticReplace(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const RegexPtr regex, Regex::Compile(init.attr<std::string>("pattern")));
  return Kernel([regex, rewrite = init.attr<std::string>("rewrite"),
                 global = init.attr<bool>("replace_global")](KernelContext& c) -> absl::Status {
    return Replace(c, *regex, rewrite, global);
  });
}

absl::StatusOr<Kernel> MakeDynamicReplace(const KernelInit& init) {
  return Kernel([last = std::make_shared<LastRegex>(),
                 global = init.attr<bool>("replace_global")](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::string pattern, ReadString(c.input(1), "Pattern"));
    WEIR_ASSIGN_OR_RETURN(const std::string rewrite, ReadString(c.input(2), "Rewrite"));
    WEIR_ASSIGN_OR_RETURN(const RegexPtr regex, last->Find(pattern));
    return Replace(c, *regex, rewrite, global);
  });
}

}  // namespace

void AddStringRegexKernels(KernelRegistry* r) {
  r->Add("StaticRegexFullMatch", kCpu, MakeStaticFullMatch);
  r->Add("RegexFullMatch", kCpu, MakeDynamicFullMatch);
  r->Add("StaticRegexReplace", kCpu, MakeStaticReplace);
  r->Add("RegexReplace", kCpu, MakeDynamicReplace);
}

}  // namespace weir
