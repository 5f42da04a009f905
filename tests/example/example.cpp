// What a C++ service does with Berth: look, ask, take, see why there is no more, give back.
#include <berth/berth.h>

#include <algorithm>
#include <iostream>

namespace {

int complain(const berth::Error& error) {
  std::cerr << "example: " << error.message << '\n';
  return berth::outcome_of(error.code).exit_status;
}

}  // namespace

int main() {
  const auto machine = berth::snapshot();
  if (!machine) return complain(machine.error());
  std::cout << machine->devices.size() << " devices\n";

  const auto request = berth::request(1, "name~A100 and free>=20G");
  if (!request) return complain(request.error());
  const auto choice = berth::pick(*request);
  if (!choice) return complain(choice.error());
  std::cout << "picked " << choice->visible_devices << '\n';

  auto lease = berth::lease(*request, {.note = "an example"});
  if (!lease) return complain(lease.error());
  std::cout << "leased " << lease->visible_devices() << '\n';

  const auto verdicts = berth::why(*request);
  if (!verdicts) return complain(verdicts.error());
  std::cout << std::ranges::count_if(*verdicts, [](const berth::Finding& it) { return it.verdict.free(); })
            << " is still free\n";
  lease->release();
}
