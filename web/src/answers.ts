// The first questions, each answered in a sentence; `berth timeline` has the same (src/show/timeline/picture.cpp).
import { serverNow } from "./clock";
import { type DeviceView, type Fleet, type HostView, userOf, type WaiterView } from "./state";
import { timelineOf } from "./timelines";
import { age, counted, moment } from "./words";

const kMostNamed = 3;
const kMostLabels = 8;

export interface NextEnd {
  readonly device: DeviceView;
  readonly at: number;
  /// No time limit says so: earlier runs do.
  readonly expected: boolean;
}

/// When the last lease on a device ends; null: one of them does not say when.
export function endOfLeases({ leases }: DeviceView): number | null {
  const ends = leases.map((lease) => lease.until_s ?? null);
  return ends.length === 0 || ends.includes(null) ? null : Math.max(...ends.map(Number));
}

/// The device whose leases end first, as far as they say when, or a timeline expects it.
export function nextEnd(views: readonly HostView[]): NextEnd | null {
  let next: NextEnd | null = null;
  for (const { host, devices } of views) {
    if (host.state !== "up") continue;
    for (const device of devices) {
      const at = endOfLeases(device);
      if (at !== null && (next === null || at < next.at)) next = { device, at, expected: false };
    }
    const told = timelineOf(host.name)?.next;
    const device = told?.expected ? devices.find((each) => each.device.uuid === told.uuid) : undefined;
    if (told && device && (next === null || told.at_s < next.at))
      next = { device, at: told.at_s, expected: true };
  }
  return next;
}

function about(at: number | null | undefined): string {
  return at == null ? "at a time that nobody knows yet" : `about ${moment(at, serverNow())}`;
}

function firstOf(all: readonly string[], most = kMostNamed): string {
  const more = all.length > most ? `, and ${all.length - most} more` : "";
  return all.slice(0, most).join(", ") + more;
}

function placed({ host, device }: DeviceView, isOne: boolean): string {
  return `${isOne ? "" : `${host} `}GPU ${device.label}`;
}

export function nextSentence(next: NextEnd | null, fleet: Fleet, isOne: boolean): string {
  if (next !== null) {
    const why = next.expected ? ", going by earlier runs" : "";
    const whose = fleet.waiters.length > 0 ? "; requests that wait come first" : "";
    return `Next: ${placed(next.device, isOne)}, ${about(Math.max(next.at, serverNow()))}${why}${whose}.`;
  }
  if ((fleet.counts.get("leased") ?? 0) + (fleet.counts.get("idle") ?? 0) > 0)
    return "Next: not known, since no lease has a time limit.";
  return fleet.devices === 0 ? "There is no GPU here." : "Nobody has one.";
}

export function wasteSentence(views: readonly HostView[], isOne: boolean): string {
  const idle = views
    .filter((view) => view.host.state === "up")
    .flatMap((view) => view.devices.filter((device) => device.state === "idle"));
  if (idle.length === 0) return "No leased GPU is idle.";
  const named = idle.map((view) => {
    const owner = view.leases[0];
    const since = view.device.idle_since_s;
    const how = since === null ? "" : `, ${age(serverNow() - since)}`;
    return `${placed(view, isOne)} (${owner ? userOf(owner) : "somebody"}${how})`;
  });
  return `Leased and idle: ${firstOf(named)}.`;
}

const kPlaces = ["first", "second"];

function placeOf({ waiter, place }: WaiterView): string {
  const position = place ?? waiter.position;
  return `${kPlaces[position - 1] ?? `no. ${position}`}, ${about(waiter.starts_at_s)}`;
}

export function ownSentence(me: string, fleet: Fleet, isOne: boolean): string {
  const view = fleet.users.find((each) => each.user === me);
  // The devices of each end, by machine.
  const ends = new Map<string, { devices: DeviceView[]; end: string }>();
  for (const { lease, devices } of view?.leases ?? [])
    for (const device of devices) {
      const end = lease.until_s == null ? "" : ` until ${moment(lease.until_s, serverNow())}`;
      const key = `${device.host}\n${end}`;
      const same = ends.get(key) ?? { devices: [], end };
      ends.set(key, same);
      same.devices.push(device);
    }
  const have = [...ends.values()].map(({ devices, end }) => {
    const host = isOne ? "" : `${devices[0]?.host} `;
    return `${host}GPU ${firstOf(
      devices.map(({ device }) => device.label),
      kMostLabels,
    )}${end}`;
  });
  const waits = view?.waiters ?? [];
  const has = have.length === 0 ? `${me} has no GPU` : `${me} has ${firstOf(have)}`;
  if (waits.length === 0) return have.length === 0 ? `${has}, and does not wait for one.` : `${has}.`;
  return `${has}; ${me} is ${firstOf(waits.map(placeOf), 2)}.`;
}

export function queueSentence(waiters: readonly WaiterView[]): string {
  if (waiters.length === 0) return "Nobody waits.";
  const named = waiters.map(({ waiter }) => {
    const when = waiter.starts_at_s == null ? "(no time known)" : about(waiter.starts_at_s);
    return `${userOf(waiter)} for ${counted(waiter.count, "GPU")} ${when}`;
  });
  return `${waiters.length.toLocaleString("en")} ${waiters.length === 1 ? "waits" : "wait"}: ${firstOf(named)}.`;
}
