// The last loads of each device, as far as this page has seen them.
import type { HostView } from "./state";

const kMostLoads = 60;

const loads = new Map<string, number[]>();

/// Adds what a host has just told.
export function rememberLoads({ devices, stale }: HostView): void {
  if (stale) return;
  for (const { key, device } of devices) {
    if (device.utilization_percent === null) continue;
    const known = loads.get(key) ?? [];
    known.push(device.utilization_percent);
    if (known.length > kMostLoads) known.shift();
    loads.set(key, known);
  }
}

/// In percent, the newest last.
export function loadsOf(key: string): readonly number[] {
  return loads.get(key) ?? [];
}
