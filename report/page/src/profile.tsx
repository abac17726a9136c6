// Where the time and the memory went.

import type { Profile, ProfileRow, Run } from "./data";
import { memo } from "./memo";
import { bytes, duration } from "./numbers";
import { Runs } from "./runs";

function Table({ title, rows }: { title: string; rows: ProfileRow[] }) {
  const seconds = (row: ProfileRow): number => row.forward_seconds + row.backward_seconds;
  const most = Math.max(...rows.map(seconds), 1e-12);
  const sorted = [...rows].sort((a, b) => seconds(b) - seconds(a));
  return (
    <div class="scroll tall" tabIndex={0} role="group" aria-label={`Profile by ${title}`}>
      <table class="facts">
        <thead>
          <tr>
            <th scope="col">{title}</th>
            <th scope="col" class="number">calls</th>
            <th scope="col" class="number">forward</th>
            <th scope="col" class="number">backward</th>
            <th scope="col" class="number">memory</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {sorted.map((row) => (
            <tr key={row.name}>
              <th scope="row">{row.name || "outside any"}</th>
              <td class="number">{row.calls}</td>
              <td class="number">{duration(row.forward_seconds)}</td>
              <td class="number">{duration(row.backward_seconds)}</td>
              <td class="number">{bytes(row.bytes)}</td>
              <td class="share">
                <span class="bar" aria-hidden="true">
                  <i style={{ width: `${(100 * row.forward_seconds) / most}%` }} />
                  <i class="back" style={{ width: `${(100 * row.backward_seconds) / most}%` }} />
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Tables({ profile }: { profile: Profile }) {
  return (
    <>
      <p>{duration(profile.seconds)} in all.</p>
      <div class="profile">
        {profile.modules.length > 0 && <Table title="module" rows={profile.modules} />}
        {profile.ops.length > 0 && <Table title="op" rows={profile.ops} />}
      </div>
    </>
  );
}

export const ProfileSection = memo(function ProfileSection({ runs }: { runs: Run[] }) {
  return (
    <>
      <p class="lead">
        One forward and backward pass of the example in evaluation mode, after the training. Bars: forward, then backward in stripes.
      </p>
      <Runs runs={runs}>
        {(run) => (run.profile ? <Tables profile={run.profile} /> : <p class="quiet">This run was not profiled.</p>)}
      </Runs>
    </>
  );
});
