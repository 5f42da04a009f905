// Server-sent events, read with fetch: an EventSource cannot send the token.

export interface StreamEvent {
  readonly name: string;
  readonly data: string;
}

/// The events of a response as they come; `alive` is called for whatever comes, comments too. Ends with the response.
export async function* events(response: Response, alive: () => void): AsyncGenerator<StreamEvent> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let name = "message";
  let data: string[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (data.length > 0) yield { name, data: data.join("\n") };
        name = "message";
        data = [];
      } else if (line.startsWith("event: ")) {
        name = line.slice(7);
      } else if (line.startsWith("data: ")) {
        data.push(line.slice(6));
      }
    }
  }
}
