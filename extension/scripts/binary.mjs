// What a shipped binary may ask of the system it runs on: the C library and the one of C++, up to a version. Every other
// library that it needs is put beside it. (The C++ library of Debian 12 itself asks for a newer C library than we promise.)
import { execFileSync } from 'node:child_process';
import { realpathSync } from 'node:fs';

export const GLIBC = [2, 35]; // Ubuntu 22.04 and newer, Debian 12
export const GLIBCXX = [3, 4, 30]; // of gcc 12, which those systems have
const SYSTEM = /^(libstdc\+\+|libgcc_s|libc|libm|libpthread|libdl|librt|libresolv)\.so\.\d+$|^ld-linux-x86-64\.so\.2$/;

const tool = (name, ...args) => execFileSync(name, args, { encoding: 'utf8', maxBuffer: 64 << 20 });

/** Libraries that have to come along, as [name, file], dependencies of dependencies included. */
export function librariesOf(file) {
  return [...tool('ldd', file).matchAll(/^\s*(\S+) => (\S+)/gm)]
    .map(([, name, found]) => [name, found])
    .filter(([name]) => !SYSTEM.test(name))
    .map(([name, found]) => {
      if (found === 'not') throw new Error(`${file} needs ${name}, which is not installed here`);
      return [name, realpathSync(found)];
    });
}

/** Newest version of a library's symbols that a file asks for. */
export function newestSymbol(file, family) {
  const found = [...tool('objdump', '-T', file).matchAll(new RegExp(`\\b${family}_([\\d.]+)`, 'g'))];
  return (
    found
      .map((match) => match[1].split('.').map(Number))
      .sort(compare)
      .at(-1) ?? [0]
  );
}

export function compare(a, b) {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    if ((a[i] ?? 0) !== (b[i] ?? 0)) return (a[i] ?? 0) - (b[i] ?? 0);
  }
  return 0;
}

/** Sentences about what a file asks for that an older system of those promised does not have. */
export function tooNew(file) {
  return [
    ['GLIBC', GLIBC],
    ['GLIBCXX', GLIBCXX],
  ].flatMap(([family, limit]) => {
    const newest = newestSymbol(file, family);
    return compare(newest, limit) > 0
      ? [`${file} needs ${family} ${newest.join('.')}, newer than ${limit.join('.')}`]
      : [];
  });
}

/** Whether the binary finds its libraries beside itself. */
export function looksBesideItself(file) {
  return /R(UN)?PATH\s+.*\$ORIGIN\/\.\.\/lib/.test(tool('objdump', '-p', file));
}
