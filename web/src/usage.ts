// GPU-hours per user, where a history is kept.
import { signal } from "@preact/signals";
import type { Usage } from "./api";
import { askUsage } from "./client";

/// null: no history is kept, or none was read yet.
export const usage = signal<Usage | null>(null);

export async function readUsage(): Promise<void> {
  try {
    usage.value = await askUsage();
  } catch {
    usage.value = null;
  }
}
