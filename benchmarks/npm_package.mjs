// What the programs beside xgrad's need from npm.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

// Installs the package into the folder, unless it is there, and loads it.
export function npmPackage(name, version, folder) {
  if (!existsSync(join(folder, 'node_modules', name))) {
    mkdirSync(folder, { recursive: true });
    // Scripts of packages would download libraries for GPUs.
    const options = ['--ignore-scripts', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'];
    const install = ['install', ...options, '--prefix', folder, `${name}@${version}`];
    execFileSync('npm', install, { stdio: ['ignore', 2, 2] });
  }
  return createRequire(join(folder, 'index.js'))(name);
}
