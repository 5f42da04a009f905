// Submitted jobs, as the tickets of their tasks tell of them: those that run, and those that stand in the queue.
import type { ToldJob } from "./api";
import { type LeaseView, type UserView, userOf, type WaiterView } from "./state";

export interface JobView {
  readonly key: string;
  readonly number: number;
  readonly name: string | null;
  readonly host: string;
  readonly user: string;
  readonly running: readonly LeaseView[];
  readonly inLine: readonly WaiterView[];
}

interface Tally {
  job: Omit<JobView, "running" | "inLine">;
  running: LeaseView[];
  inLine: WaiterView[];
}

/// An array is one job. Whose job runs for longest is first.
export function jobsOf(users: readonly UserView[]): JobView[] {
  const jobs = new Map<string, Tally>();
  const tally = (host: string, user: string, told: ToldJob | null): Tally | null => {
    if (told === null) return null;
    const { number, name } = told;
    const key = [host, user, number].join("\n");
    const found = jobs.get(key) ?? { job: { key, number, name, host, user }, running: [], inLine: [] };
    jobs.set(key, found);
    return found;
  };
  for (const { leases, waiters } of users) {
    for (const held of leases) tally(held.host, userOf(held.lease), held.lease.job)?.running.push(held);
    for (const each of waiters) tally(each.host, userOf(each.waiter), each.waiter.job)?.inLine.push(each);
  }
  return [...jobs.values()]
    .map(({ job, running, inLine }) => ({ ...job, running, inLine }))
    .sort((a, b) => (sinceOf(a) ?? 0) - (sinceOf(b) ?? 0) || a.key.localeCompare(b.key));
}

/// Since when the first of its tasks runs, or, where none does, stands in the queue.
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
  const tasks = [...running.map((each) => each.lease.job), ...inLine.map((each) => each.waiter.job)];
  return tasks.length === 1 && tasks[0] ? tasks[0].id : `${number}`;
}
