// What is known of a device. Written by `./dev readings` from src/core/device/device_readings.cpp.

export interface Memory {
  kind: "dedicated" | "unified";
  total_bytes: number | null;
  used_bytes: number | null;
  free_bytes: number | null;
  reserved_bytes: number | null;
}

export interface Health {
  row_remap_failed: boolean | null;
  row_remap_pending: boolean | null;
  ecc_uncorrected: number | null;
  retired_pages_pending: boolean | null;
  recovery_action: string | null;
  last_xid: number | null;
}

export interface Readings {
  vendor: string | null;
  index: number;
  uuid: string | null;
  name: string | null;
  pci_bus_id: string | null;
  mig_enabled: boolean | null;
  state: "ok" | "lost" | "needs_reset" | "not_permitted" | "unresponsive" | "failed";
  state_reason: string | null;
  compute_capability: string | null;
  compute_mode: "shared" | "exclusive_thread" | "prohibited" | "exclusive_process" | null;
  persistence: boolean | null;
  display_active: boolean | null;
  memory: Memory;
  utilization_percent: number | null;
  memory_utilization_percent: number | null;
  temperature_c: number | null;
  power_mw: number | null;
  power_limit_mw: number | null;
  sm_clock_mhz: number | null;
  memory_clock_mhz: number | null;
  fan_percent: number | null;
  performance_state: number | null;
  throttle_reasons: number | null;
  pcie_generation: number | null;
  pcie_width: number | null;
  health: Health;
}

/// What the page shows of a device as it is.
export const kFacts = [
  { key: "temperature_c", title: "Temperature", kind: "celsius" },
  { key: "sm_clock_mhz", title: "Clock", kind: "megahertz" },
  { key: "fan_percent", title: "Fan", kind: "percent" },
  { key: "pci_bus_id", title: "PCI bus", kind: "text" },
  { key: "compute_capability", title: "Capability", kind: "version" },
] as const;
