#include "weir/ops/data/reader.h"

#include <zlib.h>

#include <set>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/record.h"
#include "weir/ops/lib/array.h"
#include "weir/session/session.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;
using Record = std::pair<std::string, std::string>;

std::string Compressed(const std::string& text, bool is_gzip) {
  z_stream z = {};
  EXPECT_EQ(
      deflateInit2(&z, 9, Z_DEFLATED, is_gzip ? MAX_WBITS + 16 : MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
      Z_OK);
  std::string out(text.size() + 1000, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

class ReadersTest : public ::testing::Test {
 protected:
  ReadersTest() : queue_(Queue::Fifo(g_, 100, {DT_STRING}, {.shapes = {Shape()}})) {
    names_ = Placeholder(g_, DT_STRING);
    put_ = queue_.EnqueueMany({names_});
    close_ = queue_.Close();
  }
  std::string File(const std::string& name, const std::string& contents) {
    testing::WriteBytes(directory_ + "/" + name, contents);
    return directory_ + "/" + name;
  }
  std::string RecordFile(const std::string& name, const Strings& records) {
    const std::string path = directory_ + "/" + name;
    auto writer = *RecordWriter::Create(path);
    for (const std::string& record : records) EXPECT_TRUE(writer->Append(record).ok());
    EXPECT_TRUE(writer->Close().ok());
    return path;
  }
  Session& session() {
    if (!session_) {
      EXPECT_TRUE(g_.status().ok()) << g_.status();
      session_.emplace(*Session::Create(g_, {.num_threads = 2}));
    }
    return *session_;
  }
  void Put(const Strings& names, bool close = true) {
    EXPECT_TRUE(session().Run({{names_, Tensor::Vector<std::string>(names)}}, {}, {put_}).ok());
    if (close) {
      EXPECT_TRUE(session().Run(close_).ok());
    }
  }
  absl::StatusOr<Record> Next(const std::pair<Output, Output>& read, milliseconds timeout = {}) {
    const auto out = session().Run(Feeds{}, {read.first, read.second}, {}, {.timeout = timeout});
    if (!out.ok()) return out.status();
    return Record((*out)[0].scalar<std::string>(), (*out)[1].scalar<std::string>());
  }
  // Returns all records until the end.
  std::vector<Record> All(const std::pair<Output, Output>& read) {
    std::vector<Record> all;
    for (;;) {
      auto next = Next(read);
      if (!next.ok()) {
        EXPECT_TRUE(absl::IsOutOfRange(next.status())) << next.status();
        return all;
      }
      all.push_back(*std::move(next));
    }
  }
  int64_t Count(const Output& y) { return (*session().Run({y}))[0].scalar<int64_t>(); }

  const std::string directory_ = testing::MakeTempDirectory("readers");
  Graph g_;
  Queue queue_;
  Output names_;
  Operation put_, close_;
  std::optional<Session> session_;
};

TEST_F(ReadersTest, LinesOfOneFileAfterTheOther) {
  const Reader reader = Reader::TextLine(g_);
  const auto read = reader.Read(queue_);
  const Output records = reader.NumRecordsProduced(), units = reader.NumWorkUnitsCompleted();
  const std::string a = File("a", "one\r\ntwo\n\nfour"), b = File("b", ""), c = File("c", "x\n");
  EXPECT_EQ(reader.handle().node->name(), "TextLineReaderV2");
  Put({a, b, c});
  EXPECT_THAT(All(read),
              ElementsAre(Record(a + ":1", "one"), Record(a + ":2", "two"), Record(a + ":3", ""),
                          Record(a + ":4", "four"), Record(c + ":1", "x")));
  EXPECT_EQ(Count(records), 5);
  EXPECT_EQ(Count(units), 3);
}

TEST_F(ReadersTest, HeaderLinesAreSkipped) {
  const auto read = Reader::TextLine(g_, 2).Read(queue_);
  const std::string a = File("a", "h1\nh2\nx\n"), b = File("b", "h1\n");
  Put({a, b});
  EXPECT_THAT(All(read), ElementsAre(Record(a + ":3", "x")));
}

TEST_F(ReadersTest, SeveralRecordsAtOnceAreOfOneFile) {
  const Reader reader = Reader::TextLine(g_);
  const Output n = Placeholder(g_, DT_INT64, Shape());
  const auto some = reader.ReadUpTo(queue_, n);
  Put({File("a", "1\n2\n3\n"), File("b", ""), File("c", "4\n")});
  const auto read = [&](int64_t count) {
    const auto out = session().Run({{n, Tensor::Scalar(count)}}, {some.second});
    if (!out.ok()) return Strings{std::string(absl::StatusCodeToString(out.status().code()))};
    return Strings((*out)[0].flat<std::string>().begin(), (*out)[0].flat<std::string>().end());
  };
  EXPECT_THAT(read(2), ElementsAre("1", "2"));
  EXPECT_THAT(read(0), ElementsAre());
  EXPECT_THAT(read(5), ElementsAre("3"));
  EXPECT_THAT(read(5), ElementsAre("4"));
  EXPECT_THAT(read(5), ElementsAre("OUT_OF_RANGE"));
  EXPECT_THAT(read(-1), ElementsAre("INVALID_ARGUMENT"));
}

TEST_F(ReadersTest, RecordsOfTfRecordFilesCompressedOrNot) {
  const std::string plain = RecordFile("plain", {"a", "", "some more"});
  const Strings found = {"a", "", "some more"};
  for (const char* kind : {"", "ZLIB", "GZIP"}) {
    const bool is_plain = *kind == '\0';
    const std::string path =
        is_plain ? plain
                 : File(kind, Compressed(testing::ReadBytes(plain), kind == std::string("GZIP")));
    Graph g;
    const Queue queue = Queue::Fifo(g, 10, {DT_STRING}, {.shapes = {Shape()}});
    const auto read = Reader::TfRecord(g, kind).Read(queue);
    const Operation put = queue.Enqueue({Const(g, path)}), close = queue.Close();
    Session s = *Session::Create(g);
    ASSERT_TRUE(s.Run(put).ok());
    ASSERT_TRUE(s.Run(close).ok());
    int64_t offset = 0;
    for (const std::string& want : found) {
      const auto out = s.Run({read.first, read.second});
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ((*out)[0].scalar<std::string>(), absl::StrCat(path, ":", offset));
      EXPECT_EQ((*out)[1].scalar<std::string>(), want);
      offset += 16 + static_cast<int64_t>(want.size());
    }
    EXPECT_TRUE(absl::IsOutOfRange(s.Run({read.first}).status()));
  }
}

TEST_F(ReadersTest, DamagedFilesAreDataLoss) {
  std::string bytes = testing::ReadBytes(RecordFile("good", {"abcdef", "g"}));
  std::string flipped = bytes;
  flipped[14] ^= 1;
  const Strings files = {File("cut", bytes.substr(0, bytes.size() - 3)), File("flipped", flipped),
                         File("short", "abc")};
  const auto read = Reader::TfRecord(g_).Read(queue_);
  const Reader zlib = Reader::TfRecord(g_, "ZLIB", "zlib"),
               what = Reader::TfRecord(g_, "LZ9", "what");
  const auto no_zlib = zlib.Read(queue_), no_kind = what.Read(queue_);
  for (const std::string& file : files) {
    session_.reset();
    Put({file});
    absl::Status s;
    while (s.ok()) s = Next(read).status();
    EXPECT_TRUE(absl::IsDataLoss(s)) << file << ": " << s;
  }
  session_.reset();
  Put({files[2]});
  EXPECT_TRUE(absl::IsDataLoss(Next(no_zlib).status()));
  session_.reset();
  Put({files[2]});
  EXPECT_TRUE(absl::IsInvalidArgument(Next(no_kind).status()));
  session_.reset();
  Put({directory_ + "/nowhere"});
  EXPECT_TRUE(absl::IsNotFound(Next(read).status()));
}

TEST_F(ReadersTest, RecordsOfOneSizeWithHeaderFooterAndHops) {
  // HH 000 111 222 FF
  const std::string text = "HH000111222FF";
  const auto records = [&](Reader::FixedLength layout, const std::string& file) {
    Graph g;
    const Queue queue = Queue::Fifo(g, 10, {DT_STRING}, {.shapes = {Shape()}});
    const auto read = Reader::FixedLengthRecords(g, layout).Read(queue);
    const Operation put = queue.Enqueue({Const(g, file)}), close = queue.Close();
    Session s = *Session::Create(g);
    EXPECT_TRUE(s.Run(put).ok());
    EXPECT_TRUE(s.Run(close).ok());
    Strings all;
    for (;;) {
      const auto out = s.Run({read.second});
      if (!out.ok()) break;
      all.push_back((*out)[0].scalar<std::string>());
    }
    return all;
  };
  const std::string plain = File("fixed", text), zipped = File("z", Compressed(text, false));
  const Reader::FixedLength threes{.record_bytes = 3, .header_bytes = 2, .footer_bytes = 2};
  EXPECT_THAT(records(threes, plain), ElementsAre("000", "111", "222"));
  Reader::FixedLength hopping = threes;
  hopping.hop_bytes = 2;
  EXPECT_THAT(records(hopping, plain), ElementsAre("000", "011", "112", "222"));
  hopping.hop_bytes = 6;
  EXPECT_THAT(records(hopping, plain), ElementsAre("000", "222"));
  Reader::FixedLength compressed = threes;
  compressed.encoding = "ZLIB";
  EXPECT_THAT(records(compressed, zipped), ElementsAre("000", "111", "222"));
  Reader::FixedLength long_header = threes;
  long_header.header_bytes = 50;
  EXPECT_THAT(records(long_header, plain), ElementsAre());
  for (const Reader::FixedLength& bad :
       {Reader::FixedLength{.record_bytes = 0}, Reader::FixedLength{.record_bytes = -1},
        Reader::FixedLength{.record_bytes = 1, .hop_bytes = -1}}) {
    const Output key = Reader::FixedLengthRecords(g_, bad, "bad").Read(queue_).first;
    EXPECT_TRUE(absl::IsInvalidArgument(session().Run({key}).status()));
  }
}

TEST_F(ReadersTest, WholeFilesAndNames) {
  const std::string path = File("a", std::string("x\0y", 3));
  const auto whole = Reader::WholeFile(g_).Read(queue_), name = Reader::Identity(g_).Read(queue_);
  Put({path, "name"});
  EXPECT_EQ(*Next(whole), Record(path, std::string("x\0y", 3)));
  EXPECT_EQ(*Next(name), Record("name", "name"));
}

TEST_F(ReadersTest, StateIsSavedRestoredAndReset) {
  const Reader reader = Reader::Identity(g_);
  const auto read = reader.Read(queue_);
  const Output state = reader.SerializeState(), fed = Placeholder(g_, DT_STRING);
  const Operation restore = reader.RestoreState(fed), reset = reader.Reset();
  const Output records = reader.NumRecordsProduced(), units = reader.NumWorkUnitsCompleted();
  const Output lines = Reader::TextLine(g_).SerializeState();
  Put({"x", "y", "z"}, /*close=*/false);
  ASSERT_TRUE(Next(read).ok());
  const std::string saved = (*session().Run({state}))[0].scalar<std::string>();
  EXPECT_EQ(saved, std::string("\x08\x01\x10\x01\x18\x01\x22\x01x"));  // as TensorFlow writes it
  ASSERT_TRUE(Next(read).ok());
  EXPECT_EQ(Count(records), 2);
  const auto load = [&](const std::string& bytes) {
    return session().Run({{fed, Tensor::Scalar(bytes)}}, {}, {restore}).status();
  };
  ASSERT_TRUE(load(saved).ok());
  EXPECT_EQ(Count(records), 1);
  EXPECT_EQ(Count(units), 1);
  EXPECT_EQ(Next(read)->first, "z");
  ASSERT_TRUE(session().Run(reset).ok());
  EXPECT_EQ(Count(records), 0);
  for (const char* bad : {"\x08", "BOGUS", "\x08\x02\x10\x01", "\x22\x7fx"}) {
    const absl::Status s = load(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  }
  EXPECT_TRUE(absl::IsUnimplemented(session().Run({lines}).status()));
}

TEST_F(ReadersTest, WaitsForWorkAndCanBeStopped) {
  const auto read = Reader::Identity(g_).Read(queue_);
  session();
  EXPECT_TRUE(absl::IsDeadlineExceeded(Next(read, milliseconds(20)).status()));
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::set<std::string> got;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const auto next = Next(read);
        ASSERT_TRUE(next.ok()) << next.status();
        const std::lock_guard<std::mutex> lock(mutex);
        got.insert(next->first);
      }
    });
  }
  for (int i = 0; i < 60; ++i) Put({absl::StrCat(i)}, /*close=*/false);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(got.size(), 60);
}

TEST_F(ReadersTest, ThousandsOfEmptyFilesAreNoDeepRecursion) {
  const std::string empty = File("empty", ""), full = File("full", "end");
  const auto read = Reader::TextLine(g_).Read(queue_);
  session();
  std::thread putter([&] {
    for (int i = 0; i < 50; ++i) Put(Strings(100, empty), /*close=*/false);
    Put({full}, /*close=*/false);
  });
  const auto next = Next(read);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->second, "end");
  putter.join();
}

TEST_F(ReadersTest, TheReferenceFormsWorkAlike) {
  const Queue names =
      Queue::Fifo(g_, 10, {DT_STRING}, {.shapes = {Shape()}, .use_resource = false});
  const std::string path = File("a", "l1\nl2\n");
  g_.versions().producer = 20;
  const auto reader = [&](const char* op, Attrs attrs = {}) {
    return Output(AddNode(g_, op, {}, attrs));
  };
  const Output text = reader("TextLineReader");
  const Output others[] = {reader("WholeFileReader"), reader("IdentityReader"),
                           reader("TFRecordReader"),
                           reader("FixedLengthRecordReader", {{"record_bytes", 3}})};
  EXPECT_EQ(text.shape(), Shape({2}));
  const Operation put = names.Enqueue({Const(g_, path)});
  Node* const read = AddNode("ReaderRead", {text, names.handle()});
  Node* const more = AddNode("ReaderReadUpTo", {text, names.handle(), Const(g_, int64_t{5})});
  const Output records = AddOp("ReaderNumRecordsProduced", {text}),
               units = AddOp("ReaderNumWorkUnitsCompleted", {text});
  const Operation reset(AddNode("ReaderReset", {text}));
  const Output state = AddOp("ReaderSerializeState", {others[1]});
  const Operation restore(AddNode("ReaderRestoreState", {others[1], state}));
  std::vector<Output> firsts;
  for (const Output& other : others)
    firsts.push_back(Output(AddNode("ReaderRead", {other, names.handle()}), 1));
  ASSERT_TRUE(session().Run(put).ok());
  EXPECT_EQ(Next({read->output(0), read->output(1)})->second, "l1");
  EXPECT_THAT((*session().Run({more->output(1)}))[0].flat<std::string>(), ElementsAre("l2"));
  EXPECT_EQ(Count(records), 2);
  EXPECT_EQ(Count(units), 1);
  EXPECT_TRUE(session().Run(reset).ok());
  EXPECT_TRUE(session().Run(restore).ok());
  const char* const want[] = {"l1\nl2\n", path.c_str(), nullptr, "l1\n"};
  for (size_t i = 0; i < firsts.size(); ++i) {
    ASSERT_TRUE(session().Run(put).ok());
    const auto out = session().Run({firsts[i]});
    if (want[i] == nullptr) {
      EXPECT_TRUE(absl::IsDataLoss(out.status())) << out.status();
    } else {
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ((*out)[0].scalar<std::string>(), want[i]);
    }
  }
}

// ---- RecordInput

TEST_F(ReadersTest, RecordInputReturnsEveryRecordOncePerEpoch) {
  std::multiset<std::string> all;
  for (int f = 0; f < 3; ++f) {
    Strings records;
    for (int i = 0; i < 7; ++i) records.push_back(absl::StrCat(f, "-", i));
    all.insert(records.begin(), records.end());
    RecordFile(absl::StrCat("input.", f), records);
  }
  for (const int64_t buffer : {1, 5, 1000}) {
    const Output batch(AddNode(g_, "RecordInput", {},
                               {{"file_pattern", directory_ + "/input.*"},
                                {"file_buffer_size", buffer},
                                {"file_shuffle_shift_ratio", 0.5f},
                                {"batch_size", 7}}));
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::multiset<std::string> got;
      for (int i = 0; i < 3; ++i) {
        const auto out = session().Run({batch});
        ASSERT_TRUE(out.ok()) << out.status();
        const auto records = (*out)[0].flat<std::string>();
        got.insert(records.begin(), records.end());
      }
      EXPECT_EQ(got, all);
    }
  }
  const Output none(AddNode(g_, "RecordInput", {}, {{"file_pattern", directory_ + "/nothing.*"}}));
  EXPECT_TRUE(absl::IsNotFound(session().Run({none}).status()));
}

}  // namespace
}  // namespace weir
