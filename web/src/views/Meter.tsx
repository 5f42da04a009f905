/// A share as a bar. The number stands beside it, or in the name of what it is in.
export function Meter({ share, kind }: { share: number | null; kind: "use" | "memory" }) {
  if (share === null) return <span class="meter is-unknown" aria-hidden="true" />;
  const scale = Math.min(1, Math.max(0, share)).toFixed(3);
  return (
    <span class={`meter ${kind}`} aria-hidden="true">
      <span style={{ transform: `scaleX(${scale})` }} />
    </span>
  );
}
