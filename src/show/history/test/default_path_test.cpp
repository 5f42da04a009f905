#include "berth/history/database.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace berth::history::default_path_test {
namespace {

TEST_CASE("the history lies where the system or the user keeps such things") {
  using Variables = std::map<std::string, std::string>;
  const auto path = [](const Variables& variables) {
    return default_path([&](const char* name) -> std::string_view {
      const auto found = variables.find(name);
      return found == variables.end() ? std::string_view() : std::string_view(found->second);
    });
  };
  CHECK(path({{"STATE_DIRECTORY", "/var/lib/a:/var/lib/b"}, {"HOME", "/root"}}) == "/var/lib/a/history.db");
  CHECK(path({{"XDG_STATE_HOME", "/s"}, {"HOME", "/h"}}) == "/s/berth/history.db");
  CHECK(path({{"XDG_STATE_HOME", "s"}, {"HOME", "/h"}}) == "/h/.local/state/berth/history.db");
  CHECK(path({}) == std::nullopt);
}

}  // namespace
}  // namespace berth::history::default_path_test
