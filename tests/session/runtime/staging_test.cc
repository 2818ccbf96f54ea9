// Staging areas, barriers and locks.

#include <atomic>
#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

class WaitingTest : public ::testing::Test {
 protected:
  Session& session() {
    if (!session_) {
      EXPECT_TRUE(g_.status().ok()) << g_.status();
      session_.emplace(*Session::Create(g_, {.num_threads = 2}));
    }
    return *session_;
  }
  absl::Status Run(const Operation& op, milliseconds timeout = {}) {
    return session().Run(Feeds{}, {}, {op}, {.timeout = timeout}).status();
  }
  absl::StatusOr<Tensors> Get(const Outputs& fetches, milliseconds timeout = {}) {
    return session().Run(Feeds{}, fetches, {}, {.timeout = timeout});
  }
  float Float(const Output& y) {
    const auto out = Get({y});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0].scalar<float>() : -1;
  }
  int32_t Int(const Output& y) {
    const auto out = Get({y});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0].scalar<int32_t>() : -1;
  }

  Graph g_;
  std::optional<Session> session_;
};

// ---- staging areas

class StagingTest : public WaitingTest {
 protected:
  Attrs Area(const char* name, int64_t capacity = 0, int64_t memory_limit = 0) {
    return {{"shared_name", name}, {"capacity", capacity}, {"memory_limit", memory_limit}};
  }
  Attrs With(Attrs attrs, const DataTypes& dtypes) {
    attrs.emplace_back("dtypes", dtypes);
    return attrs;
  }
  Operation Stage(const Attrs& area, float value) {
    return Operation(AddNode("Stage", {Outputs{Const(g_, value)}}, area));
  }
  Output Unstage(const Attrs& area) {
    return Output(AddNode(g_, "Unstage", {}, With(area, {DT_FLOAT})));
  }
  Output Size(const char* op, const Attrs& area) {
    return Output(AddNode(g_, op, {}, With(area, {DT_FLOAT})));
  }
};

TEST_F(StagingTest, TuplesGoFromOneStepToAnother) {
  const Attrs area = Area("a");
  const Operation one = Stage(area, 1), two = Stage(area, 2);
  const Output first = Unstage(area), size = Size("StageSize", area);
  const Output second = AddOp("StagePeek", {Const(g_, 1)}, With(area, {DT_FLOAT}));
  const Operation clear(AddNode(g_, "StageClear", {}, With(area, {DT_FLOAT})));
  ASSERT_TRUE(Run(one).ok());
  ASSERT_TRUE(Run(two).ok());
  EXPECT_EQ(Int(size), 2);
  EXPECT_EQ(Float(second), 2);
  EXPECT_EQ(Float(first), 1);
  EXPECT_EQ(Int(size), 1);
  ASSERT_TRUE(Run(clear).ok());
  EXPECT_EQ(Int(size), 0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(Get({first}, milliseconds(20)).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Get({second}, milliseconds(20)).status()));
}

TEST_F(StagingTest, FullAreaBlocks) {
  for (const Attrs& area : {Area("few", 1), Area("small", 0, 6)}) {
    const Operation put = Stage(area, 1);
    const Output take = Unstage(area);
    session();
    ASSERT_TRUE(Run(put).ok());
    EXPECT_TRUE(absl::IsDeadlineExceeded(Run(put, milliseconds(20))));
    std::thread putter([&] { EXPECT_TRUE(Run(put).ok()); });
    EXPECT_EQ(Float(take), 1);
    EXPECT_EQ(Float(take), 1);
    putter.join();
  }
  const Attrs tiny = Area("tiny", 0, 3);
  EXPECT_TRUE(absl::IsResourceExhausted(Run(Stage(tiny, 1))));
}

TEST_F(StagingTest, TypesAreChecked) {
  const Attrs area = Area("a");
  const Operation put = Stage(area, 1);
  const Output wrong(AddNode(g_, "Unstage", {}, With(area, {DT_INT32})));
  const Output more(AddNode(g_, "Unstage", {}, With(area, {DT_FLOAT, DT_FLOAT})));
  const Output negative = AddOp("StagePeek", {Const(g_, -1)}, With(area, {DT_FLOAT}));
  ASSERT_TRUE(Run(put).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Get({wrong}).status()));
  ASSERT_TRUE(Run(put).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Get({more}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Get({negative}).status()));
}

class StagingMapTest : public StagingTest, public ::testing::WithParamInterface<const char*> {
 protected:
  std::string Op(const char* op) { return std::string(GetParam()) + op; }
  Operation Put(const Attrs& area, int64_t key, std::initializer_list<int32_t> indices,
                const std::vector<float>& values) {
    Outputs parts;
    for (const float v : values) parts.push_back(Const(g_, v));
    return Operation(AddNode(Op("Stage"), {Const(g_, key), Const(g_, indices), parts},
                             With(area, {DT_FLOAT, DT_FLOAT})));
  }
  Output Take(const char* op, const Attrs& area, int64_t key, int32_t index) {
    return Output(AddNode(Op(op), {Const(g_, key), Const(g_, {index})}, With(area, {DT_FLOAT})));
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, StagingMapTest, ::testing::Values("Map", "OrderedMap"));

TEST_P(StagingMapTest, TuplesComeAndGoByKeysAndInParts) {
  const Attrs area = Area("m");
  const Operation whole = Put(area, 7, {0, 1}, {1, 2}), first = Put(area, 3, {0}, {3}),
                  second = Put(area, 3, {1}, {4});
  const Output size = Size(Op("Size").c_str(), area),
               incomplete = Size(Op("IncompleteSize").c_str(), area);
  const Output peek = Take("Peek", area, 7, 1), seven = Take("Unstage", area, 7, 1);
  Node* const any =
      AddNode(Op("UnstageNoKey"), {Const(g_, {0, 1})}, With(area, {DT_FLOAT, DT_FLOAT}));
  const Operation clear(AddNode(g_, Op("Clear"), {}, With(area, {DT_FLOAT})));
  ASSERT_TRUE(Run(whole).ok());
  ASSERT_TRUE(Run(first).ok());
  EXPECT_EQ(Int(size), 1);
  EXPECT_EQ(Int(incomplete), 1);
  EXPECT_THAT(Run(first).message(), HasSubstr("was already initialized"));
  ASSERT_TRUE(Run(second).ok());
  EXPECT_EQ(Int(size), 2);
  EXPECT_EQ(Float(peek), 2);
  EXPECT_EQ(Float(seven), 2);
  EXPECT_THAT(Get({seven}).status().message(), HasSubstr("has already been removed"));
  const auto out = Get({any->output(0), any->output(1), any->output(2)});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<int64_t>(), 3);
  EXPECT_EQ((*out)[1].scalar<float>(), 3);
  EXPECT_EQ((*out)[2].scalar<float>(), 4);
  EXPECT_EQ(Int(size), 1);
  ASSERT_TRUE(Run(clear).ok());
  EXPECT_EQ(Int(size), 0);
}

TEST_P(StagingMapTest, TakingAKeyWaitsForIt) {
  const Attrs area = Area("m", 1);
  const Operation five = Put(area, 5, {0, 1}, {1, 2}), six = Put(area, 6, {0, 1}, {3, 4});
  const Output five_0 = Take("Unstage", area, 5, 0), five_1 = Take("Unstage", area, 5, 1),
               six_0 = Take("Peek", area, 6, 0);
  session();
  ASSERT_TRUE(Run(five).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(Run(six, milliseconds(20))));
  std::thread waiter([&] { EXPECT_EQ(Float(six_0), 3); });
  std::thread putter([&] { EXPECT_TRUE(Run(six).ok()); });
  EXPECT_EQ(Float(five_0), 1);
  EXPECT_EQ(Float(five_1), 2);
  putter.join();
  waiter.join();
}

TEST_P(StagingMapTest, RejectsMalformedIndices) {
  const Attrs area = Area("m");
  for (const Operation& op :
       {Put(area, 1, {1, 0}, {1, 2}), Put(area, 1, {0, 2}, {1, 2}), Put(area, 1, {0}, {1, 2}),
        Put(area, 1, {-1}, {1}), Put(area, 1, {0, 0}, {1, 2})}) {
    const absl::Status s = Run(op);
    EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  }
  ASSERT_TRUE(Run(Put(area, 1, {0, 1}, {1, 2})).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Get({Take("Unstage", area, 1, 5)}).status()));
}

// ---- barriers

class BarrierTest : public WaitingTest {
 protected:
  Output Make() {
    return Output(AddNode(g_, "Barrier", {},
                          {{"component_types", DataTypes{DT_FLOAT, DT_FLOAT}},
                           {"shapes", std::vector<Shape>{Shape(), Shape()}}},
                          "B"));
  }
  Operation Insert(Output barrier, int64_t component, const Strings& keys,
                   const std::vector<float>& values) {
    return Operation(AddNode("BarrierInsertMany", {barrier, Const(g_, keys), Const(g_, values)},
                             {{"component_index", component}}));
  }
  Outputs Take(Output barrier, int32_t n, bool allow_small_batch = false) {
    Node* const node = AddNode("BarrierTakeMany", {barrier, Const(g_, n)},
                               {{"component_types", DataTypes{DT_FLOAT, DT_FLOAT}},
                                {"allow_small_batch", allow_small_batch}});
    return {node->output(0), node->output(1), node->output(2), node->output(3)};
  }
  Operation Close(Output barrier, bool cancel = false) {
    return Operation(AddNode("BarrierClose", {barrier}, {{"cancel_pending_enqueues", cancel}}));
  }
};

// Results and error messages were recorded with TensorFlow 2.21.
TEST_F(BarrierTest, PutsTuplesTogether) {
  const Output b = Make();
  const Operation keys = Insert(b, 0, {"a", "b", "c"}, {10, 20, 30}),
                  some = Insert(b, 1, {"a", "b"}, {1, 2}), rest = Insert(b, 1, {"c"}, {3}),
                  late = Insert(b, 0, {"z"}, {1}), close = Close(b);
  const Output ready = AddOp("BarrierReadySize", {b}),
               incomplete = AddOp("BarrierIncompleteSize", {b});
  const Outputs three = Take(b, 3), one = Take(b, 1);
  ASSERT_TRUE(Run(keys).ok());
  ASSERT_TRUE(Run(some).ok());
  EXPECT_EQ(Int(ready), 2);
  EXPECT_EQ(Int(incomplete), 1);
  ASSERT_TRUE(Run(close).ok());
  const absl::Status refused = Run(late);
  EXPECT_TRUE(absl::IsCancelled(refused)) << refused;
  EXPECT_THAT(refused.message(),
              HasSubstr("Barrier _0_B is closed, but attempted to insert a brand new key: z.  "
                        "Pending enqueues cancelled: 0.  Insertion index: 0."));
  ASSERT_TRUE(Run(rest).ok());
  const auto out = Get(three);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<int64_t>(), ElementsAre(INT64_MIN, INT64_MIN, INT64_MIN));
  EXPECT_THAT((*out)[1].flat<std::string>(), ElementsAre("a", "b", "c"));
  EXPECT_THAT((*out)[2].flat<float>(), ElementsAre(10, 20, 30));
  EXPECT_THAT((*out)[3].flat<float>(), ElementsAre(1, 2, 3));
  const absl::Status end = Get(one).status();
  EXPECT_TRUE(absl::IsOutOfRange(end)) << end;
  EXPECT_THAT(end.message(), HasSubstr("Barrier '_0_B' is closed and has insufficient elements "
                                       "(requested 1, total size 0)"));
  EXPECT_THAT(Run(close).message(), HasSubstr("Barrier '_0_B' is already closed."));
}

TEST_F(BarrierTest, WaitsForTuplesAndReturnsSmallBatchesAtTheEnd) {
  const Output b = Make();
  const Operation first = Insert(b, 0, {"x"}, {1}), second = Insert(b, 1, {"x"}, {2});
  const Outputs one = Take(b, 1), few = Take(b, 5, /*allow_small_batch=*/true);
  const Operation close = Close(b);
  session();
  ASSERT_TRUE(Run(first).ok());
  std::thread taker([&] {
    const auto out = Get(one);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[3].flat<float>()[0], 2);
  });
  ASSERT_TRUE(Run(second).ok());
  taker.join();
  ASSERT_TRUE(Run(first).ok());
  ASSERT_TRUE(Run(second).ok());
  ASSERT_TRUE(Run(close).ok());
  const auto out = Get(few);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[1].flat<std::string>(), ElementsAre("x"));
  EXPECT_TRUE(absl::IsOutOfRange(Get(few).status()));
}

TEST_F(BarrierTest, CancellingDropsIncompleteElements) {
  const Output b = Make();
  const Operation first = Insert(b, 0, {"x"}, {1}), second = Insert(b, 1, {"x"}, {2}),
                  close = Close(b), cancel = Close(b, true);
  const Output incomplete = AddOp("BarrierIncompleteSize", {b});
  ASSERT_TRUE(Run(first).ok());
  ASSERT_TRUE(Run(close).ok());
  ASSERT_TRUE(Run(cancel).ok());
  EXPECT_EQ(Int(incomplete), 0);
  EXPECT_TRUE(absl::IsCancelled(Run(second)));
  EXPECT_TRUE(absl::IsCancelled(Run(cancel)));
}

TEST_F(BarrierTest, RejectsMismatches) {
  const Output b = Make();
  const Operation bad[] = {
      Insert(b, 2, {"x"}, {1}),
      Insert(b, -1, {"x"}, {1}),
      Operation(AddNode("BarrierInsertMany",
                        {b, Const(g_, Strings{"x", "y"}),
                         PlaceholderWithDefault(Const(g_, {1.0f}), Shape::UnknownRank())},
                        {{"component_index", 0}})),
      Insert(b, 0, {"x", "x"}, {1, 2}),
      Operation(AddNode("BarrierInsertMany", {b, Const(g_, Strings{"q"}), Const(g_, {1})},
                        {{"component_index", 0}})),
      Operation(AddNode("BarrierInsertMany",
                        {b, Const(g_, Strings{"q"}), Const<float>(g_, {1, 2}, {1, 2})},
                        {{"component_index", 0}}))};
  for (const Operation& op : bad) {
    const absl::Status s = Run(op);
    EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Get(Take(b, -1)).status()));
  const Output limited(AddNode(g_, "Barrier", {},
                               {{"component_types", DataTypes{DT_FLOAT}},
                                {"shapes", std::vector<Shape>{Shape()}},
                                {"capacity", 5}}));
  EXPECT_TRUE(absl::IsInvalidArgument(Get({AddOp("BarrierReadySize", {limited})}).status()));
}

// ---- locks

// A step that acquires the lock, adds to a staging area of capacity one together with others, and
// releases the lock.
TEST_F(StagingTest, OneStepAtATimeHoldsALock) {
  const Attrs area = Area("inside", 1);
  const Output mutex(AddNode(g_, "MutexV2", {}, {{"shared_name", "m"}}));
  const Output lock = AddOp("MutexLock", {mutex});
  Operation enter, leave, consume;
  Output size;
  {
    const ControlDependencies held(g_, {Operation(lock)});
    enter = Stage(area, 1);
  }
  {
    const ControlDependencies entered(g_, {enter});
    size = Size("StageSize", area);
  }
  {
    const ControlDependencies counted(g_, {Operation(size)});
    leave = Operation(Unstage(area));
  }
  {
    const ControlDependencies left(g_, {leave});
    consume = Operation(AddNode("ConsumeMutexLock", {lock}));
  }
  session();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        const auto out = session().Run(Feeds{}, {size}, {consume});
        ASSERT_TRUE(out.ok()) << out.status();
        EXPECT_EQ((*out)[0].scalar<int32_t>(), 1);
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

// Each section reads the variable and then adds to it: reads of other sections must not come
// between.
TEST_F(StagingTest, SectionsOfOneStepRunOneAfterAnother) {
  constexpr int kSections = 20;
  const Output mutex(AddNode(g_, "MutexV2", {}, {}));
  const Variable v = GetVariable(g_, "v", {}, Zeros());
  const Operation init = GlobalVariablesInitializer(g_);
  Outputs before;
  std::vector<Operation> ends;
  for (int i = 0; i < kSections; ++i) {
    const Output lock = AddOp("MutexLock", {mutex});
    const ControlDependencies held(g_, {Operation(lock)});
    before.push_back(v.read_value());
    const ControlDependencies read(g_, {Operation(before.back())});
    const ControlDependencies written(g_, {Operation(v.AssignAdd(2.f))});
    ends.emplace_back(AddNode("ConsumeMutexLock", {lock}));
  }
  ASSERT_TRUE(session().Run(init).ok());
  const RunOptions limit = {.timeout = std::chrono::seconds(20)};
  const auto out = session().Run(Feeds{}, before, ends, limit);
  ASSERT_TRUE(out.ok()) << out.status();
  std::set<float> seen;
  for (const Tensor& value : *out) seen.insert(value.scalar<float>());
  EXPECT_EQ(seen.size(), static_cast<size_t>(kSections));
  EXPECT_EQ(*seen.rbegin(), 2 * (kSections - 1));
}

TEST_F(StagingTest, AFailedStepReleasesItsLock) {
  const Output mutex(AddNode(g_, "MutexV2", {}, {}));
  const Output lock = AddOp("MutexLock", {mutex});
  const Operation consume(AddNode("ConsumeMutexLock", {lock}));
  Output never;
  {
    const ControlDependencies held(g_, {Operation(lock)});
    never = Unstage(Area("empty"));
  }
  Operation late;
  {
    const ControlDependencies waited(g_, {Operation(never)});
    late = Operation(AddNode("ConsumeMutexLock", {lock}));
  }
  session();
  EXPECT_TRUE(absl::IsDeadlineExceeded(Run(late, milliseconds(20))));
  EXPECT_TRUE(Run(consume).ok());
  EXPECT_TRUE(Run(consume).ok());
  EXPECT_TRUE(Run(Operation(lock)).ok());  // never consumed: released with the step
  EXPECT_TRUE(Run(consume).ok());
  const Operation none(AddNode("ConsumeMutexLock", {Placeholder(g_, DT_VARIANT, Shape())}));
  EXPECT_FALSE(Run(none).ok());
}

}  // namespace
}  // namespace weir
