#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// Who may ask a server.
namespace berth::http {

/// The parts of an HTTP request that an answer depends on.
struct HttpRequest {
  std::string_view method;
  std::string_view target;
  std::string_view host;
  std::string_view authorization;
  std::string_view if_none_match;
};

/// Who may ask at the address at which the request came in.
struct AccessRule {
  std::string token;        ///< "": none is asked for
  bool checks_host = true;  ///< the Host must be an address, localhost or one of `hosts`: no page can forge
                            ///< it
  std::vector<std::string> hosts{};

  bool operator==(const AccessRule&) const = default;
};

/// Whether the request has the token, if one is asked for.
bool may_ask(const HttpRequest& request, const AccessRule& access);

/// Whether a Host names this machine. A page of another site reaches this machine's own addresses
/// by a name of its own that it lets point here.
bool is_own_name(std::string_view host, const std::vector<std::string>& known);

/// The paths for load balancers and service managers, which have no token. They show nothing of the
/// machine.
bool is_open_to_all(std::string_view path);

/// The clients with an open connection. If there is no room for a new one, the client that has been
/// idle longest must go. So nobody can lock the others out by doing nothing.
class Connections {
 public:
  using Id = std::uint64_t;  // never 0

  struct Admission {
    Id id = 0;                    ///< 0: there is no room
    std::optional<Id> evicted{};  ///< the client whose connection is to be closed for it; not counted any
                                  ///< more
  };

  /// `most_of_address`: of one address.
  void allow(std::size_t most, std::size_t most_of_address);
  Admission admit(const std::string& address);
  /// From now on this client is idle: it has asked for nothing.
  void waits(Id id);
  void is_served(Id id);
  void leaves(Id id);

  std::size_t count() const { return connections_.size(); }
  bool is_full() const { return connections_.size() >= most_; }

 private:
  using Order = std::map<std::uint64_t, Id>;  // since when
  struct Address {
    std::size_t count = 0;
    Order waiting;
  };
  struct Connection {
    std::map<std::string, Address>::iterator address;
    std::uint64_t since = 0;  // 0: it does not wait
  };

  std::size_t most_ = 0;
  std::size_t most_of_address_ = 0;
  std::uint64_t last_ = 0;
  std::map<Id, Connection> connections_;
  std::map<std::string, Address> addresses_;
  Order waiting_;
};

/// Text that many clients share.
using SharedText = std::shared_ptr<const std::string>;

/// A compressed text that can stand in the middle of a longer compressed text: it has whole bytes,
/// and does not refer to what came before.
struct Packed {
  std::string bytes;      ///< raw deflate, ended by a full flush
  std::uint32_t crc = 0;  ///< of the text
};

/// A piece of a text. Many clients share the piece, even if their texts around it differ.
struct Part {
  SharedText text;
  std::shared_ptr<const Packed> packed{};  ///< null: the text is short, or not compressed yet
};
using Parts = std::vector<Part>;
Part make_part(std::string text);
std::string joined(const Parts& parts);

/// What the server answers to a path until the next look.
struct Page {
  int status = 200;
  std::string_view type;
  SharedText text;
  std::string tag{};                     ///< the ETag: equal for equal texts; "": none
  std::string_view more_headers{};       ///< whole lines, each with its end
  bool is_forever = false;               ///< the text of this path never changes
  std::shared_ptr<const Parts> parts{};  ///< if set, in place of the text
};
inline constexpr std::string_view kJson = "application/json";

Page make_page(int status, std::string_view type, std::string text);

/// What an event stream sends to the clients that have not had it, in the form in which it goes
/// over the network.
struct Frame {
  std::uint64_t number = 0;
  Parts parts;
  /// Shorter than `parts`, for a client that has all that was published up to `since`.
  struct Change {
    std::uint64_t since = 0;
    Parts parts;
  };
  std::optional<Change> change{};

  /// What to send to a client that has all that was published up to `whole`.
  const Parts& parts_after(std::uint64_t whole) const {
    return change && change->since <= whole ? change->parts : parts;
  }
};

/// A path, decoded. nullopt: it cannot be decoded.
std::optional<std::string> path_of(std::string_view path);

/// The query of a path, after the question mark, decoded.
using Parameters = std::map<std::string, std::string, std::less<>>;
/// nullopt: it cannot be decoded, or names something twice.
std::optional<Parameters> parameters_of(std::string_view query);
/// The other way: "?since=24h", "" for none.
std::string query_of(const Parameters& parameters);

template <class Value>
using ByPath = std::map<std::string, Value, std::less<>>;

/// The result of one look at the machine, ready to be sent. It is made once, however many clients
/// there are.
struct Published {
  std::uint64_t number = 0;  ///< of the look; increases, also from one start of the server to the next
  ByPath<Page> pages;
  ByPath<std::function<Page(const Parameters&)>> questions;  ///< answered from the result of the look; pure
  ByPath<std::vector<Frame>> streams;                        ///< in the order of their numbers
};

/// A request whose answer may take some time.
struct Call {
  std::string path;  ///< decoded
  Parameters parameters;
};
/// May be called once, in any thread, and need not be called.
using Reply = std::function<void(Page)>;
using Service = std::function<void(const Call&, Reply)>;

/// What the server has as long as it runs.
struct Site {
  ByPath<Page> files;        ///< for everybody: they have no data of the machine
  ByPath<Service> services;  ///< a path that ends with a slash serves all paths that begin with it
  std::function<void(const std::string&)> log = [](const std::string&) {};  ///< a line for the admin
};

/// A question that a thread beside the event loop answers from what was published.
struct Question {
  std::function<Page(const Parameters&)> ask;
  Parameters parameters;
  std::string if_none_match;
};

/// The client gets the frames of a stream, those that are there and those that come.
struct Subscription {
  std::string path;
  std::uint64_t after = 0;  ///< the client has the frames up to this number
};

struct ServiceCall {
  const Service* service = nullptr;
  Call call;
};

using Answer = std::variant<Page, Subscription, ServiceCall, Question>;

/// Pure. Never changes anything: the only methods are GET and HEAD.
Answer answer(const HttpRequest& request, const AccessRule& access, const Site& site,
              const Published& published);

/// The page, or 304 if the client has it already.
Page unless_unchanged(const Page& page, std::string_view if_none_match);

/// The answer to a request that could not be understood.
Page refusal(int status, std::string_view message);

}  // namespace berth::http
