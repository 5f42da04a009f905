import { Jobs } from "./Jobs";
import { Outsiders } from "./Outsiders";
import { Users } from "./Users";
import { Waiting } from "./Waiting";

/// Who waits, what runs, and whose it is.
export function People() {
  return (
    <div class="people">
      <Waiting />
      <Jobs />
      <Users />
      <Outsiders />
    </div>
  );
}
