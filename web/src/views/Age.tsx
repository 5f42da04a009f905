import { useComputed } from "@preact/signals";
import { serverNow, slowNow } from "../clock";
import { age, dateOf, moment } from "../words";

/// How long ago something was; the moment itself where one points.
export function Age({
  since,
  before = "",
  after = "",
}: {
  since: number | null;
  before?: string;
  after?: string;
}) {
  const text = useComputed(() => `${before}${age(slowNow.value - (since ?? 0))}${after}`);
  const date = since === null ? null : dateOf(since);
  if (since === null || date === null) return null;
  return (
    <time dateTime={date.toISOString()} title={`since ${moment(since, serverNow())}`}>
      {text}
    </time>
  );
}
