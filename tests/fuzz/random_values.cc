#include "weir/tests/fuzz/random_values.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace weir::fuzz {

int64_t RandomValues::Int() {
  static constexpr int64_t kEdges[] = {0,
                                       1,
                                       -1,
                                       255,
                                       1 << 16,
                                       std::numeric_limits<int32_t>::max(),
                                       std::numeric_limits<int32_t>::min(),
                                       int64_t{1} << 32,
                                       int64_t{1} << 62,
                                       std::numeric_limits<int64_t>::max(),
                                       std::numeric_limits<int64_t>::min()};
  if (OneIn(6)) return kEdges[Below(std::size(kEdges))];
  return static_cast<int64_t>(Below(10)) - 3;
}

double RandomValues::Float() {
  static constexpr double kEdges[] = {0.0,
                                      -0.0,
                                      1e30,
                                      -1e30,
                                      1e-40,
                                      std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::quiet_NaN()};
  if (OneIn(8)) return kEdges[Below(std::size(kEdges))];
  return (static_cast<double>(Below(64)) - 24) / 8;
}

std::string RandomValues::Text() {
  static const std::vector<std::string>* const texts = new std::vector<std::string>{"",
                                                                                    "a",
                                                                                    "NHWC",
                                                                                    "NCHW",
                                                                                    "SAME",
                                                                                    "VALID",
                                                                                    "%s {}",
                                                                                    "(a|b)*[",
                                                                                    "a,b;c d",
                                                                                    "/t",
                                                                                    "/d/*",
                                                                                    "-1",
                                                                                    "3.5e9",
                                                                                    "{\"a\":1}",
                                                                                    "ij,jk->ik",
                                                                                    "\xff\xfe",
                                                                                    "UTF-8",
                                                                                    "loc:@x",
                                                                                    "^x",
                                                                                    "x:0",
                                                                                    "GZIP",
                                                                                    "/device:CPU:0",
                                                                                    "\n\x03"
                                                                                    "abc",
                                                                                    "localhost"};
  if (!OneIn(6)) return OneOf(*texts);
  std::string noise(Below(40), '\0');
  for (char& c : noise) c = static_cast<char>(Below(256));
  return noise;
}

DataType RandomValues::Type() {
  static const std::vector<DataType>* const common = new std::vector<DataType>{
      DT_FLOAT, DT_INT32, DT_INT64, DT_DOUBLE, DT_BOOL, DT_STRING, DT_HALF, DT_UINT8};
  if (!OneIn(6)) return OneOf(*common);
  return static_cast<DataType>(Below(33));
}

std::vector<int64_t> RandomValues::Dims() {
  static constexpr size_t kRanks[] = {0, 0, 1, 1, 1, 2, 2, 3, 4, 4, 5};
  std::vector<int64_t> dims(kRanks[Below(std::size(kRanks))]);
  for (int64_t& d : dims) d = static_cast<int64_t>(Below(5));
  if (!dims.empty() && OneIn(12)) dims[Below(dims.size())] = static_cast<int64_t>(Below(300));
  return dims;
}

Tensor RandomValues::Value(DataType type) {
  if (type == DT_INVALID || type == DT_RESOURCE || type == DT_VARIANT || IsRef(type) ||
      ElementSize(type) == 0)
    return {};
  Tensor t = Tensor::Zeros(type, Shape(Dims()));
  auto* const bytes = static_cast<char*>(t.raw());
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    if (type == DT_STRING) {
      t.data<std::string>()[i] = Text();
    } else if (type == DT_BOOL) {
      t.data<bool>()[i] = OneIn(2);
    } else if (type == DT_DOUBLE || type == DT_COMPLEX128) {
      const double v = Float();
      std::memcpy(bytes + i * ElementSize(type), &v, sizeof(v));
    } else if (type == DT_FLOAT || type == DT_COMPLEX64) {
      const auto v = static_cast<float>(Float());
      std::memcpy(bytes + i * ElementSize(type), &v, sizeof(v));
    } else {
      const int64_t v = Int();
      std::memcpy(bytes + i * ElementSize(type), &v, std::min<size_t>(ElementSize(type), 8));
    }
  }
  return t;
}

}  // namespace weir::fuzz
