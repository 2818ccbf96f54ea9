#include "weir/core/io/file.h"
#include "weir/onnx/onnx_import.h"
#include "weir/tests/fuzz/targets.h"
#include "weir/tests/io/test_files.h"

// ONNX models: what is imported has its signature's tensors, and anything else is an error that the
// graph has too. Tensors may be in the one other file of the model's folder.
namespace weir::fuzz {

void Onnx(absl::string_view bytes) {
  testing::MemoryFileSystem files;
  const ScopedFileSystem scope(&files);
  Require(files.MakeDirectory("/m").ok(), "a folder is made");
  Require((*files.Create("/m/data"))->Append(std::string(64, '\1')).ok(), "a file is written");
  for (const bool as_variables : {false, true}) {
    Graph graph;
    const auto model =
        onnx::ImportOnnx(graph, bytes, {.as_variables = as_variables, .data_folder = "/m"});
    Require(model.ok() == graph.status().ok(), "an error stays with the graph");
    if (!model.ok()) continue;
    Require(onnx::LooksLikeOnnx(bytes), "what is imported looks like a model");
    const Signature& signature = model->signatures.at("serving_default");
    for (const auto* tensors : {&signature.inputs, &signature.outputs}) {
      for (const auto& [name, tensor] : *tensors)
        Require(graph.FindOutput(tensor).ok(), "the signature's tensors are there");
    }
  }
}

std::vector<Row> Rows() { return {{"onnx", Onnx, 400}}; }

}  // namespace weir::fuzz
