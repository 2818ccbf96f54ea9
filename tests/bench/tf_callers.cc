// W11 of the suite for TensorFlow's C API: 1, 4 and 16 threads call one session. peer_callers.py
// builds it without Bazel.
//
//   tf_callers WORKLOAD GRAPH DIMS [--init=NODE] [--budget=2] [--callers=1,4,16]

#include <tensorflow/c/c_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "callers.h"

namespace {

void Check(TF_Status* status, const char* what) {
  if (TF_GetCode(status) == TF_OK) return;
  std::fprintf(stderr, "tf_callers: %s: %s\n", what, TF_Message(status));
  std::exit(1);
}

std::vector<int64_t> Numbers(const std::string& text) {
  std::vector<int64_t> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) out.push_back(std::atoll(part.c_str()));
  return out;
}

void Emit(const std::string& workload, const char* metric, double value, const char* unit) {
  std::printf(
      "{\"workload\": \"%s\", \"peer\": \"tf_capi\", \"metric\": \"%s\", \"value\": %.6g, "
      "\"unit\": \"%s\"}\n",
      workload.c_str(), metric, value, unit);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: tf_callers WORKLOAD GRAPH DIMS [--init=NODE] [--budget=2]\n");
    return 2;
  }
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
  const std::string workload = argv[1];
  const std::vector<int64_t> dims = Numbers(argv[3]);
  std::string init;
  double budget = 2;
  std::vector<int64_t> callers = {1, 4, 16};
  for (int i = 4; i < argc; ++i) {
    const std::string flag = argv[i], value = flag.substr(flag.find('=') + 1);
    if (flag.rfind("--init=", 0) == 0) init = value;
    if (flag.rfind("--budget=", 0) == 0) budget = std::atof(value.c_str());
    if (flag.rfind("--callers=", 0) == 0) callers = Numbers(value);
  }
  std::ifstream file(argv[2], std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_Buffer* buffer = TF_NewBufferFromString(bytes.data(), bytes.size());
  TF_GraphImportGraphDef(graph, buffer, TF_NewImportGraphDefOptions(), status);
  Check(status, argv[2]);
  TF_SessionOptions* options = TF_NewSessionOptions();
  const char config[] = {0x10, 0x02, 0x28, 0x02};  // two intra-op and two inter-op threads
  TF_SetConfig(options, config, sizeof config, status);
  TF_Session* session = TF_NewSession(graph, options, status);
  Check(status, "session");
  if (!init.empty()) {
    const TF_Operation* target = TF_GraphOperationByName(graph, init.c_str());
    TF_SessionRun(session, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, &target, 1, nullptr,
                  status);
    Check(status, "init");
  }
  const TF_Output x{TF_GraphOperationByName(graph, "x"), 0},
      y{TF_GraphOperationByName(graph, "y"), 0};
  int64_t elements = 1;
  for (const int64_t d : dims) elements *= d;
  const auto call = [&](TF_Tensor* input) {
    TF_Status* s = TF_NewStatus();
    TF_Tensor* out = nullptr;
    TF_SessionRun(session, nullptr, &x, &input, 1, &y, &out, 1, nullptr, 0, nullptr, s);
    const bool ok = TF_GetCode(s) == TF_OK;
    if (!ok) std::fprintf(stderr, "tf_callers: %s\n", TF_Message(s));
    if (out != nullptr) TF_DeleteTensor(out);
    TF_DeleteStatus(s);
    return ok;
  };
  for (const int64_t n : callers) {
    std::vector<TF_Tensor*> inputs;
    for (int64_t t = 0; t < n; ++t) {
      inputs.push_back(TF_AllocateTensor(TF_FLOAT, dims.data(), static_cast<int>(dims.size()),
                                         static_cast<size_t>(elements) * sizeof(float)));
      std::fill_n(static_cast<float*>(TF_TensorData(inputs.back())), elements,
                  static_cast<float>(t + 1) / 16);
    }
    const auto calls_of = [&](double seconds) {
      return weir::bench::CallFrom(static_cast<int>(n), seconds,
                                   [&](int t) { return call(inputs[t]); });
    };
    calls_of(budget / 4);
    const weir::bench::Calls calls = calls_of(budget);
    if (calls.failed) return 1;
    const std::string name = workload + "_t" + std::to_string(n);
    Emit(name, "calls_per_s", calls.per_second, "steps/s");
    Emit(name, "p50", calls.p50_us, "us/run");
    Emit(name, "p99", calls.p99_us, "us/run");
    for (TF_Tensor* input : inputs) TF_DeleteTensor(input);
  }
  return 0;
}
