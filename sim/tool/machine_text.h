#pragma once

#include <string>
#include <string_view>

namespace berth::sim {

struct Machine {
  std::string name;  // canonical: "8xH100", "2xA100+1xT4"
  std::string text;  // its scenario
};

/// A machine written as NxMODEL[+NxMODEL…]. Returns "" or what is wrong with it; "not a machine" if
/// the text does not even look like one and so may be a file's name.
std::string parse_machine(std::string_view text, Machine& machine);

}  // namespace berth::sim
