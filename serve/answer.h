#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace berth::serve {

/// Text that many clients share.
using SharedText = std::shared_ptr<const std::string>;

/// What a path answers until the next look.
struct Page {
  int status = 200;
  std::string_view type;
  SharedText text;
  std::string tag;  ///< as in ETag: equal while the text is
};
inline constexpr std::string_view kJson = "application/json";

Page make_page(int status, std::string_view type, std::string text);

/// What one look at the machine gave, ready to be sent: made once, whatever the number of clients.
struct Published {
  std::uint64_t number = 0;  ///< of the look
  std::map<std::string, Page, std::less<>> pages;
  SharedText event;  ///< for event streams, framed
};

/// What of an HTTP request an answer depends on.
struct Request {
  std::string_view method;
  std::string_view target;
  std::string_view host;
  std::string_view authorization;
  std::string_view if_none_match;
};

/// Who may ask, of the address that the request came in at.
struct Door {
  std::string token;        ///< "": none is asked for
  bool checks_host = true;  ///< the Host must be an address or localhost, which no foreign page can forge
};

struct Answer {
  enum class Kind { page, event_stream };
  Kind kind = Kind::page;
  Page page;
  std::string_view extra_header{};  ///< a whole line without its end, or ""
};

inline constexpr std::string_view kEventsPath = "/api/v1/events";

/// Pure. Never changes anything: the only methods are GET and HEAD.
Answer answer(const Request& request, const Door& door, const Published& published);

/// Of a request that could not be understood.
Page refusal(int status, std::string_view message);

}  // namespace berth::serve
