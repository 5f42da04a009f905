#include "berth/command/shared_options.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "berth/base/record.h"
#include "berth/command/environment.h"
#include "berth/request/request.h"

namespace berth::command {
namespace {

constexpr std::string_view kWhich = "Which devices";
constexpr std::string_view kHow = "How they are chosen and named";

// How many devices are meant without -n depends on --devices.
void note_count(Syntax& syntax, RequestOptions& options) {
  const auto is_count = [](const RequestField& field) { return is_stored_in(&Request::count, field); };
  const auto row = std::ranges::find_if(request_fields(), is_count);
  const auto option = std::ranges::find(syntax.options, row->name, &Option::name);
  option->set = [set = std::move(option->set), &options](std::string_view value) -> Result<void> {
    BERTH_DO(set(value));
    options.said_count = options.count;
    return {};
  };
}

void add_names_and_sources(Syntax& syntax, RequestOptions& options) {
  syntax.option(kHow, "ids", "FORM",
                "index or uuid (default: what the site says, else index; a MIG instance always uuid)",
                into(options.uuids, [](std::string_view value) -> Result<bool> { return value == "uuid"; }),
                0, {"index", "uuid"});
  syntax.option(kHow, "mask", "USE", "inherit or ignore CUDA_VISIBLE_DEVICES and the like (default inherit)",
                into(options.mask,
                     [](std::string_view value) -> Result<MaskUse> {
                       return value == "ignore" ? MaskUse::ignore : MaskUse::inherit;
                     }),
                0, {"inherit", "ignore"});
  syntax.add(source_option(options.source));
}

}  // namespace

Option field_option(const RequestField& field, std::string_view group, Request& request) {
  std::vector<std::string_view> choices;
  if (field.kind == RequestValue::order) std::ranges::copy(words_of(Order()), std::back_inserter(choices));
  return {group,
          field.name,
          field.value,
          field.help,
          [&field, &request](std::string_view value) { return set_field(field, value, request); },
          field.letter,
          std::move(choices)};
}

std::string help_of_sources() {
  std::vector<std::string_view> names = source::source_names();
  const std::string_view usual = source::SourceKind::kAutomatic.name();
  std::erase(names, usual);
  return fmt::format("{0} or {1} (default {1})", fmt::join(names, ", "), usual);
}

Option source_option(source::SourceKind& source) {
  static const std::string help = help_of_sources();
  const auto set = [&source](std::string_view value) -> Result<void> {
    source = *source::source_kind_from_text(value);
    return {};
  };
  return {kHow, "source", "SOURCE", help, set, 0, source::source_names()};
}

void add_fields(Syntax& syntax, RequestPart part, std::string_view group, Request& request) {
  for (const RequestField& field : request_fields()) {
    if (field.part == part) syntax.add(field_option(field, group, request));
  }
}

void add_request_options(Syntax& syntax, RequestOptions& options) {
  add_fields(syntax, RequestPart::which, kWhich, options);
  add_fields(syntax, RequestPart::how, kHow, options);
  note_count(syntax, options);
  add_names_and_sources(syntax, options);
}

Result<void> settle(RequestOptions& options) {
  Request& request = options;
  request.count = options.said_count.value_or(usual_count(request));
  if (request.seed && request.order != Order::random) {
    return fail(ErrorCode::usage, "--seed only has a meaning with --order random");
  }
  return check(request);
}

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
    return fail(ErrorCode::usage, "--folder, --env and --near need --anywhere{}",
                options.passed_variables.contains('=') ? "; to set a variable: berth run -- env " +
                                                             printable(options.passed_variables) + " COMMAND"
                                                       : "");
  return {};
}

Result<void> settle(const AnywhereOptions& options) {
  const bool named = !options.hosts.empty() || !options.only.empty() || !options.without.empty();
  if (named && !options.anywhere)
    return fail(ErrorCode::usage, "--hosts, --host and --not-host need --anywhere");
  return {};
}

namespace {

constexpr std::int64_t kDefaultIntervalSeconds = 2;
constexpr std::int64_t kLongestIntervalSeconds = 86'400;

std::string on_screen(std::string_view text) {
  // Home, each line cleared to its end, then all below: the screen does not flicker as it would if
  // it were wiped first.
  std::string screen = "\x1b[H";
  for (const char c : text) {
    if (c == '\n') screen += "\x1b[K";
    screen += c;
  }
  return screen + "\x1b[J";
}

}  // namespace

void add_watch_options(Syntax& syntax, WatchOptions& options, std::string_view schema_help) {
  syntax.flag("Options", "json", schema_help, options.json);
  syntax.option(
      "Options", "watch", "[SECS]", "again every SECS seconds (default 2)",
      [&options](std::string_view value) -> Result<void> {
        BERTH_LET(const std::int64_t seconds,
                  value.empty() ? kDefaultIntervalSeconds : seconds_from_text(value, Unitless::is_base));
        if (seconds < 1) return fail(ErrorCode::usage, "must be a second or more");
        options.interval_s = seconds;
        return {};
      },
      'w');
  syntax.add(colour_option());
}

Option colour_option() {
  const auto set = [](std::string_view value) -> Result<void> {
    Environment::set_colour(value == "auto" ? std::nullopt : std::optional(value != "never"));
    return {};
  };
  return {"Options",
          "color",
          "WHEN",
          "always, never, or auto: on a terminal, unless NO_COLOR is set (default auto)",
          set,
          0,
          {"always", "never", "auto"}};
}

Result<Output> show(const WatchOptions& options,
                    const std::function<Result<Output>(view::Layout layout)>& look) {
  if (!options.interval_s) return look(view::Layout::lines);
  const bool terminal = ::isatty(1) == 1 && Environment::style_of(1).colour && !options.json;
  while (true) {
    auto output = look(view::Layout::line);
    if (!output) return output;
    output->out = view::for_terminal(output->out);
    if (terminal) output->out = on_screen(output->out + "\n" + view::for_terminal(output->err));
    if (!terminal && !output->err.empty()) write_error(output->err);
    BERTH_DO(write_all(1, output->out));
    ::poll(nullptr, 0, static_cast<int>(std::min(*options.interval_s, kLongestIntervalSeconds) * 1000));
  }
}

Result<leasing::Domain> find_domain(leasing::InClaim in_claim) {
  auto domain = leasing::find_domain(print_message, in_claim);
  if (domain && !domain->warnings.empty()) write_error(as_lines(domain->warnings));
  return domain;
}

Result<leasing::Session> open_session(Environment& environment, const RequestOptions& options) {
  BERTH_LET(auto domain, find_domain());
  return open_session_at(std::move(domain), environment, options);
}

Result<leasing::Session> open_session_at(leasing::Domain domain, Environment& environment,
                                         const RequestOptions& options) {
  return leasing::Session::open_at(std::move(domain), environment.access(options.source), options.mask);
}

}  // namespace berth::command
