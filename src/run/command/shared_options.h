#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/command/command.h"
#include "berth/command/environment.h"
#include "berth/lease/session.h"
#include "berth/request/request.h"
#include "berth/request/request_fields.h"
#include "berth/source/source.h"
#include "berth/view/text.h"

namespace berth::command {

/// The options of a request, the same for pick, why and run.
struct RequestOptions : Request {
  bool uuids = false;  ///< --ids uuid
  MaskUse mask = MaskUse::inherit;
  source::SourceKind source = source::SourceKind::kAutomatic;
  std::optional<unsigned> said_count;  ///< -n as given; `count` is the one that counts
};

/// Adds the options to `syntax`. They write into `options`, which must outlive the syntax.
void add_request_options(Syntax& syntax, RequestOptions& options);

/// Adds the rows of one part, under this heading. They write into `request`.
void add_fields(Syntax& syntax, RequestPart part, std::string_view group, Request& request);

/// Settles what depends on several options, after they are parsed. Error: `usage` for
/// contradictions.
Result<void> settle(RequestOptions& options);

/// The option of a row, which writes into `request`. For commands that take a part of the options.
Option field_option(const RequestField& field, std::string_view group, Request& request);

/// `--source`, also for commands that take no request.
Option source_option(source::SourceKind& source);

/// `--anywhere`, and the hosts that it is for.
struct AnywhereOptions {
  bool anywhere = false;
  std::string hosts;  ///< --hosts: names, or the URL of a hub; "": those of the site file
  std::vector<std::string> only, without;  ///< --host, --not-host
};

/// Where a command is to run, and what it gets from here.
struct FarOptions {
  AnywhereOptions hosts;
  std::string folder{};                 ///< of the command on the host; "": the same as here
  std::string passed_variables{"all"};  ///< --env
  std::string near{};                   ///< --near: a path; "": none
};

inline constexpr std::string_view kAnywhereGroup = "Other machines";

/// `help`: the help text of --anywhere.
void add_anywhere_options(Syntax& syntax, AnywhereOptions& options, std::string_view help);

/// Adds also --folder and --env. `help`: the help text of --anywhere.
void add_far_options(Syntax& syntax, FarOptions& options, std::string_view help);

/// `--near PATH`, which prefers hosts that have the path.
Option near_option(std::string& near);

/// Checks the options. Error: `usage` if hosts are named without --anywhere.
Result<void> settle(const AnywhereOptions& options);
Result<void> settle(const FarOptions& options);

/// `--json` and `--watch`, for the commands that show the present state.
struct WatchOptions {
  bool json = false;
  std::optional<std::int64_t> interval_s;
};

/// Adds these and --color. `schema_help`: the help text of --json, which names the schema.
void add_watch_options(Syntax& syntax, WatchOptions& options, std::string_view schema_help);

/// `--color WHEN`: sets whether what this process prints has colours.
Option colour_option();

/// Gives the answer once; with --watch again and again, until it is interrupted or nobody reads.
Result<Output> show(const WatchOptions& options,
                    const std::function<Result<Output>(view::Layout layout)>& look);

/// The machine, or the lease that this process is inside of. Writes the warnings.
Result<leasing::Domain> find_domain(leasing::InClaim in_claim = leasing::InClaim::inside);

/// The session of this command. Writes the warnings. The session asks `environment` for the probe,
/// so `environment` must outlive it.
Result<leasing::Session> open_session(Environment& environment, const RequestOptions& options);

/// A session for the ledger of this place.
Result<leasing::Session> open_session_at(leasing::Domain domain, Environment& environment,
                                         const RequestOptions& options);

}  // namespace berth::command
