import { describe, expect, test } from 'vitest';
import { concernsKernels, findKernelFunctions, kernelAt, maskPython } from './python_text';

describe('maskPython', () => {
  test('keeps every offset and line', () => {
    const text = 'a = "x # no" # yes\nb = \'\'\'def f():\n  pallas_call\'\'\'\nc = "unclosed\nd = r"\\""';
    const masked = maskPython(text);
    expect(masked).toHaveLength(text.length);
    expect(masked.split('\n')).toHaveLength(text.split('\n').length);
    expect(masked).not.toMatch(/yes|pallas|unclosed/);
    expect(masked).toContain('d = r');
  });
  test('random texts keep their length', () => {
    let seed = 7;
    const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n;
    for (let round = 0; round < 500; round++) {
      const parts = ['"', "'", '"""', "'''", '#', '\\', '\n', 'def f():', ' ', 'x', '@jit'];
      const text = Array.from({ length: random(30) }, () => parts[random(parts.length)]).join('');
      expect(maskPython(text)).toHaveLength(text.length);
      findKernelFunctions(text);
    }
  });
});

describe('concernsKernels', () => {
  test.each([
    ['from jax.experimental import pallas as pl', true],
    ['import jax', true],
    ['# kernelwright: x=f32[8]', true],
    ['import numpy as np\nprint("jax is not imported")', false],
    ['', false],
  ])('%s', (text, expected) => expect(concernsKernels(text)).toBe(expected));
});

const kText = `import functools
import jax
from jax.experimental import pallas as pl

# kernelwright: x=f32[8,128]
# and a second line
@jax.jit
def marked(x):
    return x


def helper(x):
    return "pallas_call"


@functools.partial(
    jax.jit, static_argnames=("n",)
)
def jitted(x, *, n):
    def inner(y):
        return pl.pallas_call(k)(y)
    return inner(x)


class Layer:
    def call(self, x):
        return pl.pallas_call(
            kernel,
        )(x)

    @property
    def name(self):
        return 1
`;

describe('findKernelFunctions', () => {
  const found = findKernelFunctions(kText);
  test('finds marked, jitted and calling functions, and only those', () => {
    expect(found.map((f) => f.name)).toEqual(['marked', 'jitted', 'Layer.call']);
    expect(found.map((f) => f.marked)).toEqual([true, false, false]);
    expect(found.map((f) => f.pallas)).toEqual([false, true, true]);
  });
  test('begins at the first decorator and ends with the body', () => {
    const lines = kText.split('\n');
    const jitted = found[1]!;
    expect(lines[jitted.firstLine]).toContain('@functools.partial');
    expect(lines[jitted.line]).toContain('def jitted');
    expect(lines[jitted.endLine]).toContain('return inner');
    expect(lines[found[2]!.endLine]).toContain(')(x)');
    expect(lines[jitted.line]!.slice(jitted.column)).toMatch(/^jitted/);
  });
  test('the kernel at a line', () => {
    expect(kernelAt(found, found[0]!.firstLine - 1)?.name).toBe('marked');
    expect(kernelAt(found, found[1]!.endLine)?.name).toBe('jitted');
    expect(kernelAt(found, 12)).toBeUndefined();
  });
});
