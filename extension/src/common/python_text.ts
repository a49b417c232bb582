// A light reading of Python text: what is code and what is a string or a comment, and where functions begin and end. The
// daemon parses properly; this is for lenses and for the question whether a file concerns us at all, which must be
// answered while typing, before any process runs, and also on text that does not parse.

/** The text with strings and comments replaced by spaces, so that offsets and lines stay. */
export function maskPython(text: string): string {
  const out: string[] = [];
  let i = 0;
  const blank = (end: number) => {
    for (; i < end; i++) out.push(text[i] === '\n' ? '\n' : ' ');
  };
  while (i < text.length) {
    const c = text[i]!;
    if (c === '#') {
      const end = text.indexOf('\n', i);
      blank(end < 0 ? text.length : end);
    } else if (c === '"' || c === "'") {
      blank(endOfString(text, i));
    } else {
      out.push(c);
      i++;
    }
  }
  return out.join('');
}

function endOfString(text: string, start: number): number {
  const quote = text[start]!;
  const long = text.startsWith(quote.repeat(3), start);
  const close = long ? quote.repeat(3) : quote;
  let i = start + close.length;
  while (i < text.length) {
    if (text[i] === '\\') i += 2;
    else if (text.startsWith(close, i)) return i + close.length;
    else if (!long && text[i] === '\n') return i;
    else i++;
  }
  return text.length;
}

/** Whether a file can hold something for us. Cheap: one pass over the text. */
export function concernsKernels(text: string): boolean {
  return /\bpallas\b|^[ \t]*#[ \t]*kernelwright:|\bimport jax\b|\bfrom jax\b/m.test(text);
}

/** A function that holds a kernel, is compiled by jax, or is marked. Lines count from 0. */
export interface KernelFunction {
  readonly name: string; // qualified: "f", "Class.method"
  readonly line: number; // of `def`
  readonly firstLine: number; // of the first decorator, else of `def`
  readonly endLine: number; // last line of the body
  readonly column: number; // of the name
  readonly marked: boolean; // a comment states its inputs
  readonly pallas: boolean;
}

interface Scope {
  readonly name: string;
  readonly indent: number;
  readonly isClass: boolean;
}

const kDefinition = /^([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+([A-Za-z_]\w*)/;
const kJit = /^[ \t]*@[ \t]*(?:[\w.]*\bjit\b|(?:functools[ \t]*\.[ \t]*)?partial[ \t]*\([ \t]*[\w.]*\bjit\b)/;

/** Functions of a module, or of its classes, that can be optimized, in order. Nested functions belong to theirs. */
export function findKernelFunctions(text: string): KernelFunction[] {
  const raw = text.split(/\r?\n/);
  const masked = maskPython(text).split(/\r?\n/);
  const found: KernelFunction[] = [];
  const scopes: Scope[] = [];
  let decorators = -1; // first line of the decorators above, or of their continuation
  for (let line = 0; line < masked.length; line++) {
    const code = masked[line]!;
    if (code.trim() === '') continue;
    const match = kDefinition.exec(code);
    if (/^[ \t]*@/.test(code)) {
      if (decorators < 0) decorators = line;
      line = endOfStatement(masked, line);
      continue;
    }
    if (!match) {
      decorators = -1;
      continue;
    }
    const indent = width(match[1]!);
    while (scopes.length > 0 && scopes[scopes.length - 1]!.indent >= indent) scopes.pop();
    const firstLine = decorators < 0 ? line : decorators;
    decorators = -1;
    const isClass = match[2] === 'class';
    const nested = scopes.some((scope) => !scope.isClass);
    const name = [...scopes.map((scope) => scope.name), match[3]!].join('.');
    scopes.push({ name: match[3]!, indent, isClass });
    if (isClass || nested) continue;
    const endLine = endOfBlock(masked, line, indent);
    const marked = isMarked(raw, masked, firstLine);
    const pallas = masked.slice(line, endLine + 1).some((part) => /\bpallas_call\b|\bemit_pipeline\b/.test(part));
    const jitted = masked.slice(firstLine, line).some((part) => kJit.test(part));
    if (marked || pallas || jitted) {
      found.push({
        name,
        line,
        firstLine,
        endLine,
        column: code.indexOf(match[3]!, match[1]!.length + 3),
        marked,
        pallas,
      });
    }
  }
  return found;
}

/** The function whose lines hold `line`, decorators and the comment above included. */
export function kernelAt(functions: readonly KernelFunction[], line: number): KernelFunction | undefined {
  return functions.find((f) => line >= f.firstLine - 1 && line <= f.endLine);
}

function width(indent: string): number {
  return indent.replace(/\t/g, '        ').length;
}

function endOfStatement(masked: readonly string[], start: number): number {
  let depth = 0;
  for (let line = start; line < masked.length; line++) {
    for (const c of masked[line]!) {
      if ('([{'.includes(c)) depth++;
      else if (')]}'.includes(c)) depth--;
    }
    if (depth <= 0 && !masked[line]!.trimEnd().endsWith('\\')) return line;
  }
  return masked.length - 1;
}

function endOfBlock(masked: readonly string[], definition: number, indent: number): number {
  let last = endOfStatement(masked, definition);
  for (let line = last + 1; line < masked.length; line++) {
    const code = masked[line]!;
    if (code.trim() === '') continue;
    if (width(/^[ \t]*/.exec(code)![0]) <= indent) break;
    last = endOfStatement(masked, line);
    line = last;
  }
  return last;
}

function isMarked(raw: readonly string[], masked: readonly string[], firstLine: number): boolean {
  for (let line = firstLine - 1; line >= 0; line--) {
    if (masked[line]!.trim() !== '' || !/^[ \t]*#/.test(raw[line]!)) return false;
    if (/^[ \t]*#[ \t]*kernelwright:/.test(raw[line]!)) return true;
  }
  return false;
}
