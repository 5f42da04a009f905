// Which devices are shown: those that the filter admits, and of these the ones with a state or an owner. An expression
// is judged by the server, which knows the language; plain words are looked for here.
import { computed, effect, signal } from "@preact/signals";
import type { OwnJob } from "./api";
import { askMatch, Refusal } from "./client";
import { changes } from "./fleet";
import type { JobView } from "./jobs";
import { stateOf } from "./ownJobs";
import {
  type DeviceState,
  type DeviceView,
  deviceKey,
  type HostView,
  textOfDevice,
  textOfWaiter,
  userOf,
  type WaiterView,
} from "./state";

export type Quick = { readonly state: DeviceState } | { readonly user: string };

const kTypingMs = 250;
const kBetweenAsksMs = 1000;

function filterOfAddress(): string {
  return new URLSearchParams(location.hash.slice(1)).get("filter") ?? "";
}

/// As typed. It stands in the address, so that a view can be passed on.
export const filter = signal(filterOfAddress());
export const filterError = signal<string | null>(null);
export const quick = signal<Quick | null>(null);
const matched = signal<ReadonlySet<string> | null>(null);

// An expression has one of these, and nobody's name does.
const kOfExpressions = /[<>=~!()"']|(^|\s)(and|or|not)(\s|$)/i;

function isExpression(text: string): boolean {
  return kOfExpressions.test(text);
}

/// What is looked for, where that is plain words.
const words = computed<readonly string[]>(() => {
  const text = filter.value.trim().toLowerCase();
  return text === "" || isExpression(text) ? [] : text.split(/\s+/);
});

function hasWords(text: string): boolean {
  return words.value.every((word) => text.includes(word));
}

export const isNarrowed = computed(
  () => matched.value !== null || quick.value !== null || words.value.length > 0,
);

function hasQuick(view: DeviceView, wanted: Quick): boolean {
  if ("user" in wanted) return view.leases.some((lease) => userOf(lease) === wanted.user);
  return view.state === wanted.state || (wanted.state === "outsider" && view.outsiders.length > 0);
}

export function isShown(view: DeviceView): boolean {
  if (matched.value && !matched.value.has(view.key)) return false;
  if (words.value.length > 0 && !hasWords(textOfDevice(view))) return false;
  return quick.value === null || hasQuick(view, quick.value);
}

/// Only words say something of those who wait.
export function isWaiterShown(view: WaiterView): boolean {
  return words.value.length === 0 || hasWords(textOfWaiter(view));
}

export function isJobShown({ host, user, number, name }: JobView): boolean {
  return words.value.length === 0 || hasWords([host, user, `job ${number}`, name].join("\n").toLowerCase());
}

export function isOwnJobShown(job: OwnJob): boolean {
  const text = [`job ${job.id}`, job.name, job.command, stateOf(job)].join("\n");
  return words.value.length === 0 || hasWords(text.toLowerCase());
}

export function isHostShown(view: HostView): boolean {
  if (!isNarrowed.value) return true;
  // A host that is down is trouble, and nothing else, whatever its devices were.
  if (view.host.state === "down" && quick.value && "state" in quick.value)
    return quick.value.state === "trouble" && matched.value === null && words.value.length === 0;
  return view.devices.some(isShown);
}

let asking: AbortController | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
let askedAt = Number.NEGATIVE_INFINITY;
/// There is news since the filter was asked for.
let hasNews = false;

async function askServer(): Promise<void> {
  const wanted = filter.peek().trim();
  asking?.abort();
  const mine = new AbortController();
  asking = mine;
  hasNews = false;
  askedAt = performance.now();
  try {
    const { devices } = await askMatch(wanted, mine.signal);
    matched.value = new Set(devices.map(({ host, uuid }) => deviceKey(host, uuid, "")));
    filterError.value = null;
  } catch (error) {
    if (mine.signal.aborted || (error instanceof Refusal && error.status === 401)) return;
    // What cannot be understood narrows nothing; where nothing answered, or a proxy for a server that is away, the last
    // answer stands, and the next news ask again.
    if (error instanceof Refusal && error.status < 500) {
      matched.value = null;
      filterError.value = error.message;
    }
  } finally {
    if (asking === mine) asking = undefined;
    if (hasNews) askOfNews();
  }
}

function askIn(milliseconds: number): void {
  clearTimeout(timer);
  timer = setTimeout(() => void askServer(), milliseconds);
}

export function setFilter(text: string): void {
  filter.value = text;
  history.replaceState(
    null,
    "",
    text.trim() ? `#${new URLSearchParams({ filter: text })}` : location.pathname,
  );
  if (isExpression(text)) {
    askIn(kTypingMs);
    return;
  }
  clearTimeout(timer);
  asking?.abort();
  matched.value = null;
  filterError.value = null;
}

/// News waits for an answer that is under way: where answers take longer than news, none would ever come else.
function askOfNews(): void {
  hasNews = asking !== undefined;
  if (hasNews || !isExpression(filter.peek()) || filterError.peek() !== null) return;
  askIn(Math.max(0, askedAt + kBetweenAsksMs - performance.now()));
}

/// Once, at the start: what matches changes with the readings.
export function keepMatching(): void {
  addEventListener("hashchange", () => setFilter(filterOfAddress()));
  effect(() => {
    if (changes.value > 0) askOfNews();
  });
}
