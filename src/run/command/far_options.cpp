#include "berth/command/far_options.h"

#include "berth/request/lab_host.h"

namespace berth::command {
namespace {

SetOption add_names(std::vector<std::string>& names) {
  return [&names](std::string_view value) -> Result<void> {
    BERTH_LET(const auto hosts, lab_hosts_from_text(value));
    for (const LabHost& host : hosts) names.push_back(host.name);
    return {};
  };
}

}  // namespace

void add_anywhere_options(Syntax& syntax, AnywhereOptions& options, std::string_view help) {
  syntax.flag(kAnywhereGroup, "anywhere", help, options.anywhere);
  syntax.option(
      kAnywhereGroup, "hosts", "LIST",
      "with --anywhere: these hosts, as ssh knows them, or those of a hub: http://hub:8420 (default: what "
      "the site file says)",
      [&options](std::string_view value) -> Result<void> {
        if (!is_hub_url(value)) BERTH_DO(lab_hosts_from_text(value));
        options.hosts = value;
        return {};
      });
  syntax.option(kAnywhereGroup, "host", "LIST", "with --anywhere: only these of the hosts",
                add_names(options.only));
  syntax.option(kAnywhereGroup, "not-host", "LIST", "with --anywhere: none of these hosts",
                add_names(options.without));
}

Option near_option(std::string& near) {
  return {kAnywhereGroup, "near", "PATH",
          "with --anywhere: wait only on hosts on which PATH is, unless no such host can serve the request",
          [&near](std::string_view value) -> Result<void> {
            // Another host does not know the folder from which a relative path starts.
            if (!value.starts_with('/'))
              return fail(ErrorCode::usage, "must be a whole path, such as /data/imagenet");
            near = value;
            return {};
          }};
}

void add_far_options(Syntax& syntax, FarOptions& options, std::string_view help) {
  add_anywhere_options(syntax, options.hosts, help);
  syntax.text(kAnywhereGroup, "folder", "PATH",
              "with --anywhere: the folder of COMMAND there (default: the same as here)", options.folder);
  syntax.text(kAnywhereGroup, "env", "WHICH",
              "with --anywhere: variables that COMMAND gets: all, none, or names with commas "
              "between (default all, but for those of this machine and this login)",
              options.passed_variables);
  syntax.add(near_option(options.near));
}

Result<void> settle(const FarOptions& options) {
  BERTH_DO(settle(options.hosts));
  if (!options.hosts.anywhere &&
      (!options.folder.empty() || options.passed_variables != "all" || !options.near.empty()))
    return fail(ErrorCode::usage, "--folder, --env and --near need --anywhere");
  return {};
}

Result<void> settle(const AnywhereOptions& options) {
  const bool named = !options.hosts.empty() || !options.only.empty() || !options.without.empty();
  if (named && !options.anywhere)
    return fail(ErrorCode::usage, "--hosts, --host and --not-host need --anywhere");
  return {};
}

}  // namespace berth::command
