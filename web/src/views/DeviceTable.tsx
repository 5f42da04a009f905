import { subject } from "../details";
import { isShown } from "../narrowing";
import { type DeviceView, type HostView, memoryShare, useShare } from "../state";
import { degrees, gib, percent, shortModel, watts } from "../words";
import { Age } from "./Age";
import { Glyph, kStateWords } from "./Glyph";
import { Holder } from "./Holder";
import { Meter } from "./Meter";

const kHot = 85;

function Row({ view }: { view: DeviceView }) {
  const { device, state, warnings } = view;
  const { used_bytes, total_bytes } = device.memory;
  return (
    <tr class={`is-${state}`}>
      <th scope="row" class="gpu">
        <button
          type="button"
          class="link"
          aria-haspopup="dialog"
          aria-label={`GPU ${device.label}, details`}
          onClick={() => {
            subject.value = { kind: "device", host: view.host, key: view.key };
          }}
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
      <td class="number use" data-name="use">
        <span class="gauge">
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
      <td class={`number ${(device.temperature_c ?? 0) >= kHot ? "hot" : ""}`} data-name="temp">
        {degrees(device.temperature_c)}
      </td>
      <td class="number" data-name="power">
        {watts(device.power_mw)}
      </td>
      <td class="holders">
        <Holder view={view} />
      </td>
    </tr>
  );
}

/// All that one wants to know of a machine's devices, a line each.
export function DeviceTable({ view }: { view: HostView }) {
  return (
    <table class="devices" aria-label={`GPUs of ${view.host.name}`}>
      <thead>
        <tr>
          <th scope="col" class="gpu">
            GPU
          </th>
          <th scope="col">Model</th>
          <th scope="col">State</th>
          <th scope="col" class="number">
            Use
          </th>
          <th scope="col" class="number">
            Memory (GiB)
          </th>
          <th scope="col" class="number">
            Temp
          </th>
          <th scope="col" class="number">
            Power
          </th>
          <th scope="col">Who, since, what</th>
        </tr>
      </thead>
      <tbody>
        {view.devices.filter(isShown).map((each) => (
          <Row key={each.key} view={each} />
        ))}
      </tbody>
    </table>
  );
}
