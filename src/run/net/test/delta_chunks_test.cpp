#include "berth/net/event_stream.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace berth::net::delta_chunks_test {
namespace {

constexpr const char* kPath = "/events";
constexpr int kHosts = 12;

/// A stream of many hosts, of which some tell something new each time, and a summary.
class Story {
 public:
  explicit Story(unsigned seed) : chance_(seed) {}

  http::Published next() {
    for (int i = 0; i < kHosts; ++i) {
      if (told_.size() < kHosts || draw(3) == 0) tell(i);
    }
    http::Published published;
    auto& frames = published.streams[kPath];
    for (const auto& [host, frame] : told_) frames.push_back(frame);
    std::ranges::sort(frames, {}, &http::Frame::number);
    frames.push_back({++number_, {http::make_part("summary " + std::to_string(number_) + "\n")}});
    published.number = number_;
    return published;
  }

  unsigned draw(unsigned below) { return static_cast<unsigned>(chance_() % below); }

 private:
  void tell(int host) {
    http::Frame frame{++number_, {http::make_part(text_of(host))}};
    // Where the text of what changed takes the place of the whole, it is another text that came
    // before.
    if (const auto before = told_.find(host); before != told_.end() && draw(4) > 0)
      frame.change = {before->second.number,
                      {http::make_part("changed: " + text_of(host).substr(0, 900) + '\n')}};
    told_[host] = std::move(frame);
  }

  /// Much in it is the same for all hosts, and some of it is of this moment.
  std::string text_of(int host) {
    std::string text = "host " + std::to_string(host) + " number " + std::to_string(number_) + ":";
    for (int i = 0; i < 200; ++i) text += " reading " + std::to_string(i * 7919 % 100'003);
    for (int i = 0; i < 20; ++i) text += ' ' + std::to_string(chance_());
    return text + '\n';
  }

  std::minstd_rand chance_;
  std::map<int, http::Frame> told_;
  std::uint64_t number_ = 0;
};

/// What a client that unpacks as it reads has at the end. Fails where it could not.
std::string unpacked(const std::string& bytes) {
  z_stream stream{};
  REQUIRE(::inflateInit2(&stream, 15 + 16) == Z_OK);
  std::string packed = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  std::array<char, 4096> piece{};
  int done = Z_OK;
  while (done == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    done = ::inflate(&stream, Z_NO_FLUSH);
    text.append(piece.data(), piece.size() - stream.avail_out);
  }
  ::inflateEnd(&stream);
  CHECK(done == Z_STREAM_END);  // with the right checksum and length
  return text;
}

/// What a sequel is of.
std::string delta_text(const http::Published& published, const DeltaChunk& delta) {
  std::string text;
  for (const http::Frame& each : published.streams.at(kPath)) {
    if (each.number > delta.after) text += joined(each.parts_after(delta.after));
  }
  CHECK(text.size() == delta.bytes);
  return text;
}

struct Client {
  explicit Client(std::uint64_t sent) : cursor(kPath, sent), bytes(GzipFrame::start()) {}

  /// Whether there was a sequel for it.
  bool take(const http::Published& published, const http::ByPath<DeltaChunk>& deltas) {
    if (const DeltaChunk* delta = cursor.delta(deltas)) {
      plain += delta_text(published, *delta);
      add(*delta->packed, delta->bytes);
      return true;
    }
    for (const http::Part& each : cursor.frames(published)) add(each);
    return false;
  }

  void hear_that_it_lives() {
    add(http::make_part(":\n\n"));
    cursor.is_interrupted();
  }

  void add(const http::Part& part) {
    plain += *part.text;
    add(*packed_form(part), part.text->size());
  }
  void add(const http::Packed& packed, std::size_t size) {
    bytes += packed.bytes;
    frame.take(packed, size);
  }

  StreamCursor cursor;
  std::string bytes;
  std::string plain;
  GzipFrame frame;
};

TEST_CASE("whoever comes, goes slowly or hears a comment can read what follows, and has it as it was told") {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    Story story(seed);
    DeltaChunks deltas;
    std::vector<Client> clients;
    int followed = 0;
    for (int round = 0; round < 25; ++round) {
      const http::Published published = story.next();
      if (story.draw(15) == 0) deltas.forget();
      const auto made = deltas.take(published, {kPath});
      const auto first = published.streams.at(kPath).front().number;
      clients.emplace_back(story.draw(2) == 0 ? 0 : first + story.draw(20));
      for (Client& each : clients) {
        if (story.draw(10) == 0) each.hear_that_it_lives();
        for (unsigned times = story.draw(4); times > 0; --times)
          followed += each.take(published, made) ? 1 : 0;
      }
    }
    for (Client& each : clients) CHECK(unpacked(each.bytes + each.frame.end()) == each.plain);
    CHECK(followed > 20);
  }
}

TEST_CASE("what follows what a client has is a fraction of what it takes alone") {
  Story story(1);
  DeltaChunks deltas;
  deltas.take(story.next(), {kPath});
  deltas.take(story.next(), {kPath});
  const http::Published published = story.next();
  const DeltaChunk delta = deltas.take(published, {kPath}).at(kPath);
  std::size_t alone = 0;
  for (const http::Frame& each : published.streams.at(kPath)) {
    if (each.number > delta.after) alone += packed_form(each.parts.front())->bytes.size();
  }
  CHECK(delta.packed->bytes.size() * 2 < alone);
}

TEST_CASE("a stream of which nothing is new keeps its sequel, and one that is gone has none") {
  Story story(1);
  DeltaChunks deltas;
  deltas.take(story.next(), {kPath});
  const http::Published published = story.next();
  CHECK(deltas.take(published, {kPath}).at(kPath).number == deltas.take(published, {kPath}).at(kPath).number);
  CHECK(deltas.take(http::Published(), {kPath}).empty());
  CHECK(deltas.take(story.next(), {kPath}).empty());
}

TEST_CASE("a stream that nobody reads is not compressed, and whoever comes to it is sent parts at first") {
  Story story(1);
  DeltaChunks deltas;
  deltas.take(story.next(), {kPath});
  CHECK(deltas.take(story.next(), {kPath}).size() == 1);
  CHECK(deltas.take(story.next(), {"/others"}).empty());
  CHECK(deltas.take(story.next(), {kPath}).empty());
  CHECK(deltas.take(story.next(), {kPath}).size() == 1);
}

TEST_CASE("a stream is read from when the first comes until the last has gone") {
  Readership readership;
  {
    const Readership::Reader first(readership, kPath);
    {
      const Readership::Reader second(readership, kPath);
      CHECK(readership.read() == std::set<std::string, std::less<>>{kPath});
    }
    CHECK(readership.read().contains(kPath));
  }
  CHECK(readership.read().empty());
}

/// A stream of hosts of which each has a state, told whole or as what becomes of the one before.
class Changes {
 public:
  explicit Changes(unsigned seed) : chance_(seed) {}

  http::Published next() {
    for (int host = 0; host < kMany; ++host) {
      if (!told_.contains(host) || draw(2) == 0) tell(host);
    }
    http::Published published;
    auto& frames = published.streams[kPath];
    for (const auto& [host, frame] : told_) frames.push_back(frame);
    std::ranges::sort(frames, {}, &http::Frame::number);
    frames.push_back({++number_, {http::make_part("")}});
    return published;
  }

  unsigned draw(unsigned below) { return static_cast<unsigned>(chance_() % below); }
  std::map<int, std::uint64_t> states() const {
    std::map<int, std::uint64_t> states;
    for (const auto& [host, frame] : told_) states[host] = frame.number;
    return states;
  }

 private:
  static constexpr int kMany = 40;  // more than are sent at once

  void tell(int host) {
    const std::string line = std::to_string(host) + ' ' + std::to_string(++number_) + '\n';
    http::Frame frame{number_, {http::make_part("is " + line)}};
    if (const auto before = told_.find(host); before != told_.end() && draw(4) > 0) {
      const std::uint64_t since = before->second.number;
      frame.change = {since, {http::make_part("from " + std::to_string(since) + ' ' + line)}};
    }
    told_[host] = std::move(frame);
  }

  std::minstd_rand chance_;
  std::map<int, http::Frame> told_;
  std::uint64_t number_ = 0;
};

/// What a client makes of it. Fails where something is changed that it does not have.
struct Follower {
  void take(const std::string& text) {
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      std::uint64_t since = 0;
      if (word == "from") words >> since;
      int host = 0;
      std::uint64_t state = 0;
      words >> host >> state;
      if (word == "from") {
        CHECK(states[host] == since);
        ++changes;
      }
      states[host] = state;
    }
  }

  StreamCursor cursor{kPath, 0};
  std::map<int, std::uint64_t> states{};
  int changes = 0;
};

TEST_CASE("whoever has all is sent what has changed, and whoever has missed something is sent the whole") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Changes story(seed);
    DeltaChunks deltas;
    std::vector<Follower> followers(5);
    for (int round = 0; round < 30; ++round) {
      const http::Published published = story.next();
      const auto made = deltas.take(published, {kPath});
      const auto take_more = [&](Follower& each) {
        if (const DeltaChunk* delta = story.draw(2) == 0 ? each.cursor.delta(made) : nullptr) {
          each.take(delta_text(published, *delta));
          return true;
        }
        const std::string text = joined(each.cursor.frames(published));
        each.take(text);
        return !text.empty();
      };
      for (Follower& each : followers) {
        for (unsigned times = story.draw(5); times > 0; --times) take_more(each);
      }
      Follower& diligent = followers.front();
      while (take_more(diligent)) {
      }
      CHECK(diligent.states == story.states());
    }
    for (const Follower& each : followers) CHECK(each.changes > 0);
  }
}

}  // namespace
}  // namespace berth::net::delta_chunks_test
