// The timelines of the machines that are open. The server makes them; they are asked for again when something has
// changed that they show, and now and then.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Timeline } from "./api";
import { askTimeline, Refusal } from "./client";
import { connection } from "./connection";
import { hostView } from "./fleet";
import type { HostView } from "./state";

const kEveryMs = 30_000;
const kSoonMs = 300;

/// null: the server is too old to tell it.
const timelines = signal<ReadonlyMap<string, Timeline | null>>(new Map());

function put(host: string, timeline: Timeline | null): void {
  timelines.value = new Map(timelines.peek()).set(host, timeline);
}

/// What a timeline shows but the loads: it is old when this has changed.
function shapeOf({ host, devices }: HostView): string {
  const leases = host.snapshot?.leases.map(({ id, until_s }) => `${id} ${until_s}`) ?? [];
  const waiters = host.queue?.waiters.map(({ id, starts_at_s }) => `${id} ${starts_at_s}`) ?? [];
  const states = devices.map(({ state, device }) => `${state} ${device.label}`);
  return [...leases, ...waiters, ...states].join("\n");
}

/// What was told last; undefined: nothing was.
export function timelineOf(name: string): Timeline | null | undefined {
  return timelines.value.get(name);
}

/// undefined while it is asked for.
export function useTimeline(name: string): Timeline | null | undefined {
  const view = hostView(name).value;
  const shape = shapeOf(view);
  const isOwn = view.host.url === null;
  const isUp = view.host.state === "up" && connection.value.phase === "live";
  useEffect(() => {
    if (!isUp) return;
    const controller = new AbortController();
    const read = async () => {
      try {
        put(name, await askTimeline(name, isOwn, controller.signal));
      } catch (error) {
        // What was told is shown until the next answer.
        if (error instanceof Refusal && error.status === 404) put(name, null);
      }
    };
    const first = setTimeout(() => void read(), timelines.peek().has(name) ? kSoonMs : 0);
    const timer = setInterval(() => void read(), kEveryMs);
    return () => {
      controller.abort();
      clearTimeout(first);
      clearInterval(timer);
    };
  }, [name, shape, isOwn, isUp]);
  return timelineOf(name);
}
