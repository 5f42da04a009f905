import type { ComponentChildren } from "preact";
import { useErrorBoundary } from "preact/hooks";

/// What cannot be shown inside costs its own place, and not the page.
export function Fence({ children }: { children: ComponentChildren }) {
  const [error, tryAgain] = useErrorBoundary((thrown) => console.error(thrown));
  if (error === undefined) return <>{children}</>;
  return (
    <p class="nothing" role="alert">
      This cannot be shown: what came for it is odd.{" "}
      <button type="button" class="chip" onClick={tryAgain}>
        Try again
      </button>
    </p>
  );
}
