#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/core/host.h"
#include "berth/render/jobs.h"
#include "berth/render/table.h"
#include "berth/render/text.h"

// `berth top` without its terminal: what is shown is a function of what was seen, of where the reader is in
// it, and of the size of the screen; and a key makes of one place another.
namespace berth::render {

/// The last loads of a device in percent, the newest last, by host and UUID.
using LoadHistory = std::map<std::pair<std::string, std::string>, std::vector<unsigned>>;
/// Adds what the hosts tell now, and forgets what no screen is wide enough to show.
void remember_loads(LoadHistory& history, const Hosts& hosts);

/// What there is to be shown.
struct TopSight {
  Hosts hosts;  ///< this machine alone, or all of a lab; empty: nothing was seen yet
  bool is_lab = false;
  LoadHistory loads{};
  std::optional<TicketId> own{};     ///< the lease that whoever looks is inside of
  std::vector<ToldTask> jobs{};      ///< of whoever looks, on this machine
  std::vector<std::string> notes{};  ///< sentences that the reader should know
  std::uint32_t uid = 0;             ///< whoever looks
  std::string user{};                ///< his name, which other machines know him by
  std::int64_t every_s = 2;          ///< how often it is looked
};

enum class TopSection { devices, leases, queue, jobs, processes };
/// In which order the lines of a section stand. The queue has its own.
enum class TopOrder { usual, load, memory, user, end };

/// What a line is about, from one look to the next.
struct TopItem {
  TopSection section = TopSection::devices;
  std::string host;
  std::string name;  ///< of a device, ticket, job or process; "": the section's own line

  auto operator<=>(const TopItem&) const = default;
};

/// What somebody is asked before it is done: a command of berth, and about whom.
struct TopQuestion {
  std::vector<std::string> words;
  std::string what;
};

/// Where the reader is.
struct TopView {
  std::set<TopSection> folded{};
  TopOrder order = TopOrder::usual;
  std::string filter{};
  bool typing = false;  ///< the filter is being typed
  bool help = false;
  TopItem at{};           ///< what the line under the cursor is about
  std::size_t line = 0;   ///< and where it was: the cursor stays there where that is gone
  std::size_t first = 0;  ///< the first line of all that is on the screen
  std::optional<TopQuestion> question{};
  std::string said{};  ///< what came of the last key; "": nothing to be said
};

/// A line of the screen.
struct ScreenRow {
  Row parts;
  bool marked = false;  ///< the cursor is on it
};

/// What is on a screen, and what the keys need to know of it.
struct TopScreen {
  std::vector<ScreenRow> rows;  ///< as many as the screen is high, none wider than it
  /// Of all lines that there are, also below and above; nullopt: a table's titles, which the cursor passes
  /// by.
  std::vector<std::optional<TopItem>> items;
  std::size_t at = 0;  ///< the one under the cursor
  std::size_t first = 0;
  std::size_t page = 1;  ///< how many of them are on the screen
};

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t lines = 24;
  bool ascii = false;  ///< it has no other characters
};

/// `style.width` is not asked: `size` says it.
TopScreen top_screen(const TopSight& sight, const TopView& view, const ScreenSize& size, Style style);

enum class KeyName { character, up, down, page_up, page_down, home, end, enter, backspace, escape };
struct Key {
  KeyName name = KeyName::character;
  char32_t character = 0;
};

/// What is to be done besides showing the view anew.
struct TopDeed {
  enum class Kind { nothing, quit, look, copy, perform } kind = Kind::nothing;
  std::vector<std::string> words{};  ///< copy: a command line; perform: words for berth
};

/// What the key makes of the view. `screen`: what the reader saw as he pressed it.
TopDeed press(TopView& view, const Key& key, const TopScreen& screen, const TopSight& sight);

}  // namespace berth::render
