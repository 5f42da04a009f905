#pragma once

namespace berth::acquisition {

/// What a request enters the gate for.
enum class GateFor {
  devices,        ///< to be granted what is free, by what the last look saw
  order,          ///< only to know behind which rival to sleep: old facts do for that
  order_by_tick,  ///< the same because a period has passed, and only whether it is its own turn
};

/// What the plan says inside the gate.
enum class Found {
  granted,
  behind,     ///< a rival comes first
  blocked,    ///< it is first, and too little is free
  held_back,  ///< enough is free, and its own conditions do not hold
};

/// What the facts of the last look are worth inside the gate.
enum class FactsAre {
  current,
  older_than_a_lease,   ///< a lease has come or gone since
  of_an_old_session,    ///< the driver may have been replaced since it was loaded for that look
  silent_about_a_lock,  ///< a device is free and cannot be had, and nobody has asked who locked it
};

/// How the request stands on its own account.
struct Means {
  bool waits = false;  ///< it may wait in the queue
  bool last_attempt =
      false;  ///< it has looked so often that a refusal by old facts is better than one more look
};

/// What to do with the ticket.
enum class GateAnswer {
  take,
  look_again,  ///< it keeps its place meanwhile
  wait,
  wait_held_back,  ///< others skip it
  withdraw,
};

/// The decision of a request that is in the gate for devices, and knows all tickets that could
/// change it.
GateAnswer answer_in_gate(Found found, FactsAre facts, Means means);

}  // namespace berth::acquisition
