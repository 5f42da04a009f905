import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Usage } from "../api";
import { askUsage } from "../client";
import { connection } from "../connection";
import { subject } from "../details";
import { fleet, isOne } from "../fleet";
import type { OutsiderView, UserView, WaiterView } from "../state";
import { userOf } from "../state";
import { counted, gib, hours } from "../words";
import { Age } from "./Age";
import { Glyph } from "./Glyph";

const kUsageEveryMs = 60_000;

/// The names of the lists that are shown in full.
const unfolded = signal<ReadonlySet<string>>(new Set());

/// The first few, and the rest on demand.
function useFold<T>(name: string, all: readonly T[], first: number) {
  const isWhole = unfolded.value.has(name) || all.length <= first + 1;
  const more = isWhole ? null : (
    <button
      type="button"
      class="link more"
      onClick={() => {
        unfolded.value = new Set(unfolded.peek()).add(name);
      }}
    >
      Show all {all.length.toLocaleString("en")}
    </button>
  );
  return { shown: isWhole ? all : all.slice(0, first), more };
}

/// As `berth queue` says it, for whom it is known.
export function wishOf({ waiter }: WaiterView): string {
  if (waiter.request !== null) return waiter.request;
  const what = counted(waiter.count, "GPU");
  return waiter.promise_bytes === null ? what : `${what}, ${gib(waiter.promise_bytes)} GiB each`;
}

function Waiting() {
  const all = fleet.value.waiters;
  const { shown, more } = useFold("waiting", all, 5);
  return (
    <section aria-labelledby="waiting">
      <h2 id="waiting" tabIndex={-1}>
        Waiting {all.length > 0 && <span class="count">{all.length}</span>}
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
  const { waiter, host } = view;
  return (
    <li>
      <span class="line">
        <b>{userOf(waiter)}</b>
        <span class="wish">{wishOf(view)}</span>
        {!isOne.value && <span class="place">{host}</span>}
        <span class="end">
          <Age since={waiter.since_s} />
        </span>
      </span>
      <span class="why">{waiter.reason}</span>
      {(waiter.note || waiter.command) && (
        <span class="what">
          {waiter.note && <q>{waiter.note}</q>}{" "}
          {waiter.command && <code title={waiter.command}>{waiter.command}</code>}
        </span>
      )}
    </li>
  );
}

/// null: no history is kept.
export const usage = signal<Usage | null>(null);

async function readUsage(): Promise<void> {
  try {
    usage.value = await askUsage();
  } catch {
    usage.value = null;
  }
}

function Users() {
  const isLive = connection.value.phase === "live";
  useEffect(() => {
    if (!isLive) return;
    void readUsage();
    const timer = setInterval(() => void readUsage(), kUsageEveryMs);
    return () => clearInterval(timer);
  }, [isLive]);
  const all = fleet.value.users;
  const { shown, more } = useFold("users", all, 10);
  const spent = new Map(usage.value?.rows.map((row) => [row.user ?? "", row]));
  return (
    <section aria-labelledby="users">
      <h2 id="users">Users {all.length > 0 && <span class="count">{all.length}</span>}</h2>
      {all.length === 0 ? (
        <p class="nothing">Nobody has a GPU or waits for one.</p>
      ) : (
        <table class="users">
          <thead>
            <tr>
              <th scope="col">User</th>
              <th scope="col" class="number">
                GPUs
              </th>
              <th scope="col" class="number">
                Idle
              </th>
              <th scope="col" class="number">
                Waits
              </th>
              {usage.value && (
                <th scope="col" class="number" title="GPU-hours leased in the last seven days">
                  h / 7 d
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {shown.map((each) => (
              <UserRow key={each.user} view={each} spent={spent.get(each.user)?.leased_gpu_hours} />
            ))}
          </tbody>
        </table>
      )}
      {more}
    </section>
  );
}

function UserRow({ view, spent }: { view: UserView; spent: number | undefined }) {
  return (
    <tr>
      <th scope="row">
        <button
          type="button"
          class="link"
          aria-haspopup="dialog"
          onClick={() => {
            subject.value = { kind: "user", user: view.user };
          }}
        >
          {view.user}
        </button>
      </th>
      <td class="number">{view.devices || "·"}</td>
      <td class={`number ${view.idle ? "some-idle" : ""}`}>{view.idle || "·"}</td>
      <td class="number">{view.waiters.length || "·"}</td>
      {usage.value && <td class="number">{hours(spent)}</td>}
    </tr>
  );
}

function Outsiders() {
  const all = fleet.value.outsiders;
  const { shown, more } = useFold("outsiders", all, 5);
  if (all.length === 0) return null;
  return (
    <section aria-labelledby="outsiders">
      <h2 id="outsiders">
        Without a lease <span class="count">{all.length}</span>
      </h2>
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

export function Rail() {
  return (
    <aside class="rail" aria-label="People">
      <Waiting />
      <Users />
      <Outsiders />
    </aside>
  );
}
