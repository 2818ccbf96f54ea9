#include "weir/tests/kernels/lib/answers.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <fstream>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "weir/core/graph/op.h"
#include "weir/tests/evaluate.h"

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

// The names of NumPy's floating-point types differ.
DataType TypeOf(const std::string& name) {
  if (name == "float16") return DT_HALF;
  if (name == "float32") return DT_FLOAT;
  if (name == "float64") return DT_DOUBLE;
  return DataTypeFromName(name);
}

// `words` has the second number of a complex element.
void SetElement(Tensor& t, int64_t i, const std::string& value, std::istringstream& words) {
  switch (t.dtype()) {
    case DT_STRING:
      t.data<std::string>()[i] = value == "-" ? "" : absl::HexStringToBytes(value);
      break;
    case DT_HALF:
      t.data<half>()[i] = half(std::stof(value));
      break;
    case DT_FLOAT:
      t.data<float>()[i] = std::stof(value);
      break;
    case DT_DOUBLE:
      t.data<double>()[i] = std::stod(value);
      break;
    case DT_COMPLEX64: {
      std::string imaginary;
      words >> imaginary;
      t.data<std::complex<float>>()[i] = {std::stof(value), std::stof(imaginary)};
      break;
    }
    case DT_UINT64:
      t.data<uint64_t>()[i] = std::stoull(value);
      break;
    default:
      t.SetIntAt(i, std::stoll(value));
  }
}

// "float32 2,3 1 2 3 4 5 6", "string 89504e47", "strings 2 61 -"; a scalar's shape is "-".
Tensor ParseTensor(std::istringstream& words) {
  std::string type, shape, value;
  words >> type >> shape;
  if (type == "string") return Tensor::Scalar(absl::HexStringToBytes(shape));
  std::vector<int64_t> dims;
  if (shape != "-") {
    for (const auto& d : absl::StrSplit(shape, ',')) {
      if (!d.empty()) dims.push_back(std::stoll(std::string(d)));
    }
  }
  const DataType dtype = type == "strings" ? DT_STRING : TypeOf(type);
  Tensor t(StoredAs(dtype), Shape(absl::MakeConstSpan(dims)));
  for (int64_t i = 0; i < t.num_elements() && words >> value; ++i) SetElement(t, i, value, words);
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
      return TypeOf(text);
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

namespace {

double RealAt(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case DT_HALF:
      return static_cast<float>(t.data<half>()[i]);
    case DT_FLOAT:
      return t.data<float>()[i];
    default:
      return t.data<double>()[i];
  }
}

void ExpectSame(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.shape(), want.shape());
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    if (want.dtype() == DT_STRING) {
      ASSERT_EQ(got.data<std::string>()[i], want.data<std::string>()[i]) << "element " << i;
    } else if (IsFloating(want.dtype())) {
      const double expected = RealAt(want, i);
      ASSERT_NEAR(RealAt(got, i), expected, tolerance * std::max(1.0, std::abs(expected)))
          << "element " << i;
    } else {
      ASSERT_EQ(got.IntAt(i), want.IntAt(i)) << "element " << i;
    }
  }
}

}  // namespace

void ExpectAnswers(const std::string& path, size_t at_least, double tolerance) {
  const std::vector<Answer> answers = ReadAnswers(path);
  EXPECT_GE(answers.size(), at_least);
  for (const Answer& a : answers) {
    SCOPED_TRACE(absl::StrCat(a.op, ", line ", a.line));
    const absl::StatusOr<Tensors> out = RunFed(a.op, a.inputs, a.attrs);
    if (!out.ok()) {
      ADD_FAILURE() << out.status();
      continue;
    }
    ASSERT_EQ(out->size(), a.outputs.size());
    for (size_t i = 0; i < a.outputs.size(); ++i) ExpectSame((*out)[i], a.outputs[i], tolerance);
  }
}

}  // namespace weir
