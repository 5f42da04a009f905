/// A share as a bar. The number stands beside it, or in the name of what it is in. One element without a clip or a
/// transform: there are thousands, and each of those would cost every frame.
export function Meter({ share, kind }: { share: number | null; kind: "use" | "memory" }) {
  if (share === null) return <span class="meter is-unknown" aria-hidden="true" />;
  const percent = 100 * Math.min(1, Math.max(0, share));
  return (
    <span
      class={`meter ${kind}`}
      style={{ backgroundSize: `${percent.toFixed(1)}% 100%, 100% 100%` }}
      aria-hidden="true"
    />
  );
}
