// Once for all tests: the extension is built, and the editor that they run in is there.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';

export default function setup(): void {
  const top = path.resolve(__dirname, '../..');
  const cache = process.env.KW_VSCODE_CACHE ?? path.join(top, 'node_modules/.cache/kernelwright');
  const server = execFileSync(process.execPath, [path.join(__dirname, 'install_server.mjs'), cache], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  process.env.KW_VSCODE = server.trim();
  execFileSync('npm', ['run', '--silent', 'build'], {
    cwd: path.join(top, 'extension'),
    stdio: 'inherit',
  });
  if (!fs.existsSync(process.env.KW_CHROMIUM ?? '/usr/bin/chromium')) {
    throw new Error('chromium is missing: run scripts/setup --dev');
  }
}
