import { serverNow } from "../clock";
import { dateOf, moment } from "../words";

/// "until 14:20"; nothing where the time is not known.
export function Moment({ word, at }: { word: string; at: number | null | undefined }) {
  const date = at == null ? null : dateOf(at);
  if (at == null || date === null) return null;
  return (
    <time class="moment" dateTime={date.toISOString()}>
      {word} {moment(at, serverNow())}
    </time>
  );
}
