#include <cstdio>

#include "weir/core/io/bundle.h"
#include "weir/tests/io/test_files.h"

// write_checkpoint PREFIX writes a checkpoint for tensorflow_reads_test.py: two merged shards with
// every dtype, strings, and a tensor in slices. PREFIX_v1 holds the part that V1 supports.
namespace weir {
namespace {

absl::Status Write(const std::string& prefix) {
  const std::vector<std::string> parts = {prefix + "_temp/part-00000-of-00002",
                                          prefix + "_temp/part-00001-of-00002"};
  const Tensor whole = testing::PatternTensor(DT_FLOAT, Shape({7, 4}), 3);
  for (int shard = 0; shard < 2; ++shard) {
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<BundleWriter> writer,
                          BundleWriter::Create(parts[shard]));
    const TensorSlice slice{{{shard * 3, shard == 0 ? 3 : 4}, {}}};
    WEIR_RETURN_IF_ERROR(writer->AddSlice("partitioned", whole.shape(), slice,
                                          shard == 0 ? whole.Slice(0, 3) : whole.Slice(3, 7)));
    for (int t = DT_FLOAT; t <= DT_FLOAT8_E4M3FN && shard == 0; ++t) {
      const auto dtype = static_cast<DataType>(t);
      if (!IsPlain(dtype)) continue;
      WEIR_RETURN_IF_ERROR(
          writer->Add(DataTypeName(dtype), testing::PatternTensor(dtype, Shape({2, 3}), t)));
    }
    if (shard == 1)
      WEIR_RETURN_IF_ERROR(writer->Add("words", testing::PatternStrings(Shape({3}), 5)));
    WEIR_RETURN_IF_ERROR(writer->Finish());
  }
  return MergeBundles(parts, prefix);
}

absl::Status WriteV1(const std::string& path) {
  const Tensor whole = testing::PatternTensor(DT_FLOAT, Shape({7, 4}), 3);
  std::vector<SavedSlice> slices = {
      {"partitioned", whole.shape(), {{{3, 4}, {}}}, whole.Slice(3, 7)},
      {"partitioned", whole.shape(), {{{0, 3}, {}}}, whole.Slice(0, 3)}};
  const auto add = [&](const std::string& name, const Tensor& tensor) {
    slices.push_back({name, tensor.shape(), TensorSlice::Full(tensor.rank()), tensor});
  };
  for (const DataType t : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_INT8, DT_INT16, DT_INT32, DT_INT64,
                           DT_UINT8, DT_UINT16, DT_BOOL, DT_COMPLEX64, DT_COMPLEX128}) {
    add(DataTypeName(t), testing::PatternTensor(t, Shape({2, 3}), t));
  }
  add("words", testing::PatternStrings(Shape({3}), 5));
  return WriteCheckpointV1(path, slices);
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  absl::Status status =
      argc == 2 ? weir::Write(argv[1]) : weir::InvalidArgument("usage: write_checkpoint PREFIX");
  if (status.ok()) status = weir::WriteV1(argv[1] + std::string("_v1"));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
