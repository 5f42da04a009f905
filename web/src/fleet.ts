// What is known of all hosts. News is taken in small portions, one a frame, so that a hub's thousand hosts never make
// the page wait.
import { batch, computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { immutableJSONPatch } from "immutable-json-patch";
import type { ChangeEvent, Host, Hosts, LabStanding, SummaryEvent } from "./api";
import { setServerTime } from "./clock";
import { rememberLoads } from "./loads";
import { type Fleet, type HostView, viewFleet, viewHost } from "./state";

const kHostsAFrame = 6;
const kBetweenSumsMs = 1000;

export interface Overview {
  readonly hub: boolean;
  readonly everySeconds: number;
}

const views = new Map<string, Signal<HostView>>();
const pending = new Map<string, Host>();
let lineOfLab: readonly LabStanding[] = [];

/// null until the first answer.
export const overview = signal<Overview | null>(null);
/// The names of the hosts, as the server orders them.
export const order = signal<readonly string[]>([]);
export const fleet = signal<Fleet>(viewFleet([], lineOfLab));
/// Rises when a host has news.
export const changes = signal(0);

/// REQUIRES: the name is in `order`.
export function hostView(name: string): ReadonlySignal<HostView> {
  const found = views.get(name);
  if (!found) throw new Error(`no host ${name}`);
  return found;
}

export function isKnown(name: string): boolean {
  return views.has(name);
}

function put(host: Host): void {
  const view = viewHost(host);
  rememberLoads(view);
  const known = views.get(host.name);
  if (known) known.value = view;
  else views.set(host.name, signal(view));
}

let summedAt = Number.NEGATIVE_INFINITY;
let sumIsDue = false;

function sumUp(): void {
  sumIsDue = false;
  summedAt = performance.now();
  batch(() => {
    const all = order.peek().flatMap((name) => views.get(name)?.peek() ?? []);
    fleet.value = viewFleet(all, lineOfLab);
    changes.value += 1;
  });
}

function sumUpSoon(): void {
  if (sumIsDue) return;
  sumIsDue = true;
  setTimeout(sumUp, Math.max(0, summedAt + kBetweenSumsMs - performance.now()));
}

let portionIsDue = false;

function takePortion(): void {
  portionIsDue = false;
  batch(() => {
    let left = kHostsAFrame;
    for (const [name, host] of pending) {
      if (left-- === 0) break;
      pending.delete(name);
      put(host);
    }
  });
  if (pending.size > 0) takePortionSoon();
  else sumUpSoon();
}

function takePortionSoon(): void {
  if (portionIsDue) return;
  portionIsDue = true;
  // A page that nobody sees has no frames.
  if (document.hidden) setTimeout(takePortion, 100);
  else requestAnimationFrame(takePortion);
}

export function takeHosts(document: Hosts): void {
  pending.clear();
  lineOfLab = document.line ?? [];
  batch(() => {
    for (const host of document.hosts) put(host);
    takeOverview(
      document,
      document.hosts.map((host) => host.name),
    );
    sumUp();
  });
}

export function takeHost(host: Host): void {
  // A new one has its place when a summary names it.
  pending.set(host.name, host);
  takePortionSoon();
}

/// What the host was is known: it came before, and nothing of it since.
export function takeChange({ name, patch }: ChangeEvent): void {
  const before = pending.get(name) ?? hostView(name).peek().host;
  takeHost(immutableJSONPatch(before, patch) as Host);
}

export function takeLine(line: readonly LabStanding[]): void {
  lineOfLab = line;
  sumUpSoon();
}

export function takeSummary(event: SummaryEvent): void {
  batch(() => takeOverview(event, event.hosts));
  sumUpSoon();
}

function takeOverview(said: Omit<Hosts, "hosts">, names: readonly string[]): void {
  setServerTime(said.time_s);
  overview.value = { hub: said.hub, everySeconds: said.every_s };
  for (const name of names) {
    const waiting = pending.get(name);
    if (waiting && !views.has(name)) put(waiting);
  }
  const known = names.filter((name) => views.has(name));
  const before = order.peek();
  if (known.length !== before.length || known.some((name, i) => name !== before[i])) order.value = known;
}

/// Of one machine, or of a hub's many.
export const isOne = computed(() => order.value.length === 1 && overview.value?.hub !== true);
