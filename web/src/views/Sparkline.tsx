import { loadsOf } from "../loads";

const kWidth = 60;
const kHeight = 16;

/// The loads of the last minutes, the newest at the right; what they are now stands beside it.
export function Sparkline({ of }: { of: string }) {
  const loads = loadsOf(of);
  if (loads.length < 2) return <span class="sparkline" aria-hidden="true" />;
  const points = loads.map(
    (load, i) =>
      `${kWidth - loads.length + 1 + i},${(kHeight - 1 - (load / 100) * (kHeight - 2)).toFixed(1)}`,
  );
  return (
    <svg class="sparkline" viewBox={`0 0 ${kWidth} ${kHeight}`} preserveAspectRatio="none" aria-hidden="true">
      <polyline points={points.join(" ")} />
    </svg>
  );
}
