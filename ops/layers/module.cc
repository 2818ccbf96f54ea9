#include "weir/ops/layers/module.h"

#include <cxxabi.h>

#include <cctype>
#include <cstdlib>
#include <memory>
#include <typeinfo>

#include "absl/container/flat_hash_set.h"
#include "weir/core/graph/scope.h"

namespace weir {

namespace {

// "weir::(anonymous namespace)::ResidualBlock" -> "residual_block"; "HTTPServer2" ->
// "http_server2".
std::string SnakeCase(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? demangled.get() : "module";
  name.erase(std::min(name.find('<'), name.size()));  // template arguments
  if (const size_t colon = name.rfind(':'); colon != std::string::npos) name.erase(0, colon + 1);
  const auto is = [&name](size_t i, int (*kind)(int)) {
    return i < name.size() && kind(static_cast<unsigned char>(name[i])) != 0;
  };
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool after_word = i > 0 && (is(i - 1, std::islower) || is(i - 1, std::isdigit));
    const bool before_word = i > 0 && is(i + 1, std::islower) && name[i - 1] != '_';
    if (is(i, std::isupper) && (after_word || before_word)) out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return out;
}

}  // namespace

std::string Module::name() const { return name_.empty() ? SnakeCase(typeid(*this)) : name_; }

const std::string& Module::name_scope() {
  if (name_scope_.empty()) name_scope_ = NameScope(graph_, name()).name();
  return name_scope_;
}

std::vector<const Module*> Module::Walk() const {
  std::vector<const Module*> out = {this};
  absl::flat_hash_set<const Module*> seen = {this};
  for (size_t i = 0; i < out.size(); ++i) {
    for (const auto& [name, list] : out[i]->members_) {
      for (const Member& member : list) {
        const auto* module = std::get_if<Module*>(&member);
        if (module != nullptr && seen.insert(*module).second) out.push_back(*module);
      }
    }
  }
  return out;
}

Variables Module::variables() const {
  Variables out;
  absl::flat_hash_set<Variable> seen;
  for (const Module* module : Walk()) {
    for (const auto& [name, list] : module->members_) {
      for (const Member& member : list) {
        const auto* variable = std::get_if<Variable>(&member);
        if (variable != nullptr && seen.insert(*variable).second) out.push_back(*variable);
      }
    }
  }
  return out;
}

Variables Module::trainable_variables() const {
  Variables out = variables();
  std::erase_if(out, [](const Variable& v) { return !v.trainable(); });
  return out;
}

std::vector<Module*> Module::submodules() {
  std::vector<Module*> out;
  for (const Module* module : Walk()) {
    if (module != this) out.push_back(const_cast<Module*>(module));
  }
  return out;
}

Variable Module::Track(absl::string_view name, Variable variable) {
  Track(name, Variables{variable});
  return variable;
}

void Module::Track(absl::string_view name, Module& module) {
  Track(name, std::vector<Module*>{&module});
}

void Module::Track(absl::string_view name, const Variables& list) {
  std::vector<Member>& members = members_[std::string(name)];
  members.clear();
  for (const Variable& v : list) {
    if (v.valid()) members.emplace_back(v);
  }
}

void Module::Track(absl::string_view name, const std::vector<Module*>& list) {
  std::vector<Member>& members = members_[std::string(name)];
  members.clear();
  for (Module* m : list) {
    if (m != nullptr) members.emplace_back(m);
  }
}

void Module::Track(absl::string_view name, const std::map<std::string, Variable>& map) {
  Variables list;
  for (const auto& [key, v] : map) list.push_back(v);
  Track(name, list);
}

void Module::Track(absl::string_view name, const std::map<std::string, Module*>& map) {
  std::vector<Module*> list;
  for (const auto& [key, m] : map) list.push_back(m);
  Track(name, list);
}

}  // namespace weir
