#pragma once

#include <string_view>

namespace berth::command {

/// What people who know another tool mean by a command ("squeue") or an option ("--vram") that
/// Berth has under another name: "queue", "--memory". "": nothing is known. Help and completion do
/// not show these.
std::string_view meant_by_habit(std::string_view word);

}  // namespace berth::command
