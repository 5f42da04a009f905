// Submitted jobs, as the tickets of their tasks tell of them: those that run, and those that stand in line.
import { type LeaseView, type UserView, userOf, type WaiterView } from "./state";

/// What a ticket says of its job (told_job_from_text in src/berth/core/job.h).
export interface ToldJob {
  readonly number: string;
  /// Of a task of an array.
  readonly index: string | null;
  readonly name: string | null;
}

export interface JobView extends ToldJob {
  readonly key: string;
  readonly host: string;
  readonly user: string;
  readonly running: readonly LeaseView[];
  readonly inLine: readonly WaiterView[];
}

/// null: the note of something else.
export function toldJob(note: string | null): ToldJob | null {
  const found = /^job ([1-9]\d*)(?:\.(\d+))?(?: (.*))?$/s.exec(note?.split(": ", 1)[0] ?? "");
  return found?.[1] === undefined
    ? null
    : { number: found[1], index: found[2] ?? null, name: found[3] || null };
}

interface Tally {
  job: Omit<JobView, "running" | "inLine">;
  running: LeaseView[];
  inLine: WaiterView[];
}

/// An array is one job. Whose job runs for longest is first.
export function jobsOf(users: readonly UserView[]): JobView[] {
  const jobs = new Map<string, Tally>();
  const tally = (host: string, user: string, note: string | null): Tally | null => {
    const told = toldJob(note);
    if (told === null) return null;
    const key = [host, user, told.number].join("\n");
    const found = jobs.get(key) ?? { job: { ...told, key, host, user }, running: [], inLine: [] };
    jobs.set(key, found);
    return found;
  };
  for (const { leases, waiters } of users) {
    for (const held of leases) tally(held.host, userOf(held.lease), held.lease.note)?.running.push(held);
    for (const each of waiters) tally(each.host, userOf(each.waiter), each.waiter.note)?.inLine.push(each);
  }
  return [...jobs.values()]
    .map(({ job, running, inLine }) => ({ ...job, running, inLine }))
    .sort((a, b) => (sinceOf(a) ?? 0) - (sinceOf(b) ?? 0) || a.key.localeCompare(b.key));
}

/// Since when the first of its tasks runs, or, where none does, stands in line.
export function sinceOf({ running, inLine }: JobView): number | null {
  const of =
    running.length > 0
      ? running.map((each) => each.lease.since_s)
      : inLine.map((each) => each.waiter.since_s);
  const known = of.filter((since) => since !== null);
  return known.length > 0 ? Math.min(...known) : null;
}

/// "12.7" for one task of an array, else "12".
export function numberOf({ number, running, inLine }: JobView): string {
  const notes = [...running.map((each) => each.lease.note), ...inLine.map((each) => each.waiter.note)];
  const index = notes.length === 1 ? toldJob(notes[0] ?? null)?.index : null;
  return index == null ? number : `${number}.${index}`;
}
