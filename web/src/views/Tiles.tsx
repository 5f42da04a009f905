import { openDevice } from "../details";
import { isShown, kStateWords } from "../narrowing";
import type { DeviceView, HostView } from "../state";
import { memoryShare, userOf, useShare } from "../state";
import { gib, percent } from "../words";
import { Glyph } from "./Glyph";
import { Meter } from "./Meter";

/// Who has it, else what it is.
function wordOf({ state, leases, outsiders }: DeviceView): string {
  if (state === "trouble") return kStateWords.trouble;
  if (leases[0]) return userOf(leases[0]) + (leases.length > 1 ? ` +${leases.length - 1}` : "");
  return outsiders[0] ? userOf(outsiders[0]) : kStateWords[state];
}

function nameOf(view: DeviceView, word: string): string {
  const { device, state } = view;
  const who = word === kStateWords[state] ? "" : `, ${word}`;
  const memory = `${gib(device.memory.used_bytes)} of ${gib(device.memory.total_bytes)} GiB`;
  return `GPU ${device.label}: ${kStateWords[state]}${who}, load ${percent(device.utilization_percent)}, ${memory}`;
}

/// One that is not asked for leaves its place empty.
function Gap() {
  return <li class="tile gap" aria-hidden="true" />;
}

function Tile({ view, isFirst }: { view: DeviceView; isFirst: boolean }) {
  const word = wordOf(view);
  const name = nameOf(view, word);
  return (
    <li>
      <button
        type="button"
        class={`tile is-${view.state}`}
        aria-label={name}
        title={name}
        aria-haspopup="dialog"
        tabIndex={isFirst ? 0 : -1}
        onClick={() => openDevice(view.host, view.key)}
      >
        <Glyph state={view.state} />
        <span class="word">{word}</span>
        <Meter kind="use" share={useShare(view)} />
        <Meter kind="memory" share={memoryShare(view)} />
      </button>
    </li>
  );
}

/// With the arrow keys from one to the next: one stop of the tab key a machine.
function moveFocus(event: KeyboardEvent): void {
  const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };
  const step = steps[event.key];
  if (step === undefined || !(event.currentTarget instanceof HTMLElement)) return;
  const tiles = [...event.currentTarget.querySelectorAll("button")];
  const from = tiles.findIndex((tile) => tile.matches(":focus"));
  tiles[from + step]?.focus();
  event.preventDefault();
}

/// A machine's devices in one strip.
export function Tiles({ view }: { view: HostView }) {
  const first = view.devices.find(isShown);
  return (
    <ul class="tiles" aria-label={`GPUs of ${view.host.name}`} onKeyDown={moveFocus}>
      {view.devices.map((each) =>
        isShown(each) ? <Tile key={each.key} view={each} isFirst={each === first} /> : <Gap key={each.key} />,
      )}
    </ul>
  );
}
