#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/ops/lib/math.h"

// Conversions between types.
namespace weir::onnx {

namespace {

bool IsFloat8(DataType dtype) { return dtype >= DT_FLOAT8_E5M2 && dtype <= DT_FLOAT8_E5M2FNUZ; }

absl::StatusOr<Output> CastTo(const Output& x, DataType to, bool saturate) {
  if (x.dtype() == to) return Identity(x);
  if (x.dtype() == DT_STRING || to == DT_STRING)
    return Unimplemented("casts from and to strings are not supported");
  if (IsFloat8(to) && saturate)
    return Unimplemented("casts to ", DataTypeName(to), " that saturate are not supported");
  return Cast(x, to);
}

absl::Status ImportCast(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const DataType to, c.Type("to", DT_INVALID));
  if (to == DT_INVALID) return InvalidArgument("attribute 'to' is missing");
  WEIR_ASSIGN_OR_RETURN(const Output y, CastTo(c.in(0), to, c.Int("saturate", 1) != 0));
  c.Ignore("round_mode");  // of float8e8m0 only
  return c.Return(y);
}

absl::Status ImportCastLike(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Output y, CastTo(c.in(0), c.dtype(1), c.Int("saturate", 1) != 0));
  c.Ignore("round_mode");
  return c.Return(y);
}

absl::Status ImportBitCast(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const DataType to, c.Type("to", DT_INVALID));
  if (ElementSize(to) != ElementSize(c.dtype(0)))
    return InvalidArgument("the types ", DataTypeName(c.dtype(0)), " and ", DataTypeName(to),
                           " have different sizes");
  if (c.dtype(0) == to) return c.Return(Identity(c.in(0)));
  if (c.dtype(0) == DT_BOOL) return c.Return(Bitcast(Cast(c.in(0), DT_UINT8), to));
  if (to == DT_BOOL) return Unimplemented("bits as bool are not supported");
  return c.Return(Bitcast(c.in(0), to));
}

constexpr Importer kImporters[] = {
    {"BitCast", 26, 1, 1, ImportBitCast},
    {"Cast", 7, 1, 1, ImportCast},
    {"CastLike", 15, 2, 2, ImportCastLike},
};

}  // namespace

absl::Span<const Importer> CastImporters() { return kImporters; }

}  // namespace weir::onnx
