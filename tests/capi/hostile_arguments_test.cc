#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"
#include "weir/tests/capi/api.h"

// Every function, called with null, and with valid objects besides null arrays and numbers that are
// out of range. Nothing may abort. Null is an error in the status; without a status, one line in
// the log and nothing as the result.
namespace weir::capi_test {
namespace {

// How a call's numbers are wrong: zero, negative, as large as possible.
constexpr int kNumHostile = 3;

template <class T>
constexpr bool kIsStatus = std::is_same_v<T, TF_Status*>;

template <class T>
T HostileNumber(int kind) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(kind == 0 ? 0 : kind == 1 ? -1 : 99);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return kind == 0 ? T{0} : kind == 1 ? static_cast<T>(-1) : std::numeric_limits<T>::max();
  } else {
    return T{nullptr, HostileNumber<int>(kind)};  // TF_Input, TF_Output
  }
}

// Valid objects, fresh for each call.
struct Objects {
  Objects() {
    const TF_Output output = {api.Placeholder("x"), 0};
    x = output.oper;
    desc = TF_NewOperation(api.graph(), "Identity", "identity");
    session = TF_NewSession(api.graph(), nullptr, api.status());
    function = TF_GraphToFunction(api.graph(), "f", 0, -1, nullptr, 1, &output, 1, &output, nullptr,
                                  nullptr, nullptr, api.status());
    TF_SetStatus(api.status(), TF_OK, "");
  }
  ~Objects() {
    TF_FinishOperation(desc, api.status());
    TF_DeleteFunction(function);
    TF_DeleteSession(session, api.status());
  }

  // Returns an object for a pointer, null for arrays and for what there is none of.
  template <class T>
  T Pointer() {
    using Object = std::remove_const_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_same_v<Object, TF_Graph>) return api.graph();
    if constexpr (std::is_same_v<Object, TF_Status>) return api.status();
    if constexpr (std::is_same_v<Object, TF_Operation>) return x;
    if constexpr (std::is_same_v<Object, TF_OperationDescription>) return desc;
    if constexpr (std::is_same_v<Object, TF_Session>) return session;
    if constexpr (std::is_same_v<Object, TF_Function>) return function;
    if constexpr (std::is_same_v<Object, TF_SessionOptions>) return options.get();
    if constexpr (std::is_same_v<Object, TF_ImportGraphDefOptions>) return import_options.get();
    if constexpr (std::is_same_v<Object, TF_Tensor>) return tensor.get();
    if constexpr (std::is_same_v<Object, TF_Buffer>) return buffer.get();
    if constexpr (std::is_same_v<T, const char*>) return "dtype";
    return T{};
  }

  Api api;
  TF_Operation* x;
  TF_OperationDescription* desc;
  TF_Session* session;
  TF_Function* function;
  SessionOptionsPtr options{TF_NewSessionOptions()};
  ImportOptionsPtr import_options{TF_NewImportGraphDefOptions()};
  TensorPtr tensor = Floats({}, {1});
  BufferPtr buffer{TF_NewBufferFromString("\xff\xff", 2)};
};

// An argument of a call: null, or a valid object, and a hostile number.
template <class T>
T NullArgument(int kind, TF_Status* status) {
  if constexpr (kIsStatus<T>) return status;
  if constexpr (std::is_pointer_v<T>) {
    return nullptr;
  } else {
    return HostileNumber<T>(kind);
  }
}

template <class T>
T ValidArgument(int kind, Objects& objects) {
  if constexpr (std::is_pointer_v<T>) return objects.Pointer<T>();
  if constexpr (std::is_same_v<T, TF_Output> || std::is_same_v<T, TF_Input>)
    return {objects.x, HostileNumber<int>(kind)};
  if constexpr (!std::is_pointer_v<T>) return HostileNumber<T>(kind);
}

// Whether a result is null, 0 or -1.
template <class T>
bool IsNothing(const T& value) {
  if constexpr (std::is_pointer_v<T>) return value == nullptr;
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
    return value == T{} || value == static_cast<T>(-1);
  return true;
}
bool IsNothing(const TF_Output& value) { return value.oper == nullptr; }
bool IsNothing(const TF_Buffer& value) { return value.data == nullptr; }
bool IsNothing(const TF_StringView& value) { return value.data == nullptr && value.len == 0; }
bool IsNothing(const TF_WhileParams& value) { return value.cond_graph == nullptr; }

// Frees what a call has made.
template <class T>
void Release(T) {}
void Release(TF_Session* made) { TF_DeleteSession(made, StatusPtr(TF_NewStatus()).get()); }
void Release(TF_Buffer* made) { TF_DeleteBuffer(made); }
void Release(TF_Tensor* made) { TF_DeleteTensor(made); }
void Release(TF_Graph* made) { TF_DeleteGraph(made); }
void Release(TF_Status* made) { TF_DeleteStatus(made); }
void Release(TF_ShapeHandle* made) { TF_DeleteShapeHandle(made); }
void Release(TF_DimensionHandle* made) { TF_DeleteDimensionHandle(made); }
void Release(TF_SessionOptions* made) { TF_DeleteSessionOptions(made); }
void Release(TF_ImportGraphDefOptions* made) { TF_DeleteImportGraphDefOptions(made); }
void Release(TF_Function* made) { TF_DeleteFunction(made); }
void Release(TF_DeviceList* made) { TF_DeleteDeviceList(made); }
void Release(TF_OpDefinitionBuilder* made) { TF_DeleteOpDefinitionBuilder(made); }
void Release(TF_ImportGraphDefResults* made) { TF_DeleteImportGraphDefResults(made); }
void Release(const TF_WhileParams& made) { TF_AbortWhile(&made); }
void Release(TF_DeprecatedSession* made) {
  TF_DeleteDeprecatedSession(made, StatusPtr(TF_NewStatus()).get());
}
void Release(TF_OperationDescription* made) {
  TF_FinishOperation(made, StatusPtr(TF_NewStatus()).get());
}

// Calls a function, and returns whether the result is nothing, and the lines in the log.
template <class R, class... A>
std::pair<bool, int64_t> Call(R (*function)(A...), const std::tuple<A...>& args) {
  bool is_nothing = true;
  testing::internal::CaptureStderr();
  if constexpr (std::is_void_v<R>) {
    std::apply(function, args);
  } else {
    const R result = std::apply(function, args);
    is_nothing = IsNothing(result);
    Release(const_cast<std::remove_const_t<R>&>(result));
  }
  const std::string log = testing::internal::GetCapturedStderr();
  return {is_nothing, std::count(log.begin(), log.end(), '\n')};
}

// Null is a valid argument of these, or there is none; or zero is. Or their status is an object
// that they change, and does not say what they did.
bool AllowsNull(const std::string& name) {
  static const std::set<std::string> names = {"TF_AbortWhile",
                                              "TF_DataTypeSize",
                                              "TF_GetAllOpList",
                                              "TF_GetBuffer",
                                              "TF_GetCode",
                                              "TF_GetAllRegisteredKernels",
                                              "TF_Message",
                                              "TF_NewBufferFromString",
                                              "TF_NewDeprecatedSession",
                                              "TF_StringDealloc",
                                              "TF_StringGetCapacity",
                                              "TF_StringGetDataPointer",
                                              "TF_StringGetSize",
                                              "TF_StringGetType",
                                              "TF_StringInit",
                                              "TF_TensorDefaultAlignment",
                                              "TF_Version",
                                              "TF_NewBuffer",
                                              "TF_NewGraph",
                                              "TF_NewShapeHandle",
                                              "TF_NewStatus",
                                              "TF_NewDimensionHandle",
                                              "TF_NewSessionOptions",
                                              "TF_SetPayload",
                                              "TF_SetStatus",
                                              "TF_SetStatusFromIOError",
                                              "TF_NewImportGraphDefOptions"};
  return names.count(name) > 0 || name.rfind("TF_Delete", 0) == 0;
}

template <class R, class... A>
void CallWithNull(const std::string& name, R (*function)(A...)) {
  constexpr bool kHasStatus = (kIsStatus<A> || ...);
  if (name == "TF_DeleteStatus") return;
  const StatusPtr status(TF_NewStatus());
  for (int kind = 0; kind < kNumHostile; ++kind) {
    SCOPED_TRACE(name + ", numbers " + std::to_string(kind));
    if constexpr (kHasStatus) {
      TF_SetStatus(status.get(), TF_OK, "");
      const auto [is_nothing, lines] =
          Call(function, std::tuple<A...>(NullArgument<A>(kind, status.get())...));
      if (AllowsNull(name)) continue;
      EXPECT_TRUE(is_nothing);
      EXPECT_NE(TF_GetCode(status.get()), TF_OK);
      EXPECT_EQ(lines, 0);
    }
    const auto [is_nothing, lines] =
        Call(function, std::tuple<A...>(NullArgument<A>(kind, nullptr)...));
    if (AllowsNull(name)) continue;
    EXPECT_TRUE(is_nothing);
    EXPECT_EQ(lines, 1);
  }
}

// These take an object away, or return an argument.
bool Consumes(const std::string& name) {
  return name.rfind("TF_Delete", 0) == 0 || name == "TF_FinishOperation" ||
         name == "TF_FinishOperationLocked" || name == "TF_TensorMaybeMove" ||
         name == "TF_GraphDebugString";
}

template <class R, class... A>
void CallWithObjects(const std::string& name, R (*function)(A...)) {
  if (Consumes(name)) return;
  for (int kind = 0; kind < kNumHostile; ++kind) {
    SCOPED_TRACE(name + ", numbers " + std::to_string(kind));
    Objects objects;
    const auto lines = Call(function, std::tuple<A...>(ValidArgument<A>(kind, objects)...)).second;
    EXPECT_LE(lines, 1);
    if (TF_GetCode(objects.api.status()) == TF_OK) continue;
    size_t position = 0;
    EXPECT_NE(TF_GraphNextOperation(objects.api.graph(), &position), nullptr);
    EXPECT_EQ(TF_GraphNextOperation(objects.api.graph(), &position), nullptr) << "graph changed";
  }
}

TEST(HostileArguments, NullIsAnError) {
#define F(name) CallWithNull(#name, &name);
#include "tests/capi/functions.inc"  // NOLINT
#undef F
}

TEST(HostileArguments, NumbersOutOfRangeDoNotAbort) {
#define F(name) CallWithObjects(#name, &name);
#include "tests/capi/functions.inc"  // NOLINT
#undef F
}

}  // namespace
}  // namespace weir::capi_test
