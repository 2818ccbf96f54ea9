#include "weir/onnx/importers.h"

namespace weir::onnx {

ImporterTable ImporterTable::All() {
  ImporterTable table;
  for (const auto family :
       {ActivationImporters, ArrayImporters, CastImporters, ConvImporters, ElementwiseImporters,
        FlowImporters, GatherImporters, LossImporters, MatrixImporters, NormImporters, PadImporters,
        PoolImporters, QuantizeImporters, ReduceImporters, ResizeImporters, RnnImporters,
        ShapeImporters})
    table.Add(family());
  return table;
}

void ImporterTable::Add(absl::Span<const Importer> importers) {
  for (const Importer& importer : importers) importers_[importer.op] = &importer;
}

const Importer* ImporterTable::Find(absl::string_view op) const {
  const auto found = importers_.find(op);
  return found == importers_.end() ? nullptr : found->second;
}

std::vector<const Importer*> ImporterTable::List() const {
  std::vector<const Importer*> list;
  for (const auto& [op, importer] : importers_) list.push_back(importer);
  return list;
}

}  // namespace weir::onnx
