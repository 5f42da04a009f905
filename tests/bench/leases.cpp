// COUNT leases by the library, one after another, each with its receipt. One more lasts as long as
// the program, so the process that keeps the receipts does too.
//
//     leases COUNT

#include <cstdio>
#include <cstdlib>

#include "berth/api/berth.h"

int main(int count, char** words) {
  if (count != 2) return 2;
  const auto request = berth::request(1);
  const auto lasting = berth::lease(*request);
  if (!lasting) return 1;
  for (long left = std::atol(words[1]); left > 0; --left) {
    auto held = berth::lease(*request);
    if (!held) {
      std::fputs(held.error().message.c_str(), stderr);
      return 1;
    }
    held->release();
    if (!held->receipt()) return 1;
  }
  return 0;
}
