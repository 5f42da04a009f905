#include "page_files.h"

namespace berth::serve {
namespace {

constexpr std::string_view kPolicy =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "Referrer-Policy: no-referrer\r\n";

}  // namespace

http::ByPath<http::Page> page_site() {
  http::ByPath<http::Page> site;
  for (const PageFile& file : page_files()) {
    http::Page page = http::make_page(200, file.type, std::string(file.begin, file.end));
    page.more_headers = kPolicy;
    page.is_forever = file.path != "/";
    site.emplace(file.path, std::move(page));
  }
  return site;
}

}  // namespace berth::serve
