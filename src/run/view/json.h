#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "berth/base/record_fields.h"
#include "berth/base/text.h"
#include "berth/device/device.h"
#include "berth/view/listing.h"
#include "berth/view/text.h"

// Shared by the sources of this layer that write JSON. No other code sees the JSON library.
namespace berth::view {

using Json = nlohmann::ordered_json;

template <class T>
Json nullable(const Reading<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// The same document, with every text as `printable_lines` gives it. People read documents too,
/// with `curl` and `jq -r`, and the page shows the texts as they come.
inline void make_printable(Json& json) {
  if (auto* text = json.get_ptr<std::string*>()) {
    *text = printable_lines(*text);
  } else if (json.is_structured()) {
    for (Json& part : json) make_printable(part);
  }
}

inline std::string dumped(Json json, Layout layout) {
  make_printable(json);
  return json.dump(layout == Layout::lines ? 2 : -1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// How a version like "12.4" becomes one number.
struct VersionForm {
  int major;
  int minor;
};
inline constexpr VersionForm kCapability{10, 1};  ///< 90 is 9.0
inline constexpr VersionForm kCuda{1000, 10};     ///< 12040 is 12.4

std::string version_text(int version, VersionForm form);
/// nullopt: it is no such version.
std::optional<int> version_from_text(std::string_view text, VersionForm form);

/// Reads documents of another machine. They may be anything, and may be of an older or a newer
/// Berth. A missing key reads as null: not known. A value that is not valid is a fault. The first
/// fault is kept, and after it everything reads as not known. Texts are cut at kLongestText.
class JsonReader {
 public:
  static constexpr std::size_t kLongestText = 4096;
  static constexpr std::size_t kLongestList = 65'536;

  /// `json` and `fault` must outlive this object. `place`: its name in messages.
  JsonReader(const Json& json, std::string& fault, std::string place)
      : json_(&json), fault_(&fault), place_(std::move(place)) {
    if (!json.is_object()) mark("", "must be an object");
  }

  bool has_fault() const { return !fault_->empty(); }
  void mark(std::string_view key, std::string_view what) const;

  /// The value of a key that may be null.
  std::optional<std::string> maybe_text(std::string_view key) const;
  std::optional<bool> maybe_flag(std::string_view key) const;
  std::optional<double> maybe_decimal(std::string_view key) const;
  /// Seconds since the epoch, such that sums and differences of times stay numbers, and a browser
  /// can show them.
  std::optional<std::int64_t> maybe_time(std::string_view key) const;
  template <std::integral Number>
  std::optional<Number> maybe(std::string_view key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto number = whole_number<Number>(*value);
    if (!number) mark(key, "must be a whole number, and not so large");
    return number;
  }
  std::optional<JsonReader> maybe_object(std::string_view key) const;

  bool has(std::string_view key) const { return has_fault() || json_->contains(key); }
  /// It is a fault if the key is missing or null, because the rest makes no sense without it.
  void needs(std::string_view key) const;
  template <std::integral Number>
  Number needed(std::string_view key) const {
    needs(key);
    return maybe<Number>(key).value_or(0);
  }

  /// A reading. A value that is not valid is no fault here, but absent. So a card that reports
  /// nonsense, or a newer Berth that writes the reading otherwise, does not spoil the rest.
  template <std::integral Number>
  Reading<Number> reading(std::string_view key) const {
    const Json* value = find(key);
    return value == nullptr ? std::nullopt : whole_number<Number>(*value);
  }
  Reading<bool> reading_flag(std::string_view key) const;
  Reading<std::string> reading_text(std::string_view key) const;
  Reading<std::int64_t> reading_time(std::string_view key) const;
  /// An object with readings. A value that is no object has no readings.
  JsonReader part(std::string_view key) const;

  /// "" and 0 if it is null: in the core, these mean that a thing is not known.
  std::string text(std::string_view key) const { return maybe_text(key).value_or(""); }
  template <std::integral Number>
  Number number(std::string_view key) const {
    return maybe<Number>(key).value_or(0);
  }
  std::int64_t time(std::string_view key) const { return maybe_time(key).value_or(0); }
  bool flag(std::string_view key) const { return maybe_flag(key).value_or(false); }
  std::vector<std::string> texts(std::string_view key) const;
  template <std::integral Number>
  std::vector<Number> numbers(std::string_view key) const {
    std::vector<Number> found;
    const Json* list = find(key);
    if (list == nullptr) return found;
    if (!list->is_array() || list->size() > kLongestList) {
      mark(key, "must be a list, and not so long");
      return found;
    }
    for (const Json& entry : *list) {
      const auto number = whole_number<Number>(entry);
      if (!number) mark(key, "must have whole numbers, and not so large");
      found.push_back(number.value_or(0));
    }
    return found;
  }
  /// A list of readings; those that are not valid are absent, as is a list that is none.
  template <std::integral Number>
  std::vector<Reading<Number>> readings(std::string_view key) const {
    std::vector<Reading<Number>> found;
    const Json* list = find(key);
    if (list == nullptr || !list->is_array() || list->size() > kLongestList) return found;
    for (const Json& entry : *list) found.push_back(whole_number<Number>(entry));
    return found;
  }
  template <class Use>
  void each(std::string_view key, Use use) const {
    const Json* list = find(key);
    if (list == nullptr) return;
    if (!list->is_array() || list->size() > kLongestList) return mark(key, "must be a list, and not so long");
    for (const Json& entry : *list) {
      if (has_fault()) return;
      use(JsonReader(entry, *fault_, place_ + "." + std::string(key)));
    }
  }
  bool is_null(std::string_view key) const { return find(key) == nullptr; }

  /// One of a closed set of words.
  template <class Word>
  std::optional<Word> word(std::string_view key) const {
    const auto given = maybe_text(key);
    if (!given) return std::nullopt;
    Word value{};
    if (read_value(*given, value)) return value;
    mark(key, "has a word that this version does not know");
    return std::nullopt;
  }

 private:
  /// Null if the key is missing or null, and after a fault.
  const Json* find(std::string_view key) const;
  template <std::integral Number>
  static std::optional<Number> whole_number(const Json& value) {
    if (value.is_number_unsigned()) {
      const auto number = value.get<std::uint64_t>();
      if (std::in_range<Number>(number)) return static_cast<Number>(number);
    } else if (value.is_number_integer()) {
      const auto number = value.get<std::int64_t>();
      if (std::in_range<Number>(number)) return static_cast<Number>(number);
    }
    return std::nullopt;
  }

  const Json* json_;
  std::string* fault_;
  std::string place_;
};

/// What it would take to parse a document, counted from its text.
struct DocumentShape {
  std::size_t levels = 0;   ///< how deep brackets are nested
  std::size_t objects = 0;  ///< and lists
  std::size_t values = 0;   ///< beyond the first of each
};
DocumentShape shape_of(std::string_view document);

/// A small document of another machine, which may be anything. No object: it is no JSON, or is
/// nested so deeply that it is none that Berth reads.
Json json_from(std::string_view document);

// Parts that several documents have; only for this layer.

/// In the core, "" means that a text is not known, and 0 that a time is not known.
Json text_or_null(std::string_view text);
Json seconds_or_null(std::int64_t at_s);

/// The beginning of a document.
Json started(std::string_view kind);
Json taken_at(const Snapshot& snapshot);

Json request_json(const Request& request);
Json verdict_json(const Verdict& verdict);
Json identity_json(const Device& device);
/// `verdict`: null for a GPU that is split by MIG. `leases`: those of the listing's ledger.
Json device_json(const Device& device, const Verdict* verdict, const Listing& listing,
                 const LeasesByDevice& leases);
Json ticket_json(const Ticket& ticket, std::int64_t booted_at_s);
/// By user, the counts that are named; without users of whom all are 0.
Json unlisted_json(const std::vector<Unlisted>& unlisted,
                   std::initializer_list<std::pair<const char*, std::size_t Unlisted::*>> counts);

/// The leases of the ledger, each as in a listing.
Json leases_of(const Ledger& ledger, std::int64_t booted_at_s);

}  // namespace berth::view
