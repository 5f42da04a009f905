import { signal, useComputed } from "@preact/signals";
import { useRef } from "preact/hooks";
import { hostView, isOne, order } from "../fleet";
import { isHostShown, isNarrowed } from "../narrowing";
import type { HostView } from "../state";
import { counted } from "../words";
import { Age } from "./Age";
import { DeviceTable } from "./DeviceTable";
import { Narrowed } from "./FilterField";
import { useNear } from "./near";
import { Tiles } from "./Tiles";

// More are shown as strips first.
const kMostOpenHosts = 4;
const kDrawnAtOnce = 14;

/// The hosts that were opened or closed by hand.
const opened = signal<ReadonlyMap<string, boolean>>(new Map());

function Trouble({ view }: { view: HostView }) {
  const { host } = view;
  if (host.state === "down")
    return (
      <p class="host-trouble">
        {host.error}
        {host.seen_s === null ? (
          "; never seen"
        ) : (
          <Age since={host.seen_s} before="; last word " after=" ago" />
        )}
      </p>
    );
  const stale = host.snapshot?.stale_reason;
  if (!stale) return null;
  return (
    <p class="host-trouble">
      <b>old readings:</b> {stale}
      <Age since={host.snapshot?.taken_at_s ?? null} before=", from " after=" ago" />
    </p>
  );
}

function Counts({ view }: { view: HostView }) {
  if (view.host.state === "down") return <span class="host-counts is-down">down</span>;
  const free = view.counts.get("free") ?? 0;
  const idle = view.counts.get("idle") ?? 0;
  const waiting = view.waiters.length;
  // Of a split GPU its instances count.
  const all = view.devices.length - (view.counts.get("split") ?? 0);
  return (
    <span class="host-counts">
      <span class={free > 0 && !view.stale ? "some-free" : ""}>
        {free} of {all} free
      </span>
      {idle > 0 && <span> · {idle} leased, idle</span>}
      {waiting > 0 && <span> · {waiting} waiting</span>}
    </span>
  );
}

function Notes({ view }: { view: HostView }) {
  const { snapshot, url } = view.host;
  if (!snapshot) return null;
  const odd = snapshot.odd_tickets.map(({ name, reason }) => `ticket ${name}: ${reason}`);
  const notes = [...snapshot.notes, ...odd];
  return (
    <>
      {notes.length > 0 && (
        <ul class="notes">
          {notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
      <p class="versions">
        {counted(view.devices.length, "GPU")}
        {snapshot.driver_version && ` · driver ${snapshot.driver_version}`}
        {snapshot.cuda_version && ` · CUDA ${snapshot.cuda_version}`}
        {url?.startsWith("http") && (
          <>
            {" · "}
            <a href={url}>its own page</a>
          </>
        )}
      </p>
    </>
  );
}

function Machine({ name, place }: { name: string; place: number }) {
  const ref = useRef<HTMLElement>(null);
  const isNear = useNear(ref, place < kDrawnAtOnce);
  const view = hostView(name).value;
  const isOpen = opened.value.get(name) ?? order.value.length <= kMostOpenHosts;
  const toggle = () => {
    opened.value = new Map(opened.peek()).set(name, !isOpen);
  };
  return (
    <section
      ref={ref}
      class={`machine ${view.stale ? "is-stale" : ""} ${isOpen ? "is-open" : ""}`}
      aria-label={name}
      style={{ "--devices": view.devices.length }}
    >
      <div class="machine-head">
        <h3>
          <button type="button" class="plain opener" aria-expanded={isOpen} onClick={toggle}>
            <svg viewBox="0 0 10 10" aria-hidden="true">
              <path d="M3 1l4 4-4 4" fill="none" stroke="currentColor" stroke-width="1.6" />
            </svg>
            {name}
          </button>
        </h3>
        <Counts view={view} />
      </div>
      <Trouble view={view} />
      <div class={isOpen ? "machine-table" : "machine-strip"}>
        {isNear && view.devices.length > 0 && (isOpen ? <DeviceTable view={view} /> : <Tiles view={view} />)}
      </div>
      {isOpen && <Notes view={view} />}
    </section>
  );
}

export function Machines() {
  const shown = useComputed(() =>
    isNarrowed.value ? order.value.filter((name) => isHostShown(hostView(name).value)) : order.value,
  );
  return (
    <section class="machines" aria-labelledby="machines">
      <div class="section-head">
        <h2 id="machines">{isOne.value ? "This machine" : "Machines"}</h2>
        <Narrowed />
      </div>
      {shown.value.map((name, place) => (
        <Machine key={name} name={name} place={place} />
      ))}
      {shown.value.length === 0 && (
        <p class="nothing">{isNarrowed.value ? "No GPU matches this filter." : "No machine is known."}</p>
      )}
    </section>
  );
}
