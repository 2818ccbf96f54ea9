// Iterators without names, and those of several devices.

#include "weir/tests/kernels/data/dataset_test_util.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

using IteratorsTest = DatasetTransformsTest;

TEST_F(IteratorsTest, AnonymousIteratorsLiveInTheirStep) {
  for (const char* op : {"AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3"}) {
    const Output iterator = AddNode(g_, op, {}, ElementAttrs({DT_INT64}))->output(0);
    const Operation start(AddNode("MakeIterator", {Range(4, 9).handle, iterator}));
    const ControlDependencies after(g_, {start});
    EXPECT_EQ(Fetched(AddOp("IteratorGetNext", {iterator}, ElementAttrs({DT_INT64}))), "4") << op;
  }
}

TEST_F(IteratorsTest, ADeletedIteratorIsEmpty) {
  Node* const iterator = AddNode(g_, "AnonymousIteratorV2", {}, ElementAttrs({DT_INT64}));
  const Operation start(AddNode("MakeIterator", {Range(4, 9).handle, iterator->output(0)}));
  const ControlDependencies started(g_, {start});
  const Operation erase(AddNode("DeleteIterator", {iterator->output(0), iterator->output(1)}));
  const ControlDependencies erased(g_, {erase});
  EXPECT_THAT(Fetched(AddOp("IteratorGetNext", {iterator->output(0)}, ElementAttrs({DT_INT64}))),
              HasSubstr("GetNext() failed because the iterator has not been initialized"));
}

TEST_F(IteratorsTest, TheEndIsAnEmptyOptional) {
  const Attrs elements = ElementAttrs({DT_INT64});
  const Output iterator =
      AddNode(g_, "IteratorV2", {}, With(elements, {{"shared_name", ""}, {"container", ""}}))
          ->output(0);
  const Operation start(AddNode("MakeIterator", {Range(4, 5).handle, iterator}));
  const Output optional = AddOp("IteratorGetNextAsOptional", {iterator}, elements);
  const Output has = AddOp("OptionalHasValue", {optional});
  const Output device = AddOp("IteratorGetDevice", {iterator});
  const Output old_device = AddOp("ExperimentalIteratorGetDevice", {iterator});
  const Output model = AddOp("IteratorGetModelProto", {iterator});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  EXPECT_EQ(session.Run({optional}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(session.Run({model}).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(session.Run(start).ok());
  EXPECT_TRUE((*session.Run({has}))[0].scalar<bool>());
  EXPECT_FALSE((*session.Run({has}))[0].scalar<bool>());
  EXPECT_EQ(session.Run({model}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT((*session.Run({device}))[0].scalar<std::string>(), HasSubstr("CPU:0"));
  EXPECT_THAT((*session.Run({old_device}))[0].scalar<std::string>(), HasSubstr("CPU:0"));
}

class MultiDeviceIteratorTest : public IteratorsTest {
 protected:
  void Build(const char* op, const Attrs& names) {
    const std::vector<std::string> devices = {"/cpu:0", "/cpu:0"};
    iterator_ =
        AddNode(g_, op, {}, With(With(ElementAttrs({DT_INT64}), {{"devices", devices}}), names));
    start_ =
        AddOp("MultiDeviceIteratorInit", {Range(0, 5).handle, iterator_->output(0), Number(1)});
    shard_ = Placeholder(g_, DT_INT32);
    incarnation_ = Placeholder(g_, DT_INT64);
    next_ = AddOp("MultiDeviceIteratorGetNextFromShard",
                  {iterator_->output(0), shard_, incarnation_}, ElementAttrs({DT_INT64}));
  }
  std::string Next(Session& session, int shard, int64_t incarnation) {
    return Text(session.Run(
        {{shard_, Tensor::Scalar(shard)}, {incarnation_, Tensor::Scalar(incarnation)}}, {next_}));
  }

  Node* iterator_ = nullptr;
  Output start_, shard_, incarnation_, next_;
};

TEST_F(MultiDeviceIteratorTest, ElementsAreDealtInTurn) {
  Build("MultiDeviceIterator", {{"shared_name", ""}, {"container", ""}});
  const Output text = AddOp("MultiDeviceIteratorToStringHandle", {iterator_->output(0)});
  const Output found = AddOp("MultiDeviceIteratorFromStringHandle", {text});
  const Output by_text = AddOp("MultiDeviceIteratorGetNextFromShard", {found, shard_, incarnation_},
                               ElementAttrs({DT_INT64}));
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  EXPECT_THAT(Next(session, 0, 1), HasSubstr("has not been initialized"));
  ASSERT_EQ((*session.Run({start_}))[0].scalar<int64_t>(), 1);
  EXPECT_EQ(Next(session, 1, 1), "1");
  EXPECT_EQ(Next(session, 1, 1), "3");
  EXPECT_EQ(Next(session, 0, 1), "0");
  EXPECT_EQ(
      Text(session.Run({{shard_, Tensor::Scalar(0)}, {incarnation_, Tensor::Scalar(int64_t{1})}},
                       {by_text})),
      "2");
  EXPECT_EQ(Next(session, 0, 1), "4");
  EXPECT_EQ(Next(session, 1, 1), "end");
  EXPECT_THAT(Next(session, 0, 77), HasSubstr("Invalid incarnation id. Provided: 77; Expected: 1"));
  EXPECT_THAT(Next(session, 2, 1), HasSubstr("shard_num must be in [0, 2), not 2"));
  ASSERT_EQ((*session.Run({start_}))[0].scalar<int64_t>(), 2);
  EXPECT_EQ(Next(session, 0, 2), "0");
}

TEST_F(MultiDeviceIteratorTest, AnonymousOnesLiveInTheirStep) {
  for (const char* op : {"AnonymousMultiDeviceIterator", "AnonymousMultiDeviceIteratorV3"}) {
    Build(op, {});
    const Output next =
        AddOp("MultiDeviceIteratorGetNextFromShard", {iterator_->output(0), Const(g_, 1), start_},
              ElementAttrs({DT_INT64}));
    EXPECT_EQ(Fetched(next), "1") << op;
  }
  const Operation erase(AddNode(
      "DeleteMultiDeviceIterator",
      {iterator_->output(0), Outputs(),
       AddNode(g_, "AnonymousMultiDeviceIterator", {},
               With(ElementAttrs({DT_INT64}), {{"devices", std::vector<std::string>{"/cpu:0"}}}))
           ->output(1)}));
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  EXPECT_TRUE(Session::Create(g_)->Run(erase).ok());
}

}  // namespace
}  // namespace weir
