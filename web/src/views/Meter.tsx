/// A share as a bar. The number stands beside it, or in the name of what it is in.
export function Meter({ share, kind }: { share: number | null; kind: "use" | "memory" }) {
  return (
    <span class={`meter ${kind}`} aria-hidden="true">
      {share !== null && (
        <span style={{ transform: `scaleX(${Math.min(1, Math.max(0, share)).toFixed(3)})` }} />
      )}
    </span>
  );
}
