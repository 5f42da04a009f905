// The jobs of the user who runs the server, where that user shows them.
import { signal } from "@preact/signals";
import type { OwnJob } from "./api";
import { askOwnJobs } from "./client";
import type { JobView } from "./jobs";
import { counted } from "./words";

/// null: none are shown, or none were read yet. The newest is first.
export const ownJobs = signal<readonly OwnJob[] | null>(null);

export async function readOwnJobs(): Promise<void> {
  try {
    ownJobs.value = (await askOwnJobs())?.jobs.toReversed() ?? null;
  } catch {
    // What was read is shown until the next answer.
  }
}

/// Whose these jobs are. Only tickets tell: the user of most of the running ones. null: none of them runs here.
export function userOfOwn(own: readonly OwnJob[], told: readonly JobView[]): string | null {
  const names = new Map(own.map(({ id, name }) => [id.split(".")[0], name]));
  const votes = new Map<string, number>();
  for (const { number, name, user } of told)
    if (names.has(`${number}`) && names.get(`${number}`) === name)
      votes.set(user, (votes.get(user) ?? 0) + 1);
  return [...votes].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}

/// As `berth jobs` says it.
export function stateOf({ state, in_line, held, exit_status, tasks }: OwnJob): string {
  if (tasks !== null)
    return Object.entries(tasks)
      .filter(([, count]) => count > 0)
      .map(([word, count]) => `${count} ${word}`)
      .join(", ");
  if (held) return "held";
  if (in_line) return "in line";
  if (state !== "ended") return state;
  return exit_status === 0 ? "done" : "failed";
}

export function isBad(job: OwnJob): boolean {
  return job.state === "interrupted" || (job.state === "ended" && job.exit_status !== 0);
}

export function isOver({ state, tasks }: OwnJob): boolean {
  return tasks === null ? state !== "waiting" && state !== "running" : tasks.waiting + tasks.running === 0;
}

/// Without the index of a task.
export function numberOf({ id }: OwnJob): string {
  return id.split(".", 1)[0] ?? id;
}

export function waits({ state, tasks }: OwnJob): boolean {
  return tasks === null ? state === "waiting" : tasks.waiting > 0;
}

export function endOf({ signal: by, exit_status }: OwnJob): string {
  return by !== null ? `signal ${by}` : `exit status ${exit_status ?? "–"}`;
}

export function titleOf({ name, command }: OwnJob): string {
  return name ?? command;
}

/// The last thing that has happened to it.
export function sinceOf({ submitted_s, started_s, ended_s }: OwnJob): number {
  return ended_s ?? started_s ?? submitted_s;
}

export function tasksOf({ tasks }: OwnJob): string | null {
  return tasks === null
    ? null
    : counted(
        Object.values(tasks).reduce((sum, count) => sum + count, 0),
        "task",
      );
}
