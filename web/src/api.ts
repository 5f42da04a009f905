// The documents of the API, as far as the page reads them: docs/openapi.yaml and docs/schema describe them. A key is
// never missing; what is not known is null.

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

export interface Device {
  index: number;
  label: string;
  uuid: string | null;
  name: string | null;
  pci_bus_id: string | null;
  state: "ok" | "lost" | "needs_reset" | "not_permitted" | "unresponsive" | "failed";
  state_reason: string | null;
  compute_capability: string | null;
  memory: { total_bytes: number | null; used_bytes: number | null };
  utilization_percent: number | null;
  temperature_c: number | null;
  power_mw: number | null;
  power_limit_mw: number | null;
  sm_clock_mhz: number | null;
  fan_percent: number | null;
  health: {
    row_remap_failed: boolean | null;
    row_remap_pending: boolean | null;
    ecc_uncorrected: number | null;
    retired_pages_pending: boolean | null;
  };
  processes: Process[] | null;
  leases: string[];
  idle: boolean | null;
  idle_since_s: number | null;
  verdict: Verdict | null;
}

export interface Lease {
  id: string;
  phase: "waiting" | "granted";
  uid: number;
  user: string | null;
  pid: number | null;
  since_s: number | null;
  shared: boolean;
  promise_bytes: number | null;
  devices: string[];
  command: string | null;
  note: string | null;
}

export interface Snapshot {
  taken_at_s: number;
  driver_version: string | null;
  cuda_version: string | null;
  stale_reason: string | null;
  notes: string[];
  devices: Device[];
  leases: Lease[];
  waiting: number;
  odd_tickets: { name: string; uid: number; reason: string }[];
}

export interface Waiter {
  position: number;
  id: string;
  uid: number;
  user: string | null;
  pid: number | null;
  since_s: number | null;
  count: number;
  shared: boolean;
  promise_bytes: number | null;
  command: string | null;
  note: string | null;
  request: string | null;
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
  queue: { waiters: Waiter[] } | null;
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

export interface Hosts {
  number: number;
  time_s: number;
  every_s: number;
  hub: boolean;
  hosts: Host[];
  summary: Summary;
}

/// The event of the same name: like Hosts, with the names of the hosts alone.
export type SummaryEvent = Omit<Hosts, "hosts"> & { hosts: string[] };

export interface Match {
  devices: { host: string; uuid: string }[];
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
