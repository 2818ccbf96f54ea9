#include "weir/kernels/data/parsing.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/escaping.h"
#include "weir/core/io/proto_values.h"
#include "weir/core/tensor/variant.h"
#include "weir/kernels/data/json_example.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/string_util.h"
#include "weir/proto/tensor.pb.h"

// Converts bytes to tensors and back.
namespace weir {

namespace {

// ---- DecodeRaw, DecodePaddedRaw

static_assert(std::endian::native == std::endian::little);

// The kernel's constant settings. The parts of complex numbers are byte-swapped separately.
struct Raw {
  DataType type;
  bool swap;

  size_t size() const { return ElementSize(type); }
  // Requires a number of bytes that is a multiple of the element size.
  void Copy(absl::string_view bytes, char* out) const {
    if (type == DT_BOOL) {
      std::transform(bytes.begin(), bytes.end(), reinterpret_cast<bool*>(out),
                     [](char c) { return c != 0; });
      return;
    }
    const size_t unit = !swap ? bytes.size() : IsComplex(type) ? size() / 2 : size();
    for (; !bytes.empty(); bytes.remove_prefix(unit), out += unit) {
      if (swap) {
        std::reverse_copy(bytes.data(), bytes.data() + unit, out);
      } else {
        std::memcpy(out, bytes.data(), unit);
      }
    }
  }
};

Raw RawOf(const KernelInit& init) {
  return {.type = init.attr<DataType>("out_type"), .swap = !init.attr<bool>("little_endian")};
}

// Allocates an output with `bytes` bytes per string in a new last dimension, filled with zeros.
// Fills in pieces with cancellation checks, because the size is an attribute of the graph.
void Clear(char* to, size_t count) {
  constexpr size_t kPiece = 4 << 20;
  for (size_t i = 0; i < count; i += kPiece) {
    ThrowIfCancelled();
    std::memset(to + i, 0, std::min(kPiece, count - i));
  }
}

absl::StatusOr<Tensor*> AllocateRows(KernelContext& c, const Raw& raw, size_t bytes) {
  Shape shape = c.input(0).shape();
  shape.AddDim(static_cast<int64_t>(bytes / raw.size()));
  WEIR_ASSIGN_OR_RETURN(shape, CheckedShape(shape.dims()));
  return c.AllocateOutput(0, shape);
}

absl::StatusOr<Kernel> MakeDecodeRaw(const KernelInit& init) {
  return Kernel([raw = RawOf(init)](KernelContext& c) -> absl::Status {
    const auto strings = c.input(0).flat<std::string>();
    const size_t bytes = strings.empty() ? 0 : strings[0].size();
    for (size_t i = 0; i < strings.size(); ++i) {
      ThrowIfCancelled();
      if (strings[i].size() == bytes) continue;
      return InvalidArgument(
          "DecodeRaw requires input strings to all be the same size, but element ", i, " has size ",
          strings[i].size(), " != ", bytes);
    }
    if (bytes % raw.size() != 0) {
      return InvalidArgument("Input to DecodeRaw has length ", bytes, " that is not a multiple of ",
                             raw.size(), ", the size of ", DataTypeName(raw.type));
    }
    WEIR_ASSIGN_OR_RETURN(Tensor * out, AllocateRows(c, raw, bytes));
    char* to = static_cast<char*>(out->raw());
    for (const std::string& each : strings) {
      ThrowIfCancelled();
      raw.Copy(each, to);
      to += bytes;
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Kernel> MakeDecodePaddedRaw(const KernelInit& init) {
  return Kernel([raw = RawOf(init)](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const int64_t length, ReadInt(c.input(1), "fixed_length"));
    if (length <= 0) {
      return InvalidArgument("fixed_length (", length, ") must be greater than zero.");
    }
    const auto bytes = static_cast<size_t>(length);
    if (bytes % raw.size() != 0) {
      return InvalidArgument("fixed_length (", length,
                             ") must be a multiple of the size of out_type (", raw.size(), ")");
    }
    WEIR_ASSIGN_OR_RETURN(Tensor * out, AllocateRows(c, raw, bytes));
    char* to = static_cast<char*>(out->raw());
    for (const absl::string_view each : c.input(0).flat<std::string>()) {
      ThrowIfCancelled();
      const absl::string_view there = each.substr(0, bytes);
      const size_t whole = there.size() - there.size() % raw.size();
      Clear(to + whole, bytes - whole);
      raw.Copy(there.substr(0, whole), to);
      if (std::string last(there.substr(whole)); !last.empty()) {
        last.resize(raw.size());
        raw.Copy(last, to + whole);
      }
      to += bytes;
    }
    return absl::OkStatus();
  });
}

// ---- DecodeCompressed

class Inflater {
 public:
  // zlib's window bits: 15 for the zlib format, 31 for gzip.
  explicit Inflater(int window_bits) : ok_(inflateInit2(&stream_, window_bits) == Z_OK) {}
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Decompresses all of `bytes`, and a truncated stream as far as possible. gzip allows
  // concatenated streams.
  absl::StatusOr<std::string> Inflate(const std::string& bytes, bool several) {
    if (!ok_) return Internal("zlib cannot be initialized");
    if (bytes.size() > INT32_MAX) return InvalidArgument("more than 2 GB to decompress");
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    std::string out;
    // If the buffer was filled, continues: output may remain after the input is consumed.
    do {
      char buffer[1 << 14];
      stream_.next_out = reinterpret_cast<Bytef*>(buffer);
      stream_.avail_out = sizeof(buffer);
      const int code = inflate(&stream_, Z_NO_FLUSH);
      out.append(buffer, sizeof(buffer) - stream_.avail_out);
      if (code == Z_STREAM_END && !several) break;
      if (code == Z_STREAM_END) inflateReset(&stream_);
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
        return DataLoss("inflate() failed with error ", code, ": ",
                        stream_.msg == nullptr ? "" : stream_.msg);
      }
      if (out.size() > INT32_MAX) return InvalidArgument("more than 2 GB when decompressed");
    } while (stream_.avail_in > 0 || stream_.avail_out == 0);
    return out;
  }

 private:
  z_stream stream_ = {};
  const bool ok_;
};

absl::StatusOr<Kernel> MakeDecodeCompressed(const KernelInit& init) {
  const auto type = init.attr<std::string>("compression_type");
  if (!type.empty() && type != "ZLIB" && type != "GZIP") {
    return InvalidArgument("Only ZLIB, GZIP or NONE are supported compressions, not ", type);
  }
  return Kernel([type](KernelContext& c) -> absl::Status {
    constexpr double kNs = 10e3;
    return MapStrings<std::string>(
        c, kNs, [&](const std::string& s) -> absl::StatusOr<std::string> {
          if (type.empty()) return s;
          return Inflater(type == "GZIP" ? 31 : 15).Inflate(s, type == "GZIP");
        });
  });
}

// ---- tensors and examples as protocol buffers

absl::StatusOr<Kernel> MakeParseTensor(const KernelInit& init) {
  return Kernel([type = init.attr<DataType>("out_type")](KernelContext& c) -> absl::Status {
    if (c.input(0).rank() != 0) {
      return InvalidArgument("Expected `serialized` to be a scalar, got shape: ",
                             c.input(0).shape().ToString());
    }
    const std::string& serialized = c.input(0).scalar<std::string>();
    proto::TensorProto proto;
    if (!proto.ParseFromString(serialized)) {
      constexpr size_t kShown = 1024;  // maximum size in bytes
      return InvalidArgument("Could not parse `serialized` as TensorProto, base64: ",
                             absl::Base64Escape(serialized.substr(0, kShown)),
                             serialized.size() > kShown ? "..." : "");
    }
    int64_t budget = kExpansionBudget;
    WEIR_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(proto, &budget));
    if (tensor.dtype() != type) {
      return InvalidArgument("Type mismatch between parsed tensor (", DataTypeName(tensor.dtype()),
                             ") and dtype (", DataTypeName(type), ")");
    }
    c.SetOutput(0, std::move(tensor));
    return absl::OkStatus();
  });
}

absl::Status SerializeTensor(KernelContext& c) {
  const Tensor& in = c.input(0);
  if (in.dtype() == DT_VARIANT) WEIR_RETURN_IF_ERROR(CheckHasParts(in));
  proto::TensorProto proto;
  TensorToProtoContent(in, &proto);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  if (!proto.SerializeToString(out->data<std::string>())) {
    return InvalidArgument("the tensor is too large to be serialized: ", in.Description());
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeSerializeTensor(const KernelInit& init) {
  const auto type = init.attr<DataType>("T");
  if (type == DT_RESOURCE) return Unimplemented("SerializeTensor of ", DataTypeName(type));
  return Kernel(&SerializeTensor);
}

absl::Status DecodeJson(KernelContext& c) {
  constexpr double kNs = 1e3;
  return MapStrings<std::string>(c, kNs, ExampleFromJson);
}

}  // namespace

void AddParsingKernels(KernelRegistry* r) {
  r->Add("DecodeRaw", kCpu, MakeDecodeRaw);
  r->Add("DecodePaddedRaw", kCpu, MakeDecodePaddedRaw);
  r->Add("DecodeCompressed", kCpu, MakeDecodeCompressed);
  r->Add("ParseTensor", kCpu, MakeParseTensor);
  r->Add("SerializeTensor", kCpu, MakeSerializeTensor);
  r->Add("DecodeJSONExample", kCpu, DecodeJson);
  AddCsvKernels(r);
  AddParseExampleKernels(r);
}

}  // namespace weir
