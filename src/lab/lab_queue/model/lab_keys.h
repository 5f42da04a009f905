#pragma once

#include <optional>
#include <string>
#include <string_view>

// The keys of the store of a lab (docs/store-protocol.md), all of them. Other versions read and
// write the same keys.
namespace berth::lab_queue {

inline constexpr std::string_view kAllOfLab = "/berth/1/";          ///< what each key begins with
inline constexpr std::string_view kMarkOfStore = "/berth/1/store";  ///< LabCopy::mark
// Folders: each has a key for each name.
inline constexpr std::string_view kLabTickets = "/berth/1/ticket/";  ///< by id of the ticket
inline constexpr std::string_view kLabStarts = "/berth/1/start/";    ///< likewise
inline constexpr std::string_view kLabAlive = "/berth/1/alive/";     ///< by name of the machine
inline constexpr std::string_view kLabUsers = "/berth/1/user/";      ///< by number of the user

std::string key_of(std::string_view folder, std::string_view name);
/// The name of a key in the folder. nullopt: the key is not in it.
std::optional<std::string> name_in(std::string_view folder, std::string_view key);

}  // namespace berth::lab_queue
