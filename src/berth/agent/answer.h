#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace berth::serve {

/// Text that many clients share.
using SharedText = std::shared_ptr<const std::string>;

/// A text in compressed form that can stand in the middle of a longer one: whole bytes, and nothing in it
/// refers to what was before.
struct Packed {
  std::string bytes;      ///< raw deflate, ended by a full flush
  std::uint32_t crc = 0;  ///< of the text
};

/// A piece of a text that many clients share, also where what stands around it differs.
struct Part {
  SharedText text;
  std::shared_ptr<const Packed> packed{};  ///< null: it is short, or nobody has made it yet
};
using Parts = std::vector<Part>;
Part make_part(std::string text);
std::string joined(const Parts& parts);

/// What a path answers until the next look.
struct Page {
  int status = 200;
  std::string_view type;
  SharedText text;
  std::string tag{};                     ///< as in ETag: equal while the text is; "": none
  std::string_view more_headers{};       ///< whole lines, each with its end
  bool is_forever = false;               ///< the path would be another if the text were
  std::shared_ptr<const Parts> parts{};  ///< where there are any, in place of the text
};
inline constexpr std::string_view kJson = "application/json";

Page make_page(int status, std::string_view type, std::string text);

/// What an event stream sends to those who have not had it: events as they cross the network.
struct Frame {
  std::uint64_t number = 0;
  Parts parts;
  /// Less than `parts`, and enough for a client that has all that was published up to `since`.
  struct Change {
    std::uint64_t since = 0;
    Parts parts;
  };
  std::optional<Change> change{};

  /// What a client is sent that has all that was published up to `whole`.
  const Parts& parts_after(std::uint64_t whole) const {
    return change && change->since <= whole ? change->parts : parts;
  }
};

/// A path, decoded. nullopt: it cannot be.
std::optional<std::string> path_of(std::string_view path);

/// What stands after the question mark of a path, decoded.
using Parameters = std::map<std::string, std::string, std::less<>>;
/// nullopt: it cannot be decoded, or names something twice.
std::optional<Parameters> parameters_of(std::string_view query);
/// The other way: "?since=24h", "" for none.
std::string query_of(const Parameters& parameters);

template <class Value>
using ByPath = std::map<std::string, Value, std::less<>>;

/// What one look at the machine gave, ready to be sent: made once, whatever the number of clients.
struct Published {
  std::uint64_t number = 0;  ///< of the look; rises, also from one start of the server to the next
  ByPath<Page> pages;
  ByPath<std::function<Page(const Parameters&)>> questions;  ///< answered from what the look gave; pure
  ByPath<std::vector<Frame>> streams;                        ///< in the order of their numbers
};

/// Something that is asked and takes its time.
struct Call {
  std::string path;  ///< decoded
  Parameters parameters;
};
/// May be called once, in any thread, and need not be called.
using Reply = std::function<void(Page)>;
using Service = std::function<void(const Call&, Reply)>;

/// What is there as long as the server runs.
struct Site {
  ByPath<Page> files;        ///< for everybody: they tell nothing of the machine
  ByPath<Service> services;  ///< a path that ends with a slash has all that begin so
  std::function<void(const std::string&)> log = [](const std::string&) {};  ///< a line for the admin
};

/// What of an HTTP request an answer depends on.
struct HttpRequest {
  std::string_view method;
  std::string_view target;
  std::string_view host;
  std::string_view authorization;
  std::string_view if_none_match;
};

/// Who may ask, of the address that the request came in at.
struct Door {
  std::string token;        ///< "": none is asked for
  bool checks_host = true;  ///< the Host must be an address, localhost or one of these: no page can forge it
  std::vector<std::string> hosts{};

  bool operator==(const Door&) const = default;
};

/// What is worked out of what was published, beside the loop.
struct Question {
  std::function<Page(const Parameters&)> ask;
  Parameters parameters;
  std::string if_none_match;
};

/// To be sent the frames of a stream, now and as they come.
struct Subscription {
  std::string path;
  std::uint64_t after = 0;  ///< the client has the frames up to this number
};

struct Errand {
  const Service* service = nullptr;
  Call call;
};

using Answer = std::variant<Page, Subscription, Errand, Question>;

/// Pure. Never changes anything: the only methods are GET and HEAD.
Answer answer(const HttpRequest& request, const Door& door, const Site& site, const Published& published);

/// 304 where the client has the page already.
Page unless_unchanged(const Page& page, std::string_view if_none_match);

/// Of a request that could not be understood.
Page refusal(int status, std::string_view message);

}  // namespace berth::serve
