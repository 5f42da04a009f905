import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { History } from "../api";
import { theme } from "../theme";

type Column = (number | null)[];

function columnOf(history: History, name: string): Column {
  const place = history.columns.indexOf(name);
  return history.rows.map((row) => (place < 0 ? null : (row[place] ?? null)));
}

function isUnknown(row: readonly (number | null)[]): boolean {
  return row.slice(1).every((value) => value === null);
}

/// Where something is known first: what is before that would only be empty.
function knownSince(history: History): number {
  const first = history.rows.find((row) => !isUnknown(row));
  return Math.min(first?.[0] ?? history.from_s, history.to_s - 6 * history.step_s);
}

/// A colour of the style sheet as the canvas takes it.
function colour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/// Behind the curves: the steps in which the device was leased, be it for a part of them.
function shadeLeases(history: History): (plot: uPlot) => void {
  const times = columnOf(history, "time_s");
  const leased = columnOf(history, "leased");
  return (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = colour("shade");
    for (let i = 0; i < times.length; ++i) {
      if (!leased[i]) continue;
      const from = plot.valToPos(times[i] ?? 0, "x", true);
      const to = plot.valToPos((times[i] ?? 0) + history.step_s, "x", true);
      ctx.fillRect(from, bbox.top, Math.max(1, Math.min(to, bbox.left + bbox.width) - from), bbox.height);
    }
    ctx.restore();
  };
}

interface Curve {
  readonly label: string;
  readonly colour: string;
  readonly unit: string;
  readonly scale: string;
  readonly values: Column;
}

/// Hours of one or two days, else days.
function timeLabels(history: History): uPlot.Axis.DynamicValues {
  const isShort = history.to_s - knownSince(history) <= 2 * 86_400;
  const format: Intl.DateTimeFormatOptions = isShort
    ? { hour: "2-digit", minute: "2-digit" }
    : { day: "numeric", month: "short" };
  return (_, ticks) => ticks.map((tick) => new Date(tick * 1000).toLocaleString("en-GB", format));
}

function options(
  history: History,
  curves: readonly Curve[],
  width: number,
  isPercent: boolean,
): uPlot.Options {
  const line = colour("line");
  const text = colour("muted");
  const axis = {
    space: 26,
    stroke: text,
    grid: { stroke: line, width: 1 },
    ticks: { show: false },
    font: "11px system-ui",
  };
  const [left, right] = curves;
  return {
    width,
    height: 130,
    legend: { markers: { width: 0, fill: (_, i) => colour(curves[i - 1]?.colour ?? "muted") } },
    cursor: { sync: { key: "history" }, y: false },
    scales: {
      x: { range: [knownSince(history), history.to_s] },
      ...(isPercent && { "%": { range: [0, 100] as [number, number] } }),
    },
    axes: [
      { ...axis, space: 64, size: 26, values: timeLabels(history) },
      {
        ...axis,
        scale: left?.scale ?? "y",
        size: 44,
        values: (_, ticks) => ticks.map((tick) => `${tick}${left?.unit ?? ""}`),
      },
      ...(right && right.scale !== left?.scale
        ? [
            {
              ...axis,
              scale: right.scale,
              side: 1,
              size: 48,
              grid: { show: false },
              values: (_: uPlot, ticks: number[]) => ticks.map((tick) => `${tick}${right.unit}`),
            },
          ]
        : []),
    ],
    series: [
      { value: "{DD} {MMM} {HH}:{mm}", label: "at" },
      ...curves.map(({ label, scale, unit, colour: name }) => ({
        label,
        scale,
        stroke: colour(name),
        width: 1.5,
        points: { size: 4 },
        value: (_: uPlot, value: number | null) => (value === null ? "–" : `${Math.round(value)}${unit}`),
      })),
    ],
    hooks: { drawClear: [shadeLeases(history)] },
  };
}

function Chart({
  history,
  curves,
  isPercent,
}: {
  history: History;
  curves: readonly Curve[];
  isPercent: boolean;
}) {
  const ref = useRef<HTMLDivElement>(null);
  const colours = theme.value;
  // The colours are read anew when the theme has changed.
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const data = [columnOf(history, "time_s"), ...curves.map((curve) => curve.values)] as uPlot.AlignedData;
    const plot = new uPlot(options(history, curves, element.clientWidth, isPercent), data, element);
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: 130 }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [history, colours]);
  return <div class="chart" ref={ref} aria-hidden="true" />;
}

function mean(values: Column): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}

function peak(values: Column): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
}

function rounded(value: number | null, unit: string): string {
  return value === null ? "not known" : `${Math.round(value)}${unit}`;
}

/// What the curves say, for those who cannot see them and those in a hurry.
function Gist({ history }: { history: History }) {
  const use = columnOf(history, "utilization_percent");
  const heat = columnOf(history, "temperature_c");
  const leased = mean(columnOf(history, "leased"));
  return (
    <p class="gist">
      Use {rounded(mean(use), "%")} on average, {rounded(peak(use), "%")} at most; up to{" "}
      {rounded(peak(heat), " °C")}
      {leased !== null && `; leased ${rounded(100 * leased, "%")} of the time (shaded)`}.
    </p>
  );
}

export function Charts({ history, totalBytes }: { history: History; totalBytes: number | null }) {
  if (history.rows.every(isUnknown)) return <p class="nothing">Nothing is on record for this time.</p>;
  const totalMib = totalBytes === null ? null : totalBytes / 1024 ** 2;
  const memory = columnOf(history, "memory_used_mib").map((used) =>
    used === null || !totalMib ? null : (100 * used) / totalMib,
  );
  return (
    <>
      <Gist history={history} />
      <Chart
        history={history}
        isPercent={true}
        curves={[
          {
            label: "use",
            colour: "use",
            unit: "%",
            scale: "%",
            values: columnOf(history, "utilization_percent"),
          },
          { label: "memory", colour: "memory", unit: "%", scale: "%", values: memory },
        ]}
      />
      <Chart
        history={history}
        isPercent={false}
        curves={[
          {
            label: "temperature",
            colour: "heat",
            unit: "°",
            scale: "°C",
            values: columnOf(history, "temperature_c"),
          },
          { label: "power", colour: "power", unit: " W", scale: "W", values: columnOf(history, "power_w") },
        ]}
      />
    </>
  );
}
