#include "berth/command/field_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
    options.count = options.request.count;
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
  add_fields(syntax, RequestPart::which, kWhich, options.request);
  add_fields(syntax, RequestPart::how, kHow, options.request);
  note_count(syntax, options);
  add_names_and_sources(syntax, options);
}

Result<void> settle(RequestOptions& options) {
  Request& request = options.request;
  request.count = options.count.value_or(usual_count(request));
  if (request.seed && request.order != Order::random) {
    return fail(ErrorCode::usage, "--seed only has a meaning with --order random");
  }
  return check(request);
}

}  // namespace berth::command
