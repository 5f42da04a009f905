import { signal, useComputed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { nextEnd } from "../answers";
import type { Timeline, TimelineBar, TimelineRow } from "../api";
import { serverNow, slowNow } from "../clock";
import { openDevice } from "../details";
import { fleet, hostView, isOne, order } from "../fleet";
import { isHostShown, isNarrowed, isShown, isWaiterShown } from "../narrowing";
import { type DeviceView, deviceKey, type HostView } from "../state";
import { useTimeline } from "../timelines";
import { age, counted, gib, moment } from "../words";
import { useFold } from "./fold";

const kMostRows = 16;
// More are bands first.
const kMostOpenHosts = 2;

/// Of a user, the same on each page.
function hueOf(user: string): number {
  let hash = 7;
  for (const letter of user) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) >>> 0;
  return (hash * 137) % 360;
}

/// Where the moments of a timeline are, in percent of its width.
class Scale {
  constructor(private readonly line: Timeline) {}

  at(time: number): number {
    const { from_s, to_s } = this.line;
    return Math.min(100, Math.max(0, (100 * (time - from_s)) / (to_s - from_s)));
  }
}

const kMib = 2 ** 20;
const kMillijoulesInWh = 3.6e6;

const kBarWords: Record<TimelineBar["kind"], string> = {
  lease: "",
  reservation: "reserved for ",
  outsider: "no lease: ",
  unusable: "not usable",
};

function expectedOf(bar: TimelineBar, now: number): string {
  return bar.expected_s == null ? "" : ` until about ${moment(bar.expected_s, now)}`;
}

/// "ada from 20:10 until 21:43: train.py".
function wordsOf(bar: TimelineBar, now: number): string {
  const who = kBarWords[bar.kind] + (bar.user || (bar.kind === "unusable" ? "" : "somebody"));
  const from = bar.from_s < now || bar.kind === "reservation" ? ` from ${moment(bar.from_s, now)}` : "";
  const until = bar.end === "open" ? expectedOf(bar, now) : ` until ${moment(bar.until_s, now)}`;
  return `${who}${bar.kind === "unusable" ? "" : from}${until}${figuresOf(bar)}${bar.what ? `: ${bar.what}` : ""}`;
}

/// What a lease that is over used: ", at most 31.0 GiB, use 87 %, 214 Wh, clean".
function figuresOf({ peak_mib, use_percent, energy_mj, clean }: TimelineBar): string {
  const memory = peak_mib == null ? "" : `, at most ${gib(peak_mib * kMib)} GiB in use`;
  const use = use_percent == null ? "" : `, mean use ${use_percent} %`;
  const hours = (energy_mj ?? 0) / kMillijoulesInWh;
  const energy = energy_mj == null ? "" : `, ${hours.toFixed(hours < 10 ? 1 : 0)} Wh`;
  return memory + use + energy + (clean == null ? "" : clean ? ", clean" : ", not clean");
}

/// What a person should know first.
function gistOf(row: TimelineRow, now: number): string {
  if (row.free) return "free";
  const lives = row.bars.filter((bar) => bar.end !== "over");
  const first = lives.find((bar) => bar.kind === "lease") ?? lives[0];
  if (!first) return "";
  if (first.kind === "unusable") return first.what || "not usable";
  if (first.kind === "outsider") return `${first.user || "somebody"}, outsider`;
  if (first.kind === "reservation") return `kept for ${first.user || "somebody"}`;
  const until =
    first.end === "limit" ? ` until ${moment(first.until_s, now)}` : expectedOf(first, now) || ", no limit";
  const since = row.idle_since_s === null ? "" : ` for ${age(now - row.idle_since_s)}`;
  const next = lives.find((bar) => bar.kind === "reservation");
  return `${first.user}${until}${row.idle ? `; idle${since}` : ""}${next ? `; then ${next.user}` : ""}`;
}

/// How busy the device was while the bar lasted, as an area in it.
function Load({ bar, row, line }: { bar: TimelineBar; row: TimelineRow; line: Timeline }) {
  if (line.step_s === 0 || row.loads.length === 0 || bar.from_s >= line.now_s) return null;
  const from = Math.max(bar.from_s, line.from_s);
  const until = Math.min(bar.until_s, line.now_s);
  const length = until - from;
  if (length <= 0) return null;
  const points: string[] = [];
  let last = 0;
  for (let i = Math.floor((from - line.from_s) / line.step_s); i < row.loads.length; ++i) {
    const begin = line.from_s + i * line.step_s;
    if (begin >= until) break;
    last = row.loads[i] ?? last;
    const x = (time: number) => Math.min(1000, Math.max(0, (1000 * (time - from)) / length)).toFixed(0);
    const y = (100 - last).toFixed(0);
    points.push(`${x(begin)},${y}`, `${x(begin + line.step_s)},${y}`);
  }
  const whole = bar.until_s - from;
  return (
    <svg
      class="load"
      viewBox="0 0 1000 100"
      preserveAspectRatio="none"
      style={{ width: `${(100 * length) / whole}%` }}
      aria-hidden="true"
    >
      <polygon points={`0,100 ${points.join(" ")} 1000,100`} />
    </svg>
  );
}

function Bar({
  bar,
  row,
  line,
  scale,
}: {
  bar: TimelineBar;
  row: TimelineRow;
  line: Timeline;
  scale: Scale;
}) {
  const left = scale.at(bar.from_s);
  const width = Math.max(0.3, scale.at(bar.until_s) - left);
  const style = {
    left: `${left}%`,
    width: `${width}%`,
    "--hue": `${hueOf(bar.user)}`,
    // What is expected ends where it begins to fade.
    ...(bar.expected_s != null && { "--sure": `${(100 * (scale.at(bar.expected_s) - left)) / width}%` }),
  };
  const isIdle = bar.kind === "lease" && bar.end !== "over" && row.idle;
  // Its limit is not in the picture, so no edge may stand for it.
  const isBeyond = bar.until_s > line.to_s;
  return (
    <span
      class={`bar is-${bar.kind} is-${bar.end} ${isIdle ? "is-idle" : ""} ${isBeyond ? "is-beyond" : ""}`}
      style={style}
      title={wordsOf(bar, line.now_s)}
    >
      <Load bar={{ ...bar, until_s: Math.min(bar.until_s, line.to_s) }} row={row} line={line} />
      <span class="who">{bar.user}</span>
    </span>
  );
}

function Row({
  row,
  line,
  scale,
  device,
}: {
  row: TimelineRow;
  line: Timeline;
  scale: Scale;
  device: DeviceView | undefined;
}) {
  const gist = gistOf(row, line.now_s);
  const all = row.bars.map((bar) => wordsOf(bar, line.now_s)).join("; ");
  return (
    <li class={`tl-row ${row.free ? "is-free" : ""} ${row.idle ? "is-idle" : ""}`}>
      <button
        type="button"
        class="plain tl-name"
        aria-haspopup="dialog"
        aria-label={`GPU ${row.gpu}: ${gist}${all ? `. ${all}` : ""}`}
        disabled={device === undefined}
        onClick={() => device && openDevice(device.host, device.key)}
      >
        {row.gpu}
      </button>
      <span class="tl-track" aria-hidden="true">
        {row.bars.map((bar, i) => (
          <Bar key={`${bar.id} ${i}`} bar={bar} row={row} line={line} scale={scale} />
        ))}
      </span>
      <span class="tl-gist" aria-hidden="true" title={gist}>
        {gist}
      </span>
    </li>
  );
}

/// Whole hours, every one, two, three … as there is room.
function ticksOf(line: Timeline): number[] {
  const span = line.to_s - line.from_s;
  const step = [1, 2, 3, 6, 12, 24].find((hours) => span / (3600 * hours) <= 7) ?? 24;
  const zone = -60 * new Date(line.now_s * 1000).getTimezoneOffset();
  const first = Math.ceil((line.from_s + zone) / (3600 * step)) * 3600 * step - zone;
  const ticks: number[] = [];
  for (let tick = first; tick < line.to_s; tick += 3600 * step) ticks.push(tick);
  return ticks;
}

function Hours({ line, scale }: { line: Timeline; scale: Scale }) {
  return (
    <div class="tl-hours" aria-hidden="true">
      <span class="tl-scale">
        {ticksOf(line)
          .filter((tick) => Math.abs(scale.at(tick) - scale.at(line.now_s)) > 5)
          .map((tick) => (
            <span key={tick} class="tick" style={{ left: `${scale.at(tick)}%` }}>
              {moment(tick, tick)}
            </span>
          ))}
        <span class="tick now" style={{ left: `${scale.at(line.now_s)}%` }}>
          now
        </span>
      </span>
    </div>
  );
}

function Queue({ line, scale }: { line: Timeline; scale: Scale }) {
  // A filter knows more of a waiter than a timeline tells, so it goes by the queue of the page.
  const waiters = isNarrowed.value
    ? new Set(fleet.value.waiters.filter(isWaiterShown).map(({ waiter }) => waiter.id))
    : null;
  const queue = waiters === null ? line.queue : line.queue.filter(({ id }) => waiters.has(id));
  const { shown, more } = useFold("timeline queue", queue, 4);
  if (queue.length === 0) return null;
  return (
    <>
      <ol class="tl-queue" aria-label="From about when the requests that wait start">
        {shown.map((waiter) => {
          const left = waiter.starts_at_s === null ? null : scale.at(waiter.starts_at_s);
          const when =
            waiter.starts_at_s === null ? "no time known" : `about ${moment(waiter.starts_at_s, line.now_s)}`;
          const bar = left !== null && left < 100;
          return (
            <li key={waiter.id} class="tl-row">
              <span class="tl-name">{line.queue.indexOf(waiter) + 1}.</span>
              <span class="tl-track" aria-hidden="true">
                {bar && (
                  <span
                    class={`bar is-reservation is-${waiter.until_s === null ? "open" : "limit"} ${
                      (waiter.until_s ?? 0) > line.to_s ? "is-beyond" : ""
                    }`}
                    style={{
                      left: `${left}%`,
                      width: `${Math.max(0.3, scale.at(waiter.until_s ?? line.to_s) - left)}%`,
                      "--hue": `${hueOf(waiter.user)}`,
                    }}
                  />
                )}
              </span>
              <span class="tl-gist">
                {waiter.user}, {counted(waiter.count, "GPU")}, {when}
              </span>
            </li>
          );
        })}
      </ol>
      {more}
    </>
  );
}

function Drawn({ view, line }: { view: HostView; line: Timeline }) {
  const scale = new Scale(line);
  const devices = new Map(view.devices.map((device) => [device.key, device]));
  const keyOf = (row: TimelineRow) => deviceKey(view.host.name, row.uuid || null, row.gpu);
  const rows = line.rows.filter((row) => {
    const device = devices.get(keyOf(row));
    return device === undefined || isShown(device);
  });
  const { shown, more } = useFold(`timeline ${view.host.name}`, rows, kMostRows);
  return (
    <div class="tl" style={{ "--now": `${scale.at(line.now_s) / 100}` }}>
      <Hours line={line} scale={scale} />
      <ul class="tl-rows" aria-label={`Hours of the GPUs of ${view.host.name}`}>
        {shown.map((row) => (
          <Row
            key={row.uuid || row.gpu}
            row={row}
            line={line}
            scale={scale}
            device={devices.get(keyOf(row))}
          />
        ))}
      </ul>
      {more}
      <Queue line={line} scale={scale} />
      {line.step_s === 0 && <p class="nothing">No history is kept here, so the past is not drawn.</p>}
    </div>
  );
}

function Picture({ name }: { name: string }) {
  const line = useTimeline(name);
  const view = hostView(name).value;
  // Readings come each second, and the hours show none of them: only a filter is about what is now.
  const drawn = useMemo(
    () => line && <Drawn view={view} line={line} />,
    [line, isNarrowed.value ? view : name],
  );
  if (line === undefined)
    return (
      <div class="tl" style={{ "--rows": Math.min(kMostRows, view.devices.length) }}>
        <p class="nothing">{view.host.state === "up" ? "Asking …" : "It does not answer."}</p>
      </div>
    );
  if (line === null) return <p class="nothing">The Berth of {name} is too old to tell its hours.</p>;
  return drawn;
}

function wordOf(view: HostView, free: number): string {
  if (view.host.state === "down") return "down";
  if (free > 0) return `${free} free`;
  const next = nextEnd([view]);
  return next === null ? "none free" : `next about ${moment(next.at, serverNow())}`;
}

const opened = signal<ReadonlySet<string>>(new Set());

function Band({ name }: { name: string }) {
  const view = hostView(name).value;
  const isOpen = opened.value.has(name);
  const free = view.counts.get("free") ?? 0;
  return (
    <li class={`tl-band ${isOpen ? "is-open" : ""}`}>
      <button
        type="button"
        class="plain opener"
        aria-expanded={isOpen}
        onClick={() => {
          const all = new Set(opened.peek());
          if (!all.delete(name)) all.add(name);
          opened.value = all;
        }}
      >
        <svg viewBox="0 0 10 10" aria-hidden="true">
          <path d="M3 1l4 4-4 4" fill="none" stroke="currentColor" stroke-width="1.6" />
        </svg>
        {name}
        <span class={free > 0 && !view.stale ? "some-free" : "place"}>{wordOf(view, free)}</span>
      </button>
      {isOpen && <Picture name={name} />}
    </li>
  );
}

const kLegend = [
  ["is-lease is-over", "was leased; the filled part is its load"],
  ["is-lease is-limit", "leased until its limit"],
  ["is-lease is-open", "no limit known"],
  ["is-reservation is-limit", "reserved"],
  ["is-outsider is-open", "outsider"],
  ["is-unusable is-open", "not usable"],
] as const;

function Legend() {
  return (
    <ul class="tl-legend" aria-label="What the shapes of the hours mean">
      {kLegend.map(([kind, words]) => (
        <li key={kind}>
          <span class={`bar ${kind}`} aria-hidden="true" /> {words}
        </li>
      ))}
    </ul>
  );
}

/// Who had which GPU, who has it, and who will have it about when.
export function TimelineSection() {
  const names = useComputed(() => {
    void fleet.value;
    return isNarrowed.value ? order.value.filter((name) => isHostShown(hostView(name).value)) : order.value;
  });
  void slowNow.value;
  const { shown, more } = useFold("bands", names.value, 24);
  const isFew = order.value.length <= kMostOpenHosts;
  if (order.value.length === 0) return null;
  return (
    <section class="timeline" aria-labelledby="timeline">
      <h2 id="timeline">Hours</h2>
      {isFew ? (
        names.value.map((name) => (
          <div key={name}>
            {!isOne.value && <h3>{name}</h3>}
            <Picture name={name} />
          </div>
        ))
      ) : (
        <ul class="tl-bands">
          {shown.map((name) => (
            <Band key={name} name={name} />
          ))}
        </ul>
      )}
      {!isFew && more}
      {names.value.length > 0 && <Legend />}
    </section>
  );
}
