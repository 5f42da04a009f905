import { useSignalEffect } from "@preact/signals";
import { connection } from "../connection";
import { fleet, overview } from "../fleet";
import { Details } from "./Details";
import { Fence } from "./Fence";
import { Header } from "./Header";
import { Machines } from "./Machines";
import { People } from "./People";
import { Summary } from "./Summary";
import { TimelineSection } from "./Timeline";
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
          <TimelineSection />
        </Fence>
        <Fence>
          <Machines />
        </Fence>
        <Fence>
          <People />
        </Fence>
      </main>
      <footer>
        This page shows and changes nothing. What can be done stands beside each thing as a command: copy it,
        and run it on the machine.
      </footer>
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
