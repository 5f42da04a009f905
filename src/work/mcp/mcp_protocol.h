#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// Messages of the Model Context Protocol: what a client says, and the answers. Each is one line of
// JSON.
namespace berth::mcp {

enum class ArgumentKind { text, number, flag };

struct ToolArgument {
  std::string_view name;
  ArgumentKind kind = ArgumentKind::text;
  std::string_view about;
  bool needed = false;
};

/// A tool that a client may call.
struct Tool {
  std::string_view name;
  std::string_view about;
  bool only_looks = false;  ///< it changes nothing
  std::vector<ToolArgument> arguments{};
};

/// The call of a tool. Arguments that were not given are missing; numbers and flags ("true") are
/// texts here.
struct ToolCall {
  std::string id;  ///< of the request, as JSON
  std::string tool;
  std::map<std::string, std::string, std::less<>> arguments;
};

/// The client gives up a call.
struct CallGivenUp {
  std::string id;
};

/// A line for the client. "": nothing to say.
struct ClientAnswer {
  std::string line;
};

using ClientMessage = std::variant<ClientAnswer, ToolCall, CallGivenUp>;

/// What a client learns about this server.
struct ServerWords {
  std::string_view version;
  std::string_view instructions;  ///< for its model
};

/// What to do after a line of the client.
ClientMessage read_client_line(std::string_view line, std::span<const Tool> tools, const ServerWords& server);

/// The result of a call.
struct ToolResult {
  std::string text;
  bool failed = false;
  std::string document{};  ///< the same for programs, a JSON object; "": none
};
std::string tool_answer(std::string_view id, const ToolResult& result);

/// The answer to a line that is too long to be read.
std::string too_long_answer();

/// The most that an answer tells, in bytes.
inline constexpr std::size_t kLongestTold = 64 << 10;

/// The text, or as much of its beginning as an answer tells, with a line that says so.
std::string cut_short(std::string text);

/// The text between two lines that say that other users may have written parts of it: they choose
/// their commands and notes, and the reader may take a sentence for one of its user. Both lines
/// have the `word`, which nobody can know beforehand, so the text cannot end this by itself.
std::string marked_as_foreign(std::string_view text, std::string_view word);

}  // namespace berth::mcp
