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
  type OutsiderView,
  textOfDevice,
  textOfWaiter,
  userOf,
  type WaiterView,
} from "./state";

export type Quick = { readonly state: DeviceState } | { readonly user: string };

const kTypingMs = 250;
const kBetweenAsksMs = 1000;

interface Narrowing {
  readonly filter: string;
  readonly quick: Quick | null;
}

function narrowingOfAddress(): Narrowing {
  const said = new URLSearchParams(location.hash.slice(1));
  const state = said.get("state");
  const user = said.get("user");
  const isState = state !== null && state in kStateWords;
  return {
    filter: said.get("filter") ?? "",
    quick: isState ? { state: state as DeviceState } : user ? { user } : null,
  };
}

/// The words for a state, as `berth list` has them: a mere "idle" would be taken for "free".
export const kStateWords: Record<DeviceState, string> = {
  free: "free",
  leased: "leased",
  idle: "leased, idle",
  outsider: "outsider",
  hidden: "hidden holder",
  draining: "draining",
  kept: "kept for a waiter",
  closed: "not for use",
  split: "split",
  trouble: "trouble",
};

/// What narrows the view stands in the address, so that a view can be passed on.
const atFirst = narrowingOfAddress();
/// As typed.
export const filter = signal(atFirst.filter);
export const filterError = signal<string | null>(null);
export const quick = signal<Quick | null>(atFirst.quick);
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

/// Words, and a user, say something of people too; an expression and a state are of GPUs alone.
function isOf(user: string | null, text: string): boolean {
  const wanted = quick.value;
  if (wanted !== null && "user" in wanted && user !== wanted.user) return false;
  return words.value.length === 0 || hasWords(text.toLowerCase());
}

export function isWaiterShown(view: WaiterView): boolean {
  return isOf(userOf(view.waiter), textOfWaiter(view));
}

export function isJobShown({ host, user, number, name }: JobView): boolean {
  return isOf(user, [host, user, `job ${number}`, name].join("\n"));
}

/// `user`: whose they are, where that is known.
export function isOwnJobShown(job: OwnJob, user: string | null): boolean {
  return isOf(user, [`job ${job.id}`, job.name, job.command, stateOf(job), user].join("\n"));
}

export function isOutsiderShown({ on, process }: OutsiderView): boolean {
  const user = userOf(process);
  return isOf(user, [on.host, `gpu ${on.device.label}`, user, process.command, process.pid].join("\n"));
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

function noteInAddress(): void {
  const said = new URLSearchParams();
  const text = filter.peek();
  if (text.trim()) said.set("filter", text);
  for (const [name, value] of Object.entries(quick.peek() ?? {})) said.set(name, value);
  const hash = `${said}`;
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname);
}

export function setQuick(wanted: Quick | null): void {
  quick.value = wanted;
  noteInAddress();
}

export function setFilter(text: string): void {
  filter.value = text;
  noteInAddress();
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
  addEventListener("hashchange", () => {
    const said = narrowingOfAddress();
    quick.value = said.quick;
    setFilter(said.filter);
  });
  effect(() => {
    if (changes.value > 0) askOfNews();
  });
}
