#include "berth/command/request_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/base/units.h"
#include "berth/request/filter.h"
#include "berth/request/selector.h"

namespace berth::command {
namespace {

using Set = std::function<Result<void>(std::string_view)>;

constexpr std::string_view kWhich = "Which devices";
constexpr std::string_view kHow = "How they are chosen and named";

Result<void> add_condition(Request& request, Result<Expression> condition) {
  if (!condition) return std::unexpected(condition.error());
  request.conditions.push_back(std::move(*condition));
  return {};
}

/// A short form of `--where`.
Set short_form(Request& request, std::string_view name) {
  return [&request, name](std::string_view value) { return add_condition(request, filter(name, value)); };
}

Set selectors(std::vector<std::string>& list) {
  return [&list](std::string_view value) -> Result<void> {
    BERTH_LET(auto parsed, selectors_from_text(value));
    list = std::move(parsed);
    return {};
  };
}

Set choice(bool& flag, std::string_view when) {
  return [&flag, when](std::string_view value) -> Result<void> {
    flag = value == when;
    return {};
  };
}

void add_filters(Syntax& syntax, RequestOptions& options) {
  Request& request = options.request;
  const auto add = [&](char letter, std::string_view name, std::string_view value, std::string_view help,
                       Set set) {
    syntax.options.push_back({kWhich, letter, name, value, help, {}, std::move(set)});
  };
  add('n', "count", "N", "how many (default 1)", [&options](std::string_view value) -> Result<void> {
    BERTH_LET(const auto number, number_at_least(value, 1));
    options.count = number;
    return {};
  });
  add(0, "where", "EXPR", "a condition: 'name~A100 and free>=20G and (util<=5 or temp<80)'",
      [&request](std::string_view value) { return add_condition(request, Expression::parse(value)); });
  add(0, "name", "TEXT", "the model's name contains this text", short_form(request, "name"));
  add(0, "devices", "LIST", "only among these: indices or UUIDs; all of them unless -n says fewer",
      selectors(request.devices));
  add(0, "exclude", "LIST", "none of these", selectors(request.exclude));
  add(0, "free", "SIZE", "at least this much free memory: 20G, 512M", short_form(request, "free"));
  add(0, "total", "SIZE", "at least this much memory in all", short_form(request, "total"));
  add(0, "util", "PERCENT", "utilisation at most this", short_form(request, "util"));
  add(0, "mem-util", "PERCENT", "memory traffic at most this", short_form(request, "mem_util"));
  add(0, "processes", "N", "up to N processes of others may already be there (default 0)",
      [&request](std::string_view value) -> Result<void> {
        BERTH_LET(const auto number, number_at_least(value, 0));
        request.allowed_processes = number;
        return {};
      });
  add(0, "power", "WATTS", "power draw at most this", short_form(request, "power"));
  add(0, "temp", "CELSIUS", "temperature at most this", short_form(request, "temp"));
  add(0, "memory", "SIZE", "a share: this much memory on a device that others may share",
      [&request](std::string_view value) -> Result<void> {
        BERTH_LET(const auto bytes, bytes_from_text(value));
        if (bytes == 0) return fail(ErrorCode::usage, "must be more than nothing");
        request.shared = true;
        request.promise_bytes = bytes;
        return {};
      });
  add(0, "shared", "", "a share without promised memory", raise_flag(request.shared));
}

void add_manner(Syntax& syntax, RequestOptions& options) {
  Request& request = options.request;
  syntax.options.push_back({kHow, 0, "order", "ORDER",
                            "which of those that fit: auto, index, random, "
                            "best-fit, worst-fit, coolest, "
                            "least-power, most-capable, topology or listed (as "
                            "--devices has them; default auto)",
                            order_names(), [&request](std::string_view value) -> Result<void> {
                              request.order = *order_from_text(value);
                              return {};
                            }});
  syntax.options.push_back({kHow,
                            0,
                            "seed",
                            "N",
                            "of --order random: the same seed, the same choice",
                            {},
                            [&request](std::string_view value) -> Result<void> {
                              BERTH_LET(const auto number, number_at_least(value, 0));
                              request.seed = number;
                              return {};
                            }});
  syntax.options.push_back({kHow,
                            0,
                            "ids",
                            "FORM",
                            "index or uuid (default index; a MIG instance always uuid)",
                            {"index", "uuid"},
                            choice(options.uuids, "uuid")});
  syntax.options.push_back({kHow,
                            0,
                            "mask",
                            "USE",
                            "inherit or ignore CUDA_VISIBLE_DEVICES and the like (default inherit)",
                            {"inherit", "ignore"},
                            [&options](std::string_view value) -> Result<void> {
                              options.mask = value == "ignore" ? MaskUse::ignore : MaskUse::inherit;
                              return {};
                            }});
  syntax.options.push_back(source_option(options.source));
}

}  // namespace

Option source_option(source::SourceKind& source) {
  return {kHow,
          0,
          "source",
          "SOURCE",
          "nvml, nvidia-smi, amd or auto (default auto)",
          source::source_names(),
          [&source](std::string_view value) -> Result<void> {
            source = *source::source_kind_from_text(value);
            return {};
          }};
}

void add_request_options(Syntax& syntax, RequestOptions& options) {
  add_filters(syntax, options);
  add_manner(syntax, options);
}

Result<void> settle(RequestOptions& options) {
  Request& request = options.request;
  request.count =
      options.count.value_or(request.devices.empty() ? 1U : static_cast<unsigned>(request.devices.size()));
  if (request.seed && request.order != Order::random) {
    return fail(ErrorCode::usage, "--seed only has a meaning with --order random");
  }
  return check(request);
}

}  // namespace berth::command
