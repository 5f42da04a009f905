import { useSignal } from "@preact/signals";

/// Copies also where a browser lets no page write to its clipboard: from what is selected.
async function copy(text: string): Promise<void> {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const field = document.createElement("textarea");
  field.value = text;
  // Inside of an open dialog, which keeps the focus.
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

const kToldForMs = 2000;

/// A command that does what the page cannot.
export function Command({ words }: { words: string }) {
  const said = useSignal("");
  const run = async () => {
    try {
      await copy(words);
      said.value = "copied";
    } catch {
      said.value = "not copied";
    }
    setTimeout(() => {
      said.value = "";
    }, kToldForMs);
  };
  return (
    <button type="button" class="command" onClick={() => void run()} title="Copy this command">
      <code>{words}</code> <span role="status">{said.value || "copy"}</span>
    </button>
  );
}

/// What its user can change of a job that waits.
export function EditCommands({ number, held }: { number: string; held: boolean }) {
  return (
    <>
      <Command words={`berth edit ${number} ${held ? "--no-hold" : "--hold"}`} />
      <Command words={`berth edit ${number} --first`} />
    </>
  );
}

/// As the terminal names leases: their last digits.
export const shortId = (id: string) => id.slice(-6);
