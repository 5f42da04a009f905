import { useSignalEffect } from "@preact/signals";
import { connection } from "../connection";
import { fleet, overview } from "../fleet";
import { Details } from "./Details";
import { Fence } from "./Fence";
import { Header } from "./Header";
import { Machines } from "./Machines";
import { Rail } from "./Rail";
import { Summary } from "./Summary";
import { TokenPrompt } from "./TokenPrompt";

function NoData() {
  const said = connection.value;
  return (
    <main class="empty">
      {said.phase === "lost" ? (
        <p role="alert">No data: {said.reason}. It is tried again.</p>
      ) : (
        <p>Asking the server …</p>
      )}
    </main>
  );
}

function Content() {
  const said = connection.value;
  if (said.phase === "token") return <TokenPrompt wasWrong={said.wasWrong} />;
  if (overview.value === null) return <NoData />;
  return (
    <>
      <main>
        <Fence>
          <Summary />
        </Fence>
        <Fence>
          <Machines />
        </Fence>
      </main>
      <Fence>
        <Rail />
      </Fence>
    </>
  );
}

export function App() {
  useSignalEffect(() => {
    document.title = overview.value ? `${fleet.value.free} free – Berth` : "Berth";
  });
  return (
    <>
      <Header />
      <div class="columns">
        <Content />
      </div>
      <Details />
    </>
  );
}
