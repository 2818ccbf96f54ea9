#include "weir/tools/lib/completion.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace weir::tools {

namespace {

using Paths = Completion::Paths;

constexpr char kBash[] = R"script(# Completes PROGRAM in bash.
_PROGRAM() {
  local -a answer
  mapfile -t answer < <("${1/#\~/$HOME}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=()
  case ${answer[0]} in
    files) compopt -o default ;;
    folders) compopt -o dirnames ;;
  esac
  local line
  for line in "${answer[@]:1}"; do COMPREPLY+=("${line%%$'\t'*}"); done
}
complete -F _PROGRAM PROGRAM
)script";

constexpr char kZsh[] = R"script(#compdef PROGRAM
# Completes PROGRAM in zsh.
_PROGRAM() {
  local -a answer described
  answer=("${(@f)$("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  described=("${(@)answer[2,-1]//:/\\:}")
  described=("${(@)described/$'\t'/:}")
  (( $#answer > 1 )) && _describe PROGRAM described
  case $answer[1] in
    files) _files ;;
    folders) _files -/ ;;
  esac
}
if [ "${funcstack[1]}" = _PROGRAM ]; then _PROGRAM "$@"; else compdef _PROGRAM PROGRAM; fi
)script";

constexpr char kFish[] = R"script(# Completes PROGRAM in fish.
function __PROGRAM_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l answer ($words[1] __complete $words[2..-1] "$word" 2>/dev/null)
    switch "$answer[1]"
        case files
            __fish_complete_path "$word"
        case folders
            __fish_complete_directories "$word"
    end
    printf '%s\n' $answer[2..-1]
end
complete -c PROGRAM -f -a '(__PROGRAM_complete)'
)script";

bool Contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool IsOption(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

// Values whose placeholder says that they name folders, or files.
Paths PathsOf(const OptionInfo& option) {
  if (option.word == "DIR" || option.word == "FOLDER") return Paths::kFolders;
  static const std::set<std::string>* const kOther =
      new std::set<std::string>{"COMMAND", "NAME", "SHELL", "TENSOR"};
  if (option.names.empty())  // most arguments are files
    return kOther->count(option.word) > 0 || !option.choices.empty() ? Paths::kNone : Paths::kFiles;
  static const std::set<std::string>* const kFiles =
      new std::set<std::string>{"FILE", "GRAPH", "CHECKPOINT", "PATH", "PREFIX"};
  return kFiles->count(option.word) > 0 ? Paths::kFiles : Paths::kNone;
}

// Follows the words of a command line before the incomplete one.
class Walk {
 public:
  explicit Walk(const CommandInfo& root) : root_(root), command_(&root) {}

  void Pass(const std::string& word) {
    if (word == "=") return;  // bash passes --color=auto as three words
    if (pending_ != nullptr) {
      pending_ = nullptr;
    } else if (IsOption(word)) {
      const std::string name = word.substr(0, word.find('='));
      given_.push_back(name);
      const OptionInfo* const option = FindOption(name);
      const bool takes_value = option != nullptr && !option->word.empty();
      if (takes_value && name == word) pending_ = option;
    } else if (const CommandInfo* const sub = command_->Find(word); sub != nullptr) {
      command_ = sub;
      if (sub->own_name() == "help") help_ = &root_;
    } else {
      if (help_ != nullptr) help_ = help_->Find(word);
      ++num_arguments_;
    }
  }

  Completion At(const std::string& word) const {
    Completion out;
    if (pending_ != nullptr) return AddValues(*pending_, word == "=" ? "" : word, "", out);
    const size_t equals = word.find('=');
    if (IsOption(word) && equals != std::string::npos) {
      const std::string name = word.substr(0, equals);
      const OptionInfo* const option = FindOption(name);
      if (option == nullptr || option->word.empty()) return out;
      return AddValues(*option, word.substr(equals + 1), name + "=", out);
    }
    if (absl::StartsWith(word, "-")) return AddOptions(word, out);
    if (help_ != nullptr) return AddCommands(*help_, word, out);
    if (!command_->commands.empty()) return AddCommands(*command_, word, out);
    if (command_->arguments.empty()) return out;
    const size_t at = std::min(num_arguments_, command_->arguments.size() - 1);
    const OptionInfo& argument = command_->arguments[at];
    if (num_arguments_ > at && !argument.repeated) return out;
    return AddValues(argument, word, "", out);
  }

 private:
  const OptionInfo* FindOption(const std::string& name) const {
    for (const CommandInfo* const command : {command_, &root_}) {
      for (const OptionInfo& option : command->options) {
        if (Contains(option.names, name)) return &option;
      }
    }
    return nullptr;
  }

  static Completion AddValues(const OptionInfo& option, const std::string& word,
                              const std::string& before, Completion out) {
    for (const std::string& choice : option.choices) {
      if (absl::StartsWith(choice, word)) out.words.emplace_back(before + choice, "");
    }
    out.paths = PathsOf(option);
    return out;
  }

  static Completion AddCommands(const CommandInfo& command, const std::string& word,
                                Completion out) {
    for (const CommandInfo& sub : command.commands) {
      if (absl::StartsWith(sub.own_name(), word))
        out.words.emplace_back(sub.own_name(), sub.description);
    }
    return out;
  }

  // Adds the longest name of each option that may still be given.
  Completion AddOptions(const std::string& word, Completion out) const {
    std::vector<std::string> seen;
    for (const CommandInfo* const command : {command_, &root_}) {
      for (const OptionInfo& option : command->options) {
        const std::string& name = option.names.back();
        const bool used = std::any_of(option.names.begin(), option.names.end(),
                                      [&](const auto& one) { return Contains(given_, one); });
        if ((used && !option.repeated) || !absl::StartsWith(name, word) || Contains(seen, name))
          continue;
        seen.push_back(name);
        out.words.emplace_back(name, option.help);
      }
    }
    return out;
  }

  const CommandInfo& root_;
  const CommandInfo* command_;
  const CommandInfo* help_ = nullptr;    // the command that `weir help` is asked for
  const OptionInfo* pending_ = nullptr;  // the option that takes the next word
  std::vector<std::string> given_;
  size_t num_arguments_ = 0;
};

}  // namespace

Completion Complete(const CommandInfo& root, const std::vector<std::string>& words) {
  Walk walk(root);
  if (words.empty()) return walk.At("");
  for (size_t i = 0; i + 1 < words.size(); ++i) walk.Pass(words[i]);
  return walk.At(words.back());
}

std::string CompletionAnswer(const Completion& completion) {
  static constexpr const char* kPaths[] = {"none", "files", "folders"};
  std::string answer = absl::StrCat(kPaths[static_cast<int>(completion.paths)], "\n");
  for (const auto& [word, text] : completion.words)
    absl::StrAppend(&answer, word, text.empty() ? "" : "\t", text, "\n");
  return answer;
}

std::string CompletionScript(const std::string& shell, const std::string& program) {
  const char* const script = shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
  return absl::StrReplaceAll(script, {{"PROGRAM", program}});
}

}  // namespace weir::tools
