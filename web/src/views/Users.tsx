import { subject } from "../details";
import { fleet } from "../fleet";
import type { UserView } from "../state";
import { readUsage, usage } from "../usage";
import { hours } from "../words";
import { useFold } from "./fold";
import { useWhileLive } from "./whileLive";

const kUsageEveryMs = 60_000;

export function Users() {
  useWhileLive(readUsage, kUsageEveryMs);
  const all = fleet.value.users;
  const { shown, more } = useFold("users", all, 10);
  const spent = new Map(usage.value?.rows.map((row) => [row.user ?? "", row]));
  return (
    <section aria-labelledby="users">
      <h2 id="users">Users {all.length > 0 && <span class="count">{all.length}</span>}</h2>
      {all.length === 0 ? (
        <p class="nothing">Nobody has a GPU or waits for one.</p>
      ) : (
        <table class="users">
          <thead>
            <tr>
              <th scope="col">User</th>
              <th scope="col" class="number">
                GPUs
              </th>
              <th scope="col" class="number">
                Idle
              </th>
              <th scope="col" class="number">
                Waits
              </th>
              {usage.value && (
                <th scope="col" class="number" title="GPU-hours leased in the last seven days">
                  h / 7 d
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {shown.map((each) => (
              <UserRow key={each.user} view={each} spent={spent.get(each.user)?.leased_gpu_hours} />
            ))}
          </tbody>
        </table>
      )}
      {more}
    </section>
  );
}

function UserRow({ view, spent }: { view: UserView; spent: number | undefined }) {
  return (
    <tr>
      <th scope="row">
        <button
          type="button"
          class="link"
          aria-haspopup="dialog"
          onClick={() => {
            subject.value = { kind: "user", user: view.user };
          }}
        >
          {view.user}
        </button>
      </th>
      <td class="number">{view.devices || "·"}</td>
      <td class={`number ${view.idle ? "some-idle" : ""}`}>{view.idle || "·"}</td>
      <td class="number">{view.waiters.length || "·"}</td>
      {usage.value && <td class="number">{hours(spent)}</td>}
    </tr>
  );
}
