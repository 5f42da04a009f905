// From a document of the API to what is shown of it: pure functions, each called once when a host has news.
import type { Device, Host, LabStanding, Lease, Process, Standing } from "./api";

export type DeviceState =
  | "free"
  | "leased"
  | "idle"
  | "outsider"
  | "hidden"
  | "draining"
  | "kept"
  | "closed"
  | "split"
  | "trouble";

export interface DeviceView {
  readonly host: string;
  /// Unique among all hosts.
  readonly key: string;
  readonly device: Device;
  readonly state: DeviceState;
  readonly leases: readonly Lease[];
  /// Those that compute on it and belong to no lease.
  readonly outsiders: readonly Process[];
  readonly warnings: readonly string[];
}

/// A request that waits, on one host or on several.
export interface WaiterView {
  /// Where it starts the soonest.
  readonly host: string;
  /// How it stands there.
  readonly waiter: Standing;
  /// On which it waits.
  readonly hosts: readonly string[];
  /// In the queue of the lab. 1: no earlier request could start on a host that it names. null: it is not in this line, or
  /// the line is not known.
  readonly place: number | null;
}

export interface HostView {
  readonly host: Host;
  readonly devices: readonly DeviceView[];
  readonly counts: ReadonlyMap<DeviceState, number>;
  readonly waiters: readonly WaiterView[];
  /// Its readings are not of now: it is down, or its driver does not answer.
  readonly stale: boolean;
}

const kOfClause: Record<string, DeviceState> = {
  healthy: "trouble",
  not_leased: "leased",
  not_draining: "draining",
  not_awaited: "kept",
  no_outsider: "outsider",
  no_hidden_holder: "hidden",
  not_passed_over: "trouble",
};

function stateOf(device: Device): DeviceState {
  if (device.state !== "ok" || device.verdict?.clause === "healthy") return "trouble";
  if (device.leases.length > 0) return device.idle === true ? "idle" : "leased";
  if (device.verdict === null) return "split";
  if (device.verdict.free) return "free";
  // Nobody computes there who could be named: the driver does not tell its processes.
  if (device.verdict.clause === "no_outsider" && device.processes === null) return "closed";
  return kOfClause[device.verdict.clause ?? ""] ?? "closed";
}

function warningsOf({ health, passed_over }: Device): string[] {
  const warnings = [];
  if (passed_over && passed_over.length > 0)
    warnings.push(`passed over for ${passed_over.map(userOf).join(", ")}`);
  const action = health.recovery_action;
  if (action !== null && action !== undefined && action !== "none")
    warnings.push(`recovery: ${action.replaceAll("_", " ")}`);
  if (health.row_remap_failed) warnings.push("row remap failed");
  if (health.row_remap_pending) warnings.push("row remap pending");
  if (health.retired_pages_pending) warnings.push("retired pages pending");
  if (health.ecc_uncorrected) warnings.push(`${health.ecc_uncorrected} ECC errors`);
  return warnings;
}

export function deviceKey(host: string, uuid: string | null, label: string): string {
  return `${host}\n${uuid ?? label}`;
}

function viewDevice(host: string, device: Device, leases: ReadonlyMap<string, Lease>): DeviceView {
  const state = stateOf(device);
  const foreign = device.processes?.filter((each) => each.lease === null && each.kind !== "graphics") ?? [];
  return {
    host,
    key: deviceKey(host, device.uuid, device.label),
    device,
    state,
    leases: device.leases.flatMap((id) => leases.get(id) ?? []),
    // On a free device they are some that the site does not count.
    outsiders: state === "free" ? [] : foreign,
    warnings: warningsOf(device),
  };
}

export function viewHost(host: Host): HostView {
  const leases = new Map(host.snapshot?.leases.map((lease) => [lease.id, lease]));
  const devices = host.snapshot?.devices.map((device) => viewDevice(host.name, device, leases)) ?? [];
  const counts = new Map<DeviceState, number>();
  for (const { state } of devices) counts.set(state, (counts.get(state) ?? 0) + 1);
  return {
    host,
    devices,
    counts,
    waiters:
      host.queue?.waiters.map((waiter) => ({ host: host.name, waiter, hosts: [host.name], place: null })) ??
      [],
    stale: host.state === "down" || host.snapshot?.stale_reason != null,
  };
}

export function userOf(owner: { user: string | null; uid: number | null }): string {
  return owner.user ?? (owner.uid === null ? "unknown" : `uid ${owner.uid}`);
}

const texts = new WeakMap<DeviceView, string>();

/// All words by which somebody would look for a device, in lower case.
export function textOfDevice(view: DeviceView): string {
  const known = texts.get(view);
  if (known !== undefined) return known;
  const { device, host, leases } = view;
  const parts = [host, `gpu ${device.label}`, device.name, device.uuid, view.state];
  for (const lease of leases) parts.push(userOf(lease), lease.note, lease.command, lease.id);
  for (const process of device.processes ?? [])
    parts.push(userOf(process), process.command, `${process.pid}`);
  // A word goes over no border between them.
  const text = parts.join("\n").toLowerCase();
  texts.set(view, text);
  return text;
}

export function textOfWaiter({ waiter, hosts }: WaiterView): string {
  const { note, command, request, id } = waiter;
  return [...hosts, userOf(waiter), note, command, request, id].join("\n").toLowerCase();
}

function startsSooner(one: Standing, other: Standing): boolean {
  const at = one.starts_at_s ?? Number.POSITIVE_INFINITY;
  const otherAt = other.starts_at_s ?? Number.POSITIVE_INFINITY;
  return at === otherAt ? one.position < other.position : at < otherAt;
}

/// A hub tells so many of the queue of the lab. Whoever came through it and is not among them is behind them.
const kMostOfLine = 500;

interface Ranked {
  readonly view: WaiterView;
  /// Of itself in the queue of the lab, or of the last one before it in the queue of its host; 0: of none.
  readonly rank: number;
}

/// Each request once: by the key, with the host and in the order that merged_queue of src/run/machines/host.h has for it.
/// If the queue of the lab is not known, who waits longest is first.
function waitersOf(views: readonly HostView[], line: readonly LabStanding[]): WaiterView[] {
  const spots = new Map<string, { rank: number; place: number }>();
  for (const { asked_at, place } of line)
    if (!spots.has(asked_at)) spots.set(asked_at, { rank: spots.size + 1, place });
  const isCut = line.length >= kMostOfLine;
  const waiters = new Map<string, Ranked>();
  for (const { waiters: onHost } of views) {
    let rank = 0;
    for (const view of onHost) {
      const { asked_at, user, id } = view.waiter;
      const spot = asked_at ? spots.get(asked_at) : undefined;
      rank = spot?.rank ?? (asked_at && isCut ? line.length + 1 : rank);
      const key = asked_at ? [asked_at, user].join("\n") : [view.host, id].join("\n\n");
      const known = waiters.get(key);
      const isNearest = !known || startsSooner(view.waiter, known.view.waiter);
      const nearest = isNearest ? { view: { ...view, place: spot?.place ?? null }, rank } : known;
      const hosts = [...(known?.view.hosts ?? []), view.host];
      waiters.set(key, { view: { ...nearest.view, hosts }, rank: nearest.rank });
    }
  }
  const isOutside = (each: Ranked) => Number(each.view.place === null);
  const since = (each: Ranked) => each.view.waiter.since_s ?? 0;
  const order = line.length > 0 ? isOutside : since;
  return [...waiters.values()]
    .sort((a, b) => a.rank - b.rank || order(a) - order(b))
    .map((each) => each.view);
}

/// null: not known.
export function memoryShare({ device }: DeviceView): number | null {
  const { used_bytes, total_bytes } = device.memory;
  return used_bytes === null || !total_bytes ? null : used_bytes / total_bytes;
}

export function useShare({ device }: DeviceView): number | null {
  return device.utilization_percent === null ? null : device.utilization_percent / 100;
}

/// One lease with where it is, for lists over all hosts.
export interface LeaseView {
  readonly host: string;
  readonly lease: Lease;
  readonly devices: readonly DeviceView[];
}

export interface OutsiderView {
  readonly on: DeviceView;
  readonly process: Process;
}

export interface UserView {
  readonly user: string;
  readonly leases: readonly LeaseView[];
  readonly waiters: readonly WaiterView[];
  readonly devices: number;
  readonly idle: number;
}

/// Devices of one model, over all hosts.
export interface ModelView {
  readonly name: string;
  readonly memory_total_bytes: number | null;
  readonly devices: number;
  readonly free: number;
  readonly hosts_with_free: number;
}

/// What is said of all hosts together. All of it is counted at once, so that no two places of the page disagree.
export interface Fleet {
  readonly counts: ReadonlyMap<DeviceState, number>;
  /// Without split GPUs: their instances stand for them.
  readonly devices: number;
  readonly free: number;
  readonly models: readonly ModelView[];
  readonly down: number;
  /// Hosts whose readings are not of now, those that are down among them.
  readonly stale: number;
  readonly users: readonly UserView[];
  readonly waiters: readonly WaiterView[];
  readonly outsiders: readonly OutsiderView[];
}

interface Tally {
  leases: LeaseView[];
  waiters: WaiterView[];
  devices: Set<string>;
  idle: Set<string>;
}

function leasesOf(view: HostView): LeaseView[] {
  const holds = new Map<string, DeviceView[]>();
  for (const device of view.devices)
    for (const lease of device.leases) {
      const held = holds.get(lease.id);
      if (held) held.push(device);
      else holds.set(lease.id, [device]);
    }
  const granted = view.host.snapshot?.leases.filter((lease) => lease.phase === "granted") ?? [];
  return granted.map((lease) => ({ host: view.host.name, lease, devices: holds.get(lease.id) ?? [] }));
}

function tallyUsers(views: readonly HostView[], waiters: readonly WaiterView[]): UserView[] {
  const users = new Map<string, Tally>();
  const tally = (user: string): Tally => {
    let found = users.get(user);
    if (!found) {
      found = { leases: [], waiters: [], devices: new Set(), idle: new Set() };
      users.set(user, found);
    }
    return found;
  };
  for (const view of views) {
    for (const held of leasesOf(view)) {
      const of = tally(userOf(held.lease));
      of.leases.push(held);
      for (const { key, state } of held.devices) {
        of.devices.add(key);
        if (state === "idle") of.idle.add(key);
      }
    }
  }
  for (const waiting of waiters) tally(userOf(waiting.waiter)).waiters.push(waiting);
  return [...users]
    .map(([user, { leases, waiters, devices, idle }]) => ({
      user,
      leases,
      waiters,
      devices: devices.size,
      idle: idle.size,
    }))
    .sort(
      (a, b) => b.devices - a.devices || b.waiters.length - a.waiters.length || a.user.localeCompare(b.user),
    );
}

/// Cards of one name come with different memory, which drivers tell some MiB apart.
function modelKey({ device }: DeviceView): string {
  return `${device.name ?? ""} ${Math.round((device.memory.total_bytes ?? 0) / 1024 ** 3)}`;
}

function tallyModels(views: readonly HostView[]): ModelView[] {
  const models = new Map<string, ModelView>();
  for (const view of views) {
    const withFree = new Set<string>();
    for (const each of view.devices) {
      if (each.state === "split") continue;
      const key = modelKey(each);
      const isFree = each.state === "free" && view.host.state === "up";
      const isFirst = isFree && !withFree.has(key);
      if (isFree) withFree.add(key);
      const known = models.get(key);
      models.set(key, {
        name: known?.name ?? each.device.name ?? "",
        memory_total_bytes: known?.memory_total_bytes ?? each.device.memory.total_bytes,
        devices: (known?.devices ?? 0) + 1,
        free: (known?.free ?? 0) + (isFree ? 1 : 0),
        hosts_with_free: (known?.hosts_with_free ?? 0) + (isFirst ? 1 : 0),
      });
    }
  }
  return [...models.values()];
}

/// Of a machine that is down nothing is free, idle or without a lease now; its leases and its queue live, for all one
/// knows, and are counted as the server counts them.
export function viewFleet(all: readonly HostView[], line: readonly LabStanding[]): Fleet {
  const views = all.filter((view) => view.host.state === "up");
  const counts = new Map<DeviceState, number>();
  for (const view of views)
    for (const [state, count] of view.counts) counts.set(state, (counts.get(state) ?? 0) + count);
  const models = tallyModels(all);
  const waiters = waitersOf(all, line);
  return {
    counts,
    devices: models.reduce((sum, model) => sum + model.devices, 0),
    free: counts.get("free") ?? 0,
    models,
    stale: all.filter((view) => view.stale).length,
    down: all.length - views.length,
    users: tallyUsers(all, waiters),
    waiters,
    outsiders: views.flatMap((view) =>
      view.devices.flatMap((on) => on.outsiders.map((process) => ({ on, process }))),
    ),
  };
}
