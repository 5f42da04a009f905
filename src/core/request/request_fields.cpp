#include "berth/request/request_fields.h"

#include <algorithm>
#include <array>

#include "berth/base/record.h"
#include "berth/base/text.h"
#include "berth/request/request.h"

namespace berth {
namespace {

using K = RequestValue;
using P = RequestPart;
using R = Request;
using S = SlurmAnswer;

constexpr RequestFace as(std::string_view text) {
  return {.text = text};
}
constexpr RequestFace but_not(std::string_view why) {
  return {.why_not = why};
}

constexpr RequestFace kInWhere = but_not("it is one of the conditions");
constexpr RequestFace kNoToolNeeds = but_not("write it in where: more arguments would distract a model");
constexpr RequestFace kByARule = but_not("verdict/choice.cpp lowers it by a rule of its own");
constexpr RequestFace kChoiceOnly = but_not("it only chooses among the GPUs that meet the request");
constexpr RequestFace kNotOfTheDevices = but_not("it does not say which GPUs meet the request");

constexpr RequestField filter_field(RequestField field) {
  field.record = field.json = field.words = field.looser = kInWhere;
  field.slurm = S::implied;
  return field;
}

// After a new row, run `./dev readings`.
constexpr std::array kFields{
    RequestField{.letter = 'n',
                 .name = "count",
                 .value = "N",
                 .help = "how many (default 1)",
                 .kind = K::number,
                 .least = 1,
                 .member = &R::count,
                 .key = "count",
                 .python = as("n"),
                 .job = as("n"),
                 .words = but_not("the sentence begins with it"),
                 .looser = kByARule,
                 .mcp = as("how many GPUs it gets (1)"),
                 .slurm = S::kept},
    RequestField{.name = "where",
                 .value = "EXPR",
                 .help = "a condition: 'name~A100 and free>=20G and (util<=5 or temp<80)'",
                 .kind = K::condition,
                 .member = &R::conditions,
                 .key = "where",
                 .record = as("condition"),
                 .json = as("conditions"),
                 .words = but_not("the sentence ends with them"),
                 .looser = kByARule,
                 .mcp = as("a condition on the GPU: \"name~A100 and free>=20G\""),
                 .slurm = S::kept},
    filter_field({.name = "name",
                  .value = "TEXT",
                  .help = "the model's name contains this text",
                  .kind = K::text_filter,
                  .member = &R::conditions,
                  .key = "name",
                  .job = but_not("this word is the name of the job; write it in where: name~A100"),
                  .mcp = kNoToolNeeds}),
    RequestField{.name = "devices",
                 .value = "LIST",
                 .help = "only these GPUs: indices or UUIDs; all of them, unless -n asks for fewer",
                 .kind = K::selectors,
                 .member = &R::devices,
                 .key = "devices",
                 .record = as("device"),
                 .words = as("among GPU {}"),
                 .looser = as("any GPU, instead of only {}"),
                 .mcp = kNoToolNeeds},
    RequestField{.name = "exclude",
                 .value = "LIST",
                 .help = "none of these",
                 .kind = K::selectors,
                 .member = &R::exclude,
                 .key = "exclude",
                 .words = as("not {}"),
                 .looser = as("without excluding {}"),
                 .mcp = kNoToolNeeds},
    filter_field({.name = "free",
                  .value = "SIZE",
                  .help = "at least this much free memory: 20G, 512M",
                  .kind = K::size_filter,
                  .member = &R::conditions,
                  .key = "free",
                  .mcp = as("only a GPU with so much free memory: \"20G\"")}),
    filter_field({.name = "total",
                  .value = "SIZE",
                  .help = "at least this much memory in all",
                  .kind = K::size_filter,
                  .member = &R::conditions,
                  .key = "total",
                  .mcp = kNoToolNeeds}),
    filter_field({.name = "util",
                  .value = "PERCENT",
                  .help = "utilisation at most this",
                  .kind = K::number_filter,
                  .member = &R::conditions,
                  .key = "util",
                  .mcp = kNoToolNeeds}),
    filter_field({.name = "mem-util",
                  .value = "PERCENT",
                  .help = "memory traffic at most this",
                  .kind = K::number_filter,
                  .member = &R::conditions,
                  .key = "mem_util",
                  .mcp = kNoToolNeeds}),
    RequestField{.name = "processes",
                 .value = "N",
                 .help = "up to N processes of others may already be there (default 0)",
                 .kind = K::number,
                 .member = &R::allowed_processes,
                 .key = "processes",
                 .record = as("allowed_processes"),
                 .json = as("allowed_processes"),
                 .words = but_not("a request that allows more needs no explanation for it"),
                 .looser = kByARule,
                 .mcp = but_not("a model must not decide to disturb the jobs of others")},
    RequestField{
        .name = "clean",
        .help =
            "a GPU on which nobody else computes, to measure times; the receipt says whether it stayed so",
        .kind = K::truth,
        .member = &R::clean,
        .key = "clean",
        .words = as("on which nobody else computes"),
        .looser = as("a GPU on which programs compute that the site ignores, without --clean"),
        .mcp = as("true for measuring times: nobody else computes on the GPU, and the receipt says so")},
    filter_field({.name = "power",
                  .value = "WATTS",
                  .help = "power draw at most this",
                  .kind = K::number_filter,
                  .member = &R::conditions,
                  .key = "power",
                  .mcp = kNoToolNeeds}),
    filter_field({.name = "temp",
                  .value = "CELSIUS",
                  .help = "temperature at most this",
                  .kind = K::number_filter,
                  .member = &R::conditions,
                  .key = "temp",
                  .mcp = kNoToolNeeds}),
    RequestField{.name = "memory",
                 .value = "SIZE",
                 .help = "a share: this much memory on a device that others may share; auto: as much as "
                         "earlier runs of the command used, or a whole device if too few are known",
                 .kind = K::share,
                 .member = &R::promise_bytes,
                 .key = "memory",
                 .record = as("promise_bytes"),
                 .json = as("promise_bytes"),
                 .words = but_not("it stands with the number of GPUs, for it is meant for each of them"),
                 .looser = kByARule,
                 .mcp = as("a share of one GPU instead of all of it: \"10G\", or \"auto\": as much as "
                           "earlier runs of the command used"),
                 .slurm = S::implied},
    RequestField{.name = "shared",
                 .help = "a share without promised memory",
                 .kind = K::truth,
                 .member = &R::shared,
                 .key = "shared",
                 .words = but_not("the sentence begins with it"),
                 .looser = but_not("it asks for less already"),
                 .mcp = but_not("a model that shares says how much memory it needs")},
    RequestField{.part = P::how,
                 .name = "order",
                 .value = "ORDER",
                 .help = "which of the matching GPUs: auto, index, random, best-fit, worst-fit, "
                         "coolest, least-power, most-capable, topology or listed (as --devices has them; "
                         "default auto)",
                 .kind = K::order,
                 .member = &R::order,
                 .key = "order",
                 .words = kChoiceOnly,
                 .looser = kChoiceOnly,
                 .mcp = kChoiceOnly},
    RequestField{.part = P::how,
                 .name = "seed",
                 .value = "N",
                 .help = "of --order random: the same seed, the same choice",
                 .kind = K::seed,
                 .member = &R::seed,
                 .key = "seed",
                 .words = kChoiceOnly,
                 .looser = kChoiceOnly,
                 .mcp = kChoiceOnly,
                 .slurm = S::implied},
    RequestField{.part = P::lease,
                 .name = "time",
                 .value = "TIME",
                 .help = "time limit (2h): when it is over, Berth ends the job",
                 .kind = K::time,
                 .member = &R::time_s,
                 .key = "time",
                 .record = as("time_s"),
                 .json = kNotOfTheDevices,
                 .words = kNotOfTheDevices,
                 .looser = kNotOfTheDevices,
                 .mcp = as("how long it takes at most, then it is ended: \"20m\""),
                 .slurm = S::kept},
    RequestField{.part = P::lease,
                 .name = "mps-percent",
                 .value = "PERCENT",
                 .help = "if MPS runs: the job uses at most this part of a GPU's processors",
                 .kind = K::number,
                 .least = 1,
                 .member = &R::mps_percent,
                 .key = "mps_percent",
                 .json = kNotOfTheDevices,
                 .words = kNotOfTheDevices,
                 .looser = kNotOfTheDevices,
                 .mcp = but_not("a model does not know whether MPS runs")},
    RequestField{.part = P::job,
                 .name = "yield",
                 .value = "[TIME]",
                 .help = "end the job if a request without --yield waits for its GPUs; TIME (30s) is between "
                         "SIGTERM and SIGKILL",
                 .kind = K::grace,
                 .member = &R::yield_s,
                 .key = "yield",
                 .record = as("yield_s"),
                 .json = kNotOfTheDevices,
                 .python = but_not("Berth cannot end a lease that the asking program itself holds"),
                 .job = as("yield_"),
                 .words = kNotOfTheDevices,
                 .looser = kNotOfTheDevices,
                 .mcp = but_not("all jobs of a model yield, as `berth mcp --yield` says")},
};

consteval bool says_one(const RequestFace& face) {
  return face.text.empty() != face.why_not.empty();
}

consteval bool is_table_whole() {
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    const RequestField& field = kFields[i];
    if (field.help.empty() || field.key.empty()) return false;
    if (!says_one(field.words) || !says_one(field.looser) || !says_one(field.mcp)) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (kFields[j].name == field.name) return false;
    }
  }
  return true;
}
static_assert(is_table_whole());

bool is_filter(const RequestField& field) {
  return field.kind == K::text_filter || field.kind == K::size_filter || field.kind == K::number_filter;
}

constexpr std::string_view kByRuns = "auto";

struct Setter {
  const RequestField& field;
  std::string_view value;
  Request& request;

  Result<void> operator()(unsigned R::* member) const {
    BERTH_LET(request.*member, number_at_least(value, field.least));
    return {};
  }
  Result<void> operator()(bool R::* member) const {
    request.*member = true;
    return {};
  }
  // Memory is promised on a shared device only.
  Result<void> operator()(std::uint64_t R::* member) const {
    if (value == kByRuns) {
      request.shared = true;
      request.*member = kMemoryByRuns;
      return {};
    }
    BERTH_LET(const auto bytes, bytes_from_text(value));
    if (bytes == 0) return fail(ErrorCode::usage, "must be more than nothing");
    request.shared = true;
    request.*member = bytes;
    return {};
  }
  Result<void> operator()(Order R::* member) const {
    if (read_value(value, request.*member)) return {};
    return fail(ErrorCode::usage, "must be one of {}", fmt::join(words_of(Order()), ", "));
  }
  Result<void> operator()(std::vector<Expression> R::* member) const {
    BERTH_LET(auto condition, is_filter(field) ? filter(field.key, value) : Expression::parse(value));
    (request.*member).push_back(std::move(condition));
    return {};
  }
  Result<void> operator()(std::vector<std::string> R::* member) const {
    BERTH_LET(request.*member, selectors_from_text(value));
    return {};
  }
  Result<void> operator()(std::optional<std::uint64_t> R::* member) const {
    BERTH_LET(request.*member, number_at_least<std::uint64_t>(value, 0));
    return {};
  }
  Result<void> operator()(std::optional<std::int64_t> R::* member) const {
    if (field.kind == K::grace && value.empty()) {
      request.*member = kUsualYieldS;
      return {};
    }
    BERTH_LET(const auto seconds, seconds_from_text(value));
    BERTH_DO(field.kind == K::grace ? check_yield(seconds) : check_time(seconds));
    request.*member = seconds;
    return {};
  }
};

struct InWords {
  std::string_view separator;

  std::string operator()(bool) const { return ""; }
  std::string operator()(Order order) const { return std::string(to_text(order)); }
  std::string operator()(const std::vector<std::string>& values) const {
    return fmt::format("{}", fmt::join(values, separator));
  }
  std::string operator()(const std::vector<Expression>& conditions) const {
    std::vector<std::string> texts;
    for (const Expression& condition : conditions) texts.push_back(condition.text());
    return (*this)(texts);
  }
  template <class Number>
  std::string operator()(const std::optional<Number>& number) const {
    return number ? (*this)(*number) : "";
  }
  template <class Number>
  std::string operator()(const Number& number) const {
    return std::to_string(number);
  }
};

}  // namespace

std::span<const RequestField> request_fields() {
  return kFields;
}

const RequestField* find_request_field(std::string_view name) {
  const auto* const found = std::ranges::find(kFields, name, &RequestField::name);
  return found == kFields.end() ? nullptr : found;
}

std::string_view name_in(RequestFace RequestField::* face, const RequestField& field) {
  const RequestFace& said = field.*face;
  if (!said.exists()) return "";
  return said.text.empty() ? field.key : said.text;
}

Result<void> set_field(const RequestField& field, std::string_view value, Request& request) {
  return std::visit(Setter{field, value, request}, field.member);
}

std::string value_in_words(const RequestField& field, const Request& request, std::string_view separator) {
  return with_member(field, request, InWords{separator});
}

std::string in_words(const RequestFace& face, std::string_view value) {
  return fmt::format(fmt::runtime(face.text), value);
}

bool is_said(const RequestField& field, const Request& request) {
  static const Request kSaysNothing;
  return std::visit(
      [&request](auto member) {
        if constexpr (requires { (request.*member).empty(); })
          return !(request.*member).empty();
        else
          return request.*member != kSaysNothing.*member;
      },
      field.member);
}

void leave_out(const RequestField& field, Request& request) {
  std::visit([&request](auto member) { request.*member = Request{}.*member; }, field.member);
}

namespace {

std::string typed_value(const RequestField& field, const Request& request) {
  switch (field.kind) {
    case RequestValue::share:
      return asks_memory_by_runs(request) ? "auto" : bytes_as_typed(request.promise_bytes);
    case RequestValue::time:
      return time_for_people(request.time_s.value_or(0));
    case RequestValue::grace:
      return request.yield_s == kUsualYieldS ? "" : time_for_people(request.yield_s.value_or(0));
    default:
      return value_in_words(field, request, ",");
  }
}

}  // namespace

std::string typed_option(std::string_view name, std::string_view value) {
  std::string option = "--";
  option.append(name);
  if (!value.empty()) option.append("=").append(value);
  return option;
}

std::vector<std::string> typed_options(const RequestField& field, const Request& request) {
  if (field.kind != RequestValue::condition) return {typed_option(field.name, typed_value(field, request))};
  std::vector<std::string> options;
  for (const Expression& condition : request.conditions) {
    const RequestField* short_form = nullptr;
    std::string value;
    for (const RequestField& row : request_fields()) {
      if (short_form == nullptr && !(value = filter_value(row.key, condition)).empty()) short_form = &row;
    }
    options.push_back(short_form == nullptr ? typed_option(field.name, condition.text())
                                            : typed_option(short_form->name, value));
  }
  return options;
}

}  // namespace berth
