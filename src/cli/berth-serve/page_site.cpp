#include "page_site.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "berth/sys/file.h"
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

namespace {

namespace fs = std::filesystem;

// As that of the page; the search of the documents runs in a worker.
constexpr std::string_view kDocsPolicy =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors "
    "'none'\r\n"
    "Referrer-Policy: no-referrer\r\n";
constexpr std::string_view kToTheFolder = "Location: /docs/\r\n";

constexpr std::string_view kNoDocs =
    "The documents are not installed with this program. A package of Berth has them. In a checkout,\n"
    "`./dev docs` builds them in build/docs.\n";

struct Kind {
  std::string_view ending;
  std::string_view type;
};
constexpr auto kKinds = std::to_array<Kind>({{".html", "text/html; charset=utf-8"},
                                             {".js", "text/javascript; charset=utf-8"},
                                             {".css", "text/css; charset=utf-8"},
                                             {".json", "application/json"},
                                             {".svg", "image/svg+xml"},
                                             {".png", "image/png"},
                                             {".yaml", "text/plain; charset=utf-8"}});

http::Page docs_page(std::string_view type, std::string text) {
  http::Page page = http::make_page(200, type, std::move(text));
  page.more_headers = kDocsPolicy;
  return page;
}

}  // namespace

std::string installed_docs() {
  std::error_code ignored;
  const fs::path program = fs::canonical("/proc/self/exe", ignored);
  const fs::path around = program.parent_path().parent_path();
  const fs::path installed = around / "share/doc/berth/html";
  // In a checkout they are where `./dev docs` builds them.
  const bool in_checkout = around.filename() == "build" && !fs::exists(installed, ignored);
  return (in_checkout ? around / "docs" : installed).string();
}

http::ByPath<http::Page> docs_site(const std::string& folder) {
  http::ByPath<http::Page> site;
  std::error_code failed;
  for (fs::recursive_directory_iterator each(folder, failed), end; !failed && each != end;
       each.increment(failed)) {
    const auto kind = std::ranges::find(kKinds, each->path().extension().string(), &Kind::ending);
    if (kind == kKinds.end() || !each->is_regular_file(failed)) continue;
    auto text = sys::read_whole(each->path().string());
    if (!text) continue;
    site.emplace("/docs/" + each->path().lexically_relative(folder).generic_string(),
                 docs_page(kind->type, std::move(*text)));
  }
  if (const auto index = site.find("/docs/index.html"); index != site.end()) {
    site.emplace("/docs/", index->second);
    // Without the slash, the page's own links would lead beside it.
    http::Page elsewhere = http::make_page(308, "text/plain", "");
    elsewhere.more_headers = kToTheFolder;
    elsewhere.tag.clear();
    site.emplace("/docs", std::move(elsewhere));
  } else {
    // The page has a link here.
    site.emplace("/docs/", http::make_page(404, "text/plain; charset=utf-8", std::string(kNoDocs)));
  }
  return site;
}

}  // namespace berth::serve
