#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/device/device.h"
#include "berth/machines/host.h"
#include "berth/screen/model/top_log.h"
#include "berth/usage/usage.h"
#include "berth/view/jobs.h"
#include "berth/view/text.h"

// What devices did over the time in which somebody has looked at them.
namespace berth::view {

/// What a look saw, or the mean of several, in percent.
struct TrendPoint {
  std::int64_t from_s = 0;
  std::int64_t until_s = 0;
  Reading<unsigned> load{};
  Reading<unsigned> memory{};

  bool operator==(const TrendPoint&) const = default;
};

/// The oldest first, none at the same time as another.
using Trend = std::vector<TrendPoint>;
/// By host and UUID.
using Trends = std::map<std::pair<std::string, std::string>, Trend>;

/// Looks that are kept each; of what is older, a minute is one point.
inline constexpr std::size_t kTrendLooks = 300;
/// Points that are kept in all: more than six hours.
inline constexpr std::size_t kTrendPoints = 720;

/// Adds what the hosts that answer show now. It counts until the next look, which comes in
/// `every_s`.
void remember(Trends& trends, const Hosts& hosts, std::int64_t now_s, std::int64_t every_s);

/// The mean of this time. nullopt: nobody looked then, or the device did not tell.
Reading<unsigned> mean_in(const Trend& trend, Reading<unsigned> TrendPoint::* value, std::int64_t from_s,
                          std::int64_t until_s);

/// The share of its memory that is in use, from 0 to 1; -1: not known.
double memory_share(const Device& device);

/// A value from 0 to 7 as a bar of that height.
std::string_view bar_of_eighths(std::size_t value, bool ascii);

/// The last loads as a line of bars, at most `width`.
std::string trend_text(const Trend& trend, std::size_t width, bool ascii);

// `berth top` without its terminal. The screen is a function of what was seen, of where the reader
// is in it, and of the size of the screen. A key turns one place of the reader into another.

/// A line of the hours.
struct TopHours {
  std::string device;  ///< its label; "": it is about none
  Row parts;
};

/// What there is to show.
struct TopSight {
  Hosts hosts{};  ///< this machine alone, or all of a lab; empty: nothing was seen yet
  bool is_lab = false;
  Trends trends{};
  std::shared_ptr<const RecordedLeases> past{};  ///< of this machine; null: no history is kept
  std::optional<TicketId> own{};                 ///< the lease that the reader is inside of
  std::vector<ListedTask> jobs{};                ///< of the reader, on this machine
  std::vector<std::string> notes{};              ///< sentences that the reader should know
  std::uint32_t uid = 0;                         ///< of the reader
  std::string user{};                            ///< name of the reader, as other machines know it
  LabOrder order{};                              ///< of those who wait in a lab
  std::int64_t every_s = 2;                      ///< how often it looks
  /// The hours of this machine, as lines for a screen of this style. None: it shows none.
  std::function<std::vector<TopHours>(const Style& style, bool ascii)> hours{};
};

enum class TopSection { devices, leases, queue, jobs, processes, hours };
/// The order of the lines in a section. The queue has an order of its own.
enum class TopOrder { usual, load, memory, user, end };

/// Begins the names of lines of the hours that are about no device.
inline constexpr char kNoDevice = '#';

/// The thing that a line is about, recognised again at the next look.
struct TopItem {
  TopSection section = TopSection::devices;
  std::string host;
  std::string name;  ///< of a device, ticket, job or process; "": the section's own line

  auto operator<=>(const TopItem&) const = default;
};

/// A question to the reader before something is done: a command of berth, and what it is about.
struct TopQuestion {
  std::vector<std::string> words;
  std::string what;
};

/// The reader's place in what is shown.
struct TopView {
  std::set<TopSection> folded{};
  TopOrder order = TopOrder::usual;
  std::string filter{};
  bool typing = false;  ///< the filter is being typed
  bool help = false;
  /// Of the graphs; 0: none. nullopt: nobody has asked for any. Then they are of two minutes, and
  /// there where they hide nobody who has a GPU or waits for one.
  std::optional<std::int64_t> graph_span_s{};
  std::optional<TopLog> log{};  ///< what a job has printed, instead of all else
  TopItem at{};                 ///< the thing of the line under the cursor
  std::size_t line = 0;         ///< and its place: if the thing is gone, the cursor stays there
  std::size_t first = 0;        ///< the first of all lines that is on the screen
  std::optional<TopQuestion> question{};
  std::string said{};  ///< the result of the last key; "": nothing to say
};

/// A line of the screen.
struct ScreenRow {
  Row parts;
  bool marked = false;  ///< the cursor is on it
};

/// The contents of a screen, and what the keys need to know of it.
struct TopScreen {
  std::vector<ScreenRow> rows;  ///< as many as the screen has, none wider than it
  /// The things of all lines, also of those above and below the screen; nullopt: a table's titles,
  /// which the cursor skips.
  std::vector<std::optional<TopItem>> items;
  std::size_t at = 0;  ///< the one under the cursor
  std::size_t first = 0;
  std::size_t page = 1;  ///< how many lines are on the screen
  bool has_graphs = false;
};

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t lines = 24;
  bool ascii = false;  ///< the terminal has no other characters
};

/// `size` counts, and `style.width` does not.
TopScreen top_screen(const TopSight& sight, const TopView& view, const ScreenSize& size, Style style);

enum class KeyName { character, up, down, page_up, page_down, home, end, enter, backspace, escape };
struct Key {
  KeyName name = KeyName::character;
  char32_t character = 0;
};

/// What to do in addition to showing the view again.
struct TopDeed {
  enum class Kind { nothing, quit, look, copy, perform } kind = Kind::nothing;
  std::vector<std::string> words{};  ///< copy: a command line; perform: words for berth
};

/// The answer of berth to these words, which were to be performed.
struct TopAnswer {
  std::vector<std::string> words;
  std::string said;
};

/// Shows an answer. If an edit of a job was refused only for what it costs, the reader is asked
/// whether to do it all the same.
void hear(TopView& view, const TopAnswer& answer);

/// The view after a key. `screen`: what the reader saw when the key was pressed.
TopDeed press(TopView& view, const Key& key, const TopScreen& screen, const TopSight& sight);

}  // namespace berth::view
