#pragma once

#include <string_view>
#include <vector>

#include "berth/http/answer.h"

namespace berth::serve {

/// A file of the page, as Vite has built it from web/.
struct PageFile {
  std::string_view path;  ///< "/", or "/assets/…" with a name that changes with the text
  std::string_view type;
  const char* begin;
  const char* end;
};

/// Linked into berth-serve: web/vite.config.ts generates it.
const std::vector<PageFile>& page_files();

/// As they are served: nothing in them loads from elsewhere, and nobody else's page frames them.
http::ByPath<http::Page> page_site();

}  // namespace berth::serve
