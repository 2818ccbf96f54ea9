#include "weir/core/import/transaction.h"

#include "gtest/gtest.h"
#include "weir/core/io/function_library.h"
#include "weir/tests/core/graph/test_ops.h"

namespace weir {
namespace {

class ImportTransactionTest : public ::testing::Test {
 protected:
  ImportTransactionTest() { Placeholder(graph_, DT_FLOAT, Shape(), "before"); }

  static Node* AddNode(ImportTransaction& transaction, const std::string& name) {
    return transaction.Add(transaction.NewNode("", name, "/cpu:0"));
  }

  Graph graph_{TestOps()};
};

TEST_F(ImportTransactionTest, AddsNodesAtTheEnd) {
  ImportTransaction transaction(graph_);
  transaction.Reserve(2);
  EXPECT_TRUE(transaction.added().empty());
  Node *const a = AddNode(transaction, "a"), *const b = AddNode(transaction, "s/b");
  EXPECT_EQ(a->id(), 1);
  EXPECT_EQ(&a->graph(), &graph_);
  EXPECT_EQ(a->device(), "/cpu:0");
  EXPECT_EQ(b->id(), 2);
  EXPECT_EQ(graph_.FindNode("s/b"), b);
  ASSERT_EQ(transaction.added().size(), 2u);
  EXPECT_EQ(transaction.added()[0].get(), a);
}

TEST_F(ImportTransactionTest, DropsEverythingUnlessCommitted) {
  const GraphVersions before = graph_.versions();
  {
    ImportTransaction transaction(graph_);
    const Output a(AddNode(transaction, "s/a"));
    graph_.versions() = {.producer = 7, .min_consumer = 8, .bad_consumers = {9}};
    transaction.AddUnknownOp(std::make_unique<const UnknownOp>(OpSpec("Gone"), false, ""));
    EXPECT_TRUE(transaction.has_unknown_ops());
    EXPECT_TRUE(a.valid());
  }
  EXPECT_EQ(graph_.num_nodes(), 1);
  EXPECT_NE(graph_.FindNode("before"), nullptr);
  EXPECT_EQ(graph_.FindNode("s/a"), nullptr);
  EXPECT_EQ(graph_.UniqueName("s/a"), "s/a") << "the name is free";
  EXPECT_EQ(graph_.UniqueName("s"), "s");
  EXPECT_EQ(graph_.versions().producer, before.producer);
  EXPECT_EQ(graph_.versions().min_consumer, before.min_consumer);
  EXPECT_TRUE(graph_.versions().bad_consumers.empty());
  EXPECT_TRUE(graph_.Extension<UnknownOps>().ops.empty());
  EXPECT_EQ(graph_.functions(), nullptr);
}

TEST_F(ImportTransactionTest, CommitKeepsEverything) {
  const auto functions = std::make_shared<const FunctionLibrary>();
  const UnknownOp* op = nullptr;
  {
    ImportTransaction transaction(graph_);
    AddNode(transaction, "s/t/a");
    graph_.versions().producer = 7;
    op = transaction.AddUnknownOp(std::make_unique<const UnknownOp>(OpSpec("Gone"), false, ""));
    transaction.Commit(functions);
  }
  EXPECT_EQ(graph_.num_nodes(), 2);
  EXPECT_NE(graph_.FindNode("s/t/a"), nullptr);
  for (const char* name : {"s/t/a", "s/t", "s"})
    EXPECT_EQ(graph_.UniqueName(name), absl::StrCat(name, "_1")) << "the name is taken";
  EXPECT_EQ(graph_.versions().producer, 7);
  ASSERT_EQ(graph_.Extension<UnknownOps>().ops.size(), 1u);
  EXPECT_EQ(graph_.Extension<UnknownOps>().ops[0].get(), op);
  EXPECT_EQ(graph_.functions(), functions);
}

}  // namespace
}  // namespace weir
