#include "weir/rpc/lib/request_size.h"

#include "gtest/gtest.h"

#include <string>

#include "google/protobuf/arena.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "weir/proto/master.pb.h"

namespace weir::rpc {
namespace {

// A field of bytes, and the same one many times.
std::string Field(int number, const std::string& contents) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  size_t size = contents.size();
  for (; size > 127; size >>= 7) bytes.push_back(static_cast<char>((size & 127) | 128));
  bytes.push_back(static_cast<char>(size));
  return bytes + contents;
}
std::string Repeated(const std::string& bytes) {
  constexpr int kTimes = 100'000;
  std::string all;
  for (int i = 0; i < kTimes; ++i) all += bytes;
  return all;
}

template <class Request = proto::CreateSessionRequest>
absl::StatusOr<uint64_t> SizeOf(const std::string& bytes) {
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()), 1000);
  return ParsedSize(&stream, Request());
}

// The memory that the request takes when it is parsed, without the characters of long strings.
template <class Request = proto::CreateSessionRequest>
uint64_t UsedBy(const std::string& bytes) {
  google::protobuf::Arena arena;
  auto* request = google::protobuf::Arena::CreateMessage<Request>(&arena);
  EXPECT_TRUE(request->ParseFromString(bytes));
  return arena.SpaceUsed();
}

template <class Request = proto::CreateSessionRequest>
void ExpectEnough(const std::string& bytes, const char* what) {
  const auto size = SizeOf<Request>(bytes);
  ASSERT_TRUE(size.ok()) << size.status();
  const uint64_t used = UsedBy<Request>(bytes);
  EXPECT_GE(*size, used) << what;
  EXPECT_LE(*size, 8 * used) << what;
}

std::string Node(const std::string& fields) { return Field(1, Field(1, Field(1, "n") + fields)); }
std::string Attr(const std::string& value) { return Field(5, Field(1, "value") + Field(2, value)); }

TEST(ParsedSize, IsAtLeastWhatParsingTakes) {
  ExpectEnough(Field(1, Repeated(Field(1, ""))), "empty nodes");
  ExpectEnough(Field(1, Field(2, Repeated(Field(1, "")))), "empty functions");
  ExpectEnough(Node(Repeated(Field(3, ""))), "empty inputs");
  ExpectEnough(Node(Repeated(Field(5, ""))), "empty attributes");
  std::string attrs, late_keys;
  for (int i = 0; i < 100'000; ++i) {
    attrs += Field(5, Field(1, std::to_string(i)) + Field(2, ""));
    late_keys += Field(5, Field(2, "") + Field(1, std::to_string(i)));
  }
  ExpectEnough(Node(attrs), "many attributes");
  ExpectEnough(Node(late_keys), "attributes whose keys come last");
  for (const int list : {2, 7, 8, 9})
    ExpectEnough(Node(Attr(Field(1, Repeated(Field(list, ""))))), "empty elements of a list");
  ExpectEnough(Node(Attr(Field(8, Repeated(Field(8, ""))))), "empty strings");
  ExpectEnough(Node(Attr(Field(7, Repeated(Field(2, ""))))), "empty dimensions");
  for (const int numbers : {7, 10, 11, 13})
    ExpectEnough(Node(Attr(Field(8, Field(numbers, Repeated("\1"))))), "small numbers");
  ExpectEnough<proto::RunStepRequest>(Repeated(Field(2, "")), "empty feeds");
  ExpectEnough<proto::RunStepRequest>(Repeated(Field(3, "")), "empty fetches");
}

TEST(ParsedSize, CountsUnknownTypesByTheirBytes) {
  ExpectEnough<proto::MakeCallableRequest>(Field(2, Repeated(Field(5, ""))), "connections");
  ExpectEnough(Field(2, Repeated(Field(12, ""))), "thread pools of the configuration");
}

TEST(ParsedSize, OfLargeValuesIsTheirSize) {
  const std::string value(10'000'000, 'x');
  const auto size = SizeOf(Node(Attr(Field(8, Field(4, value)))));
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_GE(*size, value.size());
  EXPECT_LT(*size, value.size() + 2000);
}

TEST(ParsedSize, RejectsWhatCannotBeParsed) {
  const std::string nodes = Node(Attr(Field(8, Field(4, "value"))));
  EXPECT_TRUE(SizeOf(nodes).ok());
  for (size_t i = 1; i < nodes.size(); ++i) {
    proto::CreateSessionRequest request;
    EXPECT_EQ(SizeOf(nodes.substr(0, i)).ok(), request.ParseFromString(nodes.substr(0, i))) << i;
  }
  EXPECT_FALSE(SizeOf(Field(1, Repeated("\x0b"))).ok()) << "groups";
  EXPECT_FALSE(SizeOf(Field(1, "\x08")).ok()) << "a number that is cut off";
  EXPECT_FALSE(SizeOf(Field(1, Field(1, "\x0a\xff"))).ok()) << "a size beyond the message";
}

TEST(ParsedSize, DoesNotRecurse) {
  std::string type = "";
  for (int i = 0; i < 100'000; ++i) type = Field(2, type.substr(0, 100'000));
  EXPECT_FALSE(SizeOf(Node(Field(7, type))).ok());
}

}  // namespace
}  // namespace weir::rpc
