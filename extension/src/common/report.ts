// A report of a problem: versions, health and the end of the log, with everything taken out that could be a secret or
// name the user. What leaves this function is what the user sees and may send; nothing is sent by the program.

export interface ReportParts {
  readonly versions: Readonly<Record<string, string>>;
  readonly doctor: readonly { name: string; status: string; value: string }[];
  readonly status: string;
  readonly log: string;
  readonly home: string;
  readonly user: string;
}

export function makeReport(parts: ReportParts): string {
  const text = [
    '# Kernelwright: report of a problem',
    '',
    'What happened, and what did you expect?',
    '',
    '',
    '## Versions',
    '',
    ...Object.entries(parts.versions).map(([name, version]) => `- ${name}: ${version}`),
    '',
    '## Daemon',
    '',
    parts.status,
    '',
    '## Doctor',
    '',
    ...parts.doctor.map((item) => `- ${item.name}: ${item.status}, ${item.value}`),
    '',
    '## End of the log',
    '',
    '```',
    parts.log.trimEnd(),
    '```',
    '',
  ].join('\n');
  return redact(text, parts.home, parts.user);
}

export function redact(text: string, home = '', user = ''): string {
  let out = text
    .replace(/\b(?:sk|pk|ghp|gho|ghs|glpat|hf|xox[abp])[-_][A-Za-z0-9_-]{12,}/g, '[redacted]')
    .replace(/\bAIza[0-9A-Za-z_-]{20,}/g, '[redacted]')
    .replace(
      // eslint-disable-next-line max-len
      /\b(authorization|bearer|token|cookie|password|passwd|secret|api[-_]?key)\b(["']?\s*[:=]\s*|\s+)(?:bearer\s+)?["']?[^\s"',;]+/gi,
      '$1$2[redacted]',
    )
    .replace(/\b[0-9a-f]{64}\b/g, '[64 hexadecimal digits]')
    .replace(/\b[\w.+-]+@[\w-]+\.[\w.-]+\b/g, '[address]')
    .replace(/:\/\/[^/\s:@]+:[^/\s@]+@/g, '://[redacted]@');
  if (home.length > 1) out = out.replaceAll(home, '~');
  if (user.length > 1 && user !== 'root') out = out.replaceAll(`/${user}/`, '/[user]/');
  return out;
}
