import { signal } from "@preact/signals";

/// The names of the lists that are shown in full.
const unfolded = signal<ReadonlySet<string>>(new Set());

/// The first few, and the rest on demand.
export function useFold<T>(name: string, all: readonly T[], first: number) {
  const isWhole = unfolded.value.has(name) || all.length <= first + 1;
  const more = isWhole ? null : (
    <button
      type="button"
      class="link more"
      onClick={() => {
        unfolded.value = new Set(unfolded.peek()).add(name);
      }}
    >
      Show all {all.length.toLocaleString("en")}
    </button>
  );
  return { shown: isWhole ? all : all.slice(0, first), more };
}
