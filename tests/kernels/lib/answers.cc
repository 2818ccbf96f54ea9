#include "weir/tests/kernels/lib/answers.h"

#include <complex>
#include <fstream>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "weir/core/graph/op.h"

namespace weir {

DataType StoredAs(DataType t) {
  switch (t) {
    case DT_QINT8:
      return DT_INT8;
    case DT_QUINT8:
      return DT_UINT8;
    case DT_QINT16:
      return DT_INT16;
    case DT_QUINT16:
      return DT_UINT16;
    case DT_QINT32:
      return DT_INT32;
    default:
      return t;
  }
}

namespace {

// "float32 2,3 1 2 3 4 5 6", "string 89504e47"; a scalar's shape is "-".
Tensor ParseTensor(std::istringstream& words) {
  std::string type, shape, value;
  words >> type >> shape;
  if (type == "string") return Tensor::Scalar(absl::HexStringToBytes(shape));
  std::vector<int64_t> dims;
  if (shape != "-") {
    for (const auto& d : absl::StrSplit(shape, ',')) dims.push_back(std::stoll(std::string(d)));
  }
  const DataType dtype = type == "float32"   ? DT_FLOAT
                         : type == "float64" ? DT_DOUBLE
                                             : DataTypeFromName(type);
  Tensor t(StoredAs(dtype), Shape(absl::MakeConstSpan(dims)));
  for (int64_t i = 0; i < t.num_elements() && words >> value; ++i) {
    if (t.dtype() == DT_FLOAT) {
      t.data<float>()[i] = std::stof(value);
    } else if (t.dtype() == DT_DOUBLE) {
      t.data<double>()[i] = std::stod(value);
    } else if (t.dtype() == DT_COMPLEX64) {
      const float real = std::stof(value);
      words >> value;
      t.data<std::complex<float>>()[i] = {real, std::stof(value)};
    } else {
      t.SetIntAt(i, std::stoll(value));
    }
  }
  return t.dtype() == dtype ? t : t.BitcastTo(dtype);
}

AttrValue ParseAttr(const AttrSpec& spec, std::istringstream& words) {
  std::vector<std::string> values;
  for (std::string word; words >> word;) values.push_back(word);
  const std::string text = values.empty() ? "" : values[0];
  if (spec.is_list && spec.kind == AttrSpec::Kind::kInt) {
    std::vector<int64_t> list;
    for (const std::string& v : values) list.push_back(std::stoll(v));
    return list;
  }
  if (spec.is_list) {
    std::vector<float> list;
    for (const std::string& v : values) list.push_back(std::stof(v));
    return list;
  }
  switch (spec.kind) {
    case AttrSpec::Kind::kInt:
      return static_cast<int64_t>(std::stoll(text));
    case AttrSpec::Kind::kFloat:
      return std::stof(text);
    case AttrSpec::Kind::kBool:
      return text == "true";
    case AttrSpec::Kind::kType:
      return text == "float32" ? DT_FLOAT : DataTypeFromName(text);
    default:
      return text;
  }
}

}  // namespace

std::vector<Answer> ReadAnswers(const std::string& path) {
  std::vector<Answer> answers;
  std::ifstream file(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "op") {
      answers.emplace_back();
      words >> answers.back().op;
      answers.back().line = number;
    } else if (kind == "attr") {
      std::string name;
      words >> name;
      const AttrSpec* spec = BuiltinOps().Find(answers.back().op)->FindAttr(name);
      for (const AttrSpec& a : BuiltinOps().Find(answers.back().op)->attrs()) {
        if (&a == spec) answers.back().attrs.emplace_back(a.name, ParseAttr(a, words));
      }
    } else if (kind == "in") {
      answers.back().inputs.push_back(ParseTensor(words));
    } else if (kind == "out") {
      answers.back().outputs.push_back(ParseTensor(words));
    }
  }
  return answers;
}

}  // namespace weir
