import { signal } from "@preact/signals";
import { endOfLeases } from "../answers";
import { openDevice } from "../details";
import { isMe } from "../me";
import { isShown, kStateWords } from "../narrowing";
import { type DeviceView, type HostView, memoryShare, userOf, useShare } from "../state";
import { degrees, gib, percent, shortModel, watts } from "../words";
import { Age } from "./Age";
import { useFold } from "./fold";
import { Glyph } from "./Glyph";
import { Holder } from "./Holder";
import { Meter } from "./Meter";
import { Moment } from "./Moment";
import { Sparkline } from "./Sparkline";

const kHot = 85;
// Of one machine: all of more would cost each look the time of a frame or two.
const kMostRows = 64;

function Row({ view }: { view: DeviceView }) {
  const { device, state, warnings } = view;
  const { used_bytes, total_bytes } = device.memory;
  return (
    <tr class={`is-${state} ${view.leases.some(isMe) ? "is-mine" : ""}`}>
      <th scope="row" class="gpu">
        <button
          type="button"
          class="link"
          aria-haspopup="dialog"
          aria-label={`GPU ${device.label}, details`}
          onClick={() => openDevice(view.host, view.key)}
        >
          {device.label}
        </button>
      </th>
      <td class="model">{device.name ? shortModel(device.name, total_bytes) : "–"}</td>
      <td class="state">
        <Glyph state={state} />
        <span>
          {kStateWords[state]}
          {state === "idle" && <Age since={device.idle_since_s} before=" " />}
        </span>
        {warnings.length > 0 && <span class="warning">{warnings.join(", ")}</span>}
      </td>
      <td class="until">
        <Until view={view} />
      </td>
      <td class="number use" data-name="load">
        <span class="gauge">
          <Sparkline of={view.key} />
          <Meter kind="use" share={useShare(view)} />
          <span>{percent(device.utilization_percent)}</span>
        </span>
      </td>
      <td class="number memory" data-name="memory">
        <span class="gauge">
          <Meter kind="memory" share={memoryShare(view)} />
          <span>
            {gib(used_bytes)} / {gib(total_bytes)}
          </span>
        </span>
      </td>
      <td class={`number temp ${(device.temperature_c ?? 0) >= kHot ? "hot" : ""}`} data-name="temp">
        {degrees(device.temperature_c)}
      </td>
      <td class="number power" data-name="power">
        {watts(device.power_mw)}
      </td>
      <td class="holders">
        <Holder view={view} />
      </td>
    </tr>
  );
}

/// When the last of its leases ends.
function Until({ view }: { view: DeviceView }) {
  if (view.leases.length === 0) return null;
  const end = endOfLeases(view);
  if (end !== null) return <Moment word="" at={end} />;
  return <span class="place">no limit</span>;
}

/// What a column is sorted by; null comes last.
type Worth = (view: DeviceView) => number | string | null;

interface ColumnHead {
  readonly name: string;
  readonly kind: string;
  readonly worth: Worth;
}

const kColumns: readonly ColumnHead[] = [
  { name: "GPU", kind: "gpu", worth: () => 0 },
  { name: "Model", kind: "", worth: ({ device }) => device.name },
  { name: "State", kind: "", worth: ({ state }) => kStateWords[state] },
  { name: "Until", kind: "", worth: endOfLeases },
  { name: "Load", kind: "number", worth: useShare },
  { name: "Memory (GiB)", kind: "number", worth: ({ device }) => device.memory.used_bytes },
  { name: "Temp", kind: "number", worth: ({ device }) => device.temperature_c },
  { name: "Power", kind: "number", worth: ({ device }) => device.power_mw },
  {
    name: "Who, since, what",
    kind: "",
    worth: ({ leases, outsiders }) => {
      const owner = leases[0] ?? outsiders[0];
      return owner ? userOf(owner) : null;
    },
  },
];

/// By which column all tables are sorted, and which way. Of a number the highest is first: it is what one looks for.
const sorting = signal<{ readonly name: string; readonly isBackwards: boolean }>({
  name: "GPU",
  isBackwards: false,
});

function compare(a: number | string | null, b: number | string | null): number {
  if (a === null || b === null) return (a === null ? 1 : 0) - (b === null ? 1 : 0);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

function sorted(views: readonly DeviceView[]): readonly DeviceView[] {
  const { name, isBackwards } = sorting.value;
  const worth = kColumns.find((column) => column.name === name)?.worth;
  if (!worth) return views;
  // What is not known is last either way, and equals keep the order of the machine.
  const placed = views.map((view, place) => ({ view, place, value: worth(view) }));
  const way = isBackwards ? -1 : 1;
  return placed
    .sort((a, b) => {
      const isKnown = a.value !== null && b.value !== null;
      const by = compare(a.value, b.value);
      // The GPU's own order is its place, which alone is turned round.
      if (by === 0) return name === "GPU" ? way * (a.place - b.place) : a.place - b.place;
      return isKnown ? way * by : by;
    })
    .map(({ view }) => view);
}

function Head({ column }: { column: ColumnHead }) {
  const { name, isBackwards } = sorting.value;
  const isOn = name === column.name;
  const direction = isBackwards ? "descending" : "ascending";
  return (
    <th scope="col" class={column.kind} aria-sort={isOn ? direction : undefined}>
      <button
        type="button"
        class="plain sorter"
        onClick={() => {
          sorting.value = {
            name: column.name,
            isBackwards: isOn ? !isBackwards : column.kind === "number",
          };
        }}
      >
        {column.name}
      </button>
    </th>
  );
}

/// All that one wants to know of a machine's devices, a line each.
export function DeviceTable({ view }: { view: HostView }) {
  const { shown, more } = useFold(`table ${view.host.name}`, sorted(view.devices.filter(isShown)), kMostRows);
  return (
    <>
      <table class="devices" aria-label={`GPUs of ${view.host.name}`}>
        <thead>
          <tr>
            {kColumns.map((column) => (
              <Head key={column.name} column={column} />
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((each) => (
            <Row key={each.key} view={each} />
          ))}
        </tbody>
      </table>
      {more}
    </>
  );
}
