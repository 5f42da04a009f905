import { fleet, isOne } from "../fleet";
import { isMe } from "../me";
import { isWaiterShown } from "../narrowing";
import { userOf, type WaiterView } from "../state";
import { counted, gib } from "../words";
import { Age } from "./Age";
import { Command, EditCommands, shortId } from "./Copy";
import { useFold } from "./fold";
import { Moment } from "./Moment";

/// As `berth queue` says it, for whom it is known.
export function wishOf({ waiter }: WaiterView): string {
  if (waiter.request !== null) return waiter.request;
  const what = counted(waiter.count, "GPU");
  return waiter.promise_bytes === null ? what : `${what}, ${gib(waiter.promise_bytes)} GiB each`;
}

const kMostNamed = 3;

/// "gpu1, gpu2", or how many there are: "12 hosts".
export function placeOf({ hosts }: WaiterView): string {
  return hosts.length <= kMostNamed ? hosts.join(", ") : counted(hosts.length, "host");
}

/// Of the host where it starts the soonest.
export function reasonOf({ host, waiter, hosts }: WaiterView): string {
  return hosts.length === 1 ? waiter.reason : `${host}: ${waiter.reason}`;
}

export function Waiting() {
  const all = fleet.value.waiters;
  const { shown, more } = useFold("waiting", all.filter(isWaiterShown), 5);
  return (
    <section aria-labelledby="waiting">
      <h2 id="waiting" tabIndex={-1}>
        Queue {all.length > 0 && <span class="count">{all.length}</span>}
      </h2>
      {all.length === 0 && <p class="nothing">Nobody waits.</p>}
      <ol class="waiters">
        {shown.map((each) => (
          <Waiter key={`${each.host} ${each.waiter.id}`} view={each} />
        ))}
      </ol>
      {more}
    </section>
  );
}

function Waiter({ view }: { view: WaiterView }) {
  const { waiter, hosts } = view;
  return (
    <li class={isMe(waiter) ? "is-mine" : ""}>
      <span class="line">
        <b>{userOf(waiter)}</b>
        {isMe(waiter) && <span class="share mine">you</span>}
        {!isOne.value && (
          <span class="place" title={hosts.join(", ")}>
            {placeOf(view)}
          </span>
        )}
        <LabPlace view={view} />
        <span class="end">
          <Age since={waiter.since_s} />
        </span>
      </span>
      <span class="wish">
        {wishOf(view)} <Moment word="starts about" at={waiter.starts_at_s} />
      </span>
      <span class="why" title={reasonOf(view)}>
        {reasonOf(view)}
      </span>
      <span class="commands">
        {waiter.job && <EditCommands number={`${waiter.job.number}`} held={false} />}
        <Command words={`berth cancel ${waiter.job?.id ?? shortId(waiter.id)}`} />
      </span>
      {(waiter.note || waiter.command) && (
        <span class="what">
          {waiter.note && <q>{waiter.note}</q>}{" "}
          {waiter.command && <code title={waiter.command}>{waiter.command}</code>}
        </span>
      )}
    </li>
  );
}

const kMeaningOfPlace =
  "The place in the queue of the lab. 1: no earlier request could start on a host that this one names";

/// As the column LAB of `berth queue --anywhere`.
function LabPlace({ view: { place } }: { view: WaiterView }) {
  if (place === null) return null;
  return (
    <span class="lab" title={kMeaningOfPlace}>
      lab no. {place}
    </span>
  );
}
