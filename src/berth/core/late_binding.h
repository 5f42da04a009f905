#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "berth/core/error.h"
#include "berth/core/offer.h"
#include "berth/core/request.h"

// On which host a command starts, as a pure step: what a host has said goes in, and what is to be told to
// which host comes out. The request stands in line on several hosts at once. The first host that grants it
// asks before it starts the command, and is told yes; all others are let go. Yes is said once and never
// again: also if the host that was told it is lost before anybody knows whether the command has begun.
namespace berth::late_binding {

/// In how many lines a request stands at once. In fewer it waits beside GPUs that are free where it does not
/// stand (`berth simulate --hosts`: with four of twenty, up to six times as long).
inline constexpr std::size_t kLines = 20;
/// In how many of them at first, when it may start at once: each of them grants it what it then lets go.
inline constexpr std::size_t kFirstLines = 4;

/// What a host is to the request.
enum class Part {
  asked,    ///< for its offer
  in_line,  ///< the request stands in its line
  chosen,   ///< it was told yes
  out,      ///< let go, refused, or lost
};

struct Candidate {
  std::string host;
  Part part = Part::asked;
  std::optional<Offer> offer{};
  std::optional<Error> why{};  ///< why it is out; nullopt: another was chosen
};

struct State {
  Request request;
  std::vector<Candidate> hosts;
  std::optional<std::size_t> chosen{};
  bool started = false;              ///< the chosen host has said that the command begins
  bool first_offers_are_in = false;  ///< it joins where it starts at once, whatever the others will offer
  bool offers_are_in = false;  ///< whoever has made no offer yet is not waited for, and all lines are joined
  std::optional<Error> failure{};
};

/// It offers this; or, in whose line it stands, had this when it granted.
struct Offered {
  Offer offer;
};
/// It has granted the request, and asks whether to start.
struct AsksToStart {};
/// It had the yes, and the command begins.
struct Begins {};
/// It has refused, or is lost.
struct Gone {
  Error why;
};
/// It may be joined now: its turn has come in the line of the lab.
struct Opened {};
/// Of no host: those that are about as near as the first to offer have offered too.
struct FirstOffers {};
/// Of no host: enough time has gone for offers, and for a start at once.
struct EnoughOffers {};
using What = std::variant<Offered, Opened, AsksToStart, Begins, Gone, FirstOffers, EnoughOffers>;

/// What is to be told to a host.
struct Word {
  enum class Kind { ask_offer, join, yes, let_go } kind;
  std::size_t host = 0;

  bool operator==(const Word&) const = default;
};

struct Step {
  State state;
  std::vector<Word> words;
};

/// Whether the offers decide who joins also where there are few hosts; or each host joins once it is opened,
/// and is asked for no offer.
enum class Joining { few_at_once, by_offers, as_opened };

/// few_at_once: few hosts join at once, and are asked for no offer. A host that offers and does not have the
/// path near which the request is to run joins only once no host that has the path is left.
Step begin(Request request, const std::vector<std::string>& hosts, Joining joining = Joining::few_at_once);

/// `host`: its place in the state.
Step next(State state, std::size_t host, What what);

/// Of these, which have granted it, the one to start on: it had the fewest free, so that the others keep room
/// for who asks for many. REQUIRES: there is one.
std::size_t tightest(const State& state, const std::vector<std::size_t>& hosts);

}  // namespace berth::late_binding
