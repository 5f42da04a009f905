import { isMe } from "../me";
import type { DeviceView } from "../state";
import { userOf } from "../state";
import { gib } from "../words";
import { Age } from "./Age";
import { Moment } from "./Moment";

function What({ command, note }: { command: string | null; note: string | null }) {
  if (!command && !note) return null;
  return (
    <span class="what">
      {note && <q>{note}</q>} {command && <code title={command}>{command}</code>}
    </span>
  );
}

/// Who has a device, since when and with what; else why nobody may have it.
export function Holder({ view }: { view: DeviceView }) {
  const { device, leases, outsiders, state } = view;
  const reason = device.state_reason ?? (leases.length === 0 ? device.verdict?.reason : null);
  return (
    <>
      {leases.map((lease) => (
        <span class="holder" key={lease.id}>
          <b>{userOf(lease)}</b>
          {isMe(lease) && <span class="share mine">you</span>}
          {lease.promise_bytes !== null && <span class="share">{gib(lease.promise_bytes)} GiB</span>}
          <Age since={lease.since_s} />
          {leases.length > 1 && <Moment word="until" at={lease.until_s} />}
          {lease.yield_s != null && <span class="share">yields</span>}
          <What command={lease.command} note={lease.note} />
        </span>
      ))}
      {outsiders.map((process) => (
        <span class="holder is-outsider" key={process.pid}>
          <b>{userOf(process)}</b>
          <span class="share">outsider</span>
          <Age since={process.started_at_s} />
          <What command={process.command} note={null} />
        </span>
      ))}
      {state !== "free" && leases.length === 0 && outsiders.length === 0 && reason && (
        <span class="why">{reason}</span>
      )}
    </>
  );
}
