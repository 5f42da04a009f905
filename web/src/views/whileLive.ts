import { useEffect } from "preact/hooks";
import { connection } from "../connection";

/// Reads at once and then again and again, as long as the server answers. `read` must always be the same.
export function useWhileLive(read: () => Promise<void>, everyMs: number): void {
  const isLive = connection.value.phase === "live";
  useEffect(() => {
    if (!isLive) return;
    void read();
    const timer = setInterval(() => void read(), everyMs);
    return () => clearInterval(timer);
  }, [isLive, read, everyMs]);
}
