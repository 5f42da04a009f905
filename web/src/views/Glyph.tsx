import type { JSX } from "preact";
import type { DeviceState } from "../state";

const kShapes: Record<DeviceState, JSX.Element> = {
  free: <circle cx="6" cy="6" r="4.2" fill="none" stroke="currentColor" stroke-width="1.8" />,
  leased: <circle cx="6" cy="6" r="5" fill="currentColor" />,
  idle: (
    <>
      <circle cx="6" cy="6" r="4.2" fill="none" stroke="currentColor" stroke-width="1.6" />
      <path d="M6 1.8a4.2 4.2 0 0 1 0 8.4z" fill="currentColor" />
    </>
  ),
  outsider: <path d="M6 .6 11.4 6 6 11.4.6 6z" fill="currentColor" />,
  hidden: <path d="M6 1.7 10.3 6 6 10.3 1.7 6z" fill="none" stroke="currentColor" stroke-width="1.6" />,
  draining: (
    <circle
      cx="6"
      cy="6"
      r="4.2"
      fill="none"
      stroke="currentColor"
      stroke-width="1.8"
      stroke-dasharray="2.4 2"
    />
  ),
  kept: (
    <>
      <circle cx="6" cy="6" r="4.2" fill="none" stroke="currentColor" stroke-width="1.6" />
      <path d="M6 3.4V6l1.8 1.4" fill="none" stroke="currentColor" stroke-width="1.4" />
    </>
  ),
  closed: (
    <>
      <circle cx="6" cy="6" r="4.2" fill="none" stroke="currentColor" stroke-width="1.6" />
      <path d="M3.2 8.8 8.8 3.2" stroke="currentColor" stroke-width="1.6" />
    </>
  ),
  split: (
    <path d="M1 1h4.4v4.4H1zM6.6 1H11v4.4H6.6zM1 6.6h4.4V11H1zM6.6 6.6H11V11H6.6z" fill="currentColor" />
  ),
  trouble: <path d="M6 .8 11.6 11H.4z" fill="currentColor" />,
};

/// A state's shape; the words stand beside it or in the name of what it is in.
export function Glyph({ state }: { state: DeviceState }) {
  return (
    <svg class={`glyph is-${state}`} viewBox="0 0 12 12" aria-hidden="true">
      {kShapes[state]}
    </svg>
  );
}
