#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/screen/model/top.h"
#include "berth/view/listing.h"

// The sections of `berth top`, before they are laid out: what each has, and in which order.
namespace berth::view {

struct TopSectionWords {
  TopSection section;
  std::string_view title;
  std::string_view none;  ///< said where it is empty; "": the section is left out
};
inline constexpr std::array<TopSectionWords, 6> kTopSections{
    {{TopSection::devices, "GPUS", "no GPU was told"},
     {TopSection::leases, "LEASES", "none"},
     {TopSection::queue, "QUEUE", "nobody waits"},
     {TopSection::jobs, "MY JOBS", ""},
     {TopSection::processes, "PROCESSES", ""},
     {TopSection::hours, "HOURS", ""}}};

/// A line of a section before it is laid out.
struct TopEntry {
  TopItem item;
  Row row;
  std::string detail;  ///< all that is to be said of it, for the line under the cursor
  bool mine = false;
  double load = -1;
  double memory = -1;
  std::string user;
  std::int64_t end_s = 0;  ///< 0: no end
};

struct FilledSection {
  const TopSectionWords* words;
  std::vector<Column> columns;
  std::vector<TopEntry> entries;
};

/// All sections with all that there is, in the order of kTopSections. The hours stay empty: they
/// are a picture.
std::vector<FilledSection> sections_of(const TopSight& sight, const ScreenSize& size, const Style& style);

/// Whether all words of the filter are in the line, as long as it is.
bool passes(const TopEntry& entry, std::string_view filter);
void put_in_order(FilledSection& section, TopOrder order);

/// A machine as the functions of the listing want it.
Listing listing_of(const TopSight& sight, const HostReport& report);

}  // namespace berth::view
