#include "berth/queue/gate_answer.h"

namespace berth::acquisition {

GateAnswer answer_in_gate(Found found, FactsAre facts, Means means) {
  const bool is_current = facts == FactsAre::current;
  // Old facts may refuse what they show as taken. They never grant: not even after many looks.
  if (found == Found::granted) return is_current ? GateAnswer::take : GateAnswer::look_again;
  if (!is_current && !means.last_attempt) return GateAnswer::look_again;
  if (!means.waits) return GateAnswer::withdraw;
  return found == Found::held_back ? GateAnswer::wait_held_back : GateAnswer::wait;
}

}  // namespace berth::acquisition
