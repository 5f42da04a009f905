// The C++ library as a host has it, for faces_test.py: `faces_asker pick|why|lease COUNT
// [DEVICE…]`. The answer is
// lines of fields with tabs between them, and status 0 also where it is no.

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include <berth/api/berth.h>

namespace {

/// What was said as one field.
std::string field(std::string_view text) {
  std::string one;
  for (const char letter : text) one += letter == '\n' ? "\\n" : std::string(1, letter);
  return one;
}

void tell(const std::vector<berth::Finding>& findings) {
  for (const auto& [device, verdict] : findings) {
    std::cout << "verdict\t" << berth::label(device) << '\t'
              << (verdict.failed ? berth::to_text(*verdict.failed) : "free") << '\t' << field(verdict.reason)
              << '\n';
  }
}

int tell(const berth::Error& error) {
  std::cout << "code\t" << berth::outcome_of(error.code).name << "\nmessage\t" << field(error.message)
            << '\n';
  return 0;
}

int tell(const berth::Refusal& refusal) {
  tell(refusal.findings);
  return tell(static_cast<const berth::Error&>(refusal));
}

int tell(const std::vector<berth::Device>& devices, const std::vector<std::string>& notes) {
  for (const berth::Device& device : devices) std::cout << "device\t" << device.uuid << '\n';
  for (const std::string& note : notes) std::cout << "note\t" << field(note) << '\n';
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  const std::string_view what = words[1];
  auto request = berth::request(static_cast<unsigned>(std::atoi(words[2])));
  if (!request) return tell(request.error());
  request->devices.assign(words + 3, words + count);
  if (what == "pick") {
    const auto picked = berth::pick(*request);
    return picked ? tell(picked->devices, picked->notes) : tell(picked.error());
  }
  if (what == "lease") {
    const auto lease = berth::lease(*request, {.note = "asks"});
    return lease ? tell(lease->devices(), lease->notes()) : tell(lease.error());
  }
  const auto findings = berth::why(*request);
  if (!findings) return tell(findings.error());
  tell(*findings);
  return 0;
}
