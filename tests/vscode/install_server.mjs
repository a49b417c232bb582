// A real VS Code for the tests, from npm alone: the server with its web workbench that code-server ships. Nothing is
// compiled and no browser is downloaded. Usage: node install_server.mjs FOLDER; a second run does nothing.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const VERSION = '4.139.1';
// What an editor's tests never load: assistants, remote tunnels, other platforms, and natives that would be compiled.
const UNUSED_PACKAGES = [
  '@github/copilot-sdk',
  '@microsoft/mxc-sdk',
  '@devcontainers/cli',
  '@vscode/sandbox-runtime',
  '@vscode/copilot-api',
  '@vscode/sqlite3',
  '@vscode/fs-copyfile',
  '@vscode/windows-process-tree',
  '@vscode/windows-registry',
  'ssh2',
  'kerberos',
];
const UNUSED_EXTENSIONS = [
  'copilot',
  'mermaid-markdown-features',
  'ms-vscode.js-debug',
  'ms-vscode.js-debug-companion',
  'ms-vscode.vscode-js-profile-table',
  'microsoft-authentication',
  'github',
  'github-authentication',
  'tunnel-forwarding',
  'typescript-language-features',
  'terminal-suggest',
];
// The server's logger is a native module; this one, in JavaScript, appends to the same files.
const LOGGER = `const fs = require('fs');
const path = require('path');
const levels = ['trace', 'debug', 'info', 'warn', 'error', 'critical'];
class Logger {
  constructor(name, file) { this.file = file; this.level = 2; fs.mkdirSync(path.dirname(file), { recursive: true }); }
  setLevel(level) { this.level = level; }
  getLevel() { return this.level; }
  setPattern() {} clearFormatters() {} flush() {} drop() {}
}
levels.forEach((name, level) => {
  Logger.prototype[name] = function (message) {
    if (level < this.level) return;
    try { fs.appendFileSync(this.file, String(message).trimEnd() + '\\n'); } catch { /* the log is not the test */ }
  };
});
exports.version = 0;
exports.Logger = Logger;
exports.setLevel = () => {};
exports.setFlushOn = () => {};
exports.shutdown = () => {};
exports.createRotatingLogger = async (name, file) => new Logger(name, file);
exports.createAsyncRotatingLogger = async (name, file) => new Logger(name, file);
`;

export function installServer(folder) {
  const server = path.join(folder, `vscode-${VERSION}`);
  if (existsSync(path.join(server, '.complete'))) return server;
  const work = path.join(folder, 'incoming');
  rmSync(work, { recursive: true, force: true });
  rmSync(server, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const npm = (args, cwd) =>
    execFileSync('npm', [...args, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  npm(['pack', `code-server@${VERSION}`], work);
  execFileSync('tar', ['xzf', readdirSync(work).find((name) => name.endsWith('.tgz')), 'package/lib/vscode'], {
    cwd: work,
  });
  const vscode = path.join(work, 'package/lib/vscode');
  const manifest = JSON.parse(readFileSync(path.join(vscode, 'package.json'), 'utf8'));
  for (const name of UNUSED_PACKAGES) delete manifest.dependencies[name];
  writeFileSync(path.join(vscode, 'package.json'), JSON.stringify(manifest));
  npm(['install', '--omit=dev'], vscode);
  for (const name of UNUSED_EXTENSIONS)
    rmSync(path.join(vscode, 'extensions', name), {
      recursive: true,
      force: true,
    });
  writeFileSync(path.join(vscode, 'node_modules/@vscode/spdlog/index.js'), LOGGER);
  renameSync(vscode, server);
  rmSync(work, { recursive: true, force: true });
  writeFileSync(path.join(server, '.complete'), '');
  return server;
}

if (process.argv[1] === import.meta.filename) console.log(installServer(path.resolve(process.argv[2])));
