// Backends: a kind of device that a user adds, with memory, copies, element loops and kernels of
// its own.

#include "weir/kernels/lib/backend.h"

#include <atomic>
#include <cstring>
#include <map>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/kernels/lib/device_primitives.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/random/random.h"
#include "weir/session/session.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

inline constexpr Place kNpu("NPU");

constexpr char kCpu0[] = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr char kNpu0[] = "/job:localhost/replica:0/task:0/device:NPU:0";
constexpr char kNpu1[] = "/job:localhost/replica:0/task:0/device:NPU:1";

// ---- a device without a stream, in whose address space the host has no memory

// What the backend and its devices have done.
struct NpuCounts {
  std::atomic<int64_t> bytes_in_use{0}, copies_in{0}, copies_out{0}, kernels{0};
};

// Addresses of the device are those of the host plus an offset that no process can access.
constexpr uintptr_t kOffset = uintptr_t{1} << 46;
template <class T>
T* OnHost(T* address) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(address) - kOffset);
}

class NpuAllocator final : public Allocator {
 public:
  explicit NpuAllocator(NpuCounts& counts) : counts_(counts) {}
  absl::string_view name() const override { return "npu"; }
  void* Allocate(size_t bytes) override {
    void* const data = HostAllocator().Allocate(bytes);
    if (data == nullptr) return nullptr;
    counts_.bytes_in_use += static_cast<int64_t>(bytes);
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(data) + kOffset);
  }
  void Deallocate(void* data, size_t bytes) override {
    if (data == nullptr) return;
    counts_.bytes_in_use -= static_cast<int64_t>(bytes);
    HostAllocator().Deallocate(OnHost(data), bytes);
  }
  bool host_accessible() const override { return false; }
  int64_t bytes_in_use() const override { return counts_.bytes_in_use; }
  int64_t bytes_free() const override { return int64_t{1} << 30; }

 private:
  NpuCounts& counts_;
};

class NpuPrimitives final : public DevicePrimitives {
 public:
  void Copy(const CopyArgs& args) const override {
    CopyDims(args, 0, OnHost(static_cast<const char*>(args.from)),
             OnHost(static_cast<char*>(args.to)));
  }
  void Fill(size_t size, const void* value, void* to, int64_t count) const override {
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(static_cast<char*>(OnHost(to)) + static_cast<size_t>(i) * size, value, size);
  }
  bool Add(DataType type, void* to, const void* from, int64_t count) const override {
    return Combine(type, to, from, count, 1);
  }
  bool Subtract(DataType type, void* to, const void* from, int64_t count) const override {
    return Combine(type, to, from, count, -1);
  }
  // For one batch of int32 indices.
  void Gather(const GatherArgs& g) const override {
    const size_t slice = static_cast<size_t>(g.inner) * g.size;
    for (int64_t o = 0; o < g.outer; ++o) {
      for (int64_t i = 0; i < g.count; ++i) {
        const int64_t row = OnHost(static_cast<const int32_t*>(g.indices))[i];
        char* const to = static_cast<char*>(OnHost(g.out)) + (o * g.count + i) * slice;
        if (row < 0 || row >= g.limit) {
          std::memset(to, 0, slice);
        } else {
          std::memcpy(to, static_cast<const char*>(OnHost(g.params)) + (o * g.limit + row) * slice,
                      slice);
        }
      }
    }
  }

 private:
  static void CopyDims(const CopyArgs& args, size_t dim, const char* from, char* to) {
    if (dim == args.extents.size()) {
      std::memcpy(to, from, args.size);
      return;
    }
    const int64_t bytes = static_cast<int64_t>(args.size);
    for (int64_t i = 0; i < args.extents[dim]; ++i) {
      CopyDims(args, dim + 1, from + i * args.from_strides[dim] * bytes,
               to + i * args.to_strides[dim] * bytes);
    }
  }
  static bool Combine(DataType type, void* to, const void* from, int64_t count, float sign) {
    if (type != DT_FLOAT) return false;
    for (int64_t i = 0; i < count; ++i)
      static_cast<float*>(OnHost(to))[i] += sign * static_cast<const float*>(OnHost(from))[i];
    return true;
  }
};

class NpuDevice final : public Device {
 public:
  NpuDevice(DeviceName name, NpuCounts& counts)
      : Device(std::move(name), kNpu), counts_(counts), allocator_(counts) {}
  Allocator& allocator() override { return allocator_; }
  std::string Description() const override { return "a test's processor"; }
  const DevicePrimitives* primitives() const override { return &primitives_; }
  void CopyFromHost(const Tensor& from, const Tensor& to, Done done) override {
    ++counts_.copies_in;
    std::memcpy(OnHost(const_cast<void*>(to.raw())), from.raw(), from.num_bytes());
    done(absl::OkStatus());
  }
  void CopyToHost(const Tensor& from, const Tensor& to, Done done) override {
    ++counts_.copies_out;
    std::memcpy(const_cast<void*>(to.raw()), OnHost(from.raw()), from.num_bytes());
    done(absl::OkStatus());
  }
  absl::Status CopyOnDevice(const Tensor& from, const Tensor& to) override {
    std::memmove(OnHost(const_cast<void*>(to.raw())), OnHost(from.raw()), from.num_bytes());
    return absl::OkStatus();
  }
  Kernel Wrap(const KernelInit&, Kernel kernel) override {
    ++counts_.kernels;
    return kernel;
  }

 private:
  NpuCounts& counts_;
  NpuAllocator allocator_;
  const NpuPrimitives primitives_;
};

absl::Status AddOnNpu(KernelContext& c) {
  const Tensor &x = c.input(0), &y = c.input(1);
  if (x.shape() != y.shape()) return InvalidArgument("the shapes differ");
  WEIR_ASSIGN_OR_RETURN(Tensor* const z, c.AllocateOutput(0, x.shape()));
  for (int64_t i = 0; i < x.num_elements(); ++i)
    OnHost(z->data<float>())[i] = OnHost(x.data<float>())[i] + OnHost(y.data<float>())[i];
  return absl::OkStatus();
}

class NpuBackend final : public Backend {
 public:
  explicit NpuBackend(NpuCounts& counts, int num_devices = 2, std::string type = "NPU")
      : Backend(std::move(type)), counts_(counts), num_devices_(num_devices) {}
  void AddKernels(KernelRegistry* kernels) const override {
    kernels->Add("AddV2", kNpu, DT_FLOAT, AddOnNpu);
    AddSharedKernels(kernels, kNpu);
  }
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> CreateDevices(
      const DeviceName& task) const override {
    std::vector<std::unique_ptr<Device>> devices;
    for (int i = 0; i < num_devices_; ++i)
      devices.push_back(std::make_unique<NpuDevice>(LocalDeviceName("NPU", i, task), counts_));
    return devices;
  }

 private:
  NpuCounts& counts_;
  const int num_devices_;
};

class Npu : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(backends_->Add(std::make_unique<NpuBackend>(counts_)).ok());
    options_.backends = backends_;
  }

  struct Result {
    absl::Status status;
    Tensors values;
    std::map<std::string, std::string> device;  // by node
  };
  static Result Run(Session& session, const Feeds& feeds, const Outputs& fetches) {
    std::vector<NodeTrace> trace;
    absl::StatusOr<Tensors> values = session.Run(feeds, fetches, {}, {.trace = &trace});
    Result result{values.status()};
    if (values.ok()) result.values = *std::move(values);
    for (const NodeTrace& t : trace) result.device[t.node] = t.device;
    return result;
  }
  static std::vector<float> Floats(const Tensor& t) {
    const auto flat = t.flat<float>();
    return {flat.begin(), flat.end()};
  }

  NpuCounts counts_;
  std::shared_ptr<BackendRegistry> backends_ = std::make_shared<BackendRegistry>();
  SessionOptions options_;
  Graph g_;
  const Output x_ = Placeholder(g_, DT_FLOAT, {3}, "x");
  const Feeds feeds_ = {{x_, Tensor::Vector<float>({1, 2, 3})}};
};

TEST_F(Npu, ItsDevicesAreListedAfterTheCpu) {
  absl::StatusOr<Session> session = Session::Create(g_, options_);
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<std::string> names;
  for (const Device* device : session->devices()) names.push_back(device->text());
  EXPECT_THAT(names, ElementsAre(kCpu0, kNpu0, kNpu1));
  EXPECT_EQ(session->devices()[1]->place(), kNpu);
  EXPECT_FALSE(session->devices()[1]->is_host());
}

TEST_F(Npu, RunsItsKernelsOnItsMemory) {
  const Output y = Add(Add(x_, x_, "first"), x_, "second");
  const Output z = Multiply(y, y, "product");  // it has no kernel for this
  absl::StatusOr<Session> session = Session::Create(g_, options_);
  ASSERT_TRUE(session.ok()) << session.status();
  const Result result = Run(*session, feeds_, {y, z});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(Floats(result.values[0]), ElementsAre(3, 6, 9));
  EXPECT_THAT(Floats(result.values[1]), ElementsAre(9, 36, 81));
  EXPECT_EQ(result.device.at("first"), kNpu0);
  EXPECT_EQ(result.device.at("second"), kNpu0);
  EXPECT_EQ(result.device.at("product"), kCpu0);
  EXPECT_GT(counts_.kernels, 0);
  EXPECT_GT(counts_.copies_in, 0);
  EXPECT_GT(counts_.copies_out, 0);
}

TEST_F(Npu, PassesValuesFromOneDeviceToAnother) {
  Output y, z;
  {
    const DeviceScope second(g_, "/device:NPU:1");
    y = Add(x_, x_, "on_second");
  }
  {
    const DeviceScope first(g_, "/device:npu:0");  // in any case
    z = Add(y, y, "on_first");
  }
  absl::StatusOr<Session> session = Session::Create(g_, options_);
  ASSERT_TRUE(session.ok()) << session.status();
  const Result result = Run(*session, feeds_, {z});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(Floats(result.values[0]), ElementsAre(4, 8, 12));
  EXPECT_EQ(result.device.at("on_second"), kNpu1);
  EXPECT_EQ(result.device.at("on_first"), kNpu0);
}

// Kernels of the CPU, with the device's loops.
TEST_F(Npu, SharesKernelsThatMoveElements) {
  const Output both = Concat({x_, Add(x_, x_)}, 0);
  const Output matrix = Transpose(Reshape(both, {2, 3}), {1, 0}, "transposed");
  const Output rows = Gather(matrix, {2, 0}, {}, "rows");
  absl::StatusOr<Session> session = Session::Create(g_, options_);
  ASSERT_TRUE(session.ok()) << session.status();
  const Result result = Run(*session, feeds_, {matrix, rows});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(Floats(result.values[0]), ElementsAre(1, 2, 2, 4, 3, 6));
  EXPECT_THAT(Floats(result.values[1]), ElementsAre(3, 6, 1, 2));
  EXPECT_EQ(result.device.at("transposed"), kNpu0);
}

TEST_F(Npu, HoldsVariables) {
  const Variable v = GetVariable(g_, "v", {3}, Ones());
  const Output added = v.AssignAdd(x_), subtracted = v.AssignSub(x_);
  {
    absl::StatusOr<Session> session = Session::Create(g_, options_);
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE(session->Run(GlobalVariablesInitializer(g_)).ok());
    EXPECT_GT(counts_.bytes_in_use, 0);
    Result result = Run(*session, feeds_, {added});
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_THAT(Floats(result.values[0]), ElementsAre(2, 3, 4));
    result = Run(*session, {{x_, Tensor::Vector<float>({5, 5, 5})}}, {subtracted});
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_THAT(Floats(result.values[0]), ElementsAre(-3, -2, -1));
  }
  EXPECT_EQ(counts_.bytes_in_use, 0);
}

// Its loops have no random numbers, and it has not registered the kernels that need them.
TEST_F(Npu, LeavesOtherOpsToTheCpu) {
  const Output random = RandomUniform(g_, {3}, {}, "random");
  absl::StatusOr<Session> session = Session::Create(g_, options_);
  ASSERT_TRUE(session.ok()) << session.status();
  const Result result = Run(*session, {}, {random});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.device.at("random/RandomUniform"), kCpu0);
}

TEST_F(Npu, UnknownDeviceTypesAndMissingKernelsAreErrors) {
  Output unknown, missing;
  {
    const DeviceScope scope(g_, "/device:TPU:0");
    unknown = Add(x_, x_);
  }
  {
    const DeviceScope scope(g_, "/device:NPU:0");
    missing = Sin(x_);
  }
  options_.allow_soft_placement = false;
  absl::StatusOr<Session> session = Session::Create(g_, options_);
  ASSERT_TRUE(session.ok()) << session.status();
  absl::Status status = Run(*session, feeds_, {unknown}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("TPU"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(kNpu1));  // of the available devices
  status = Run(*session, feeds_, {missing}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("on NPU. Registered kernels: CPU"));
}

// ---- the registry

TEST_F(Npu, AddingATypeTwiceIsAnErrorThatNamesIt) {
  const size_t kernels = backends_->kernels().KernelsOf("AddV2").size();
  const absl::Status status = backends_->Add(std::make_unique<NpuBackend>(counts_));
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'NPU'"));
  EXPECT_EQ(backends_->All().size(), 1u);
  EXPECT_EQ(backends_->kernels().KernelsOf("AddV2").size(), kernels);

  BackendRegistry more(backends_.get());
  EXPECT_EQ(more.Add(std::make_unique<NpuBackend>(counts_)).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(more.Add(std::make_unique<NpuBackend>(counts_, 0, "DSP")).ok());
  EXPECT_EQ(more.All().size(), 2u);
  EXPECT_EQ(more.Find("NPU"), backends_->Find("NPU"));
  EXPECT_EQ(backends_->Find("DSP"), nullptr);
}

TEST_F(Npu, BadTypesAreErrors) {
  BackendRegistry backends;
  EXPECT_EQ(backends.Add(std::make_unique<NpuBackend>(counts_, 1, "CPU")).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(backends.Add(nullptr).code(), absl::StatusCode::kInvalidArgument);
  for (const char* type : {"", "npu", "1NPU", "N:PU"}) {
    const absl::Status status = backends.Add(std::make_unique<NpuBackend>(counts_, 1, type));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("'", type, "'")));
  }
  EXPECT_TRUE(backends.All().empty());
}

TEST_F(Npu, DevicesOfAnotherTypeAreErrors) {
  auto backends = std::make_shared<BackendRegistry>();
  ASSERT_TRUE(backends->Add(std::make_unique<NpuBackend>(counts_, 1, "DSP")).ok());
  const absl::Status status = Session::Create(g_, {.backends = backends}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'DSP'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(kNpu0));
}

class BrokenBackend final : public Backend {
 public:
  BrokenBackend() : Backend("BROKEN") {}
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> CreateDevices(
      const DeviceName&) const override {
    return absl::UnavailableError("the driver is too old");
  }
};

TEST_F(Npu, AnErrorOfItsDriverIsTheSessions) {
  ASSERT_TRUE(backends_->Add(std::make_unique<BrokenBackend>()).ok());
  const absl::Status status = Session::Create(g_, options_).status();
  EXPECT_EQ(status, absl::UnavailableError("the driver is too old"));
  EXPECT_EQ(counts_.bytes_in_use, 0);
}

TEST(Backends, WithoutAnyThereIsTheCpu) {
  Graph g;
  absl::StatusOr<Session> session =
      Session::Create(g, {.backends = std::make_shared<BackendRegistry>()});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_EQ(session->devices().size(), 1u);
  EXPECT_TRUE(session->devices()[0]->is_host());
}

TEST(Backends, BuiltInOnesHaveTheBuiltInKernels) {
  EXPECT_EQ(&BuiltinBackends().kernels(), &BuiltinKernels());
}

// For programs that were written before there were backends.
TEST(Backends, MakeDevicesReplacesThem) {
  NpuCounts counts;
  Graph g;
  SessionOptions options;
  options.make_devices = [&counts] {
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(std::make_unique<NpuDevice>(LocalDeviceName("NPU", 0), counts));
    return devices;
  };
  absl::StatusOr<Session> session = Session::Create(g, options);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_EQ(session->devices().size(), 2u);
  EXPECT_EQ(session->devices()[1]->text(), kNpu0);
}

// ---- places

TEST(Place, IsItsName) {
  EXPECT_EQ(kNpu, Place("NPU"));
  EXPECT_NE(kNpu, kGpu);
  EXPECT_NE(Place("NPU1"), kNpu);
  EXPECT_EQ(kNpu.name(), "NPU");
  EXPECT_EQ(Place("FIFTEEN_LETTERS").name(), "FIFTEEN_LETTERS");
}

}  // namespace
}  // namespace weir
