import { Jobs } from "./Jobs";
import { Outsiders } from "./Outsiders";
import { OwnJobs } from "./OwnJobs";
import { Users } from "./Users";
import { Waiting } from "./Waiting";

export function Rail() {
  return (
    <aside class="rail" aria-label="People">
      <Waiting />
      <Jobs />
      <OwnJobs />
      <Users />
      <Outsiders />
    </aside>
  );
}
