#pragma once

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "berth/base/record_fields.h"
#include "berth/request/request.h"

// The table of what a request can say. The options of commands, the ask of a lease, JSON, the words
// for people, suggestions, what Slurm is asked, the arguments of MCP and those of Python are made
// from it. `./dev readings` writes the arguments of Python, the schemas, docs/requests.md and a
// table of docs/manual.md from it, and a test compares them.
//
// A row has no code of a consumer. If a consumer treats a row in another way, its code says so, and
// why.
namespace berth {

/// How the value of a row is written.
enum class RequestValue {
  number,         ///< a whole number, from RequestField::least up
  seed,           ///< a whole number
  truth,          ///< a flag
  condition,      ///< an expression
  text_filter,    ///< a short form of a condition, as are the next two
  size_filter,    ///< bytes
  number_filter,  ///< a whole number
  selectors,      ///< one device or several
  order,          ///< the name of an order
  share,          ///< bytes
  time,           ///< seconds
  grace,          ///< seconds, or nothing for kUsualYieldS
};

using RequestMember =
    std::variant<unsigned Request::*, bool Request::*, std::uint64_t Request::*, Order Request::*,
                 std::vector<Expression> Request::*, std::vector<std::string> Request::*,
                 std::optional<std::uint64_t> Request::*, std::optional<std::int64_t> Request::*>;

/// What a row is about. Commands have the parts that mean something to them.
enum class RequestPart {
  which,  ///< which devices
  how,    ///< how they are chosen
  lease,  ///< the lease: of commands that take one
  job,    ///< the command in the lease: of commands that start one, so that Berth can end it
};

/// What one face of Berth says of a row, or why it says nothing.
struct RequestFace {
  std::string_view text{};
  std::string_view why_not{};

  constexpr bool exists() const { return why_not.empty(); }
};

/// What Slurm does for a row.
enum class SlurmAnswer {
  refused,  ///< `--on slurm` refuses the request if it says this
  kept,     ///< Slurm has it too
  implied,  ///< another row says it, or it has no meaning without another
};

/// One row.
struct RequestField {
  RequestPart part = RequestPart::which;
  char letter = 0;           ///< of the option, 0 for none
  std::string_view name{};   ///< of the option
  std::string_view value{};  ///< the option's argument, as command::Option; "" for a flag
  std::string_view help{};   ///< of the option: one line
  RequestValue kind = RequestValue::truth;
  unsigned least = 0;
  RequestMember member{};
  std::string_view key{};  ///< what the next four call it, unless they say otherwise; "": each says so itself
  RequestFace record{};    ///< the messages between programs, and the files of jobs
  RequestFace json{};
  RequestFace python{};  ///< an argument of berth.pick, why and lease
  RequestFace job{};     ///< an argument of berth.submit and of MCP
  RequestFace words{};   ///< after the number of GPUs, in "Asked for: …"; {} stands for the value
  RequestFace looser{};  ///< a suggestion that leaves it out; {} stands for the value
  RequestFace mcp{};     ///< what MCP says of its argument
  SlurmAnswer slurm = SlurmAnswer::refused;
};

/// The table.
std::span<const RequestField> request_fields();

/// The row of the option with this name, or null.
const RequestField* find_request_field(std::string_view name);

/// The row says which devices are taken, so it has a meaning where nothing is leased.
constexpr bool is_of_devices(const RequestField& row) {
  return row.part == RequestPart::which || row.part == RequestPart::how;
}

/// What a face calls the row; "" if it does not have it.
std::string_view name_in(RequestFace RequestField::* face, const RequestField& field);

/// Puts the value, written as for the option, into the request. Error: `usage`, with what is
/// allowed.
Result<void> set_field(const RequestField& field, std::string_view value, Request& request);

/// Calls `use` with a reference to the member.
template <class RequestType, class Use>
auto with_member(const RequestField& field, RequestType& request, Use&& use) {
  return std::visit([&](auto member) { return use(request.*member); }, field.member);
}

/// Whether the row is stored in this member.
template <class T>
bool is_stored_in(T Request::* member, const RequestField& field) {
  const auto* const stored = std::get_if<T Request::*>(&field.member);
  return stored != nullptr && *stored == member;
}

/// The value as people read it: those of a list with `separator` between them, "" for a flag.
std::string value_in_words(const RequestField& field, const Request& request, std::string_view separator);
/// The text of a face with the value for its {}.
std::string in_words(const RequestFace& face, std::string_view value);

/// Whether the member has another value than that of a request that says nothing.
bool is_said(const RequestField& field, const Request& request);
/// Gives the member the value of a request that says nothing.
void leave_out(const RequestField& field, Request& request);

// A request in a record (src/core/base/record_fields.h): each row of the table under its record
// key. The messages between programs and the files of jobs have it in this form.

/// A condition is written as text. If the text cannot be read, the line is refused.
inline void field_of_conditions(std::string_view key, const std::vector<Expression>& conditions,
                                const FieldWriter& field) {
  for (const Expression& condition : conditions) field(key, condition.text());
}
inline void field_of_conditions(std::string_view key, std::vector<Expression>& conditions,
                                FieldReader& field) {
  if (field.key() != key) return;
  auto condition = Expression::parse(field.value());
  if (!condition) return field.refuse();
  conditions.push_back(std::move(*condition));
}

template <class RequestType, class Fields>
void field_of_row(const RequestField& row, RequestType& request, Fields& field) {
  const std::string_view key = name_in(&RequestField::record, row);
  if (key.empty()) return;
  with_member(row, request, [&](auto& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::vector<Expression>>)
      field_of_conditions(key, value, field);
    else
      field(key, value);
  });
}

template <class RequestType, class Fields>
void fields_of_request(RequestType& request, Fields& field) {
  for (const RequestField& row : request_fields()) field_of_row(row, request, field);
}

// A request as options, as a user would type it: the other direction of set_field.

/// "--count=2"; "--clean" for a flag or an option whose value is left out.
std::string typed_option(std::string_view name, std::string_view value);

/// The options that say the row of this request again: several for conditions, each of which is
/// written in its short form if it has one ("--free=20G"). REQUIRES: is_said, or the row is the
/// count.
std::vector<std::string> typed_options(const RequestField& field, const Request& request);

}  // namespace berth
