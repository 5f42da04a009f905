// The server's time: ages are told by it, since the clock of whoever looks may be wrong.
import { signal } from "@preact/signals";

let aheadSeconds = 0;

export function serverNow(): number {
  return Date.now() / 1000 + aheadSeconds;
}

/// Each second; for what is said about the connection.
export const now = signal(serverNow());
/// Every five seconds; for ages, of which there are many.
export const slowNow = signal(serverNow());

function tick(): void {
  now.value = serverNow();
  if (now.value - slowNow.value >= 5) slowNow.value = now.value;
}

export function setServerTime(seconds: number): void {
  aheadSeconds = seconds - Date.now() / 1000;
  now.value = serverNow();
  if (Math.abs(now.value - slowNow.value) >= 5) slowNow.value = now.value;
}

setInterval(tick, 1000);
