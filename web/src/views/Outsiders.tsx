import { fleet, isOne } from "../fleet";
import { isOutsiderShown } from "../narrowing";
import { type OutsiderView, userOf } from "../state";
import { gib } from "../words";
import { Age } from "./Age";
import { useFold } from "./fold";
import { Glyph } from "./Glyph";

export function Outsiders() {
  const all = fleet.value.outsiders;
  const { shown, more } = useFold("outsiders", all.filter(isOutsiderShown), 5);
  if (all.length === 0) return null;
  return (
    <section aria-labelledby="outsiders">
      <h2 id="outsiders">
        Outsiders <span class="count">{all.length}</span>
      </h2>
      <p class="nothing">They compute on a GPU and have no lease.</p>
      <ul class="waiters">
        {shown.map((each) => (
          <Outsider key={`${each.on.key} ${each.process.pid}`} view={each} />
        ))}
      </ul>
      {more}
    </section>
  );
}

function Outsider({ view }: { view: OutsiderView }) {
  const { on, process } = view;
  return (
    <li>
      <span class="line">
        <Glyph state="outsider" />
        <b>{userOf(process)}</b>
        <span class="place">
          {!isOne.value && `${on.host} `}GPU {on.device.label}
        </span>
        {process.used_bytes !== null && <span>{gib(process.used_bytes)} GiB</span>}
        <span class="end">
          <Age since={process.started_at_s} />
        </span>
      </span>
      <span class="what">
        pid {process.pid} {process.command && <code title={process.command}>{process.command}</code>}
      </span>
    </li>
  );
}
