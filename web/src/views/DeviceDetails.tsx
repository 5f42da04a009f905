import type { ComponentChildren } from "preact";
import type { Lease, Process } from "../api";
import { kStateWords } from "../narrowing";
import { kFacts } from "../readings";
import type { DeviceView, HostView } from "../state";
import { userOf } from "../state";
import { gib, percent, reading, watts } from "../words";
import { Age } from "./Age";
import { Command, shortId } from "./Copy";
import { DeviceHistory } from "./DeviceHistory";
import { Glyph } from "./Glyph";
import { Moment } from "./Moment";

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Facts({ view }: { view: DeviceView }) {
  const { device } = view;
  const { used_bytes, total_bytes } = device.memory;
  return (
    <dl class="facts">
      <Fact name="Load">{percent(device.utilization_percent)}</Fact>
      <Fact name="Memory">
        {gib(used_bytes)} of {gib(total_bytes)} GiB
      </Fact>
      <Fact name="Memory left to lease">{gib(device.verdict?.free_bytes ?? null)} GiB</Fact>
      <Fact name="Power">
        {watts(device.power_mw)} of {watts(device.power_limit_mw)}
      </Fact>
      {kFacts.map(({ key, title, kind }) => (
        <Fact key={key} name={title}>
          {reading(kind, device[key])}
        </Fact>
      ))}
      <Fact name="Health">{view.warnings.join(", ") || "no fault known"}</Fact>
    </dl>
  );
}

/// `children`: what it is said of, where that is not its owner.
export function LeaseFacts({ lease, children }: { lease: Lease; children?: ComponentChildren }) {
  return (
    <>
      <span class="line">
        {children ?? <b>{userOf(lease)}</b>}
        <span>
          {lease.promise_bytes === null
            ? lease.shared
              ? "shared"
              : "whole"
            : `${gib(lease.promise_bytes)} GiB`}
        </span>
        {lease.pid !== null && <span class="place">pid {lease.pid}</span>}
        <span class="end">
          <Age since={lease.since_s} /> <Moment word="until" at={lease.until_s} />
        </span>
      </span>
      {lease.note && <q>{lease.note}</q>}
      {lease.command && <code class="whole">{lease.command}</code>}
      <span class="commands">
        <Command words={`berth release ${shortId(lease.id)}`} />
        <Command words={`berth extend ${shortId(lease.id)} 1h`} />
      </span>
    </>
  );
}

function Leases({ view }: { view: DeviceView }) {
  if (view.leases.length === 0) return null;
  return (
    <section>
      <h3>{view.leases.length === 1 ? "Lease" : "Leases"}</h3>
      {view.state === "idle" && (
        <p class="some-idle">
          Nothing of it computes here
          <Age since={view.device.idle_since_s} before=" for " />.
        </p>
      )}
      <ul class="waiters">
        {view.leases.map((lease) => (
          <li key={lease.id}>
            <LeaseFacts lease={lease} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Processes({ processes }: { processes: readonly Process[] | null }) {
  return (
    <section>
      <h3>Processes</h3>
      {processes === null && <p class="nothing">Not known.</p>}
      {processes?.length === 0 && <p class="nothing">None.</p>}
      {processes !== null && processes.length > 0 && (
        <table class="processes">
          <thead>
            <tr>
              <th scope="col">PID</th>
              <th scope="col">User</th>
              <th scope="col" class="number">
                GiB
              </th>
              <th scope="col" class="number">
                Age
              </th>
              <th scope="col">Command</th>
            </tr>
          </thead>
          <tbody>
            {processes.map((process) => (
              <tr key={process.pid}>
                <th scope="row">{process.pid}</th>
                <td>
                  {userOf(process)}
                  {process.lease === null && process.kind !== "graphics" && (
                    <span class="share is-outsider">outsider</span>
                  )}
                </td>
                <td class="number">{gib(process.used_bytes)}</td>
                <td class="number">
                  <Age since={process.started_at_s} />
                </td>
                <td>
                  <code class="whole">{process.command ?? "–"}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function PassedOver({ view }: { view: DeviceView }) {
  const users = view.device.passed_over ?? [];
  if (users.length === 0) return null;
  return (
    <section>
      <h3>Passed over</h3>
      <ul class="waiters">
        {users.map((each) => (
          <li key={each.uid}>
            <span class="line">
              <b>{userOf(each)}</b>
              <span class="end">
                <Moment word="until" at={each.until_s} />
              </span>
            </span>
            {each.reason}
          </li>
        ))}
      </ul>
    </section>
  );
}

export function DeviceDetails({ view, host }: { view: DeviceView; host: HostView }) {
  const { device, state } = view;
  const word = kStateWords[state];
  const reason = device.state_reason ?? device.verdict?.reason ?? "";
  // "leased, idle" and "leased by ada": not twice.
  const said = word.split(",", 1)[0] ?? word;
  return (
    <>
      <h2 id="details-title">
        GPU {device.label} of {view.host}
      </h2>
      <p class="model">{device.name ?? "model not known"}</p>
      <p class="state">
        <Glyph state={state} /> <b>{word}</b>
        {reason.startsWith(said) ? reason.slice(said.length) : reason && `: ${reason}`}
      </p>
      {host.stale && (
        <p class="host-trouble">
          These readings are old
          <Age since={host.host.snapshot?.taken_at_s ?? null} before=", from " after=" ago" />.
        </p>
      )}
      <Leases view={view} />
      <PassedOver view={view} />
      <Facts view={view} />
      {device.uuid && (
        <DeviceHistory
          host={view.host}
          uuid={device.uuid}
          totalBytes={device.memory.total_bytes}
          powerLimit={device.power_limit_mw === null ? null : device.power_limit_mw / 1000}
        />
      )}
      <Processes processes={device.processes} />
      <p class="uuid">{device.uuid}</p>
    </>
  );
}
