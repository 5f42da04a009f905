#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// Messages of the Model Context Protocol, of which each is a line of JSON: what a client says, and the
// answer.
namespace berth::render {

enum class ArgumentKind { text, number, flag };

struct ToolArgument {
  std::string_view name;
  ArgumentKind kind = ArgumentKind::text;
  std::string_view about;
  bool needed = false;
};

/// What a client may call.
struct Tool {
  std::string_view name;
  std::string_view about;
  bool only_looks = false;  ///< it changes nothing
  std::vector<ToolArgument> arguments{};
};

/// A tool is to be called. What was not given is not there; a number and a flag ("true") are text here.
struct ToolCall {
  std::string id;  ///< of the request, as JSON
  std::string tool;
  std::map<std::string, std::string, std::less<>> arguments;
};

/// The client gives up a call.
struct CallGivenUp {
  std::string id;
};

/// A line for the client. "": nothing is to be said.
struct ClientAnswer {
  std::string line;
};

using ClientMessage = std::variant<ClientAnswer, ToolCall, CallGivenUp>;

/// What a client is told of who answers it.
struct ServerWords {
  std::string_view version;
  std::string_view instructions;  ///< for its model
};

/// What to do about a line of the client.
ClientMessage read_client_line(std::string_view line, std::span<const Tool> tools, const ServerWords& server);

/// What came of a call.
struct ToolResult {
  std::string text;
  bool failed = false;
  std::string document{};  ///< the same for programs, a JSON object; "": none
};
std::string tool_answer(std::string_view id, const ToolResult& result);

/// For a line that is not read because it is too long.
std::string too_long_answer();

}  // namespace berth::render
