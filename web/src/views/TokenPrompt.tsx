import { useEffect, useRef } from "preact/hooks";
import { giveToken } from "../connection";

/// The token is kept for this tab and sent as a header; it never stands in an address.
export function TokenPrompt({ wasWrong }: { wasWrong: boolean }) {
  const field = useRef<HTMLInputElement>(null);
  // A browser heeds `autofocus` once a document, and this may come later, and again.
  useEffect(() => field.current?.focus(), []);
  const submit = (event: Event) => {
    event.preventDefault();
    const token = field.current?.value.trim();
    if (token) giveToken(token);
  };
  return (
    <main class="token">
      <form onSubmit={submit}>
        <h2>This server asks for a token</h2>
        <p>
          It is the one word in the file that berth serve was given as --token-file. It is kept until this tab
          is closed.
        </p>
        <label for="token">Token</label>
        <input
          ref={field}
          id="token"
          type="password"
          autocomplete="current-password"
          aria-invalid={wasWrong}
          aria-describedby={wasWrong ? "token-error" : undefined}
        />
        {wasWrong && (
          <p id="token-error" class="field-error" role="alert">
            That is not the token.
          </p>
        )}
        <button type="submit">Continue</button>
      </form>
    </main>
  );
}
