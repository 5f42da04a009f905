// The documents of the API, as far as the page reads them: docs/openapi.yaml and docs/schema describe them. A key is
// never missing; what is not known is null.
import type { JSONPatchDocument } from "immutable-json-patch";
import type { Readings } from "./readings";

export interface Verdict {
  free: boolean;
  clause: string | null;
  reason: string | null;
  culprits: Culprit[];
  free_bytes: number | null;
}

export interface Culprit {
  user: string | null;
  pid: number | null;
  command: string | null;
  since_s: number | null;
  lease: string | null;
  note: string | null;
}

export interface Process {
  pid: number;
  kind: "compute" | "graphics" | "compute_and_graphics";
  used_bytes: number | null;
  uid: number | null;
  user: string | null;
  command: string | null;
  container: string | null;
  started_at_s: number | null;
  lease: string | null;
}

/// A user whose requests pass a device over.
export interface PassedOver {
  uid: number;
  user: string | null;
  until_s: number | null;
  reason: string | null;
}

export interface Device extends Readings {
  label: string;
  processes: Process[] | null;
  leases: string[];
  idle: boolean | null;
  idle_since_s: number | null;
  /// An agent that is too old does not tell it.
  passed_over?: PassedOver[];
  verdict: Verdict | null;
}

export interface Lease {
  id: string;
  phase: "waiting" | "granted";
  uid: number;
  user: string | null;
  pid: number | null;
  since_s: number | null;
  /// Neither is told by an agent that knows of no times.
  time_s?: number | null;
  until_s?: number | null;
  /// Nor does it tell of leases that yield.
  yield_s?: number | null;
  shared: boolean;
  promise_bytes: number | null;
  devices: string[];
  command: string | null;
  note: string | null;
  job: ToldJob | null;
}

export interface Snapshot {
  taken_at_s: number;
  driver_version: string | null;
  cuda_version: string | null;
  stale_reason: string | null;
  notes: string[];
  host: string | null;
  labels: string[] | null;
  devices: Device[];
  leases: Lease[];
  waiting: number;
  odd_tickets: { name: string; uid: number; reason: string }[];
}

/// What a ticket tells of the submitted job that it is for.
export interface ToldJob {
  /// "12", or "12.7" for a task of an array.
  id: string;
  number: number;
  index: number | null;
  name: string | null;
  note: string | null;
}

/// A job that the user who runs the server has submitted (docs/schema/jobs.json).
export interface OwnJob {
  id: string;
  name: string | null;
  state: "waiting" | "running" | "ended" | "cancelled" | "interrupted";
  in_line: boolean;
  /// Absent: an older Berth tells it.
  held?: boolean;
  words: string[];
  command: string;
  folder: string;
  submitted_s: number;
  started_s: number | null;
  ended_s: number | null;
  exit_status: number | null;
  signal: number | null;
  devices: string[];
  reason: string | null;
  /// null of an array.
  output: string | null;
  tasks: Record<"waiting" | "running" | "done" | "failed" | "cancelled" | "interrupted", number> | null;
}

export interface OwnJobs {
  jobs: OwnJob[];
}

export interface Standing {
  position: number;
  id: string;
  uid: number;
  user: string | null;
  pid: number | null;
  /// An agent that is too old does not tell it.
  asked_at?: string | null;
  since_s: number | null;
  count: number;
  shared: boolean;
  promise_bytes: number | null;
  command: string | null;
  note: string | null;
  job: ToldJob | null;
  request: string | null;
  behind: string | null;
  starts_at_s?: number | null;
  stopped: boolean;
  reason: string;
}

export interface Host {
  name: string;
  url: string | null;
  state: "up" | "down";
  error: string | null;
  seen_s: number | null;
  snapshot: Snapshot | null;
  queue: { waiters: Standing[] } | null;
}

export interface Summary {
  devices: number;
  free: number;
  models: {
    name: string;
    memory_total_bytes: number | null;
    devices: number;
    free: number;
    hosts_with_free: number;
  }[];
}

/// One who stands in the queue of the lab.
export interface LabStanding {
  asked_at: string;
  place: number;
}

export interface Hosts {
  number: number;
  time_s: number;
  every_s: number;
  hub: boolean;
  hosts: Host[];
  summary: Summary;
  /// Absent where nobody stands there, or a hub does not know it.
  line?: LabStanding[];
}

/// The event `line`: that line anew.
export interface LineEvent {
  line: LabStanding[];
}

/// The event `change`: what a host has become, from what came of it before.
export interface ChangeEvent {
  name: string;
  patch: JSONPatchDocument;
}

/// The event of the same name: like Hosts, with the names of the hosts alone.
export type SummaryEvent = Omit<Hosts, "hosts" | "line"> & { hosts: string[] };

export interface Match {
  devices: { host: string; uuid: string }[];
}

/// Who had each GPU of a host, who has it, and who will (docs/schema/timeline.json).
export interface TimelineBar {
  kind: "lease" | "reservation" | "outsider" | "unusable";
  end: "over" | "limit" | "open";
  from_s: number;
  until_s: number;
  user: string;
  what: string;
  id: string | null;
  whole: boolean;
  yields: boolean;
  /// Of an open lease: about when it ends. An agent that does not know it does not tell it.
  expected_s?: number | null;
  /// Of a lease of the whole GPU that is over; likewise.
  peak_mib?: number | null;
  use_percent?: number | null;
  energy_mj?: number | null;
  clean?: boolean | null;
}

export interface TimelineRow {
  uuid: string;
  gpu: string;
  free: boolean;
  idle: boolean;
  idle_since_s: number | null;
  bars: TimelineBar[];
  /// Percent, in each step from the beginning on.
  loads: (number | null)[];
}

export interface TimelineWaiter {
  id: string;
  user: string;
  position: number;
  count: number;
  what: string;
  starts_at_s: number | null;
  until_s: number | null;
}

export interface Timeline {
  from_s: number;
  now_s: number;
  to_s: number;
  /// 0: no history is kept.
  step_s: number;
  /// `expected`: no time limit says so. An agent that does not know it does not tell it.
  next: { uuid: string; gpu: string; at_s: number; expected?: boolean } | null;
  rows: TimelineRow[];
  queue: TimelineWaiter[];
}

export interface History {
  from_s: number;
  to_s: number;
  step_s: number;
  columns: string[];
  rows: (number | null)[][];
}

export interface UsageRow {
  user?: string;
  leases: number;
  leased_gpu_hours: number;
  used_gpu_hours: number | null;
}

export interface Usage {
  complete: boolean;
  missing: string[];
  rows: UsageRow[];
}
