// A program with a protobuf of its own loads a plug-in that uses Weir, and TensorFlow, if it is
// there, before or after it: all of them work.
//   plugin_host PLUGIN.so FOLDER local|global [before|after TENSORFLOW.so]

#include <dlfcn.h>
#include <google/protobuf/struct.pb.h>

#include <cstdio>
#include <string>

namespace {

bool UseProtobuf() {
  google::protobuf::Struct message, copy;
  (*message.mutable_fields())["a"].set_number_value(1);
  return copy.ParseFromString(message.SerializeAsString()) && copy.fields_size() == 1 &&
         !copy.DebugString().empty();
}

void* Load(const char* path, int scope) {
  void* const library = dlopen(path, RTLD_NOW | scope);
  if (library == nullptr) std::printf("%s\n", dlerror());
  return library;
}

bool UsePlugin(void* library, const char* folder) {
  const auto run = reinterpret_cast<int (*)(const char*)>(dlsym(library, "RunPlugin"));
  return run != nullptr && run(folder) == 0;
}

bool UseTensorFlow(void* library) {
  const auto call = [library](const char* name) {
    return reinterpret_cast<void* (*)(...)>(dlsym(library, name));
  };
  void* const status = call("TF_NewStatus")();
  void* const graph = call("TF_NewGraph")();
  return call("TF_NewSession")(graph, call("TF_NewSessionOptions")(), status) != nullptr;
}

bool Run(int argc, char** argv) {
  const int scope = std::string(argv[3]) == "global" ? RTLD_GLOBAL : RTLD_LOCAL;
  const bool tensorflow = argc == 6, first = tensorflow && std::string(argv[4]) == "before";
  void* other = first ? Load(argv[5], scope) : nullptr;
  void* const plugin = Load(argv[1], scope);
  if (plugin == nullptr) return false;
  if (tensorflow && !first) other = Load(argv[5], scope);
  for (int i = 0; i < 2; ++i) {
    if (!UseProtobuf() || !UsePlugin(plugin, argv[2])) return false;
    if (tensorflow && (other == nullptr || !UseTensorFlow(other))) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 6) {
    std::printf("usage: plugin_host PLUGIN.so FOLDER local|global [before|after TENSORFLOW.so]\n");
    return 1;
  }
  const bool ok = Run(argc, argv);
  std::printf("%s\n", ok ? "OK" : "failed");
  return ok ? 0 : 1;
}
