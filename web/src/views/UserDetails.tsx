import { subject } from "../details";
import { setQuick } from "../narrowing";
import type { UserView } from "../state";
import { usage } from "../usage";
import { counted, hours } from "../words";
import { Age } from "./Age";
import { LeaseFacts } from "./DeviceDetails";
import { placeOf, reasonOf, wishOf } from "./Waiting";

function Spent({ user }: { user: string }) {
  if (usage.value === null)
    return <p class="nothing">No history is kept here, so the GPU-hours are not known.</p>;
  const row = usage.value.rows.find((each) => each.user === user);
  return (
    <p>
      In the last seven days: <b>{hours(row?.leased_gpu_hours ?? 0)}</b> GPU-hours leased
      {row?.used_gpu_hours != null && (
        <>
          , <b>{hours(row.used_gpu_hours)}</b> of them used
        </>
      )}
      .
      {!usage.value.complete &&
        ` Not all is known${usage.value.missing.length ? `: ${usage.value.missing.join(", ")} did not answer` : ""}.`}
    </p>
  );
}

export function UserDetails({ user, view }: { user: string; view: UserView | undefined }) {
  return (
    <>
      <h2 id="details-title">{user}</h2>
      <p>
        {counted(view?.devices ?? 0, "GPU")} in {counted(view?.leases.length ?? 0, "lease")}
        {view !== undefined && view.idle > 0 && <span class="some-idle">, {view.idle} of them idle</span>}
        {view !== undefined && view.waiters.length > 0 && `, ${view.waiters.length} waiting`}
      </p>
      <Spent user={user} />
      {view !== undefined && view.devices > 0 && (
        <button
          type="button"
          onClick={() => {
            setQuick({ user });
            subject.value = null;
          }}
        >
          Show only these GPUs
        </button>
      )}
      {view !== undefined && view.leases.length > 0 && (
        <section>
          <h3>Leases</h3>
          <ul class="waiters">
            {view.leases.map(({ host, lease, devices }) => (
              <li key={`${host} ${lease.id}`}>
                <LeaseFacts lease={lease}>
                  <b>{host}</b>
                  <span>GPU {devices.map((each) => each.device.label).join(", ") || "–"}</span>
                  {devices.some((each) => each.state === "idle") && <span class="some-idle">idle</span>}
                </LeaseFacts>
              </li>
            ))}
          </ul>
        </section>
      )}
      {view !== undefined && view.waiters.length > 0 && (
        <section>
          <h3>Waiting</h3>
          <ul class="waiters">
            {view.waiters.map((each) => (
              <li key={`${each.host} ${each.waiter.id}`}>
                <span class="line">
                  <b title={each.hosts.join(", ")}>{placeOf(each)}</b>
                  <span class="wish">{wishOf(each)}</span>
                  <span class="end">
                    <Age since={each.waiter.since_s} />
                  </span>
                </span>
                <span class="why">{reasonOf(each)}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}
