#include "berth/base/record_fields.h"

#include <doctest/doctest.h>

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
void fields_of(MessageType& message, Fields&& field) {
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

TEST_CASE("a section out of place, another version and the first fault are told") {
  CHECK(read("[odd]\n").error().message == "the section \"odd\" is out of place");
  CHECK(read("flag=x\nat=x\n").error().message == "the value of \"flag\" is malformed");
  CHECK(read("flag=x\n", 2).error().message ==
        "written in version 2 of the test format; this program knows 1");
}

}  // namespace
}  // namespace berth::record_fields_test
