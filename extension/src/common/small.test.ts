// Short tests of short files.
import { describe, expect, test } from 'vitest';
import { chips } from './chips';
import { AdaptiveDelay } from './debounce';
import { FigureStore, figuresText, type Figures } from './figures';
import { formatBytes, formatCount, formatDuration, formatMs, formatShare } from './format';
import { healthOf } from './health';
import { cellOf, notebookModule } from './notebook_text';
import { isPanelMessage, panelPage } from './panel_page';
import { makeReport, redact } from './report';
import { RestartPolicy } from './restart_policy';
import { errorOfResult, parseProfileResult, parseRunResult } from './results';
import { reverseDiff } from './unified_diff';

test('numbers', () => {
  expect([0.0000123, 0.0178, 1.15, 11600].map(formatMs)).toEqual(['12.3 ns', '17.8 µs', '1.15 ms', '11.6 s']);
  expect([0.9128, 0.014, 1].map(formatShare)).toEqual(['91 %', '1.4 %', '100 %']);
  expect([0, 999, 131_000, 1_150_000].map(formatCount)).toEqual(['0', '999', '131 k', '1.15 M']);
  expect([512, 36864, 2 ** 24].map(formatBytes)).toEqual(['512 B', '36 KiB', '16 MiB']);
  expect([500, 61_000, 3_700_000].map(formatDuration)).toEqual(['1 s', '1 min 1 s', '1 h 1 min']);
});

describe('figures', () => {
  const figures: Figures = {
    evidenceClass: 'estimated',
    chip: 'v5e',
    ms: 1.15,
    bound: 'compute',
    rooflineFraction: 0.91,
    textHash: 'a',
    versions: '',
  };
  test('EvidenceClass: class, chip and age are in the lens', () => {
    expect(figuresText(figures, 'a')).toBe('est. 1.15 ms v5e, compute-bound, 91 % of roofline');
    expect(figuresText(figures, 'b')).toMatch(/ · before the last edit$/);
    expect(figuresText({ ...figures, ms: undefined }, 'a')).toBe('no time can be given (v5e)');
  });
  test('the store is bounded and survives saving', () => {
    const store = new FigureStore([], 3);
    for (let i = 0; i < 10; i++) store.set('/f', `k${i}`, figures);
    expect(store.save()).toHaveLength(3);
    expect(new FigureStore(store.save()).get('/f', 'k9')).toEqual(figures);
  });
});

test('c14: at most four starts in three minutes', () => {
  let now = 0;
  const policy = new RestartPolicy(() => now);
  expect([1, 2, 3, 4, 5].map(() => policy.tryStart())).toEqual([true, true, true, true, false]);
  expect(policy.delay()).toBe(1000);
  now = 180_001;
  expect(policy.tryStart()).toBe(true);
  policy.reset();
  expect(policy.delay()).toBe(0);
});

test('the pause grows with what checks take, within limits', () => {
  const delay = new AdaptiveDelay(2000);
  expect(delay.next(300)).toBe(300);
  delay.learn(4000);
  expect(delay.next(300)).toBe(1200);
  for (let i = 0; i < 20; i++) delay.learn(60_000);
  expect(delay.next(300)).toBe(2000);
});

describe('reverseDiff', () => {
  const base = 'a\nb\nc\nd\n';
  const proposed = 'a\nB\nc\nd\ne\n';
  const diff = '--- a/x/k.py\n+++ b/x/k.py\n@@ -1,4 +1,5 @@\n a\n-b\n+B\n c\n d\n+e\n';
  test('gives the old text back', () => expect(reverseDiff(proposed, diff, '/x/k.py')).toBe(base));
  test('refuses a diff of another text', () => expect(reverseDiff('other\n', diff, '/x/k.py')).toBeUndefined());
  test('takes the part of its own file', () => {
    const two = `--- a/y.py\n+++ b/y.py\n@@ -1 +1 @@\n-q\n+Q\n${diff}`;
    expect(reverseDiff(proposed, two, '/x/k.py')).toBe(base);
  });
});

test('no_keys: a report holds no secret and no name', () => {
  const log =
    'token=abcdef0123456789 Authorization: Bearer sk-aaaabbbbccccdddd /home/ann/k.py ann@example.org ' + 'f'.repeat(64);
  const report = makeReport({
    versions: { extension: '0.1.0' },
    doctor: [{ name: 'jax', status: 'ok', value: '0.10.2' }],
    status: 'up',
    log,
    home: '/home/ann',
    user: 'ann',
  });
  for (const secret of ['abcdef0123456789', 'sk-aaaa', '/home/ann', 'example.org', 'f'.repeat(64)])
    expect(report).not.toContain(secret);
  expect(report).toContain('- jax: ok, 0.10.2');
  expect(redact('https://me:pw@host/x')).toBe('https://[redacted]@host/x');
});

test('health in one word', () => {
  expect(healthOf({ kind: 'ready', version: '1', pid: 1 }, 2, false, false).text).toContain('2 runs');
  expect(healthOf({ kind: 'ready', version: '1', pid: 1 }, 0, true, true)).toMatchObject({ level: 'warning' });
  expect(healthOf({ kind: 'failed', message: 'no' }, 0, false, false)).toMatchObject({
    level: 'error',
    accessible: 'Kernelwright: no',
  });
  expect(healthOf({ kind: 'untrusted' }, 0, false, false).accessible).toContain('not trusted');
  expect(healthOf({ kind: 'starting' }, 0, false, false).text).toContain('spin');
  expect(healthOf({ kind: 'stopped' }, 0, false, false).level).toBe('normal');
});

test('a notebook is one module, and lines find their cells', () => {
  const module = notebookModule([
    { id: 'a', text: 'import jax\n%matplotlib inline' },
    { id: 'b', text: '%%bash\nls' },
    { id: 'c', text: 'x = 1' },
  ]);
  expect(module.text).toBe('import jax\n\n\n\nx = 1\n');
  expect(cellOf(module, 4)).toEqual({ id: 'c', line: 0 });
  expect(cellOf(module, 99)).toBeUndefined();
});

test('the panel lets nothing in from outside and runs one script, ours', () => {
  const html =
    '<!doctype html><html><head><meta charset="utf-8"></head><body><main><h1>k</h1><script>alert(1)</script></main></body></html>';
  const page = panelPage(html, 'abc', 'old <text>');
  expect(page).toContain("default-src 'none'");
  expect(page).not.toContain('alert(1)');
  expect(page.match(/<script/g)).toHaveLength(1);
  expect(page).toContain('<script nonce="abc">');
  expect(page).toContain('old &#60;text&#62;');
  expect(isPanelMessage({ kind: 'open', file: 0, line: 3 })).toBe(true);
  for (const bad of [null, 1, {}, { kind: 'open', file: '0', line: 1 }]) expect(isPanelMessage(bad)).toBe(false);
});

test('results: what is missing is undefined, never 0', () => {
  expect(parseRunResult('no json')).toBeUndefined();
  const result = parseRunResult(
    JSON.stringify({ run: 'r', results: [{ chip: 'v5e', best: null, original: { estimate_ms: null } }] }),
  )!;
  expect(result.results[0]).toMatchObject({ originalMs: undefined, best: undefined, speedup: undefined });
  expect(parseProfileResult('{}')).toBeUndefined();
  expect(errorOfResult(JSON.stringify({ error: { message: 'no jax', remedy: 'install it' } }))).toBe(
    'no jax install it',
  );
});

test('chips come with sources', () => {
  const [v5e] = chips(['v5e']);
  expect(v5e?.summary).toContain('TPU v5 lite');
  expect(v5e?.rows.find((row) => row.label === 'VMEM')?.source).not.toBe('');
});
