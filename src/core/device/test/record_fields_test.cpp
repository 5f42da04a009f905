#include "berth/base/record_fields.h"

#include <doctest/doctest.h>

#include <chrono>

#include "berth/device/device.h"

namespace berth::record_fields_test {
namespace {

struct Message {
  unsigned number = 7;
  std::string text;
  bool mark = false;
  Reading<bool> flag;
  Reading<std::string> words;
  DeviceState state = DeviceState::ok;
  std::int64_t at_s = 0;
  std::vector<std::string> names;
};

template <class MessageType, class Fields>
constexpr void fields_of(MessageType& message, Fields&& field) {
  field("number", message.number);
  field("text", message.text);
  field("mark", message.mark);
  field("flag", message.flag);
  field("words", message.words);
  field("state", message.state);
  field.time("at", message.at_s);
  field("name", message.names);
}

std::string written(const Message& message, std::size_t longest_text = 100) {
  RecordWriter record("berth-test", 1);
  fields_of(message, FieldWriter(record, longest_text));
  return std::move(record).finish();
}

Result<Message> read(std::string_view lines, unsigned version = 1) {
  Message message;
  const std::string text = "berth-test " + std::to_string(version) + "\n" + std::string(lines) + "end\n";
  BERTH_DO(read_fields(text, "berth-test", 1, [&message](FieldReader& field) {
    if (field.begins()) return field.refuse();
    fields_of(message, field);
  }));
  return message;
}

TEST_CASE("what a reader takes for granted is left out, and a reading that is there never is") {
  CHECK(written({}) == "berth-test 1\nnumber=7\nat=0\nend\n");
  CHECK(written({0, "t", true, false, "", DeviceState::lost, -5, {"a", ""}}) ==
        "berth-test 1\nnumber=0\ntext=t\nmark=1\nflag=0\nwords=\nstate=lost\nat=-5\nname=a\nname=\nend\n");
}

TEST_CASE("a long text is cut where a character ends, and a list is not") {
  Message message;
  message.text = "a\xc3\xbc";
  message.names = {"long"};
  CHECK(written(message, 2) == "berth-test 1\nnumber=7\ntext=a\nat=0\nname=long\nend\n");
  CHECK(shortened("a\xc3\xbc", 3) == "a\xc3\xbc");
  CHECK(shortened("\xc3\xbc", 1).empty());
  // What is behind a text that fits is nobody's.
  CHECK(shortened(std::string_view("a\xc3\xbc\x80").substr(0, 3), 3).size() == 3);
}

TEST_CASE("each line finds its field, and a line of a newer writer none") {
  const auto message =
      read("spin=up\nname=a\nnumber=3\nmark=1\nflag=0\nwords=\nstate=lost\nat=99999999999\nname=b\n");
  REQUIRE(message);
  CHECK(message->number == 3);
  CHECK(message->mark);
  CHECK(message->flag == false);
  CHECK(message->words == "");
  CHECK(message->state == DeviceState::lost);
  CHECK(message->at_s == 99'999'999'999);
  CHECK(message->names == std::vector<std::string>{"a", "b"});
}

TEST_CASE("what is not the mark is no mark, and what is no reading is refused by name") {
  CHECK_FALSE(read("mark=yes\n")->mark);
  CHECK_FALSE(read("mark=1\nmark=0\n")->mark);
  for (const std::string line : {"flag=2", "number=-1", "number=4294967296", "number=", "number=1 ", "at=-1",
                                 "at=100000000000", "at=x"}) {
    CAPTURE(line);
    const auto message = read(line + "\nnumber=1\n");
    REQUIRE_FALSE(message);
    CHECK(message.error().message == "the value of \"" + line.substr(0, line.find('=')) + "\" is malformed");
  }
}

TEST_CASE("a text that is no value leaves the value as it was") {
  unsigned number = 7;
  Reading<bool> flag = true;
  std::chrono::seconds time{7};
  CHECK_FALSE(read_value("x", number));
  CHECK_FALSE(read_value("x", flag));
  CHECK_FALSE(read_value("x", time));
  CHECK(number == 7);
  CHECK(flag == true);
  CHECK(time.count() == 7);
}

#ifndef __clang__  // reads_what_is_left_out
// Each of these is written as nothing at all if it is not what it begins with.
struct Begins {
  bool as_true = true;
  DeviceState as_lost = DeviceState::lost;
  std::string as_text = "text";
  Reading<unsigned> as_number = 7;
};
struct Holder {
  std::vector<Begins> list;
};

TEST_CASE("a field whose first value would be left out when it changes does not compile") {
  CHECK(reads_what_is_left_out<Message>([](auto& value, auto& field) { fields_of(value, field); }));
  CHECK_FALSE(reads_what_is_left_out<Begins>([](auto& value, auto& field) { field("", value.as_true); }));
  CHECK_FALSE(reads_what_is_left_out<Begins>([](auto& value, auto& field) { field("", value.as_lost); }));
  CHECK_FALSE(reads_what_is_left_out<Begins>([](auto& value, auto& field) { field("", value.as_text); }));
  CHECK_FALSE(reads_what_is_left_out<Begins>([](auto& value, auto& field) { field("", value.as_number); }));
  CHECK_FALSE(reads_what_is_left_out<Holder>([](auto& value, auto& field) {
    field.sections("", value.list, [](auto& entry, auto& inner) { inner("", entry.as_true); });
  }));
}
#endif

TEST_CASE("a section out of place, another version and the first fault are told") {
  CHECK(read("[odd]\n").error().message == "the section \"odd\" is out of place");
  CHECK(read("flag=x\nat=x\n").error().message == "the value of \"flag\" is malformed");
  CHECK(read("flag=x\n", 2).error().message ==
        "written in version 2 of the test format; this program knows 1");
}

}  // namespace
}  // namespace berth::record_fields_test
