// The documented objects of the commands (docs/json.md), as far as the editor reads them. They come as JSON: what is
// missing or of another type is dropped here, so that the rest of the code need not ask.

export interface Evidence {
  readonly evidenceClass: string;
  readonly chip: string;
  readonly confidence: string;
  readonly interval: readonly [number, number] | undefined;
  readonly versions: Readonly<Record<string, string>>;
}

export interface RunEdit {
  readonly file: string;
  readonly baseSha256: string;
  readonly newText: string;
}

export interface BestCandidate {
  readonly id: string;
  readonly what: string;
  readonly diff: string;
  readonly estimateMs: number | undefined;
  readonly bound: string;
  readonly rooflineFraction: number | undefined;
  readonly edits: readonly RunEdit[];
  readonly gates: readonly { gate: string; status: string; reason: string }[];
  readonly evidence: Evidence | undefined;
}

export interface ChipRunResult {
  readonly chip: string;
  readonly status: string;
  readonly message: string;
  readonly originalMs: number | undefined;
  readonly speedup: number | undefined;
  readonly verdict: string;
  readonly bound: string;
  readonly rooflineFraction: number | undefined;
  readonly best: BestCandidate | undefined;
  readonly evidence: Evidence | undefined;
  readonly error: string | undefined;
}

export interface RunResult {
  readonly run: string;
  readonly status: string;
  readonly message: string;
  readonly file: string;
  readonly function: string;
  readonly results: readonly ChipRunResult[];
}

type Json = Record<string, unknown>;

export function parseRunResult(text: string): RunResult | undefined {
  const root = parseObject(text);
  if (!root) return undefined;
  return {
    run: str(root.run),
    status: str(root.status),
    message: str(root.message),
    file: str(root.file),
    function: str(root.function),
    results: list(root.results).map((item) => ({
      chip: str(item.chip),
      status: str(item.status),
      message: str(item.message),
      originalMs: positive(obj(item.original)?.estimate_ms),
      speedup: positive(item.speedup),
      verdict: str(item.verdict),
      bound: str(item.bound),
      rooflineFraction: positive(item.roofline_fraction),
      best: parseBest(obj(item.best)),
      evidence: parseEvidence(obj(item.evidence)),
      error: obj(item.error) ? str(obj(item.error)!.message) : undefined,
    })),
  };
}

function parseBest(best: Json | undefined): BestCandidate | undefined {
  if (!best) return undefined;
  return {
    id: str(best.id),
    what: str(best.what),
    diff: str(best.diff),
    estimateMs: positive(best.estimate_ms),
    bound: str(best.bound),
    rooflineFraction: positive(best.roofline_fraction),
    edits: list(best.edits).map((e) => ({
      file: str(e.file),
      baseSha256: str(e.base_sha256),
      newText: str(e.new_text),
    })),
    gates: list(best.gates).map((g) => ({ gate: str(g.gate), status: str(g.status), reason: str(g.reason) })),
    evidence: parseEvidence(obj(best.evidence)),
  };
}

function parseEvidence(evidence: Json | undefined): Evidence | undefined {
  if (!evidence) return undefined;
  const interval = Array.isArray(evidence.interval) ? evidence.interval : [];
  return {
    evidenceClass: str(evidence.class),
    chip: str(evidence.chip),
    confidence: str(evidence.confidence),
    interval: interval.length === 2 ? [num(interval[0]) ?? 0, num(interval[1]) ?? 0] : undefined,
    versions: strings(obj(evidence.versions)),
  };
}

export interface ProfileLine {
  readonly file: string;
  readonly line: number;
  readonly source: string;
  readonly cycles: number;
  readonly share: number;
  readonly slots: Readonly<Record<string, number>>;
  readonly spills: number;
  readonly casts: number;
  readonly castsInserted: number;
  readonly relayouts: number;
  readonly dmaBytes: number;
  readonly dmaWaitCycles: number;
  readonly liveRegisters: number;
}

export interface ProfileAdvice {
  readonly id: string;
  readonly file: string;
  readonly lines: readonly number[];
  readonly title: string;
  readonly text: string;
  readonly share: number | undefined;
}

export interface ChipProfile {
  readonly chip: string;
  readonly status: string;
  readonly estimateMs: number | undefined;
  readonly interval: readonly [number, number] | undefined;
  readonly confidence: string;
  readonly bound: string;
  readonly rooflineFraction: number | undefined;
  readonly isStatic: boolean;
  readonly refusal: string | undefined;
  readonly error: string | undefined;
  readonly evidence: Evidence | undefined;
  readonly lines: readonly ProfileLine[];
  readonly advice: readonly ProfileAdvice[];
}

export interface ProfileResult {
  readonly file: string;
  readonly function: string;
  readonly results: readonly ChipProfile[];
}

export function parseProfileResult(text: string): ProfileResult | undefined {
  const root = parseObject(text);
  if (!root || !Array.isArray(root.results)) return undefined;
  return {
    file: str(root.file),
    function: str(root.function),
    results: list(root.results).map((item) => {
      const interval = Array.isArray(item.interval) ? item.interval : [];
      const refusal = obj(item.refusal);
      const error = obj(item.error);
      return {
        chip: str(item.chip),
        status: str(item.status),
        estimateMs: positive(item.estimate_ms),
        interval: interval.length === 2 ? ([num(interval[0]) ?? 0, num(interval[1]) ?? 0] as const) : undefined,
        confidence: str(item.confidence),
        bound: str(item.bound),
        rooflineFraction: positive(item.roofline_fraction),
        isStatic: item.counts === 'static',
        refusal: refusal ? str(refusal.reason) : undefined,
        error: error ? [str(error.message), str(error.remedy)].filter((part) => part !== '').join(' ') : undefined,
        evidence: parseEvidence(obj(item.evidence)),
        lines: list(item.lines).map(parseLine),
        advice: list(item.advice).map((a) => ({
          id: str(a.id),
          file: str(a.file),
          lines: Array.isArray(a.lines) ? a.lines.flatMap((line) => num(line) ?? []) : [],
          title: str(a.title),
          text: str(a.text),
          share: num(a.share),
        })),
      };
    }),
  };
}

function parseLine(line: Json): ProfileLine {
  const slots: Record<string, number> = {};
  for (const [unit, value] of Object.entries(obj(line.slots) ?? {})) slots[unit] = num(value) ?? 0;
  return {
    file: str(line.file),
    line: num(line.line) ?? 0,
    source: str(line.source),
    cycles: num(line.cycles) ?? 0,
    share: num(line.share) ?? 0,
    slots,
    spills: num(line.spills) ?? 0,
    casts: num(line.casts) ?? 0,
    castsInserted: num(line.casts_inserted) ?? 0,
    relayouts: num(line.relayouts) ?? 0,
    dmaBytes: num(line.dma_bytes) ?? 0,
    dmaWaitCycles: num(line.dma_wait_cycles) ?? 0,
    liveRegisters: num(line.live_registers) ?? 0,
  };
}

/** The error of a command's object, in one line; nothing when it has none. */
export function errorOfResult(text: string): string | undefined {
  const error = obj(parseObject(text)?.error);
  if (!error) return undefined;
  return [str(error.message), str(error.remedy)].filter((part) => part !== '').join(' ');
}

export function parseObject(text: string): Json | undefined {
  try {
    return obj(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function obj(value: unknown): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
}
function list(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(obj).filter((item) => item !== undefined) : [];
}
function str(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
function num(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
function positive(value: unknown): number | undefined {
  const number = num(value);
  return number !== undefined && number > 0 ? number : undefined;
}
function strings(value: Json | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(value ?? {}).flatMap(([k, v]) => (typeof v === 'string' ? [[k, v]] : [])));
}
